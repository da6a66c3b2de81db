package state

import (
	"encoding/binary"
	"fmt"
	"math"

	"weir"
)

// A loader puts the blocks of one file into a store.
type loader struct {
	store *Store
	take  weir.KeyGroupRange // to be taken
	of    weir.KeyGroupRange // the file's
	size  int64              // of the file
	table *Table
	left  uint64 // entries of table still to come
	total uint64 // entries read, taken or not
}

func (l *loader) header(p []byte) error {
	const fixed = 4 + 4 + 1 + 8
	if l.left > 0 {
		return damaged("%d entries of table %q are missing", l.left, l.table.name)
	}
	if len(p) < fixed {
		return damaged("a table block of %d bytes", len(p))
	}
	groups, words := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:])
	if int64(groups) != int64(l.store.maxParallelism) {
		return fmt.Errorf("%w: it was written with max_parallelism %d, this job has %d", weir.ErrInvalid, groups, l.store.maxParallelism)
	}
	if words > math.MaxUint16 || p[8] > 1 {
		return damaged("a table of %d words", words)
	}
	name, layout := string(p[fixed:]), Layout{Words: int(words), Blob: p[8] == 1}
	if l.table = l.store.find(name); l.table == nil {
		l.table = l.store.Table(name, layout)
	} else if l.table.layout != layout {
		return fmt.Errorf("%w: table %q has layout %+v there and %+v here", weir.ErrInvalid, name, layout, l.table.layout)
	}
	l.left = binary.LittleEndian.Uint64(p[9:])
	if l.left > uint64(l.size/entryFixed) {
		return damaged("%d entries in %d bytes", l.left, l.size)
	}
	l.table.index.reserve(l.table.index.n + int(l.left)*(l.take.End-l.take.Start)/(l.of.End-l.of.Start))
	return nil
}

// columns cuts a block of entries into its columns.
type columns struct {
	rest  []byte
	short bool
}

func (c *columns) cut(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.short = true
		return nil
	}
	head := c.rest[:n]
	c.rest = c.rest[n:]
	return head
}

// lengths cuts n lengths of 4 bytes and returns them with their sum.
func (c *columns) lengths(n int) (lengths []byte, sum int) {
	lengths = c.cut(4 * n)
	for i := 0; i < len(lengths); i += 4 {
		sum += int(binary.LittleEndian.Uint32(lengths[i:]))
	}
	return lengths, sum
}

func (l *loader) entries(p []byte) error {
	if l.table == nil || len(p) < 4 {
		return damaged("entries without a table")
	}
	n, words := int(binary.LittleEndian.Uint32(p)), l.table.layout.Words
	c := columns{rest: p[4:]}
	hashes := c.cut(8 * n)
	keySizes, sum := c.lengths(n)
	keys := c.cut(sum)
	values := c.cut(8 * n * words)
	var blobSizes, blobs []byte
	if l.table.layout.Blob {
		blobSizes, sum = c.lengths(n)
		blobs = c.cut(sum)
	}
	if c.short || len(c.rest) != 0 || uint64(n) > l.left {
		return damaged("a block of %d entries does not hold together", n)
	}
	l.left -= uint64(n)
	l.total += uint64(n)
	for i := range n {
		e := entry{hash: binary.LittleEndian.Uint64(hashes[8*i:])}
		e.key, keys = next(keys, keySizes, i)
		e.words = values[8*words*i : 8*words*(i+1)]
		if l.table.layout.Blob {
			e.blob, blobs = next(blobs, blobSizes, i)
		}
		if err := l.put(e); err != nil {
			return err
		}
	}
	return nil
}

// next splits off the i-th value of a column.
func next(column, lengths []byte, i int) (value, rest []byte) {
	n := binary.LittleEndian.Uint32(lengths[4*i:])
	return column[:n], column[n:]
}

// An entry is one entry as the file has it.
type entry struct {
	hash  uint64
	key   []byte // state key
	words []byte
	blob  []byte
}

func (l *loader) put(e entry) error {
	group := weir.KeyGroupOf(e.hash, l.store.maxParallelism)
	if len(e.key) < groupSize || int(binary.BigEndian.Uint16(e.key)) != group {
		return damaged("a key that is not of key group %d", group)
	}
	if !l.take.Contains(group) {
		return nil
	}
	slot, fresh := l.table.Upsert(e.hash, e.key[groupSize:])
	if !fresh {
		return damaged("a key of key group %d is there twice", group)
	}
	w := l.table.Words(slot)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(e.words[8*i:])
	}
	if len(e.blob) > 0 {
		l.table.SetBlob(slot, e.blob)
	}
	return nil
}

func (l *loader) end(p []byte) error {
	if l.left > 0 {
		return damaged("%d entries of table %q are missing", l.left, l.table.name)
	}
	if len(p) != 8 || binary.LittleEndian.Uint64(p) != l.total {
		return damaged("it holds %d entries, not as many as it says", l.total)
	}
	return nil
}

package state

import (
	"encoding/binary"
	"math"
	"sort"

	"weir"
)

// directoryFrom is the size from which on a piece has a directory: whoever needs some of its
// key groups then reads these alone.
const directoryFrom = 64 << 10

// A directory says where the blocks of entries lie in a piece. It is the rest of the payload
// of the block at the end:
//
//	number of tables (4), and of each the payload of its block: length (4), bytes
//	number of blocks (4), and packed columns of them: the number of the table, where the block
//	begins, entries, hash of the first
//	length of the block at the end (4): the last bytes of the piece
type directory struct {
	tables  [][]byte
	of      []uint64 // the table of each block
	offsets []uint64
	counts  []uint64
	firsts  []uint64
	end     int64 // where the block at the end begins
}

// add enters a block of the last table.
func (d *directory) add(at, entries int, first uint64) {
	d.of, d.offsets = append(d.of, uint64(len(d.tables)-1)), append(d.offsets, uint64(at))
	d.counts, d.firsts = append(d.counts, uint64(entries)), append(d.firsts, first)
}

// append appends the directory to a piece whose last block begins at end.
func (d *directory) append(dst []byte, end int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.tables)))
	for _, t := range d.tables {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(t))), t...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.of)))
	for _, column := range [][]uint64{d.of, d.offsets, d.counts, d.firsts} {
		dst = appendPacked(dst, column)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(dst)+4-end))
}

// readDirectory reads the directory of a piece of size bytes from the block at its end; ok is
// false for anything that is none: the piece is to be read as a whole then, which says what is
// wrong with it.
func readDirectory(block []byte, size int64) (d *directory, ok bool) {
	if len(block) < blockHeader+endSize || block[0] != blockEnd || int64(binary.LittleEndian.Uint32(block[1:])) != int64(len(block)-blockHeader) {
		return nil, false
	}
	payload := block[blockHeader:]
	if blockSum(blockEnd, payload) != binary.LittleEndian.Uint64(block[5:]) {
		return nil, false
	}
	r := columnReader{rest: payload[endSize:]}
	d = &directory{end: size - int64(len(block))}
	for n := r.uint32(); n > 0 && !r.bad; n-- {
		d.tables = append(d.tables, r.take(int(r.uint32())))
	}
	n := int(r.uint32())
	if n > len(payload) { // a block is of several bytes there
		return nil, false
	}
	for _, column := range []*[]uint64{&d.of, &d.offsets, &d.counts, &d.firsts} {
		*column = r.packed(nil, n)
	}
	if _ = r.uint32(); r.bad || len(r.rest) > 0 {
		return nil, false
	}
	for i, at := range d.offsets {
		if at >= uint64(d.end) || i > 0 && at <= d.offsets[i-1] || d.of[i] >= uint64(len(d.tables)) {
			return nil, false
		}
	}
	return d, true
}

// A span is a part of a piece from the beginning of a block on, to the end of one.
type span struct {
	from, to int64
	table    []byte // of its first block
}

// spanGap is what is read between two blocks rather than asked for twice.
const spanGap = 128 << 10

// spans gives the parts in which the entries of key groups lie.
func (d *directory) spans(groups weir.KeyGroupRange, maxParallelism int) (list []span) {
	for i := 0; i < len(d.of); {
		to := i + sort.Search(len(d.of)-i, func(k int) bool { return d.of[i+k] != d.of[i] })
		list = d.tableSpans(list, i, to, groups, maxParallelism)
		i = to
	}
	return list
}

// tableSpans appends those of a table, whose blocks are from i to to.
func (d *directory) tableSpans(list []span, i, to int, groups weir.KeyGroupRange, maxParallelism int) []span {
	for ; i < to; i++ {
		next, end := uint64(math.MaxUint64), d.end
		if i+1 < to {
			next = d.firsts[i+1]
		}
		if i+1 < len(d.offsets) {
			end = int64(d.offsets[i+1])
		}
		if weir.KeyGroupOf(d.firsts[i], maxParallelism) >= groups.End || weir.KeyGroupOf(next, maxParallelism) < groups.Start {
			continue
		}
		from := int64(d.offsets[i])
		if n := len(list); n > 0 && from-list[n-1].to <= spanGap {
			list[n-1].to = end
			continue
		}
		list = append(list, span{from, end, d.tables[d.of[i]]})
	}
	return list
}

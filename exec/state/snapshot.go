package state

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/zeebo/xxh3"

	"weir"
)

// A snapshot is a file, little-endian where nothing else is said:
//
//	"WRST", version (1 byte: 1), then blocks
//	block    kind (1 byte), length of the payload (4), xxh3 of kind and payload (8), payload
//	table    (kind 1) key groups in all (4), words (4), blob (1: 0 or 1), entries in
//	         this file (8), name
//	entries  (kind 2) of the last table: count (4), then columns: hashes (8 each),
//	         lengths of the state keys (4 each), state keys, words (entry by entry),
//	         and with blobs their lengths (4 each) and bytes
//	end      (kind 3) number of entries in all (8)
//
// Entries ascend by state key (key group, key) within a table (S4).
const (
	magic         = "WRST"
	formatVersion = 1
	blockHeader   = 1 + 4 + 8
	blockTable    = 1
	blockEntries  = 2
	blockEnd      = 3
	entryFixed    = 8 + 4   // hash, length of the key
	blockSize     = 1 << 18 // aimed at by a block of entries
)

// An encoder is the file of one piece of a cut, made block by block as it is read.
type encoder struct {
	ctx     context.Context
	cut     *Cut
	piece   piece
	table   int     // the next table
	slots   []int32 // entries still to come of the table before it
	started bool
	ended   bool
	total   uint64
	block   []byte
	columns [5][]byte // of a block of entries
	unread  []byte    // of block
	written int64
	sum     *xxh3.Hasher
}

func newEncoder(ctx context.Context, c *Cut, p piece) *encoder {
	return &encoder{ctx: ctx, cut: c, piece: p, sum: xxh3.New()}
}

// done reports whether everything was read.
func (e *encoder) done() bool { return e.ended && len(e.unread) == 0 }

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.unread) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		if err := e.ctx.Err(); err != nil {
			return 0, err
		}
		e.fill()
	}
	n := copy(p, e.unread)
	e.unread = e.unread[n:]
	_, _ = e.sum.Write(p[:n]) // a hash never fails
	e.written += int64(n)
	return n, nil
}

// fill makes the next block.
func (e *encoder) fill() {
	e.block = e.block[:0]
	if !e.started {
		e.started = true
		e.block = append(append(e.block, magic...), formatVersion)
	}
	start := len(e.block)
	switch {
	case len(e.slots) > 0:
		e.begin(blockEntries)
		e.entries(&e.cut.tables[e.table-1])
	case e.table < len(e.cut.tables):
		e.begin(blockTable)
		e.header()
	default:
		e.begin(blockEnd)
		e.block = binary.LittleEndian.AppendUint64(e.block, e.total)
		e.ended = true
	}
	sealBlock(e.block[start:])
	e.unread = e.block
}

// begin appends the header of a block, still without length and checksum.
func (e *encoder) begin(kind byte) {
	e.block = append(e.block, kind)
	e.block = append(e.block, make([]byte, blockHeader-1)...)
}

// sealBlock sets length and checksum of a whole block.
func sealBlock(block []byte) {
	binary.LittleEndian.PutUint32(block[1:], uint32(len(block)-blockHeader))
	binary.LittleEndian.PutUint64(block[5:], blockSum(block[0], block[blockHeader:]))
}

// blockSum is the checksum of a block: kind and payload.
func blockSum(kind byte, payload []byte) uint64 { return xxh3.HashSeed(payload, uint64(kind)) }

// header begins the next table.
func (e *encoder) header() {
	t := &e.cut.tables[e.table]
	first := e.cut.keyGroups.Start
	e.slots = t.order.slots[t.order.starts[e.piece.groups.Start-first]:t.order.starts[e.piece.groups.End-first]]
	e.total += uint64(len(e.slots))
	b := binary.LittleEndian.AppendUint32(e.block, uint32(e.cut.maxParallelism))
	b = binary.LittleEndian.AppendUint32(b, uint32(t.layout.Words))
	b = append(b, 0)
	if t.layout.Blob {
		b[len(b)-1] = 1
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(e.slots)))
	b = append(b, t.name...)
	e.block = b
	e.table++
}

// entries appends as many entries as fit into a block, column by column.
func (e *encoder) entries(t *cutTable) {
	c := &e.columns
	for i := range c {
		c[i] = c[i][:0]
	}
	n, size := 0, 0
	for n < len(e.slots) && size < blockSize {
		slot := int(e.slots[n])
		chunk := t.chunks[slot>>chunkBits]
		r := chunk.at(t.rec, slot&chunkMask)
		key := chunk.key(r)
		c[0] = binary.LittleEndian.AppendUint64(c[0], r[0])
		c[1] = binary.LittleEndian.AppendUint32(c[1], uint32(groupSize+len(key)))
		c[2] = appendStateKey(c[2], weir.KeyGroupOf(r[0], e.cut.maxParallelism), key)
		for _, w := range r[t.rec.words:] {
			c[3] = binary.LittleEndian.AppendUint64(c[3], w)
		}
		if t.layout.Blob {
			c[4] = binary.LittleEndian.AppendUint32(c[4], uint32(len(chunk.text(r[3]))))
		}
		size += entrySize(chunk, t.rec, r)
		n++
	}
	e.block = binary.LittleEndian.AppendUint32(e.block, uint32(n))
	for _, column := range c {
		e.block = append(e.block, column...)
	}
	if t.layout.Blob {
		for _, slot := range e.slots[:n] {
			chunk := t.chunks[slot>>chunkBits]
			e.block = append(e.block, chunk.text(chunk.at(t.rec, int(slot)&chunkMask)[3])...)
		}
	}
	e.slots = e.slots[n:]
}

package state

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/zeebo/xxh3"
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
	table   int // the next table
	next    int // the next entry of the table before it, an index into its order
	started bool
	ended   bool
	total   uint64
	block   []byte
	unread  []byte // of block
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
	case e.table > 0 && e.next < e.piece.to[e.table-1]:
		e.begin(blockEntries)
		e.entries(&e.cut.tables[e.table-1], e.piece.to[e.table-1])
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
	n := e.piece.to[e.table] - e.piece.from[e.table]
	b := binary.LittleEndian.AppendUint32(e.block, uint32(e.cut.maxParallelism))
	b = binary.LittleEndian.AppendUint32(b, uint32(t.layout.Words))
	b = append(b, 0)
	if t.layout.Blob {
		b[len(b)-1] = 1
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	e.block = append(b, t.name...)
	e.next = e.piece.from[e.table]
	e.total += uint64(n)
	e.table++
}

// entries appends as many of the table's entries, below to, as fit into a block.
func (e *encoder) entries(t *cutTable, to int) {
	from, size := e.next, 0
	for e.next < to && size < blockSize {
		size += t.entrySize(int(t.order[e.next]))
		e.next++
	}
	slots := t.order[from:e.next]
	b := binary.LittleEndian.AppendUint32(e.block, uint32(len(slots)))
	for _, s := range slots {
		b = binary.LittleEndian.AppendUint64(b, t.record(int(s))[0])
	}
	for _, s := range slots {
		b = binary.LittleEndian.AppendUint32(b, uint32(groupSize+len(keyAt(t.chunks, t.rec, int(s)))))
	}
	for i, s := range slots {
		b = appendStateKey(b, t.groupAt(from+i, e.cut.maxParallelism), keyAt(t.chunks, t.rec, int(s)))
	}
	for _, s := range slots {
		for _, w := range t.record(int(s))[t.rec.words:] {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	if t.layout.Blob {
		for _, s := range slots {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(t.blob(int(s)))))
		}
		for _, s := range slots {
			b = append(b, t.blob(int(s))...)
		}
	}
	e.block = b
}

func (t *cutTable) blob(slot int) []byte {
	return t.chunks[slot>>chunkBits].text(t.record(slot)[3])
}

package state

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
)

// A run is entries of a store, ascending by (table, hash, key), in pieces. A piece is a
// file, little-endian where nothing else is said:
//
//	"WRST", version (1 byte: 2), then blocks
//	block    kind (1 byte), length of the payload (4), xxh3 of kind and payload (8), payload
//	table    (kind 1) key groups in all (4), kind of keys (1), words (4), blob (1: 0 or 1), name
//	entries  (kind 2) of the last table: columns
//	end      (kind 3) number of entries in all (8), key groups: first, last + 1 (4 each), and
//	         of a large piece its directory
//
// Tables ascend by name. A piece ends between two entries of any table.
const (
	magic           = "WRST"
	formatVersion   = 2
	blockHeader     = 1 + 4 + 8
	endSize         = 8 + 4 + 4 // without a directory
	blockTable      = 1
	blockEntries    = 2
	blockEnd        = 3
	maxBlockEntries = 1 << 13
	blockSize       = 1 << 18 // aimed at by a block of entries
)

// Limits of a snapshot's pieces, in bytes.
const (
	InlineLimit = 8 << 10  // up to this size a piece travels inside the handle
	pieceSize   = 16 << 20 // aimed at by an object
)

// A Piece is a part of a run, ready to be stored.
type Piece struct {
	Data      []byte
	Checksum  uint64             // xxh3 of Data
	KeyGroups weir.KeyGroupRange // of its entries

	file string // where a shelf has put Data; empty: it is here
	size int    // of the file
}

// Size is how many bytes the piece has.
func (p Piece) Size() int { return len(p.Data) + p.size }

// held is the memory that the piece takes.
func (p Piece) held() int64 { return int64(cap(p.Data)) }

// Handle describes the piece once it is stored as an object; without a name it lies in
// the handle.
func (p Piece) Handle(object string, delta bool) checkpoint.Handle {
	h := checkpoint.Handle{Object: object, Size: int64(p.Size()), Checksum: p.Checksum, KeyGroups: p.KeyGroups, Delta: delta}
	switch {
	case object != "":
	case p.file != "":
		h.Object = shelved + p.file
	default:
		h.Inline = p.Data
	}
	return h
}

const (
	runWork = 2 * time.Millisecond // on a run, until it rests
	runRest = 100 * time.Microsecond
)

// A runWriter makes the pieces of a run and hands each on when it is full.
type runWriter struct {
	maxParallelism int
	emit           func(Piece) error
	pieceSize      int
	rested         time.Time // when it rested last, or began

	piece   []byte
	last    int // bytes of the piece before: the next one may be as large
	expect  int // entries of the table to come; 0: nobody knows
	table   string
	begun   bool // the piece has the table's header
	entries uint64
	groups  weir.KeyGroupRange
	dir     directory
	of      *columns // of the table; to be filled by the caller
}

func newRunWriter(maxParallelism, size int, emit func(Piece) error) *runWriter {
	return &runWriter{maxParallelism: maxParallelism, emit: emit, pieceSize: size, rested: time.Now()}
}

// begin turns to the next table and returns what its entries are to be added to.
func (w *runWriter) begin(name string, l Layout) *columns {
	if w.of == nil || w.of.layout != l {
		w.of = newColumns(l)
	}
	w.of.reset()
	w.table, w.begun = name, false
	return w.of
}

// flush writes the entries that were added as a block.
func (w *runWriter) flush() error {
	n := w.of.len()
	if n == 0 {
		return nil
	}
	if len(w.piece) == 0 {
		w.piece = append(append(make([]byte, 0, w.last+w.last/16), magic...), formatVersion)
		w.groups = weir.KeyGroupRange{Start: w.maxParallelism}
	}
	if !w.begun {
		w.header()
		w.begun = true
	}
	at := w.block(blockEntries)
	w.dir.add(at, n, w.of.hashes[0])
	w.piece = w.of.append(w.piece)
	sealBlock(w.piece[at:])
	if w.expect = max(w.expect-n, 0); w.expect > 0 {
		w.grow((len(w.piece) - at) * w.expect / n)
	}
	w.entries += uint64(n)
	w.groups.Start = min(w.groups.Start, weir.KeyGroupOf(w.of.hashes[0], w.maxParallelism))
	w.groups.End = max(w.groups.End, weir.KeyGroupOf(w.of.hashes[n-1], w.maxParallelism)+1)
	w.of.reset()
	w.rest()
	if len(w.piece) >= w.pieceSize {
		return w.end()
	}
	return nil
}

// rest is called between blocks, so that the loops beside it have their turn. While any goroutine could
// run, the runtime looks at the network, from which their batches come, once in 10 ms or less often: stepping
// back for a moment (runtime.Gosched) would not do.
func (w *runWriter) rest() {
	if now := time.Now(); now.Sub(w.rested) >= runWork {
		<-time.After(runRest)
		w.rested = time.Now()
	}
}

// grow makes room at once for so many bytes to come, or as many as the piece takes.
func (w *runWriter) grow(more int) {
	most := w.pieceSize + blockSize
	if need := min(len(w.piece)+more+more/16, most); need > cap(w.piece) {
		w.piece = append(make([]byte, 0, need), w.piece...)
	}
}

// header begins the table in the piece.
func (w *runWriter) header() {
	at := w.block(blockTable)
	b := binary.LittleEndian.AppendUint32(w.piece, uint32(w.maxParallelism))
	b = append(b, byte(w.of.layout.Key))
	b = binary.LittleEndian.AppendUint32(b, uint32(w.of.layout.Words))
	b = append(b, byte(truth(w.of.layout.Blob)))
	b = append(b, w.table...)
	w.piece = b
	sealBlock(w.piece[at:])
	w.dir.tables = append(w.dir.tables, w.piece[at+blockHeader:])
}

// block appends the header of a block, still without length and checksum, and returns
// where it begins.
func (w *runWriter) block(kind byte) int {
	at := len(w.piece)
	w.piece = append(w.piece, kind)
	w.piece = append(w.piece, make([]byte, blockHeader-1)...)
	return at
}

// end hands on the piece, if there is one.
func (w *runWriter) end() error {
	if len(w.piece) == 0 {
		return nil
	}
	at := w.block(blockEnd)
	w.piece = binary.LittleEndian.AppendUint64(w.piece, w.entries)
	w.piece = binary.LittleEndian.AppendUint32(w.piece, uint32(w.groups.Start))
	w.piece = binary.LittleEndian.AppendUint32(w.piece, uint32(w.groups.End))
	if at >= directoryFrom {
		w.piece = w.dir.append(w.piece, at)
	}
	w.dir = directory{}
	sealBlock(w.piece[at:])
	if cap(w.piece)-len(w.piece) > len(w.piece)/2 {
		w.piece = slices.Clone(w.piece)
	}
	p := Piece{Data: w.piece, Checksum: xxh3.Hash(w.piece), KeyGroups: w.groups}
	w.piece, w.last, w.begun, w.entries = nil, len(w.piece), false, 0
	return w.emit(p)
}

// sealBlock sets length and checksum of a whole block.
func sealBlock(block []byte) {
	binary.LittleEndian.PutUint32(block[1:], uint32(len(block)-blockHeader))
	binary.LittleEndian.PutUint64(block[5:], blockSum(block[0], block[blockHeader:]))
}

// blockSum is the checksum of a block: kind and payload.
func blockSum(kind byte, payload []byte) uint64 { return xxh3.HashSeed(payload, uint64(kind)) }

// Run writes what the cut shows as a run, and releases the cut. A cut that shows nothing has no
// pieces.
func (c *Cut) Run() []Piece { return c.run(pieceSize) }

func (c *Cut) run(size int) (pieces []Piece) {
	_ = c.write(size, func(p Piece) error { // it never fails
		pieces = append(pieces, p)
		return nil
	})
	return pieces
}

// Write writes what the cut shows as a run, on a shelf, and releases the cut.
func (c *Cut) Write(to *Shelf) (pieces []Piece, err error) {
	err = c.write(pieceSize, func(p Piece) error {
		p, err := to.Put(p)
		pieces = append(pieces, p)
		return err
	})
	return pieces, err
}

func (c *Cut) write(size int, emit func(Piece) error) error {
	defer c.Release()
	w := newRunWriter(c.maxParallelism, size, emit)
	slices.SortFunc(c.tables, func(a, b cutTable) int { return compareNames(a.name, b.name) })
	c.whole = c.isWhole()
	for i := range c.tables {
		if err := c.tables[i].write(w, c.keyGroups, c.whole, &c.store.slabs); err != nil {
			return err
		}
	}
	return w.end()
}

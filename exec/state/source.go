package state

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// compareNames orders tables.
func compareNames(a, b string) int { return strings.Compare(a, b) }

func nameOf(h checkpoint.Handle) string {
	if h.Object == "" {
		return fmt.Sprintf("the %d bytes inside the checkpoint for key groups %v", len(h.Inline), h.KeyGroups)
	}
	return "object " + h.Object
}

// damaged makes the error for content that cannot be what was written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: damaged: %s", weir.ErrInvalid, fmt.Sprintf(format, args...))
}

// A source reads the piece that a handle names, block by block. Everything is checked:
// each block by its checksum before it is used, the whole by the handle's at its end.
type source struct {
	handle         checkpoint.Handle
	maxParallelism int
	version        byte

	in      *bufio.Reader // nil: data is all there is to read
	data    []byte
	part    bool // data are some blocks of the piece, not all of it
	close   io.Closer
	sum     *xxh3.Hasher
	left    int64 // bytes that the handle promises and that were not read
	buf     []byte
	name    string // of the last table
	layout  Layout
	tables  int    // read so far
	entries uint64 // likewise
}

// openSource opens the piece of a handle. A missing object is weir.ErrNotFound, a damaged
// one weir.ErrInvalid.
func openSource(ctx context.Context, blobs blob.Store, h checkpoint.Handle, maxParallelism, buffer int) (*source, error) {
	s := &source{handle: h, maxParallelism: maxParallelism, sum: xxh3.New(), left: h.Size}
	var from io.Reader = bytes.NewReader(h.Inline)
	if h.Object != "" {
		object, err := blobs.Get(ctx, h.Object, 0, -1)
		if err != nil {
			return nil, err
		}
		from, s.close = object, object
	}
	s.in = bufio.NewReaderSize(from, int(min(int64(buffer), h.Size))) // many pieces are small
	if err := s.begins(); err != nil {
		return nil, errors.Join(err, s.shut())
	}
	return s, nil
}

// begins reads what a piece begins with.
func (s *source) begins() error {
	head, err := s.take(len(magic) + 1)
	switch {
	case err != nil:
		return err
	case string(head[:len(magic)]) != magic:
		return damaged("it is no snapshot of keyed state")
	case head[len(magic)] > formatVersion || head[len(magic)] == 0:
		return fmt.Errorf("%w: format version %d, this build reads versions 1 to %d", weir.ErrInvalid, head[len(magic)], formatVersion)
	}
	s.version = head[len(magic)]
	return nil
}

func (s *source) shut() error {
	if s.close == nil {
		return nil
	}
	return s.close.Close()
}

// take reads the next n bytes, into memory that the next call uses again unless the piece
// lies in memory.
func (s *source) take(n int) ([]byte, error) {
	if int64(n) > s.left {
		return nil, damaged("it ends too early")
	}
	if s.in == nil {
		b := s.data[:n:n]
		s.data, s.left = s.data[n:], s.left-int64(n)
		return b, nil
	}
	if cap(s.buf) < n {
		s.buf = make([]byte, n+n/4)
	}
	b := s.buf[:n]
	if _, err := io.ReadFull(s.in, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, damaged("it is %d bytes too short", s.left)
		}
		return nil, err
	}
	s.left -= int64(n)
	_, _ = s.sum.Write(b) // a hash never fails
	return b, nil
}

// block reads the next block and checks it.
func (s *source) block() (kind byte, payload []byte, err error) {
	head, err := s.take(blockHeader)
	if err != nil {
		return 0, nil, err
	}
	kind, sum := head[0], binary.LittleEndian.Uint64(head[5:])
	if payload, err = s.take(int(binary.LittleEndian.Uint32(head[1:]))); err != nil {
		return 0, nil, err
	}
	if blockSum(kind, payload) != sum {
		return 0, nil, damaged("a block's checksum does not match")
	}
	return kind, payload, nil
}

// next reads on to the next block of entries, whose payload is valid until the next
// call; nil: the piece ends, all of it was read, and it is what the handle promises.
func (s *source) next() (entries []byte, err error) {
	for {
		if s.part && s.left == 0 {
			return nil, nil
		}
		kind, payload, err := s.block()
		if err != nil {
			return nil, err
		}
		switch kind {
		case blockTable:
			if err := s.header(payload); err != nil {
				return nil, err
			}
		case blockEntries:
			if s.tables == 0 || len(payload) < 4 {
				return nil, damaged("entries without a table")
			}
			s.entries += uint64(binary.LittleEndian.Uint32(payload))
			return payload, nil
		case blockEnd:
			return nil, s.end(payload)
		default:
			return nil, damaged("a block of unknown kind %d", kind)
		}
	}
}

// header reads the header of a table.
func (s *source) header(p []byte) error {
	if s.version == 1 {
		return s.headerV1(p)
	}
	const fixed = 4 + 1 + 4 + 1
	if len(p) < fixed {
		return damaged("a table block of %d bytes", len(p))
	}
	name := string(p[fixed:])
	if s.tables > 0 && compareNames(name, s.name) <= 0 {
		return damaged("table %q comes behind table %q", name, s.name)
	}
	return s.begin(name, binary.LittleEndian.Uint32(p), p[4], binary.LittleEndian.Uint32(p[5:]), p[9])
}

func (s *source) begin(name string, groups uint32, key byte, words uint32, blobs byte) error {
	if int64(groups) != int64(s.maxParallelism) {
		return fmt.Errorf("%w: it was written with max_parallelism %d, this job has %d", weir.ErrInvalid, groups, s.maxParallelism)
	}
	if words > math.MaxUint16 || blobs > 1 || key > byte(IntKey) {
		return damaged("a table of %d words", words)
	}
	s.name, s.layout = name, Layout{Key: Key(key), Words: int(words), Blob: blobs == 1}
	s.tables++
	return nil
}

// end checks the whole piece.
func (s *source) end(p []byte) error {
	if s.version == 1 && len(p) != 8 || s.version > 1 && len(p) < endSize || binary.LittleEndian.Uint64(p) != s.entries {
		return damaged("it holds %d entries, not as many as it says", s.entries)
	}
	if s.left != 0 || s.part {
		return damaged("%d of its %d bytes are behind its end", s.left, s.handle.Size)
	}
	if s.in == nil {
		return nil // sum was compared before
	}
	if _, err := s.in.ReadByte(); err == nil {
		return damaged("it is longer than %d bytes", s.handle.Size)
	} else if !errors.Is(err, io.EOF) {
		return err // of the one who reads, not of what is read
	}
	if sum := s.sum.Sum64(); sum != s.handle.Checksum {
		return damaged("checksum %016x, its manifest says %016x", sum, s.handle.Checksum)
	}
	return nil
}

package state

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// Restore fills an empty store from the handles of one snapshot, whoever wrote them:
// it takes the entries of its own key groups (S5). Tables come to be as they were
// written; the operator's Table finds them. After an error the store is useless.
func (s *Store) Restore(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle) error {
	if s.Len() > 0 {
		panic("state: restore into a store with entries")
	}
	for _, h := range handles {
		take := h.KeyGroups.Intersect(s.keyGroups)
		if take.Empty() {
			continue
		}
		if err := s.load(ctx, blobs, h, take); err != nil {
			return fmt.Errorf("restore state from %s: %w", nameOf(h), err)
		}
	}
	return nil
}

func nameOf(h checkpoint.Handle) string {
	if h.Object == "" {
		return fmt.Sprintf("the %d bytes inside the checkpoint for key groups %v", len(h.Inline), h.KeyGroups)
	}
	return "object " + h.Object
}

func (s *Store) load(ctx context.Context, blobs blob.Store, h checkpoint.Handle, take weir.KeyGroupRange) (err error) {
	var source io.Reader = bytes.NewReader(h.Inline)
	if h.Object != "" {
		object, getErr := blobs.Get(ctx, h.Object, 0, -1)
		if getErr != nil {
			return getErr
		}
		defer func() { err = errors.Join(err, object.Close()) }()
		source = object
	}
	r := &fileReader{in: bufio.NewReaderSize(source, 1<<16), sum: xxh3.New(), left: h.Size}
	if err := s.loadBlocks(ctx, r, h, take); err != nil {
		return err
	}
	if r.left != 0 {
		return damaged("%d of its %d bytes are behind its end", r.left, h.Size)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("it is longer than %d bytes", h.Size)
	}
	if sum := r.sum.Sum64(); sum != h.Checksum {
		return damaged("checksum %016x, its manifest says %016x", sum, h.Checksum)
	}
	return nil
}

// damaged makes the error for content that cannot be what was written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: damaged: %s", weir.ErrInvalid, fmt.Sprintf(format, args...))
}

// A fileReader reads a file and sums what it read.
type fileReader struct {
	in   *bufio.Reader
	sum  *xxh3.Hasher
	left int64 // bytes that the handle promises and that were not read
	buf  []byte
}

// take reads the next n bytes into memory that the next call uses again.
func (r *fileReader) take(n int) ([]byte, error) {
	if int64(n) > r.left {
		return nil, damaged("it ends too early")
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, n+n/4)
	}
	b := r.buf[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, damaged("it is %d bytes too short", r.left)
		}
		return nil, err
	}
	r.left -= int64(n)
	_, _ = r.sum.Write(b) // a hash never fails
	return b, nil
}

// block reads the next block and checks it.
func (r *fileReader) block() (kind byte, payload []byte, err error) {
	head, err := r.take(blockHeader)
	if err != nil {
		return 0, nil, err
	}
	kind, sum := head[0], binary.LittleEndian.Uint64(head[5:])
	if payload, err = r.take(int(binary.LittleEndian.Uint32(head[1:]))); err != nil {
		return 0, nil, err
	}
	if blockSum(kind, payload) != sum {
		return 0, nil, damaged("a block's checksum does not match")
	}
	return kind, payload, nil
}

func (s *Store) loadBlocks(ctx context.Context, r *fileReader, h checkpoint.Handle, take weir.KeyGroupRange) error {
	head, err := r.take(len(magic) + 1)
	if err != nil {
		return err
	}
	if string(head[:len(magic)]) != magic {
		return damaged("it is no snapshot of keyed state")
	}
	if v := head[len(magic)]; v != formatVersion {
		return fmt.Errorf("%w: format version %d, this build reads version %d", weir.ErrInvalid, v, formatVersion)
	}
	l := loader{store: s, take: take, of: h.KeyGroups, size: h.Size}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, payload, err := r.block()
		if err != nil {
			return err
		}
		switch kind {
		case blockTable:
			err = l.header(payload)
		case blockEntries:
			err = l.entries(payload)
		case blockEnd:
			return l.end(payload)
		default:
			err = damaged("a block of unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

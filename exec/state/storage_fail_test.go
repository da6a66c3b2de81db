package state

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// An object store whose objects cannot be read to their very end.
type endless struct{ blob.Store }

// Get implements blob.Store.
func (s endless) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := s.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(r, iotest.ErrReader(errStorage)), r}, nil
}

// Storage that fails where an object ends has not damaged it.
func TestFailureAtTheEndIsNoDamage(t *testing.T) {
	t.Parallel()
	s, blobs := New(Options{MaxParallelism: testGroups}), blob.NewMemory()
	put(s.Table("t", textLayout), "a", 1, "text")
	p := s.Cut().Run()[0]
	if err := blobs.Put(t.Context(), "object", bytes.NewReader(p.Data)); err != nil {
		t.Fatal(err)
	}
	handles := []checkpoint.Handle{p.Handle("object", false)}
	_, restored := New(Options{MaxParallelism: testGroups}).Restore(t.Context(), endless{blobs}, handles)
	merged := Merge{MaxParallelism: testGroups, Handles: handles}.Run(t.Context(), endless{blobs}, func(Piece) error { return nil })
	for what, err := range map[string]error{"restored": restored, "merged": merged} {
		if !errors.Is(err, errStorage) || errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

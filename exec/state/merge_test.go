package state

import (
	"context"
	"io"
	"maps"
	"testing"

	"weir/checkpoint/blob"
)

// An object store that knows what is open.
type opened struct {
	blob.Store
	open, most int
}

// Get implements blob.Store.
func (s *opened) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := s.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	s.open++
	s.most = max(s.most, s.open)
	return &openedReader{r, s}, nil
}

type openedReader struct {
	io.ReadCloser
	of *opened
}

func (r *openedReader) Close() error {
	r.of.open--
	return r.ReadCloser.Close()
}

// A merge takes memory and connections for each run, not for each of its pieces.
func TestMergeOpensWhatItReads(t *testing.T) {
	t.Parallel()
	blobs := &opened{Store: blob.NewMemory()}
	s, handles := large(t, blobs, 120_000, 20_000)
	if len(handles) < 20 {
		t.Fatalf("%d pieces", len(handles))
	}
	var pieces []Piece
	m := Merge{MaxParallelism: testGroups, Handles: handles, Whole: true}
	if err := m.run(t.Context(), blobs, 20_000, func(p Piece) error { pieces = append(pieces, p); return nil }); err != nil {
		t.Fatal(err)
	}
	// Of two runs: the piece at hand, and those in which a table ends and the next one begins.
	if blobs.most > 6 || blobs.open > 0 {
		t.Errorf("of %d pieces %d were open at once, and %d still are", len(handles), blobs.most, blobs.open)
	}
	back := New(Options{MaxParallelism: testGroups})
	if _, err := back.Restore(t.Context(), nil, inline(pieces, false)); err != nil {
		t.Fatal(err)
	}
	got, _ := contents(back)
	want, _ := contents(s)
	if !maps.EqualFunc(want, got, maps.Equal) {
		t.Errorf("%d entries instead of %d, or others", back.Len(), s.Len())
	}
}

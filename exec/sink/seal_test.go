package sink

import (
	"errors"
	"os"
	"slices"
	"testing"

	"weir"
)

// TestSealedFilesAreClosed: a segment is flushed once, through the file that it was written to,
// which is closed when it has been published, or with the sink.
func TestSealedFilesAreClosed(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	s := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	var files []*os.File
	for id := range weir.CheckpointID(3) {
		process(t, s, ints(int64(id)))
		if _, err := s.Snapshot(id + 1); err != nil {
			t.Fatal(err)
		}
		files = append(files, s.segments[id].file)
		seal := s.Seal()
		if seal == nil || s.Seal() != nil {
			t.Fatalf("barrier %d: to be flushed not once", id+1)
		}
		if id == 1 { // while its successor is written and the first one published
			defer func() {
				if err := seal(); !errors.Is(err, os.ErrClosed) {
					t.Errorf("flushed behind its end: %v", err)
				}
			}()
			continue
		}
		if err := seal(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Snapshot(4); err != nil || s.Seal() != nil {
		t.Errorf("a barrier without rows has something to flush, or %v", err)
	}
	closed := func() (which []bool) {
		for _, f := range files {
			_, err := f.Stat()
			which = append(which, errors.Is(err, os.ErrClosed))
		}
		return which
	}
	commit(t, s, 1)
	if got := closed(); !slices.Equal(got, []bool{true, false, false}) {
		t.Errorf("closed when the first is published: %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := closed(); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("closed with the sink: %v", got)
	}
}

package state

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir"
)

// A run that the disk has damaged is not handed on as what it was: nobody would notice before
// the checkpoint is restored.
func TestShelfDamaged(t *testing.T) {
	t.Parallel()
	d, err := NewDisk("spill", DiskOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{MaxParallelism: 4, KeyGroups: weir.KeyGroupRange{End: 4}, Disk: d, Budget: NewBudget(1)})
	put(s.Table("t", Layout{Words: 1}), "a", 1, "")
	run, err := s.Cut().Write(s.Shelf())
	if err != nil || len(run) != 1 || run[0].file == "" {
		t.Fatalf("%+v, %v", run, err)
	}
	read := func() ([]byte, error) {
		r, err := s.Shelf().Open(run[0])
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		return b, errors.Join(err, r.Close())
	}
	whole, err := read()
	if err != nil || len(whole) != run[0].Size() {
		t.Fatalf("%d bytes of %d: %v", len(whole), run[0].Size(), err)
	}
	for what, content := range map[string][]byte{
		"a bit": append([]byte{whole[0] ^ 1}, whole[1:]...), "its end": whole[:len(whole)-1], "all": nil, "more": append(whole[:len(whole):len(whole)], 0),
	} {
		f, err := d.fs.Create(d.fs.PathJoin(d.dir, run[0].file), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append([]byte(nil), content...)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var disk *DiskError
		if b, err := read(); !errors.As(err, &disk) || !strings.Contains(err.Error(), "the folder spill for state that does not fit in memory: read: "+run[0].file) {
			t.Errorf("%s: %d bytes, %v", what, len(b), err)
		}
	}
	if err := errors.Join(s.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}

package state

import (
	"errors"
	"math/rand/v2"
	"testing"

	"weir/exec/batch"
)

// A filter knows every key that was added, and few others, also of a task that has one of 128
// key groups; it takes no more memory than it may, and then knows more.
func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		most          int64
		groups        uint // leading bits of a hash that are alike
		unknown, size float64
	}{
		{name: "free", most: 1 << 30, unknown: .02, size: 3.3},
		{name: "one key group", most: 1 << 30, groups: 7, unknown: .02, size: 3.3},
		{name: "a byte for each key", most: 200_000, unknown: .15, size: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const keys = 200_000
			r := rand.New(rand.NewPCG(1, 2))
			hash := func() uint64 { return r.Uint64()>>c.groups | 1<<63>>c.groups<<1 }
			var f filter
			var added []uint64
			for range keys / 10_000 {
				f.grow(10_000, 30_000, c.most-f.size())
				for range 10_000 {
					h := hash()
					f.add(h)
					added = append(added, h)
				}
			}
			for _, h := range added {
				if !f.knows(h) {
					t.Fatalf("%x was added and is not known", h)
				}
			}
			known := 0
			for range keys {
				if f.knows(hash()) {
					known++
				}
			}
			if part := float64(known) / keys; part > c.unknown {
				t.Errorf("of keys that were not added it knows %v", part)
			}
			if size := float64(f.size()) / keys; size > c.size {
				t.Errorf("%v bytes for each key in %d layers", size, len(f.layers))
			}
		})
	}
}

// Keys that have left the disk are forgotten: a filter that knows many of them is made anew,
// beside what else the table does, and a key that is there is known at any time.
func TestSift(t *testing.T) {
	t.Parallel()
	disk, err := NewDisk(scratchFolder, DiskOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Disk: disk, Budget: NewBudget(1 << 20)})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	spill := func(from, to int64) {
		for k := from; k < to; k++ {
			slot, _ := table.upsertInt(batch.HashInt(k), k)
			table.Words(slot)[0] = uint64(k)
		}
		s.Cut().Release()
		if _, err := table.spill(int(to - from)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(from, to int64) {
		t.Helper()
		for k := from; k < to; k++ {
			if !table.cold.filter.knows(batch.HashInt(k)) {
				t.Fatalf("%d is on disk and not known", k)
			}
		}
	}
	spill(0, 20_000)
	for k := range int64(18_000) {
		slot, ok := table.Find(batch.HashInt(k), appendIntKey(nil, k, false))
		if !ok {
			t.Fatalf("%d is not there", k)
		}
		table.Delete(slot)
	}
	for i := int64(0); table.cold.filter.n > 5_000; i++ {
		if i > 100 {
			t.Fatalf("the filter still knows %d keys", table.cold.filter.n)
		}
		spill(20_000+i, 20_001+i)
		if err := table.sift(); err != nil {
			t.Fatal(err)
		}
		check(18_000, 20_001+i)
	}
	if err := errors.Join(s.Close(), disk.Close()); err != nil {
		t.Fatal(err)
	}
}

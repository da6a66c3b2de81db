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

// A filter that is made anew keeps up with what is spilled meanwhile, be that ten times as much.
func TestSieveKeepsUp(t *testing.T) {
	t.Parallel()
	s := New(Options{Disk: memoryDisk(t), Budget: NewBudget(1 << 28)})
	numbers := s.Table("t", Layout{Key: IntKey, Words: 1})
	spill := func(from, to int64) {
		for x := from; x < to; x++ {
			putNumber(numbers, x, 1)
		}
		s.Cut().Release()
		if _, err := numbers.spill(int(to - from)); err != nil {
			t.Fatal(err)
		}
	}
	spill(0, 4_000)
	numbers.cold.sieve = &sieve{}
	numbers.cold.sieve.grow(4_000, 4_000, 1<<20)
	spill(4_000, 40_000)
	for i := 0; numbers.cold.sieve != nil; i++ {
		if err := numbers.sift(); err != nil || i > 200 {
			t.Fatal(err, i)
		}
	}
	known := 0
	for x := range int64(10_000) {
		if numbers.cold.filter.knows(batch.HashInt(1_000_000 + x)) {
			known++
		}
	}
	if known > 300 {
		t.Errorf("of 10000 keys that are not there it knows %d", known)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Many keys of one rank are sifted too: each step goes on, and none is left out.
func TestSiftOfEqualRanks(t *testing.T) {
	t.Parallel()
	const keys, ofRank = 4_000, 1_300
	s := New(Options{Disk: memoryDisk(t), Budget: NewBudget(1 << 28)})
	texts := s.Table("t", Layout{Words: 1})
	hash := func(i int) uint64 { return uint64(i)<<40 | uint64(i/ofRank*0x9e3779b9&0xffffffff) }
	for i := range keys {
		texts.Upsert(hash(i), []byte{byte(i), byte(i >> 8)})
	}
	s.Cut().Release()
	if _, err := texts.spill(keys); err != nil {
		t.Fatal(err)
	}
	texts.cold.sieve = &sieve{}
	texts.cold.sieve.grow(keys, keys, 1<<20)
	for i := 0; texts.cold.sieve != nil; i++ {
		if err := texts.sift(); err != nil || i > keys/ofRank+1 {
			t.Fatal(err, i)
		}
	}
	for i := range keys {
		if !texts.mayBeCold(hash(i)) {
			t.Fatalf("%d is on disk and not known", i)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A filter that is halved, down to nothing, still knows every key.
func TestFilterHalved(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var f filter
	var added []uint64
	for range 30 {
		f.grow(1000, 0, 1<<20)
		for range 1000 {
			added = append(added, r.Uint64())
			f.add(added[len(added)-1])
		}
	}
	for f.size() > int64(len(f.layers))*filterBytes {
		before := f.size()
		f.halve()
		for _, h := range added {
			if !f.knows(h) {
				t.Fatalf("%d bytes: %x was added and is not known", f.size(), h)
			}
		}
		if f.size() >= before {
			t.Fatalf("%d bytes of %d", f.size(), before)
		}
	}
}

package state

import (
	"errors"
	"testing"

	"weir/exec/batch"
)

// memoryDisk is a disk in memory, which the test's end closes.
func memoryDisk(t *testing.T) *Disk {
	t.Helper()
	disk, err := NewDisk(scratchFolder, DiskOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// What was copied aside for a cut counts until that one is released, though others are open
// all the time.
func TestAsideOfOverlappingCuts(t *testing.T) {
	t.Parallel()
	s := New(Options{Budget: NewBudget(1 << 30)})
	numbers := s.Table("t", Layout{Key: IntKey, Words: 1})
	var before *Cut
	first := int64(0)
	for round := range 20 {
		for x := range int64(10_000) {
			putNumber(numbers, x, uint64(round))
		}
		switch size := s.account(); {
		case round == 2:
			first = size
		case size > first && first > 0:
			t.Fatalf("round %d: %d bytes, which were %d", round, size, first)
		}
		cut := s.Cut()
		if before != nil {
			before.Release()
		}
		before = cut
	}
	before.Release()
}

// Deletions count, until a run has been made of them.
func TestGoneCounts(t *testing.T) {
	t.Parallel()
	const keys, least = 20_000, 8 + 8 + batch.IntKeySize // of the key that is kept for each
	s := New(Options{Budget: NewBudget(1 << 30)})
	numbers := s.Table("t", Layout{Key: IntKey, Words: 1})
	for x := range int64(keys) {
		putNumber(numbers, x, 1)
	}
	s.Cut().Release()
	before := s.account()
	numbers.Range(func(slot int) bool { numbers.Delete(slot); return true })
	before += int64(8 * cap(numbers.free))
	if more := s.account() - before; more < keys*least {
		t.Errorf("%d deletions count for %d bytes", keys, more)
	}
	cut := s.Cut()
	if more := s.account() - before; more < keys*least {
		t.Errorf("%d deletions count for %d bytes beside a cut", keys, more)
	}
	cut.Release()
	if more := s.account() - before; more > 0 {
		t.Errorf("%d bytes stay", more)
	}
}

// Empty chunks go at once, and with them the list of their slots: looking through what is left of
// that for each few of them would hold up the loop for seconds.
func TestShrinkAtOnce(t *testing.T) {
	t.Parallel()
	s := New(Options{Disk: memoryDisk(t), Budget: NewBudget(1 << 30)})
	numbers := s.Table("t", Layout{Key: IntKey, Words: 1})
	for x := range int64(100_000) {
		putNumber(numbers, x, 1)
	}
	s.Cut().Release()
	numbers.Range(func(slot int) bool { numbers.Delete(slot); return true })
	s.Cut().Release()
	const share = 1 << 18
	if _, err := numbers.shrink(shrinkChunks, s.account()-share); err != nil {
		t.Fatal(err)
	}
	if size := s.account(); size > share {
		t.Errorf("%d bytes in %d chunks", size, len(numbers.chunks))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store whose share has become smaller than its filters goes on without a cut for every batch.
func TestFilterWithinShare(t *testing.T) {
	t.Parallel()
	budget := NewBudget(2 << 20)
	s := New(Options{Disk: memoryDisk(t), Budget: budget})
	numbers := s.Table("t", Layout{Key: IntKey, Words: 1})
	cuts := 0
	relax := func() {
		for {
			err := s.Relax()
			if err == nil {
				return
			}
			if !errors.Is(err, ErrDirty) {
				t.Fatal(err)
			}
			cuts++
			s.Cut().Release()
		}
	}
	const keys = 125_000
	for x := range int64(keys) {
		if putNumber(numbers, x, uint64(x)); x%batch.Target == 0 {
			relax()
		}
	}
	budget.SetLimit(125 << 10)
	cuts = 0
	for batch := range 100 {
		for x := range int64(100) {
			putNumber(numbers, x*keys/100, uint64(batch))
		}
		relax()
	}
	if cuts > 10 {
		t.Errorf("%d cuts for 100 batches; the filter takes %d bytes of %d", cuts, numbers.cold.filter.size(), s.account())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

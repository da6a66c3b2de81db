package state

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"weir/exec/batch"
)

// BenchmarkBeyondBudget counts more keys than the budget holds: first all of them are new, then
// they are any. The cuts that this takes are made runs of on a shelf, and dropped. With
// WEIR_LONG=1 these are 50 million keys under 512 MiB.
func BenchmarkBeyondBudget(b *testing.B) {
	keys, limit := 5_000_000, int64(64<<20)
	if os.Getenv("WEIR_LONG") != "" {
		keys, limit = 50_000_000, 512<<20
	}
	disk, err := NewDisk(b.TempDir()+"/spill", DiskOptions{Cache: limit / 16})
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{Disk: disk, Budget: NewBudget(limit)})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	var longest time.Duration
	relax := func() {
		for {
			began := time.Now()
			err := s.Relax()
			longest = max(longest, time.Since(began))
			switch {
			case err == nil:
				return
			case !errors.Is(err, ErrDirty):
				b.Fatal(err)
			}
			pieces, err := s.Cut().Write(s.shelf)
			if err := errors.Join(err, s.shelf.Drop(pieces)); err != nil {
				b.Fatal(err)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	phase := func(rows int, key func(int) int64) float64 {
		began := time.Now()
		for i := range rows {
			k := key(i)
			slot, _ := table.upsertInt(batch.HashInt(k), k)
			table.Words(slot)[0]++
			if i%batch.Target == batch.Target-1 {
				relax()
			}
		}
		size, cold := s.Figures()
		spilled, cached := disk.Size()
		b.Logf("%d rows in %v: %d MiB in memory, %d entries and %d MiB on disk, a cache of %d MiB",
			rows, time.Since(began).Round(time.Millisecond), size>>20, cold, spilled>>20, cached>>20)
		return float64(rows) / time.Since(began).Seconds()
	}
	for b.Loop() {
		b.ReportMetric(phase(keys, func(i int) int64 { return int64(i) }), "new/s")
		b.ReportMetric(phase(1_000_000, func(int) int64 { return r.Int64N(int64(keys)) }), "any/s")
		b.ReportMetric(longest.Seconds()*1e3, "ms-in-a-Relax")
		var sum uint64
		for e := range table.Entries() {
			sum += e.Words[0]
		}
		if table.Len() != keys || sum != uint64(keys)+1_000_000 {
			b.Fatalf("%d keys, %d in all", table.Len(), sum)
		}
	}
	if err := errors.Join(s.Close(), disk.Close()); err != nil {
		b.Fatal(err)
	}
}

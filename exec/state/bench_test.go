package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
)

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
}

// BenchmarkUpsert hashes, finds and counts a batch.
func BenchmarkUpsert(b *testing.B) {
	for _, n := range []int{4, 10_000, 1_000_000, 10_000_000} {
		for _, keys := range [][]int{{0}, {1}, {0, 1}} {
			if n == 10_000_000 && keys[0]+len(keys) > 1 {
				continue
			}
			b.Run(fmt.Sprintf("%d keys %v", n, keys), func(b *testing.B) {
				var columns []batch.Physical
				for _, k := range keys {
					columns = append(columns, [...]batch.Physical{batch.Ints, batch.Strings}[k])
				}
				table := New(Options{}).Table("t", Layout{Key: KeyOf(columns), Words: 1})
				hashes, slots, fresh := make([]uint64, batch.Target), make([]int, batch.Target), make([]bool, batch.Target)
				var batches []*batch.Batch
				r := rand.New(rand.NewPCG(3, 4))
				for range max(1, n/batch.Target) {
					rows := batch.New([]batch.Physical{batch.Ints, batch.Strings}, batch.Target)
					for range batch.Target {
						k := r.IntN(n)
						rows.Columns[0].AppendInt(int64(k))
						rows.Columns[1].AppendString(fmt.Sprint("user-", k))
						rows.EndRow(batch.Insert)
					}
					batches = append(batches, rows)
				}
				run := func(rows *batch.Batch) {
					batch.HashRows(rows, keys, hashes)
					table.UpsertRows(rows, keys, hashes, slots, fresh)
					for _, s := range slots {
						table.Words(s)[0]++
					}
				}
				for _, rows := range batches {
					run(rows)
				}
				i := 0
				for b.Loop() {
					run(batches[i%len(batches)])
					i++
				}
				perRow(b)
			})
		}
	}
}

// BenchmarkLoop is what BenchmarkUpsert is measured by: a hand-written table of numbers and
// counts, open addressing, at most half full, over the same keys.
func BenchmarkLoop(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			type entry struct{ key, count uint64 }
			size := 1
			for size < 2*n {
				size *= 2
			}
			table := make([]entry, size)
			r := rand.New(rand.NewPCG(3, 4))
			keys := make([]int64, max(n, batch.Target))
			for i := range keys {
				keys[i] = int64(r.IntN(n))
			}
			at := 0
			for b.Loop() {
				if at+batch.Target > len(keys) {
					at = 0
				}
				for _, k := range keys[at : at+batch.Target] {
					i := batch.HashInt(k) & uint64(size-1)
					for table[i].key != uint64(k)+1 && table[i].key != 0 {
						i = (i + 1) & uint64(size-1)
					}
					table[i].key = uint64(k) + 1
					table[i].count++
				}
				at += batch.Target
			}
			perRow(b)
		})
	}
}

// filled returns a store of n counts.
func filled(n int) (*Store, *Table) {
	s := New(Options{})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	for i := range n {
		slot, _ := table.upsertInt(batch.HashInt(int64(i)), int64(i))
		table.Words(slot)[0] = uint64(i % 7)
	}
	return s, table
}

func perEntry(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
}

// BenchmarkDelta writes what changed: a window of keys, or keys all over the table.
func BenchmarkDelta(b *testing.B) {
	for _, n := range []int{1_000_000, 20_000_000} {
		s, table := filled(n)
		s.Cut().Release()
		for _, window := range []bool{true, false} {
			b.Run(fmt.Sprintf("100000 of %d, window %v", n, window), func(b *testing.B) {
				r := rand.New(rand.NewPCG(3, 4))
				bytes := 0
				for b.Loop() {
					b.StopTimer()
					from := r.IntN(n - 100_000)
					for i := range 100_000 {
						k := int64(from + i)
						if !window {
							k = r.Int64N(int64(n))
						}
						slot, _ := table.upsertInt(batch.HashInt(k), k)
						table.Words(slot)[0]++
					}
					b.StartTimer()
					for _, p := range s.Cut().Run() {
						bytes += len(p.Data)
					}
				}
				perEntry(b, 100_000)
				b.ReportMetric(float64(bytes)/float64(b.N)/100_000, "B/entry")
			})
		}
	}
}

// BenchmarkCut ends a generation.
func BenchmarkCut(b *testing.B) {
	for _, n := range []int{1_000_000, 20_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, table := filled(n)
			s.Cut().Release()
			r := rand.New(rand.NewPCG(3, 4))
			for b.Loop() {
				b.StopTimer()
				for range 100_000 {
					k := r.Int64N(int64(n))
					slot, _ := table.upsertInt(batch.HashInt(k), k)
					table.Words(slot)[0]++
				}
				b.StartTimer()
				s.Cut().Release()
			}
		})
	}
}

// BenchmarkRestore restores 5 million counts.
func BenchmarkRestore(b *testing.B) {
	const n = 5_000_000
	blobs, handles := stored(b, n)
	b.ResetTimer()
	for b.Loop() {
		if _, err := New(Options{}).Restore(context.Background(), blobs, handles); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, n)
}

// BenchmarkMerge lays fifty deltas over 5 million counts.
func BenchmarkMerge(b *testing.B) {
	const n = 5_000_000
	blobs, handles := stored(b, n)
	s := New(Options{})
	if _, err := s.Restore(context.Background(), blobs, handles); err != nil {
		b.Fatal(err)
	}
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	for round := range 50 {
		for i := range 20_000 {
			k := int64(round*20_000 + i)
			slot, _ := table.upsertInt(batch.HashInt(k), k)
			table.Words(slot)[0]++
		}
		for _, p := range s.Cut().Run() {
			handles = append(handles, p.Handle("", true))
		}
	}
	b.ResetTimer()
	for b.Loop() {
		m := Merge{MaxParallelism: s.maxParallelism, Handles: handles, Whole: true}
		if err := m.Run(context.Background(), blobs, func(Piece) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b, n)
}

func stored(b *testing.B, n int) (blob.Store, []checkpoint.Handle) {
	s, _ := filled(n)
	var handles []checkpoint.Handle
	for _, p := range s.Cut().Run() {
		handles = append(handles, p.Handle("", false))
	}
	return blob.NewMemory(), handles
}

// BenchmarkSpill inserts new keys, far beyond the budget, then counts random ones of them.
func BenchmarkSpill(b *testing.B) {
	const n = 4_000_000
	for _, work := range []string{"new keys", "keys of old"} {
		b.Run(work, func(b *testing.B) {
			disk, err := NewDisk(b.TempDir(), DiskOptions{Cache: 24 << 20})
			if err != nil {
				b.Fatal(err)
			}
			s := New(Options{Disk: disk, Budget: NewBudget(32 << 20)})
			table := s.Table("t", Layout{Key: IntKey, Words: 1})
			r := rand.New(rand.NewPCG(3, 4))
			next := 0
			row := func(k int64) {
				slot, _ := table.upsertInt(batch.HashInt(k), k)
				table.Words(slot)[0]++
				if next++; next%4096 != 0 {
					return
				}
				if err := s.Relax(); errors.Is(err, ErrDirty) {
					s.Cut().Run()
				} else if err != nil {
					b.Fatal(err)
				}
			}
			fresh := func() {
				for i := range n {
					row(int64(i))
				}
			}
			if work == "new keys" {
				for b.Loop() {
					fresh()
				}
				perEntry(b, n)
			} else {
				fresh()
				for b.Loop() {
					for range n / 8 {
						row(r.Int64N(n))
					}
				}
				perEntry(b, n/8)
			}
			b.StopTimer()
			if err := errors.Join(s.Close(), disk.Close()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

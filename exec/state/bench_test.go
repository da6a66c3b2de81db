package state

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"weir/checkpoint/blob"
	"weir/exec/batch"
)

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
}

// BenchmarkUpsert hashes, finds and counts a batch.
func BenchmarkUpsert(b *testing.B) {
	for _, n := range []int{4, 10_000, 1_000_000} {
		for _, keys := range [][]int{{0}, {1}, {0, 1}} {
			b.Run(fmt.Sprintf("%d keys %v", n, keys), func(b *testing.B) {
				table := New(Options{}).Table("t", Layout{Words: 1})
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

// filled returns a store of n counts.
func filled(n int) (*Store, *Table) {
	s := New(Options{})
	t := s.Table("t", Layout{Words: 1})
	b := batch.New([]batch.Physical{batch.Ints}, n)
	for i := range n {
		b.Columns[0].AppendInt(int64(i))
		b.EndRow(batch.Insert)
	}
	hashes, slots, fresh := make([]uint64, n), make([]int, n), make([]bool, n)
	batch.HashRows(b, []int{0}, hashes)
	t.UpsertRows(b, []int{0}, hashes, slots, fresh)
	return s, t
}

// BenchmarkCut takes a cut of a million entries, and touches every chunk after it.
func BenchmarkCut(b *testing.B) {
	s, t := filled(1_000_000)
	b.Run("cut", func(b *testing.B) {
		for b.Loop() {
			s.Cut().Release()
		}
	})
	b.Run("touch every chunk", func(b *testing.B) {
		for b.Loop() {
			c := s.Cut()
			for slot := 0; slot < 1_000_000; slot += chunkSlots {
				t.Words(slot)[0]++
			}
			c.Release()
		}
	})
}

// BenchmarkSnapshot writes and restores a million entries.
func BenchmarkSnapshot(b *testing.B) {
	const n = 1_000_000
	s, _ := filled(n)
	c := s.Cut()
	defer c.Release()
	perEntry := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
	}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			prepared(c)
		}
		perEntry(b)
	})
	b.Run("encode", func(b *testing.B) {
		p := prepared(c)
		for b.Loop() {
			if _, err := io.Copy(io.Discard, newEncoder(context.Background(), c, p)); err != nil {
				b.Fatal(err)
			}
		}
		perEntry(b)
	})
	blobs := blob.NewMemory()
	handles, err := c.Write(context.Background(), blobs, "p")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if err := New(Options{}).Restore(context.Background(), blobs, handles); err != nil {
				b.Fatal(err)
			}
		}
		perEntry(b)
	})
}

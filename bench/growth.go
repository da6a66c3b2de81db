package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir/exec/batch"
	"weir/exec/state"
)

// growthBench measures how the cost of a row grows with the keys in memory, beside a
// table written by hand over the same keys.
type growthBench struct {
	pairs, rows int
}

func (b *growthBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.pairs, "pairs", 10, "interleaved pairs of runs")
	f.IntVar(&b.rows, "rows", 8_000_000, "rows of a run")
}

// growthFigures are those of one number of keys, nanoseconds per row.
type growthFigures struct {
	Keys   int       `json:"keys"`
	Weir   []float64 `json:"weir_ns"`
	Loop   []float64 `json:"loop_ns"`
	Growth float64   `json:"growth"`      // of the median since the fewest keys
	Beside float64   `json:"loop_growth"` // the same
	Ratio  float64   `json:"ratio"`
}

func (b *growthBench) run(ctx context.Context, _ common) (any, string, error) {
	var all []growthFigures
	for _, keys := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
		f, err := b.size(ctx, keys)
		if err != nil {
			return nil, "", err
		}
		if all = append(all, f); len(all) > 0 {
			f := &all[len(all)-1]
			f.Growth, f.Beside = median(f.Weir)/median(all[0].Weir), median(f.Loop)/median(all[0].Loop)
			f.Ratio = f.Growth / f.Beside
		}
	}
	var w strings.Builder
	w.WriteString("| keys | ns per row (min, max) | loop | growth | the loop's | ratio | target |\n|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %.1f (%.1f, %.1f) | %.1f (%.1f, %.1f) | %.2f | %.2f | %.2f | ≤ 2 |\n", amount(int64(f.Keys)),
			median(f.Weir), slices.Min(f.Weir), slices.Max(f.Weir), median(f.Loop), slices.Min(f.Loop), slices.Max(f.Loop), f.Growth, f.Beside, f.Ratio)
	}
	return all, w.String(), nil
}

func (b *growthBench) size(ctx context.Context, keys int) (growthFigures, error) {
	f := growthFigures{Keys: keys}
	batches := drawn(keys, b.rows)
	table, loop := newCounts(), newLoopCounts(keys)
	perRow := func(count func(*batch.Batch)) float64 {
		began := time.Now()
		for _, rows := range batches {
			count(rows)
		}
		return float64(time.Since(began).Nanoseconds()) / float64(len(batches)*batch.Target)
	}
	perRow(table.count) // both have all keys
	perRow(loop.count)
	for run := range b.pairs {
		turns := []func(){
			func() { f.Weir = append(f.Weir, perRow(table.count)) },
			func() { f.Loop = append(f.Loop, perRow(loop.count)) },
		}
		if run%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			turn()
		}
		if err := ctx.Err(); err != nil {
			return f, err
		}
	}
	if table.sum() != loop.sum() {
		return f, fmt.Errorf("%d keys: the table counted %d rows, the loop %d", keys, table.sum(), loop.sum())
	}
	return f, nil
}

// drawn makes batches of keys drawn at random.
func drawn(keys, rows int) (batches []*batch.Batch) {
	r := rand.New(rand.NewPCG(3, 4))
	for range max(rows/batch.Target, 1) {
		b := batch.New([]batch.Physical{batch.Ints}, batch.Target)
		for range batch.Target {
			b.Columns[0].AppendInt(r.Int64N(int64(keys)))
			b.EndRow(batch.Insert)
		}
		batches = append(batches, b)
	}
	return batches
}

// counts are those of an aggregate: a table of numbers with a word each.
type counts struct {
	store  *state.Store
	table  *state.Table
	hashes []uint64
	slots  []int
	fresh  []bool
}

func newCounts() *counts {
	c := &counts{store: state.New(state.Options{}), hashes: make([]uint64, batch.Target), slots: make([]int, batch.Target), fresh: make([]bool, batch.Target)}
	c.table = c.store.Table("groups", state.Layout{Key: state.KeyOf([]batch.Physical{batch.Ints}), Words: 1})
	return c
}

func (c *counts) count(rows *batch.Batch) {
	n := rows.Rows()
	batch.HashRows(rows, []int{0}, c.hashes[:n])
	c.table.UpsertRows(rows, []int{0}, c.hashes[:n], c.slots[:n], c.fresh[:n])
	for _, slot := range c.slots[:n] {
		c.table.Words(slot)[0]++
	}
}

func (c *counts) sum() (n uint64) {
	c.table.Range(func(slot int) bool {
		n += c.table.ReadWords(slot)[0]
		return true
	})
	return n
}

// loopCounts is what somebody writes by hand: open addressing, at most half full, a key
// and its count side by side, never larger.
type loopCounts struct {
	entries []struct{ key, count uint64 }
}

func newLoopCounts(keys int) *loopCounts {
	size := 1
	for size < 2*keys {
		size *= 2
	}
	return &loopCounts{make([]struct{ key, count uint64 }, size)}
}

func (l *loopCounts) count(rows *batch.Batch) {
	mask := uint64(len(l.entries) - 1)
	for _, k := range rows.Columns[0].Ints[:rows.Rows()] {
		key := uint64(k) + 1
		i := batch.HashInt(k) & mask
		for l.entries[i].key != key && l.entries[i].key != 0 {
			i = (i + 1) & mask
		}
		l.entries[i].key = key
		l.entries[i].count++
	}
}

func (l *loopCounts) sum() (n uint64) {
	for i := range l.entries {
		n += l.entries[i].count
	}
	return n
}

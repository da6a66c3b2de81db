package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"time"

	"weir/exec/batch"
)

// deltaBench measures what writing a changed entry costs, off the loop, and what a cut
// that is not written yet costs the loop: the chunks that it touches are copied.
type deltaBench struct {
	runs    int
	changed int64
	most    int64
}

func (b *deltaBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.runs, "runs", 15, "generations of each kind")
	f.Int64Var(&b.changed, "changed", 100_000, "keys of a generation")
	f.Int64Var(&b.most, "most", 20_000_000, "leave out more keys than these")
}

// deltaFigures are those of one state, nanoseconds per entry; of processor time where it is written.
type deltaFigures struct {
	Work   string    `json:"work"`
	Write  []float64 `json:"write_ns"`
	Bytes  float64   `json:"bytes_per_entry"`
	Cut    []float64 `json:"cut_us"`
	Touch  []float64 `json:"touch_ns"` // while no cut is open
	Beside []float64 `json:"touch_under_cut_ns"`
}

func (b *deltaBench) run(ctx context.Context, _ common) (any, string, error) {
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	var all []deltaFigures
	for _, keys := range []int64{1_000_000, 20_000_000} {
		if keys > b.most {
			continue
		}
		c := newCounts()
		for from := int64(0); from < keys; from += batch.Target {
			c.count(numbered(from, min(batch.Target, keys-from), func(i int64) int64 { return i }))
		}
		c.store.Cut().Release()
		for _, scattered := range []bool{false, true} {
			f := deltaFigures{Work: keyspace{keys, b.changed, scattered}.String()}
			for run := range b.runs {
				b.generation(c, keys, int64(run), scattered, &f)
				if err := ctx.Err(); err != nil {
					return nil, "", err
				}
			}
			all = append(all, f)
		}
	}
	var w strings.Builder
	w.WriteString("| changed keys | written, ns per entry (p99) | bytes per entry | cut, µs | touched, ns per key | while a cut is open | target, written |\n|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %.1f (%.1f) | %.2f | %.1f | %.1f | %.1f | < 60 ns |\n", f.Work, median(f.Write), quantile(f.Write, .99), f.Bytes, median(f.Cut), median(f.Touch), median(f.Beside))
	}
	return all, w.String(), nil
}

// generation changes keys, cuts, changes the next ones while the cut is open, and writes it.
func (b *deltaBench) generation(c *counts, keys, run int64, scattered bool, f *deltaFigures) {
	key := func(window int64) func(int64) int64 {
		return func(i int64) int64 {
			k := (window*b.changed + i*7_919%b.changed) % keys
			if scattered {
				k = k * 1_000_003 % keys
			}
			return k
		}
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.changed) }
	f.Touch = append(f.Touch, per(b.touch(c, key(2*run))))
	began := time.Now()
	cut := c.store.Cut()
	f.Cut = append(f.Cut, float64(time.Since(began).Nanoseconds())/1e3)
	busy := threadTime() // a run rests now and then
	pieces := cut.Run()
	f.Write = append(f.Write, per(threadTime()-busy))
	size := 0
	for _, p := range pieces {
		size += len(p.Data)
	}
	f.Bytes = float64(size) / float64(b.changed)
	f.Beside = append(f.Beside, per(b.touch(c, key(2*run)))) // those that the cut shows
	cut.Release()
	c.store.Cut().Release()
}

// touch counts each key of a window once.
func (b *deltaBench) touch(c *counts, key func(int64) int64) (took time.Duration) {
	for from := int64(0); from < b.changed; from += batch.Target {
		rows := numbered(from, min(batch.Target, b.changed-from), key)
		began := time.Now()
		c.count(rows)
		took += time.Since(began)
	}
	return took
}

// numbered makes the rows of n places from one on.
func numbered(from, n int64, key func(int64) int64) *batch.Batch {
	rows := batch.New([]batch.Physical{batch.Ints}, int(n))
	for i := range n {
		rows.Columns[0].AppendInt(key(from + i))
		rows.EndRow(batch.Insert)
	}
	return rows
}

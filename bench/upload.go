package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// uploadBench measures how often a byte that has changed is stored, merged runs and full
// states included.
type uploadBench struct {
	checkpoints int
}

func (b *uploadBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.checkpoints, "checkpoints", 100, "of each job")
}

// uploadFigures are those of one job.
type uploadFigures struct {
	Work        string  `json:"work"`
	Checkpoints int     `json:"checkpoints"`
	Changed     int64   `json:"changed_entries"`
	Entry       float64 `json:"bytes_per_changed_entry"` // in the checkpoints that store nothing else
	Stored      int64   `json:"stored_bytes"`
	Written     int64   `json:"written_by_worker_bytes"` // to files and sockets
	Ratio       float64 `json:"ratio"`
}

func (b *uploadBench) run(ctx context.Context, c common) (any, string, error) {
	w, err := startWindowed(ctx, c)
	if err != nil {
		return nil, "", err
	}
	defer w.stop()
	var all []uploadFigures
	for i, k := range []keyspace{{5_000_000, 100_000, false}, {5_000_000, 100_000, true}, {1_000_000, 100_000, true}, {1_000_000, 1_000_000, false}} {
		f, err := b.job(ctx, w, fmt.Sprintf("upload-%d", i), k)
		if err != nil {
			return nil, "", fmt.Errorf("%v: %w", k, err)
		}
		all = append(all, f)
	}
	return all, showUploads(all), nil
}

func (b *uploadBench) job(ctx context.Context, c *cluster, name string, k keyspace) (f uploadFigures, err error) {
	w, err := c.open(ctx, name, k, 2*float64(k.window), "1 s")
	if err != nil {
		return f, err
	}
	from := time.Now()
	pid := c.workers["w1"].cmd.Process.Pid
	before, err := writtenBy(pid)
	if err != nil {
		return f, err
	}
	var list []checkpointView
	err = await(ctx, time.Duration(b.checkpoints)*3*time.Second, "checkpoints", func() (bool, error) {
		list, err = w.completed(ctx, from)
		return len(list) >= b.checkpoints, err
	})
	if err != nil {
		return f, err
	}
	after, errWritten := writtenBy(pid)
	saw, err := c.look()
	if err == nil {
		err = errWritten
	}
	if err != nil {
		return f, err
	}
	f = uploadFigures{Work: k.String(), Checkpoints: len(list), Written: after - before}
	var each []float64
	for _, cp := range list {
		f.Changed += saw.Changed[cp.ID]
		f.Stored += cp.NewBytes
		if n := saw.Changed[cp.ID]; n > 0 {
			each = append(each, float64(cp.NewBytes)/float64(n))
		}
	}
	f.Entry = slices.Min(each) // of a checkpoint that counts no merged runs
	f.Ratio = float64(f.Stored) / (float64(f.Changed) * f.Entry)
	return f, c.api.cancel(ctx, name)
}

func showUploads(all []uploadFigures) string {
	var w strings.Builder
	w.WriteString("| keys touched each second | checkpoints | changed entries | bytes each | stored, MiB | written by the worker, MiB | stored / changed | target |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %d | %d | %.2f | %.1f | %.1f | %.2f | ≤ 3 |\n", f.Work, f.Checkpoints, f.Changed, f.Entry, mebibytes(f.Stored), mebibytes(f.Written), f.Ratio)
	}
	return w.String()
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// cutBench measures how long checkpoints stop the loops of tasks, by the size of the state.
type cutBench struct {
	checkpoints int
	rate        float64
	most        int64
	scattered   bool
}

func (b *cutBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.checkpoints, "checkpoints", 65, "of each size")
	f.Float64Var(&b.rate, "rate", 200_000, "rows per second, over the window of 100 000 keys")
	f.Int64Var(&b.most, "most", 20_000_000, "leave out more keys than these")
	f.BoolVar(&b.scattered, "scattered", true, "the keys of a window lie all over the state")
}

// cutFigures are those of one size.
type cutFigures struct {
	Keys        int64     `json:"keys"`
	Checkpoints int       `json:"checkpoints"`
	Cuts        []float64 `json:"aggregate_cut_ms"` // of each subtask that has the state
	Sources     []float64 `json:"source_cut_ms"`
	Uploads     []float64 `json:"upload_ms"`
	GapP50      float64   `json:"gap_p50_ms"`
	GapP99      float64   `json:"gap_p99_ms"`
	GapMost     float64   `json:"gap_most_ms"`
	Made        float64   `json:"rows_per_second"`
	Beside      float64   `json:"gap_most_without_checkpoints_ms"`
}

func (b *cutBench) run(ctx context.Context, c common) (any, string, error) {
	w, err := startWindowed(ctx, c)
	if err != nil {
		return nil, "", err
	}
	defer w.stop()
	var all []cutFigures
	for _, keys := range []int64{1_000_000, 5_000_000, 20_000_000} {
		if keys > b.most {
			continue
		}
		f, err := b.size(ctx, w, keyspace{keys, 100_000, b.scattered})
		if err != nil {
			return nil, "", fmt.Errorf("%s keys: %w", amount(keys), err)
		}
		fmt.Fprintf(os.Stderr, "cut: %s keys: p99 %.2f ms\n", amount(keys), quantile(f.Cuts, .99))
		all = append(all, f)
	}
	return all, showCuts(all), nil
}

func (b *cutBench) size(ctx context.Context, c *cluster, k keyspace) (f cutFigures, err error) {
	w, err := c.open(ctx, "cut-"+fmt.Sprint(k.keys), k, b.rate, "1 s")
	if err != nil {
		return f, err
	}
	from := time.Now()
	before, err := c.look()
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
	after, err := c.look()
	if err != nil {
		return f, err
	}
	saw := after.minus(before)
	f = cutFigures{
		Keys: k.keys, Checkpoints: len(list), Made: float64(saw.Made) / time.Since(from).Seconds(), GapP50: milliseconds(saw.Ages.percentile(.5)),
		GapP99: milliseconds(saw.Ages.percentile(.99)), GapMost: milliseconds(saw.Ages.most()),
	}
	if err := f.details(ctx, w, list); err != nil {
		return f, err
	}
	if err := c.api.cancel(ctx, w.name); err != nil {
		return f, err
	}
	f.Beside, err = b.without(ctx, c, k)
	return f, err
}

// without is the longest time between two batches of a job without checkpoints: what
// else there is that stops loops.
func (b *cutBench) without(ctx context.Context, c *cluster, k keyspace) (float64, error) {
	w, err := c.open(ctx, fmt.Sprintf("none-%d", k.keys), k, b.rate, "0 s")
	if err != nil {
		return 0, err
	}
	before, err := c.look()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, time.Duration(b.checkpoints)*time.Second); err != nil {
		return 0, err
	}
	after, err := c.look()
	if err != nil {
		return 0, err
	}
	return milliseconds(after.minus(before).Ages.most()), c.api.cancel(ctx, w.name)
}

// details adds the times of each subtask.
func (f *cutFigures) details(ctx context.Context, w *windowed, list []checkpointView) error {
	for _, k := range list {
		d, err := w.api.detail(ctx, w.name, k.ID)
		if err != nil {
			return err
		}
		for i, op := range d.Operators {
			for _, s := range op.Subtasks {
				if i == 0 {
					f.Sources = append(f.Sources, s.CutMS)
					continue
				}
				f.Cuts, f.Uploads = append(f.Cuts, s.CutMS), append(f.Uploads, s.UploadMS)
			}
		}
	}
	return nil
}

func showCuts(all []cutFigures) string {
	var w strings.Builder
	w.WriteString("| keys | checkpoints | k rows/s | cut, ms: p50 | p99 | most | source's cut: p99 | most | upload, ms: p50 | p99 | between two batches, ms: p50 | p99 | most | most without checkpoints | target |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %d | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | cut p99 < 10 ms |\n", amount(f.Keys), f.Checkpoints, f.Made/1e3,
			quantile(f.Cuts, .5), quantile(f.Cuts, .99), quantile(f.Cuts, 1), quantile(f.Sources, .99), quantile(f.Sources, 1),
			quantile(f.Uploads, .5), quantile(f.Uploads, .99), f.GapP50, f.GapP99, f.GapMost, f.Beside)
	}
	return w.String()
}

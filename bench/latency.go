package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// latencyBench measures how old rows are when the result that they change comes out:
// two workers with a subtask each of source and aggregate, over NATS. A row's age
// begins when it was due, not when the source came to it.
type latencyBench struct {
	seconds int
}

func (b *latencyBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.seconds, "seconds", 10, "of each measurement, after 3 s to settle")
}

// latencyFigures are those of one rate.
type latencyFigures struct {
	Percent int     `json:"percent_of_peak"`
	Rate    float64 `json:"rows_per_second"`
	Made    float64 `json:"made_rows_per_second"`
	Out     float64 `json:"out_rows_per_second"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	P999    float64 `json:"p99_9_ms"`
}

func (b *latencyBench) run(ctx context.Context, c common) (any, string, error) {
	window := time.Duration(b.seconds) * time.Second
	w, peak, err := startPair(ctx, c.weir, "10 s", window)
	if err != nil {
		return nil, "", err
	}
	defer w.stop()
	all := []latencyFigures{latencyOf(100, 0, peak, window)}
	for _, percent := range []int{1, 10, 50, 80} {
		rate := all[0].Made * float64(percent) / 100
		got, err := w.observe(ctx, fmt.Sprintf("at-%d", percent), newest(rate, "observed", "10 s"), window)
		if err != nil {
			return nil, "", fmt.Errorf("%d %%: %w", percent, err)
		}
		f := latencyOf(percent, rate, got, window)
		fmt.Fprintf(os.Stderr, "latency: %d %%: p50 %.1f, p99 %.1f, p99.9 %.1f ms\n", percent, f.P50, f.P99, f.P999)
		all = append(all, f)
	}
	return all, showLatency(all), nil
}

func latencyOf(percent int, rate float64, s seen, window time.Duration) latencyFigures {
	return latencyFigures{
		Percent: percent, Rate: rate, Made: float64(s.Made) / window.Seconds(), Out: float64(s.Out) / window.Seconds(),
		P50: milliseconds(s.Ages.percentile(.5)), P99: milliseconds(s.Ages.percentile(.99)), P999: milliseconds(s.Ages.percentile(.999)),
	}
}

func showLatency(all []latencyFigures) string {
	var w strings.Builder
	w.WriteString("| of the peak | k rows/s | p50, ms | p99, ms | p99.9, ms | target, p99 |\n|---|---|---|---|---|---|\n")
	targets := map[int]string{1: "< 10 ms", 50: "< 100 ms"}
	for _, f := range all {
		target := targets[f.Percent]
		if target == "" {
			target = "–"
		}
		fmt.Fprintf(&w, "| %d %% | %.0f | %.2f | %.2f | %.2f | %s |\n", f.Percent, f.Made/1e3, f.P50, f.P99, f.P999, target)
	}
	return w.String()
}

// startPair starts a cluster with two workers of one slot each, so that half of what
// subtasks send each other goes over NATS, and finds the peak: what is seen of a source
// that never waits.
func startPair(ctx context.Context, weir, interval string, window time.Duration) (w *cluster, peak seen, err error) {
	if w, err = startCluster(ctx, weir); err != nil {
		return nil, seen{}, err
	}
	for _, id := range []string{"w1", "w2"} {
		err = errors.Join(err, w.startWorker(ctx, id, 1))
	}
	if err == nil {
		peak, err = w.observe(ctx, "peak", newest(0, "observed", interval), window)
	}
	if err != nil {
		w.stop()
		return nil, seen{}, fmt.Errorf("peak: %w", err)
	}
	return w, peak, nil
}

// observe runs a job for a while and returns what its tables saw in a window of it.
func (c *cluster) observe(ctx context.Context, name, sql string, window time.Duration) (seen, error) {
	const atFirst = 3 * time.Second
	if err := c.api.submit(ctx, name, sql); err != nil {
		return seen{}, err
	}
	if err := c.api.awaitStatus(ctx, name, "RUNNING", 20*time.Second); err != nil {
		return seen{}, err
	}
	if err := pause(ctx, atFirst); err != nil {
		return seen{}, err
	}
	before, err := c.look()
	if err != nil {
		return seen{}, err
	}
	if err := pause(ctx, window); err != nil {
		return seen{}, err
	}
	after, err := c.look()
	if err != nil {
		return seen{}, err
	}
	j, err := c.api.job(ctx, name)
	if err != nil {
		return seen{}, err
	}
	if j.Attempt != 1 || j.Status != "RUNNING" {
		return seen{}, fmt.Errorf("the job did not run through: it is %s in attempt %d: %s", j.Status, j.Attempt, j.Failure)
	}
	saw := after.minus(before)
	if saw.Out == 0 {
		return seen{}, fmt.Errorf("no row came out in %v", window)
	}
	return saw, c.api.cancel(ctx, name)
}

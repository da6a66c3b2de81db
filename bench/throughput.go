package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"
)

// throughputBench compares rows per second with checkpoints every second and without any.
type throughputBench struct {
	pairs, seconds int
	only           string
}

func (b *throughputBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.pairs, "pairs", 10, "interleaved pairs of runs")
	f.IntVar(&b.seconds, "seconds", 10, "of each run, once all keys are there")
	f.StringVar(&b.only, "only", "", "neighbours, scattered or all alone")
}

type throughputFigures struct {
	Work string `json:"work"`
	comparison
	// Rows per second of processor time, which a busy machine changes less.
	CPU    comparison `json:"per_cpu_second"`
	Target float64    `json:"target"`
}

func (b *throughputBench) run(ctx context.Context, c common) (any, string, error) {
	w, err := startWindowed(ctx, c)
	if err != nil {
		return nil, "", err
	}
	defer w.stop()
	n := 0
	rate := func(k keyspace, interval string, cpu *[]float64) func() (float64, error) {
		return func() (float64, error) {
			n++
			job, err := w.open(ctx, fmt.Sprintf("throughput-%d", n), k, 0, interval)
			if err != nil {
				return 0, err
			}
			rate, perCPU, err := job.rate(ctx, time.Duration(b.seconds)*time.Second)
			*cpu = append(*cpu, perCPU)
			return rate, err
		}
	}
	var all []throughputFigures
	for _, work := range []struct {
		name   string
		space  keyspace
		target float64
	}{
		{"neighbours", keyspace{5_000_000, 100_000, false}, .9},
		{"scattered", keyspace{5_000_000, 100_000, true}, .9},
		{"all", keyspace{1_000_000, 1_000_000, false}, .75},
	} {
		if b.only != "" && b.only != work.name {
			continue
		}
		f := throughputFigures{Work: work.space.String(), Target: work.target}
		if f.comparison, err = compared("throughput: "+f.Work, b.pairs, rate(work.space, "1 s", &f.CPU.Measured), rate(work.space, "0 s", &f.CPU.Beside)); err != nil {
			return nil, "", err
		}
		f.CPU.Ratio = median(f.CPU.Measured) / median(f.CPU.Beside)
		all = append(all, f)
	}
	return all, showThroughput(all), nil
}

// rate is how many rows per second come out of the source in a window, and how many per
// second of processor time. It ends the job.
func (w *windowed) rate(ctx context.Context, window time.Duration) (rate, perCPU float64, err error) {
	pid := w.workers["w1"].cmd.Process.Pid
	before, errLook := w.look()
	cpu, errCPU := cpuOf(pid)
	if err := errors.Join(errLook, errCPU); err != nil {
		return 0, 0, err
	}
	from := time.Now()
	if err := pause(ctx, window); err != nil {
		return 0, 0, err
	}
	after, errLook := w.look()
	used, errCPU := cpuOf(pid)
	if err := errors.Join(errLook, errCPU); err != nil {
		return 0, 0, err
	}
	rows := float64(after.Made - before.Made)
	rate, perCPU = rows/time.Since(from).Seconds(), rows/(used-cpu).Seconds()
	return rate, perCPU, w.api.cancel(ctx, w.name)
}

func showThroughput(all []throughputFigures) string {
	var w strings.Builder
	w.WriteString("| keys touched each second | checkpoints every second, M rows/s (min, max) | none | ratio | per second of CPU: checkpoints, M rows | none | ratio | target |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %s | %s | ≥ %.2f |\n", f.Work, f.columns("%.2f"), f.CPU.columns("%.2f"), f.Target)
	}
	return w.String()
}

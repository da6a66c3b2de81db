package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// trickleBench measures checkpoints of a job whose sink takes a hundredth of the rows
// that it could take otherwise, while the source makes as many as it is let.
type trickleBench struct {
	checkpoints int
	seconds     int
}

func (b *trickleBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.checkpoints, "checkpoints", 40, "to wait for")
	f.IntVar(&b.seconds, "seconds", 120, "to wait at most")
}

type trickleFigures struct {
	Peak   float64   `json:"peak_out_rows_per_second"`
	Rate   float64   `json:"sink_rows_per_second"`
	Times  []float64 `json:"durations_ms"`
	P50    float64   `json:"p50_ms"`
	P99    float64   `json:"p99_ms"`
	Failed int       `json:"failed"`
}

func (b *trickleBench) run(ctx context.Context, c common) (any, string, error) {
	window := 5 * time.Second
	w, peak, err := startPair(ctx, c.weir, "1 s", window)
	if err != nil {
		return nil, "", err
	}
	defer w.stop()
	f := trickleFigures{Peak: float64(peak.Out) / window.Seconds()}
	f.Rate = f.Peak / 100
	const name = "trickle"
	if err := w.api.submit(ctx, name, newest(0, fmt.Sprintf("slow_%.0f", f.Rate), "1 s")); err != nil {
		return nil, "", err
	}
	var late []float64 // those under way, so far
	err = await(ctx, time.Duration(b.seconds)*time.Second, "checkpoints", func() (bool, error) {
		list, err := w.api.checkpoints(ctx, name)
		f.Times, f.Failed, late = nil, 0, nil
		for _, k := range list {
			switch k.Status {
			case "completed":
				f.Times = append(f.Times, k.DurationMS)
			case "pending":
				late = append(late, milliseconds(time.Since(k.TriggeredAt)))
			default:
				f.Failed++
			}
		}
		return len(f.Times)+f.Failed >= b.checkpoints, err
	})
	if ctx.Err() != nil {
		return nil, "", err
	}
	if err != nil { // one that takes for ever is not to look as if it had not been
		f.Times = append(f.Times, late...)
	}
	if len(f.Times) == 0 {
		return nil, "", fmt.Errorf("no checkpoint was completed, %d failed", f.Failed)
	}
	f.P50, f.P99 = quantile(f.Times, .5), quantile(f.Times, .99)
	fmt.Fprintf(os.Stderr, "trickle: %d checkpoints: p50 %.0f, p99 %.0f ms\n", len(f.Times), f.P50, f.P99)
	return f, f.show(), w.api.cancel(ctx, name)
}

func (f trickleFigures) show() string {
	var w strings.Builder
	w.WriteString("| sink, k rows/s (of a peak of) | checkpoints | failed | p50, ms | p99, ms | target, p99 |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(&w, "| %.1f (%.0f) | %d | %d | %.0f | %.0f | < 2000 ms |\n", f.Rate/1e3, f.Peak/1e3, len(f.Times), f.Failed, f.P50, f.P99)
	return w.String()
}

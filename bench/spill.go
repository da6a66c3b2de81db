package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// spillBench counts more keys than fit into the memory that a worker is given, half of them
// twice, and checks the answer.
type spillBench struct {
	keys   int64
	memory string
	every  int
}

func (b *spillBench) flags(f *flag.FlagSet) {
	f.Int64Var(&b.keys, "keys", 50_000_000, "keys; half as many again are the rows")
	f.StringVar(&b.memory, "memory", "512MiB", "of the worker; empty: what it takes by itself")
	f.IntVar(&b.every, "every", 5, "seconds between two looks")
}

// spillFigures are those of the run.
type spillFigures struct {
	Keys    int64     `json:"keys"`
	Memory  string    `json:"memory"`
	Rows    int64     `json:"rows"`
	Seconds float64   `json:"seconds"`
	Rates   []float64 `json:"rows_per_second_along_the_way"`
	Peak    int64     `json:"bytes_at_most"`
	Failed  int       `json:"checkpoints_not_completed"`
	Took    []float64 `json:"checkpoint_ms"`
}

func (b *spillBench) run(ctx context.Context, c common) (any, string, error) {
	var further []string
	if b.memory != "" {
		further = []string{"--memory", b.memory}
	}
	u, err := launchUp(ctx, c.weir, os.TempDir(), 1, 2, further...)
	if err != nil {
		return nil, "", err
	}
	defer u.end()
	f := spillFigures{Keys: b.keys, Memory: b.memory, Rows: b.keys + b.keys/2}
	const name = "spill"
	sql := fmt.Sprintf(`CREATE TABLE g (user_id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.user_id.kind' = 'sequence', 'fields.user_id.end' = '%d');
SET 'checkpoint.interval' = '5 s';
SELECT n, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS n FROM g GROUP BY user_id) AS c GROUP BY n;`, f.Rows, b.keys-1)
	if err := u.api.submit(ctx, name, sql); err != nil {
		return nil, "", err
	}
	if err := b.watch(ctx, u, name, &f); err != nil {
		return nil, "", err
	}
	page, err := u.api.results(ctx, name, "limit=10")
	if err != nil {
		return nil, "", err
	}
	if err := b.check(page); err != nil {
		return nil, "", err
	}
	list, err := u.api.checkpoints(ctx, name)
	for _, k := range list {
		if k.Status == "completed" {
			f.Took = append(f.Took, k.DurationMS)
		} else {
			f.Failed++
		}
	}
	return f, f.show(), err
}

// watch looks at the job until it has finished.
func (b *spillBench) watch(ctx context.Context, u *upProcess, name string, f *spillFigures) error {
	began, last, rows := time.Now(), time.Now(), int64(0)
	for {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		j, err := u.api.job(ctx, name)
		if err != nil {
			return err
		}
		now := time.Now()
		if used, err := usageOf(u.cmd.Process.Pid); err == nil { // one may have just ended
			f.Peak = max(f.Peak, used.memory)
		}
		switch {
		case j.Status == "FAILED" || j.Attempt > 1:
			return fmt.Errorf("the job is %s in attempt %d: %s", j.Status, j.Attempt, j.Failure)
		case j.Status == "FINISHED":
			f.Seconds = now.Sub(began).Seconds()
			if len(f.Rates) == 0 { // it was over before the first look
				f.Rates = append(f.Rates, float64(f.Rows)/f.Seconds)
			}
			return nil
		case now.Sub(last) >= time.Duration(b.every)*time.Second:
			rate := float64(j.RowsIn-rows) / now.Sub(last).Seconds()
			fmt.Fprintf(os.Stderr, "spill: %.0f s: %.1f M rows, %.2f M rows/s, %.0f MiB at most\n", now.Sub(began).Seconds(), float64(j.RowsIn)/1e6, rate/1e6, mebibytes(f.Peak))
			f.Rates = append(f.Rates, rate)
			last, rows = now, j.RowsIn
		}
	}
}

// check compares the answer: one half of the keys came once, the other one twice.
func (b *spillBench) check(page resultPage) error {
	got := map[int64]int64{}
	for _, raw := range page.Rows {
		var row struct {
			N     int64 `json:"n"`
			Users int64 `json:"users"`
		}
		if err := json.Unmarshal(raw, &row); err != nil {
			return err
		}
		got[row.N] = row.Users
	}
	twice := b.keys / 2
	if len(got) != 2 || got[1] != b.keys-twice || got[2] != twice {
		return fmt.Errorf("the counts are wrong: %v, want %d keys once and %d twice", got, b.keys-twice, twice)
	}
	return nil
}

func (f spillFigures) show() string {
	var w strings.Builder
	w.WriteString("| keys | memory of the worker | rows | time, s | M rows/s (least, most of 5 s) | all processes at most, MiB | checkpoints, ms: p50 | most | failed |\n|---|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&w, "| %s | %s | %s | %.0f | %.2f (%.2f, %.2f) | %.0f | %.0f | %.0f | %d |\n\nThe answer is exact.\n", amount(f.Keys), f.Memory, amount(f.Rows), f.Seconds,
		float64(f.Rows)/f.Seconds/1e6, quantile(f.Rates, 0)/1e6, quantile(f.Rates, 1)/1e6, mebibytes(f.Peak), quantile(f.Took, .5), quantile(f.Took, 1), f.Failed)
	return w.String()
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A wait is a time that someone waits for Weir.
type wait struct {
	name    string
	measure func(ctx context.Context, b *speedBench) ([]waitFigures, error)
}

// waitFigures are those of one kind.
type waitFigures struct {
	Title        string    `json:"title"`
	Milliseconds []float64 `json:"milliseconds"`
	Target       float64   `json:"target_milliseconds"` // less than this
	Met          bool      `json:"met"`                 // by the median
}

func waits() []wait {
	return []wait{
		{"first-row", func(ctx context.Context, b *speedBench) ([]waitFigures, error) { return b.firstRows(ctx) }},
		{"empty", func(ctx context.Context, b *speedBench) ([]waitFigures, error) { return b.empty(ctx) }},
	}
}

// firstRows measures how long it takes from the POST of a script until the API shows a row of its result.
func (b *speedBench) firstRows(ctx context.Context) (all []waitFigures, err error) {
	u, err := launchUp(ctx, b.weir, b.dir, 1, 2)
	if err != nil {
		return nil, err
	}
	defer u.end()
	for _, format := range []string{"json", "csv"} {
		for _, rows := range []int{1000, b.rows} {
			file, err := generate(b.dir, format, rows)
			if err != nil {
				return nil, err
			}
			f := waitFigures{Title: fmt.Sprintf("POST to the first row, %s rows of %s", amount(int64(rows)), strings.ToUpper(format)), Target: 300}
			for run := range 2 * b.runs {
				w := work{query: "behavior", format: format}
				took, err := firstRow(ctx, u.api, fmt.Sprintf("first-%s-%d-%d", format, rows, run), w.script(file, "", 0))
				if err != nil {
					return nil, err
				}
				f.Milliseconds = append(f.Milliseconds, 1000*took.Seconds())
			}
			all = append(all, f.judged())
		}
	}
	return all, nil
}

// firstRow submits a job, asks for its result until there is a row, and ends it.
func firstRow(ctx context.Context, a *api, name, sql string) (time.Duration, error) {
	began := time.Now()
	if err := a.submit(ctx, name, sql); err != nil {
		return 0, err
	}
	err := await(ctx, time.Minute, "the first row of "+name, func() (bool, error) {
		page, err := a.results(ctx, name, "limit=1")
		return len(page.Rows) > 0, err
	})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	if j, err := a.job(ctx, name); err != nil || j.Status == "FINISHED" {
		return took, err
	}
	if err := a.cancel(ctx, name); err != nil {
		if j, errJob := a.job(ctx, name); errJob != nil || j.Status != "FINISHED" { // it ended by itself meanwhile
			return 0, err
		}
	}
	return took, nil
}

// empty measures weir run of an empty file, the whole process.
func (b *speedBench) empty(ctx context.Context) ([]waitFigures, error) {
	file := filepath.Join(b.inbox, "empty.json")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return nil, err
	}
	f := waitFigures{Title: "weir run of an empty file, the whole process", Target: 500}
	for range 2 * b.runs {
		w := work{query: "behavior", format: "json"}
		cmd := exec.CommandContext(ctx, b.weir, "run", "-o", "json", "-")
		endInOrder(cmd) // it has a folder to remove
		cmd.Stdin = strings.NewReader(w.script(file, "", 0))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		began := time.Now()
		out, err := cmd.Output()
		if err != nil || len(out) > 0 {
			return nil, fmt.Errorf("weir run: %w, it printed %q\n%s", err, out, stderr.String())
		}
		f.Milliseconds = append(f.Milliseconds, 1000*time.Since(began).Seconds())
	}
	return []waitFigures{f.judged()}, nil
}

func (f waitFigures) judged() waitFigures {
	f.Met = median(f.Milliseconds) < f.Target
	fmt.Fprintf(os.Stderr, "%s: %.0f ms\n", f.Title, median(f.Milliseconds))
	return f
}

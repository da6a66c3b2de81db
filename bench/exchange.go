package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// exchangeBench counts rows of a million users at parallelism 2: both subtasks of each
// operator in one worker, and in two workers, where half of the rows cross NATS.
type exchangeBench struct {
	rows, runs int
}

func (b *exchangeBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.rows, "rows", 10_000_000, "rows")
	f.IntVar(&b.runs, "runs", 5, "interleaved pairs of runs")
}

// exchangeFigures are those of one kind of source.
type exchangeFigures struct {
	Source string    `json:"source"`
	Rows   int       `json:"rows"`
	One    []float64 `json:"one_worker_rows_per_second"`
	Two    []float64 `json:"two_workers_rows_per_second"`
	Ratio  float64   `json:"ratio"`
}

func (b *exchangeBench) run(ctx context.Context, c common) (any, string, error) {
	o := options{rows: b.rows, dir: c.dir}
	file, _, err := o.generate()
	if err != nil {
		return nil, "", err
	}
	if _, err := countByHand(file); err != nil { // once, so that the page cache has it
		return nil, "", err
	}
	asked := slices.IndexFunc(questions(), func(q question) bool { return q.name == "count by 1 M keys" })
	q := questions()[asked]
	want := q.answer(b.rows)
	slices.Sort(want)
	made := strings.Replace(script(file, q.sql), fmt.Sprintf("'filesystem', 'path' = '%s', 'format' = 'json'", file),
		fmt.Sprintf("'datagen', 'number-of-rows' = '%d', 'fields.user_id.min' = '0', 'fields.user_id.max' = '999999'", b.rows), 1)
	var all []exchangeFigures
	for _, s := range []struct {
		name, sql string
		want      []string // nil: as the first run
	}{{"JSON lines", script(file, q.sql), want}, {"datagen", made, nil}} {
		f := exchangeFigures{Source: s.name, Rows: b.rows}
		for range b.runs {
			for workers, rates := range map[int]*[]float64{1: &f.One, 2: &f.Two} { // in either order
				rate, got, err := b.count(ctx, c, s.sql, workers)
				if err != nil {
					return nil, "", fmt.Errorf("%s, %d workers: %w", s.name, workers, err)
				}
				if s.want == nil {
					s.want = got
				}
				if !slices.Equal(got, s.want) {
					return nil, "", fmt.Errorf("%s, %d workers: %d groups, want %d, and they differ", s.name, workers, len(got), len(s.want))
				}
				*rates = append(*rates, rate)
			}
		}
		f.Ratio = median(f.Two) / median(f.One)
		fmt.Fprintf(os.Stderr, "exchange: %s: %.2f\n", s.name, f.Ratio)
		all = append(all, f)
	}
	return all, showExchange(all), nil
}

func showExchange(all []exchangeFigures) string {
	var w strings.Builder
	w.WriteString("| GROUP BY user_id of | one worker, M rows/s (min, max) | two workers | ratio | target |\n|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %s | %s | %.2f | ≥ 0.75 |\n", f.Source, spread(f.One, "%.2f"), spread(f.Two, "%.2f"), f.Ratio)
	}
	return w.String()
}

// count runs the job on so many workers, all slots of which it needs.
func (b *exchangeBench) count(ctx context.Context, c common, sql string, workers int) (rate float64, rows []string, err error) {
	a, end, err := startUp(ctx, c.weir, c.dir, workers, 2/workers)
	if err != nil {
		return 0, nil, err
	}
	defer end()
	const name = "users"
	if err := a.submit(ctx, name, sql); err != nil {
		return 0, nil, err
	}
	if err := a.awaitStatus(ctx, name, "FINISHED", 5*time.Minute); err != nil {
		return 0, nil, err
	}
	list, err := a.attempts(ctx, name)
	if err != nil || len(list) != 1 || list[0].EndedAt == nil {
		return 0, nil, fmt.Errorf("the job did not run through: attempts %+v: %w", list, err)
	}
	page, err := a.results(ctx, name, "limit=10000")
	if err != nil || page.Next != "" {
		return 0, nil, fmt.Errorf("the result is not one page: %w", err)
	}
	var text bytes.Buffer
	for _, row := range page.Rows {
		text.Write(append(row, '\n'))
	}
	rows, err = joinedRows(text.Bytes())
	return float64(b.rows) / list[0].EndedAt.Sub(list[0].StartedAt).Seconds(), rows, err
}

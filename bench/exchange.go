package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
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
	Source string `json:"source"`
	Rows   int    `json:"rows"`
	comparison
}

func (b *exchangeBench) run(ctx context.Context, c common) (any, string, error) {
	file, err := generate(c.dir, "json", b.rows)
	if err == nil {
		err = cache(file)
	}
	if err != nil {
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
		with := func(workers int) func() (float64, error) {
			return func() (float64, error) {
				rate, got, err := b.count(ctx, c, s.sql, workers)
				if err != nil {
					return 0, fmt.Errorf("%d workers: %w", workers, err)
				}
				if s.want == nil {
					s.want = got
				}
				if !slices.Equal(got, s.want) {
					return 0, fmt.Errorf("%d workers: %d groups, want %d, and they differ", workers, len(got), len(s.want))
				}
				return rate, nil
			}
		}
		f := exchangeFigures{Source: s.name, Rows: b.rows}
		if f.comparison, err = compared("exchange: "+s.name, b.runs, with(2), with(1)); err != nil {
			return nil, "", err
		}
		all = append(all, f)
	}
	return all, showExchange(all), nil
}

func showExchange(all []exchangeFigures) string {
	var w strings.Builder
	w.WriteString("| GROUP BY user_id of | two workers, M rows/s (min, max) | one worker | ratio | target |\n|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %s | ≥ 0.75 |\n", f.Source, f.columns("%.2f"))
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
	if err != nil {
		return 0, nil, err
	}
	if len(list) != 1 || list[0].EndedAt == nil {
		return 0, nil, fmt.Errorf("the job did not run through: attempts %+v", list)
	}
	page, err := a.results(ctx, name, "limit=10000")
	if err != nil {
		return 0, nil, err
	}
	if page.Next != "" {
		return 0, nil, fmt.Errorf("the result is more than a page: %d rows", page.Total)
	}
	var text bytes.Buffer
	for _, row := range page.Rows {
		text.Write(append(row, '\n'))
	}
	rows, err = joinedRows(text.Bytes())
	return float64(b.rows) / list[0].EndedAt.Sub(list[0].StartedAt).Seconds(), rows, err
}

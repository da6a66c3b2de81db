package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// queryFigures are one query's result.
type queryFigures struct {
	Name   string    `json:"name"`
	Rates  []float64 `json:"rows_per_second"` // at parallelism 1 and 2, medians of job time
	Allocs float64   `json:"allocations_per_row"`
}

// A question is a query over the file and the same written as a loop: rows of the
// columns' values joined by blanks, in any order.
type question struct {
	name, sql string
	answer    func(rows int) []string
}

// grouped counts and sums rows by a key and prints each group.
func grouped[G any](key func(row) string, add func(*G, row), show func(string, *G) string) func(int) []string {
	return func(rows int) []string {
		groups := map[string]*G{}
		for r := range generated(rows) {
			k := key(r)
			g := groups[k]
			if g == nil {
				g = new(G)
				groups[k] = g
			}
			add(g, r)
		}
		var out []string
		for k, g := range groups {
			if line := show(k, g); line != "" {
				out = append(out, line)
			}
		}
		return out
	}
}

func count(n *int64, _ row) { *n++ }

func counted(k string, n *int64) string { return fmt.Sprint(k, " ", *n) }

// extremes is MIN, MAX and AVG of a group.
type extremes struct{ low, high, sum, n int64 }

func questions() []question {
	return []question{
		{
			"count by 4 keys", "SELECT behavior, COUNT(*) AS n FROM b GROUP BY behavior",
			grouped(func(r row) string { return r.behavior }, count, counted),
		},
		{
			"count by 1 M keys", "SELECT user_id, COUNT(*) AS n FROM b GROUP BY user_id HAVING COUNT(*) > 27",
			grouped(func(r row) string { return fmt.Sprint(r.user) }, count, func(k string, n *int64) string {
				if *n > 27 {
					return counted(k, n)
				}
				return ""
			}),
		},
		{
			"filter", "SELECT COUNT(*) AS n FROM b WHERE behavior IN ('buy', 'cart') AND item_id % 2 = 0",
			grouped(func(row) string { return "" }, func(n *int64, r row) {
				if (r.behavior == "buy" || r.behavior == "cart") && r.item%2 == 0 {
					*n++
				}
			}, func(_ string, n *int64) string { return fmt.Sprint(*n) }),
		},
		{
			"min, max, avg by 10 k keys", "SELECT category_id, MIN(ts) AS low, MAX(ts) AS high, AVG(user_id) AS mean FROM b GROUP BY category_id",
			grouped(func(r row) string { return fmt.Sprint(r.category) }, func(g *extremes, r row) {
				if g.n == 0 || r.ts < g.low {
					g.low = r.ts
				}
				g.high, g.sum, g.n = max(g.high, r.ts), g.sum+r.user, g.n+1
			}, func(k string, g *extremes) string {
				mean, _ := json.Marshal(float64(g.sum) / float64(g.n)) // a finite number
				return fmt.Sprint(k, " ", g.low, " ", g.high, " ", string(mean))
			}),
		},
		{
			"count distinct", "SELECT behavior, COUNT(DISTINCT user_id) AS n FROM b GROUP BY behavior",
			grouped(func(r row) string { return r.behavior }, func(g *map[int64]bool, r row) {
				if *g == nil {
					*g = map[int64]bool{}
				}
				(*g)[r.user] = true
			}, func(k string, g *map[int64]bool) string { return fmt.Sprint(k, " ", len(*g)) }),
		},
		{"count of counts", "SELECT n, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS n FROM b GROUP BY user_id) AS c GROUP BY n", countOfCounts},
		{"rollup", "SELECT behavior, category_id % 10 AS c, COUNT(*) AS n FROM b GROUP BY ROLLUP (behavior, category_id % 10)", rollup},
		{
			"case, like, upper", "SELECT CASE WHEN behavior LIKE 'c%' THEN UPPER(behavior) ELSE 'other' END AS b, SUM(item_id) AS n FROM b GROUP BY 1",
			grouped(func(r row) string {
				if strings.HasPrefix(r.behavior, "c") {
					return strings.ToUpper(r.behavior)
				}
				return "other"
			}, func(n *int64, r row) { *n += r.item }, counted),
		},
		{
			"hour of a time", "SELECT EXTRACT(HOUR FROM TO_TIMESTAMP_LTZ(ts, 3)) AS h, COUNT(*) AS n FROM b GROUP BY 1",
			grouped(func(r row) string { return fmt.Sprint(time.UnixMilli(r.ts).UTC().Hour()) }, count, counted),
		},
		{
			"distinct", "SELECT DISTINCT category_id FROM b",
			grouped(func(r row) string { return fmt.Sprint(r.category) }, count, func(k string, _ *int64) string { return k }),
		},
	}
}

func countOfCounts(rows int) []string {
	users, sizes := map[int64]int64{}, map[int64]int64{}
	for r := range generated(rows) {
		users[r.user]++
	}
	for _, n := range users {
		sizes[n]++
	}
	var out []string
	for n, users := range sizes {
		out = append(out, fmt.Sprint(n, " ", users))
	}
	return out
}

func rollup(rows int) []string {
	n := map[string]int{}
	for r := range generated(rows) {
		n[fmt.Sprint(r.behavior, " ", r.category%10)]++
		n[r.behavior+" <nil>"]++
		n["<nil> <nil>"]++
	}
	var out []string
	for k, n := range n {
		out = append(out, fmt.Sprint(k, " ", n))
	}
	return out
}

// queries measures every question.
func (o options) queries(ctx context.Context, file string, f *figures) error {
	for _, q := range questions() {
		if o.only != "" && q.name != o.only {
			continue
		}
		want := q.answer(o.rows)
		slices.Sort(want)
		figures := queryFigures{Name: q.name}
		for parallelism := 1; parallelism <= 2; parallelism++ {
			var rates []float64
			for range o.runs {
				out, job, err := o.weirRun(ctx, script(file, q.sql), parallelism)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				if err := sameRows(q.name, out, want); err != nil {
					return err
				}
				rates = append(rates, float64(o.rows)/job.Seconds())
			}
			figures.Rates = append(figures.Rates, median(rates))
		}
		var err error
		if figures.Allocs, err = allocsPerRow(q.sql, o.rows); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		f.Queries = append(f.Queries, figures)
		fmt.Fprintf(os.Stderr, "%s: %.2f, %.2f M rows/s\n", q.name, figures.Rates[0]/1e6, figures.Rates[1]/1e6)
	}
	return nil
}

// sameRows compares the rows that weir printed, as JSON, with the loop's.
func sameRows(name string, out []byte, want []string) error {
	got, err := joinedRows(out)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: weir gave %d rows, the loop %d, and they differ: %.200q, %.200q", name, len(got), len(want), got, want)
	}
	return nil
}

// joinedRows turns lines of JSON objects into the values joined by blanks, sorted.
func joinedRows(lines []byte) (rows []string, err error) {
	for line := range bytes.Lines(lines) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var values []string
		if _, err := d.Token(); err != nil { // the brace
			return nil, err
		}
		for d.More() {
			var v any
			if _, err := d.Token(); err != nil { // the name
				return nil, err
			}
			if err := d.Decode(&v); err != nil {
				return nil, err
			}
			values = append(values, fmt.Sprint(v))
		}
		rows = append(rows, strings.Join(values, " "))
	}
	slices.Sort(rows)
	return rows, nil
}

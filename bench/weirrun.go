package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	weir        string
	rows        int
	parallelism int
	runs        int
	dir         string
	json        string
	only        string
}

// flags are those of bench queries.
func (o *options) flags(f *flag.FlagSet) {
	f.StringVar(&o.weir, "weir", "bin/weir", "the binary")
	f.IntVar(&o.rows, "rows", 10_000_000, "rows")
	f.IntVar(&o.parallelism, "parallelism", 2, "subtasks per operator")
	f.IntVar(&o.runs, "runs", 3, "interleaved pairs of runs; the median counts")
	f.StringVar(&o.dir, "dir", keptFiles(), "where the generated file is kept")
	f.StringVar(&o.json, "json", "", "write the figures to this file too")
	f.StringVar(&o.only, "only", "", "measure the query of this name alone")
}

// figures are one run's result.
type figures struct {
	Rows        int       `json:"rows"`
	Bytes       int64     `json:"bytes"`
	CPUs        int       `json:"cpus"`
	Go          string    `json:"go"`
	Parallelism int       `json:"parallelism"`
	Loop        []float64 `json:"loop_rows_per_second"`
	Job         []float64 `json:"job_rows_per_second"`     // first row to last: start of the attempt to its end
	Process     []float64 `json:"process_rows_per_second"` // the whole of weir run, start-up included
	Ratio       float64   `json:"ratio"`                   // median job / median loop

	Queries  []queryFigures `json:"queries"`
	Planning float64        `json:"planning_us"` // a script of 50 lines
}

func (o options) run(ctx context.Context) error {
	file, err := generate(o.dir, "json", o.rows)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	f := figures{Rows: o.rows, Bytes: info.Size(), CPUs: runtime.NumCPU(), Go: runtime.Version(), Parallelism: o.parallelism}
	if err := cache(file); err != nil {
		return err
	}
	if o.only == "" {
		if err := o.compare(ctx, file, &f); err != nil {
			return err
		}
	}
	if err := o.queries(ctx, file, &f); err != nil {
		return err
	}
	if f.Planning, err = planning(); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(f.text()); err != nil || o.json == "" {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(b, '\n'), 0o644)
}

// compare runs the loop and weir run alternately.
func (o options) compare(ctx context.Context, file string, f *figures) error {
	want := answersOf(o.rows)
	loop := limit{query: "behavior", format: "json", kind: "validate", goroutines: 1}
	for range o.runs {
		tally, took, err := loop.count([]string{file})
		if err == nil {
			err = tally.check(loop.query, want, 1)
		}
		if err != nil {
			return err
		}
		f.Loop = append(f.Loop, float64(o.rows)/took.Seconds())

		began := time.Now()
		got, job, err := o.countByWeir(ctx, file)
		took = time.Since(began)
		if err == nil {
			err = sameCounts(got, want.behaviors, 1)
		}
		if err != nil {
			return fmt.Errorf("weir: %w", err)
		}
		f.Process = append(f.Process, float64(o.rows)/took.Seconds())
		f.Job = append(f.Job, float64(o.rows)/job.Seconds())
	}
	f.Ratio = median(f.Job) / median(f.Loop)
	return nil
}

// text is the report, as a table of Markdown.
func (f figures) text() string {
	var w strings.Builder
	if len(f.Loop) > 0 {
		f.comparison(&w)
	}
	fmt.Fprintf(&w, "\n| query | M rows/s, parallelism 1 | 2 | allocations per row |\n|---|---|---|---|\n")
	for _, q := range f.Queries {
		fmt.Fprintf(&w, "| %s | %.2f | %.2f | %.4f |\n", q.Name, q.Rates[0]/1e6, q.Rates[1]/1e6, q.Allocs)
	}
	fmt.Fprintf(&w, "\nA script of 50 lines is planned in %.0f µs.\n", f.Planning)
	return w.String()
}

func (f figures) comparison(w *strings.Builder) {
	fmt.Fprintf(w, "%d rows of %d B JSON, %d CPUs, %s, parallelism %d, checkpoints every second, %d pairs\n\n", f.Rows, f.Bytes/int64(f.Rows), f.CPUs, f.Go, f.Parallelism, len(f.Loop))
	fmt.Fprintf(w, "| GROUP BY behavior | M rows/s, median | least | most |\n|---|---|---|---|\n")
	for _, line := range []struct {
		name  string
		rates []float64
	}{{"loop that validates, one goroutine", f.Loop}, {"weir, first row to last", f.Job}, {"weir run, the whole process", f.Process}} {
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f |\n", line.name, median(line.rates)/1e6, slices.Min(line.rates)/1e6, slices.Max(line.rates)/1e6)
	}
	fmt.Fprintf(w, "\nweir is at %.2f of the loop.\n", f.Ratio)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// countByWeir has weir run answer; job is the time from the attempt's start to its end
// as weir run itself says it.
func (o options) countByWeir(ctx context.Context, file string) (counts map[string]int64, job time.Duration, err error) {
	out, job, err := o.weirRun(ctx, script(file, "SELECT behavior, COUNT(*) AS n FROM b GROUP BY behavior"), o.parallelism)
	if err != nil {
		return nil, 0, err
	}
	counts = map[string]int64{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var row struct {
			Behavior string `json:"behavior"`
			N        int64  `json:"n"`
		}
		if err := dec.Decode(&row); err != nil {
			return nil, 0, err
		}
		counts[row.Behavior] = row.N
	}
	return counts, job, nil
}

// script is the job that asks a query of the file.
func script(file, query string) string {
	return fmt.Sprintf(`CREATE TABLE b (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json');
SET 'checkpoint.interval' = '1 s';
%s;`, file, query)
}

// weirRun has weir run a script: the rows that it prints, and the time from the
// attempt's start to its end as it says it.
func (o options) weirRun(ctx context.Context, sql string, parallelism int) (rows []byte, job time.Duration, err error) {
	cmd := exec.CommandContext(ctx, o.weir, "run", "-o", "json", "--parallelism", strconv.Itoa(parallelism), "-")
	endInOrder(cmd) // it has a folder to remove
	cmd.Stdin = strings.NewReader(sql)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("weir run: %w\n%s", err, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		var rows string
		var seconds float64
		if n, _ := fmt.Sscanf(line, "finished  %s rows in %f s", &rows, &seconds); n == 2 {
			job = time.Duration(seconds * float64(time.Second))
		}
	}
	if job == 0 {
		return nil, 0, fmt.Errorf("weir run did not say how long the job took:\n%s", stderr.String())
	}
	return stdout.Bytes(), job, nil
}

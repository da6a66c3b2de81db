package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/planner"
)

// allocsPerRow runs a query's tasks in this process over two files of different length
// and gives the allocations that the further rows cost, each. Both files have all the
// groups that there are, so that growing tables do not count.
func allocsPerRow(sql string, rows int) (float64, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	rows = min(rows, 1_000_000)
	once, err := mallocs(dir, sql, rows, 1)
	if err != nil {
		return 0, err
	}
	thrice, err := mallocs(dir, sql, rows, 3)
	return (thrice - once) / float64(2*rows), err
}

// mallocs counts the allocations of a run over the rows, so many times.
func mallocs(dir, sql string, rows, times int) (float64, error) {
	file := filepath.Join(dir, fmt.Sprintf("rows-%d.json", times))
	if err := writeTimes(file, rows, times); err != nil {
		return 0, err
	}
	p, err := planner.Plan(script(file, sql), nil, planner.Options{})
	if err != nil {
		return 0, err
	}
	var n float64
	result := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			job := exectest.Start(b, exectest.Config{
				Graph: p.Graph, Parallelism: 1, Blobs: blob.NewMemory(), Files: []string{dir},
				Openers: exec.Openers{Source: source.Open, Sink: sink.Open},
			})
			if _, err := job.Finish(); err != nil {
				b.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			n = float64(after.Mallocs - before.Mallocs)
			if err := job.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	if result.N == 0 {
		return 0, errors.New("the job failed")
	}
	return n, nil
}

func writeTimes(file string, rows, times int) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	line := make([]byte, 0, 160)
	for range times {
		for r := range generated(rows) {
			line = r.append(line[:0])
			w.Write(line) //nolint:errcheck // Flush returns it
		}
	}
	return errors.Join(w.Flush(), out.Close())
}

// planning gives the median time to plan a script of 50 lines, in microseconds.
func planning() (float64, error) {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "CREATE TABLE t%d (\n  user_id BIGINT, behavior STRING, price DECIMAL(10, 2), t BIGINT\n) WITH ('connector' = 'filesystem', 'path' = 'd%d', 'format' = 'json');\n", i, i)
	}
	for i := range 4 {
		fmt.Fprintf(&b, "CREATE VIEW v%d AS\n  SELECT user_id, behavior, price * 2 AS p FROM t%d WHERE behavior LIKE 'b%%';\n", i, i)
	}
	b.WriteString(`WITH u AS (
  SELECT user_id, behavior, p FROM v0 UNION ALL
  SELECT user_id, behavior, p FROM v1 UNION ALL
  SELECT user_id, behavior, p FROM v2 UNION ALL
  SELECT user_id, behavior, p FROM v3
)
SELECT behavior,
  COUNT(*) AS n,
  COUNT(DISTINCT user_id) AS users,
  SUM(p) FILTER (WHERE p > 0) AS total,
  MAX(CASE WHEN p IS NULL THEN 0 ELSE p END) AS most
FROM u GROUP BY behavior HAVING COUNT(*) > 1;`)
	script := b.String()
	if n := strings.Count(script, "\n") + 1; n != 50 {
		return 0, fmt.Errorf("the script to plan has %d lines", n)
	}
	var times []float64
	for range 301 {
		began := time.Now()
		if _, err := planner.Plan(script, nil, planner.Options{}); err != nil {
			return 0, fmt.Errorf("plan: %w", err)
		}
		times = append(times, float64(time.Since(began).Nanoseconds())/1e3)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

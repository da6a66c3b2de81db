package exec_test

import (
	"fmt"
	"testing"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/source"
	"weir/planner"
)

// BenchmarkJob runs whole jobs over generated rows and reports rows per second.
func BenchmarkJob(b *testing.B) {
	const table = `CREATE TABLE g (i BIGINT, k BIGINT, behavior STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '%d',
		'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.k.kind' = 'random', 'fields.k.min' = '0', 'fields.k.max' = '%d',
		'fields.behavior.kind' = 'random', 'fields.behavior.values' = 'pv,cart,fav,buy'); `
	for _, q := range []struct {
		name string
		keys int
		rows int
		sql  string
	}{
		{"count", 1, 10_000_000, "SELECT count(*) AS n FROM g"},
		{"behavior", 1, 10_000_000, "SELECT behavior, count(*) AS n FROM g GROUP BY behavior"},
		{"filter", 1, 10_000_000, "SELECT behavior, count(*) AS n FROM g WHERE behavior IN ('buy', 'cart') GROUP BY behavior"},
		{"sum1000", 1000, 10_000_000, "SELECT k, count(*) AS n, sum(i) AS t FROM g GROUP BY k"},
		{"keys1M", 1_000_000, 4_000_000, "SELECT k, count(*) AS n FROM g GROUP BY k"},
	} {
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/p%d", q.name, parallelism), func(b *testing.B) {
				p, err := planner.Plan(fmt.Sprintf(table, q.rows, q.keys-1)+q.sql, nil, planner.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					j := exectest.Start(b, exectest.Config{
						Graph: p.Graph, Parallelism: parallelism, Blobs: blob.NewMemory(),
						Openers: exec.Openers{Source: source.Open}, Capacity: 64,
					})
					if _, err := j.Finish(); err != nil {
						b.Fatal(err)
					}
					if err := j.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(q.rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

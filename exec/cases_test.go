package exec_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/exec/exectest"
)

// rounds is how often a test repeats what hardly ever goes wrong: twenty times with
// WEIR_LONG, as the case asks.
func rounds() int {
	if os.Getenv("WEIR_LONG") != "" {
		return 20
	}
	return 4
}

// TestS19EndOfInput: the last, partial batch of a generated table counts each time, at
// every parallelism, with checkpoints until the end.
func TestS19EndOfInput(t *testing.T) {
	t.Parallel()
	const path = "testdata/queries/s19_datagen"
	script, err := os.ReadFile(path + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	q := &query{script: string(script), golden: path + ".golden"}
	for range rounds() {
		for _, parallelism := range []int{1, 4} {
			s, err := q.site(t)
			if err != nil {
				t.Fatal(err)
			}
			job := exectest.Start(t, s.config(parallelism, nil, &exectest.Stepper{}, 1<<30))
			for range 5 {
				if _, err := job.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			q.check(t, "with checkpoints", s.finish(t, job))
		}
	}
}

// TestM07Depth: rows that nest deeply, in a field that no query reads or in a text that
// JSON_VALUE reads, harm neither the others nor the process.
func TestM07Depth(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	script.WriteString("-- M07\n-- on_row_error skip\n-- file t.json\n")
	for _, depth := range []int{100, 10_000, 10_001, 1_000_000} {
		for _, nest := range [][2]string{{"[", "]"}, {`{"x":`, "}"}} {
			nested := func(n int) string { return strings.Repeat(nest[0], n) + "1" + strings.Repeat(nest[1], n) }
			fmt.Fprintf(&script, "--|{\"k\":\"ignored\",\"x\":%s}\n", nested(depth))
			within := min(depth, 60_000) // a row has no more text than 512 KiB
			fmt.Fprintf(&script, "--|{\"k\":\"read\",\"v\":%q}\n", `{"d":`+nested(within)+`,"a":7}`)
		}
	}
	script.WriteString(`--|{"k":"read","v":"{\"a\":7}"}
CREATE TABLE t (k STRING, v STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, COUNT(JSON_VALUE(v, '$.a')) AS found FROM t GROUP BY k;
`)
	q := &query{script: script.String()}
	s, err := q.site(t)
	if err != nil {
		t.Fatal(err)
	}
	got := s.finish(t, exectest.Start(t, s.config(2, nil, &exectest.Stepper{}, 1<<30)))
	rows, _, _ := strings.Cut(got, "\n{\"table\"")
	const want = `{"k":"ignored","n":2,"found":0}
{"k":"read","n":9,"found":3}
rejected 6 of t`
	if rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
}

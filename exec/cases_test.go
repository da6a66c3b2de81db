package exec_test

import (
	"os"
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

package sim

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var (
	seed  = flag.Uint64("seed", 0, "run this seed only and print its trace")
	seeds = flag.Uint64("seeds", 200, "how many seeds to run")
)

// TestSeeds runs one simulated job after the other.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		trace, err := Run(*seed)
		t.Logf("%s\n%v", strings.Join(trace, "\n"), err)
		if err != nil {
			t.Fail()
		}
		return
	}
	const groups = 8
	for g := range uint64(groups) {
		t.Run(fmt.Sprintf("group %d", g), func(t *testing.T) {
			t.Parallel()
			for s := g + 1; s <= *seeds; s += groups {
				if trace, err := Run(s); err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(trace, "\n"))
				}
			}
		})
	}
}

// TestSameSeedSameTrace: a failing seed can be looked at again.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	one, _ := Run(7)
	two, _ := Run(7)
	if a, b := strings.Join(one, "\n"), strings.Join(two, "\n"); a != b {
		t.Errorf("the runs differ:\n%s\n\n%s", a, b)
	}
}

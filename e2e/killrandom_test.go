//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"weir/checkpoint/blob/s3test"
	"weir/checkpoint/killpoint"
)

// R01: workers taken at random die at random points of random checkpoints, again and
// again, while one job copies and counts; every row is copied once and every key
// counted exactly. WEIR_LONG=1 kills twenty times and takes 100,000 rows of 50 keys;
// WEIR_SEED repeats a run's choices.
func TestWorkersDieAnywhere(t *testing.T) {
	t.Parallel()
	kills, rows, perSecond, keys := 3, 6_000, 2_000, 1_000
	if os.Getenv("WEIR_LONG") != "" {
		kills, rows, perSecond, keys = 20, 100_000, 2_500, 50
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WEIR_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var gateway *s3test.Server
	s := setting{"postgres", "folder"}
	if os.Getenv("WEIR_LONG") != "" {
		s.storage, gateway = "s3", s3test.Start(t)
	}
	d := startDoomed(t, s, gateway)
	d.rows, d.perSecond, d.keys = rows, perSecond, keys
	points := slices.DeleteFunc(killpoint.Points(), func(p killpoint.Point) bool {
		return p.Role == killpoint.Server || p.Name == "within-put" || p.Name == "before-commit-only" || p.Name == "after-commit-only"
	})
	plan := func() string { return fmt.Sprintf("%s:%d", points[random.IntN(len(points))].Name, 1+random.IntN(5)) }
	d.begin("server", "")
	for _, name := range []string{"w1", "w2"} {
		d.begin(name, plan())
	}
	a := d.api(t, "server")
	until(t, 20*time.Second, "the server is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	defer d.explain(a, "r01")
	d.submit(a, "r01", often)
	for n := range kills {
		name := ""
		until(t, 30*time.Second, fmt.Sprintf("a worker has died after %d", n), func() bool {
			select {
			case <-d.processes["w1"].done:
				name = "w1"
			case <-d.processes["w2"].done:
				name = "w2"
			default: // the rows of a job that falls behind may be through before the last points come
				var j job
				return n > 0 && a.do("GET", "/v1/jobs/r01", nil, &j) == http.StatusOK && j.Status == "FINISHED"
			}
			return true
		})
		if name == "" {
			t.Logf("the job is through after %d", n)
			break
		}
		d.awaitDeath(t, name)
		t.Logf("%s: %s", name, tail(d.processes[name].log.String(), 60))
		next := ""
		if n+2 < kills {
			next = plan()
		}
		d.begin(name, next)
	}
	a.awaitJob("r01", 90*time.Second, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	d.checkOutput(t, "r01")
	d.checkHistory(a, "r01")
	d.checkObjects(a, "r01", 20*time.Second)
}

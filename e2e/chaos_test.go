//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Workers, the server and everything die and hang at random moments, again and again,
// while one job counts and another one copies rows into files: no row is lost or seen
// twice. WEIR_LONG=1 goes on for longer; WEIR_SEED repeats a run's choices.
func TestChaos(t *testing.T) {
	t.Parallel()
	rounds, rows := 6, 100_000
	if os.Getenv("WEIR_LONG") != "" {
		rounds, rows = 60, 1_500_000
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WEIR_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	x := &chaos{cluster: startCluster(t), random: rand.New(rand.NewPCG(seed, 0))}
	want := x.submit(rows)
	for range rounds {
		x.wait(time.Duration(x.random.IntN(700)) * time.Millisecond)
		x.harm()
		for _, name := range []string{"counts", "copy"} {
			x.api.awaitJob(name, 60*time.Second, name+" runs again", func(j job) bool { return j.Status == "RUNNING" || j.Status == "FINISHED" })
		}
	}
	limit := time.Duration(rows/10_000)*time.Second + 60*time.Second
	for _, name := range []string{"counts", "copy"} {
		x.api.awaitJob(name, limit, name+" ends", func(j job) bool { return j.Status == "FINISHED" })
	}
	if diff := cmp.Diff(want, x.api.counts("counts")); diff != "" {
		t.Errorf("counts (-oracle +weir):\n%s", diff)
	}
	x.checkCopy(rows)
}

// inputs is how many files there are; each has the same times.
const inputs = 5

// A chaos is a cluster, and what happens to it.
type chaos struct {
	*cluster
	random *rand.Rand
}

// submit starts both jobs over the same files and returns the counts.
func (x *chaos) submit(rows int) map[string]int64 {
	want := map[string]int64{}
	in := filepath.Join(x.dir, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		x.t.Fatal(err)
	}
	for i := range inputs {
		for behavior, n := range writeBehavior(x.t, filepath.Join(in, fmt.Sprint(i, ".json")), rows/inputs) {
			want[behavior] += n
		}
	}
	tables := `CREATE TABLE b (ts BIGINT, behavior STRING) WITH ('connector' = 'filesystem', 'path' = 'in/*.json', 'format' = 'json', 'rows-per-second' = '15000');
		CREATE TABLE o (ts BIGINT, behavior STRING) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'json');
		SET 'checkpoint.interval' = '200 ms'; `
	for name, query := range map[string]string{
		"counts": "SELECT behavior, COUNT(*) AS n FROM b GROUP BY behavior",
		"copy":   "INSERT INTO o SELECT ts, behavior FROM b",
	} {
		x.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": name, "sql": tables + query, "parallelism": 4}, nil)
	}
	return want
}

func (x *chaos) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// harm does one thing to the cluster, and mends it.
func (x *chaos) harm() {
	worker := []string{"w1", "w2"}[x.random.IntN(2)]
	switch what := x.random.IntN(5); what {
	case 0, 1:
		x.t.Logf("%s is killed", worker)
		x.workers[worker].kill()
		x.startWorker(worker)
	case 2:
		x.t.Log("the server is killed")
		x.server.kill()
		x.startServer()
	case 3:
		x.t.Log("everything is killed")
		for _, p := range x.workers {
			p.kill()
		}
		x.server.kill()
		x.startServer()
		x.startWorker("w1")
		x.startWorker("w2")
	case 4:
		x.t.Logf("%s hangs, is replaced, and wakes up", worker)
		old := x.workers[worker]
		x.signal(old, syscall.SIGSTOP)
		x.startWorker(worker)
		x.wait(time.Second)
		x.signal(old, syscall.SIGCONT)
		x.wait(time.Second)
		old.kill()
	}
}

func (x *chaos) signal(p *process, s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

// checkCopy reads the files that a reader would see: those whose names show.
func (x *chaos) checkCopy(rows int) {
	x.t.Helper()
	seen := map[int64]int{}
	files, err := filepath.Glob(filepath.Join(x.dir, "out", "*"))
	if err != nil {
		x.t.Fatal(err)
	}
	for _, path := range slices.DeleteFunc(files, func(p string) bool { return strings.HasPrefix(filepath.Base(p), ".") }) {
		f, err := os.Open(path)
		if err != nil {
			x.t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var row struct {
				TS int64 `json:"ts"`
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				x.t.Fatalf("%s: %v: %s", path, err, lines.Bytes())
			}
			seen[row.TS]++
		}
	}
	if len(seen) != rows/inputs {
		x.t.Errorf("%d times were copied, want %d", len(seen), rows/inputs)
	}
	for _, ts := range slices.Sorted(maps.Keys(seen)) {
		if seen[ts] != inputs {
			x.t.Fatalf("rows of time %d: %d, want %d", ts, seen[ts], inputs)
		}
	}
}

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tenths counts keys, every tenth of which comes a second time, long after the first, and how many come
// how often: what is lost or doubled shows.
func tenths(keys int) string {
	return fmt.Sprintf(`SET 'checkpoint.interval' = '1 s';
CREATE TABLE t (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.i.kind' = 'sequence');
SELECT n, COUNT(*) AS keys FROM (SELECT k, COUNT(*) AS n FROM (SELECT CASE WHEN i < %d THEN i ELSE (i - %[2]d) * 10 END AS k FROM t) AS s GROUP BY k) AS g GROUP BY n`, keys+keys/10, keys)
}

// TestMemoryBudget: a job with several times the state that its worker's budget has room for runs to
// its end in one attempt, exact; entries are spilled, and the process stays within its budget. Where control
// groups can be made, one holds it to that.
func TestMemoryBudget(t *testing.T) {
	const mib = 1 << 20
	memory, keys, limit := 192, 2_500_000, 3*time.Minute
	if long() {
		memory, keys, limit = 585, 50_000_000, 20*time.Minute // 512 of it are the worker's
	}
	a, _ := upWithin(t, memory)
	worker := a.onlyWorker()
	if want := int64(memory)*mib - max(64*mib, int64(memory)*mib/8); worker.Memory.Budget != want {
		t.Fatalf("a budget of %d bytes, want %d", worker.Memory.Budget, want)
	}
	hold(t, worker.PID, worker.Memory.Budget)
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "often", "sql": tenths(keys), "parallelism": 2}, nil)
	rows := keys + keys/10
	var most, spilled int64
	began := time.Now()
	j, took := a.awaitJob("often", limit, "the job ends", func(j job) bool {
		if j.Attempt > 1 {
			t.Fatalf("attempt %d: %+v", j.Attempt, j.Failure)
		}
		spilled = max(spilled, a.spilled("often"))
		most = max(most, anonymous(t, worker.PID))
		return j.Status == "FINISHED"
	})
	t.Logf("%d keys in %v, %.0f rows/s: %d MiB at most of %d, %d entries on disk", keys, took.Round(time.Millisecond), float64(rows)/time.Since(began).Seconds(), most/mib, worker.Memory.Budget/mib, spilled)
	if most > worker.Memory.Budget {
		t.Errorf("%d bytes, %d are allowed", most, worker.Memory.Budget)
	}
	if spilled == 0 {
		t.Error("nothing was spilled")
	}
	if j.RowsIn != int64(rows) {
		t.Errorf("%d rows, want %d", j.RowsIn, rows)
	}
	a.tenthsCounted("often", keys)
}

// P08: a worker that is killed while its state is on disk leaves nothing behind: the next one begins
// with an empty folder. At no time does the folder take more than three times what the keys and their counts do
// there, and at rest nothing. (What object storage holds: TestP08Overwritten of server/job.)
func TestP08Spilled(t *testing.T) {
	memory, keys, kills := 128, 600_000, 1
	if long() {
		memory, keys, kills = 192, 2_500_000, 3
	}
	const entry = 32 // bytes, about, on disk
	a, data := upWithin(t, memory)
	worker := a.onlyWorker()
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "often", "sql": tenths(keys), "parallelism": 2}, nil)
	var most int64
	killed := 0
	a.awaitJob("often", 5*time.Minute, "the job ends", func(j job) bool {
		size := folderSize(t, filepath.Join(data, "worker-1", "spill"))
		most = max(most, size)
		if killed < kills && j.Status == "RUNNING" && j.Attempt == int64(killed+1) && size > int64(keys*entry/4) {
			killed++
			if err := syscall.Kill(worker.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			until(t, time.Minute, "another worker", func() bool {
				next := a.onlyWorker()
				came := next.PID != 0 && next.PID != worker.PID
				if came {
					worker = next
				}
				return came
			})
		}
		return j.Status == "FINISHED"
	})
	if killed != kills {
		t.Fatalf("%d of %d kills", killed, kills)
	}
	t.Logf("%d MiB on disk at most", most>>20)
	if most > int64(3*keys*entry) {
		t.Errorf("%d bytes on disk, of %d keys", most, keys)
	}
	until(t, time.Minute, "nothing is left of what was spilled", func() bool {
		return folderSize(t, filepath.Join(data, "worker-1", "spill")) < 1<<20 // the database's own files
	})
	a.tenthsCounted("often", keys)
}

// upWithin starts weir up with one worker and so many MiB of memory.
func upWithin(t *testing.T, memory int) (a api, data string) {
	t.Helper()
	dir := t.TempDir()
	data = filepath.Join(dir, "data")
	up := start(t, "up", dir, "up", "--data", data, "--listen", "127.0.0.1:0", "--workers", "1", "--memory", fmt.Sprintf("%dMiB", memory))
	a.t = t
	until(t, time.Minute, "weir is ready", func() bool {
		_, rest, ok := strings.Cut(up.log.String(), "weir is ready: ")
		a.base, _, _ = strings.Cut(rest, " ")
		return ok
	})
	return a, data
}

// A workerView is what the API says of a worker.
type workerView struct {
	PID    int `json:"pid"`
	Memory struct {
		Budget int64 `json:"budget_bytes"`
	} `json:"memory"`
}

// onlyWorker is the one that is there; PID 0: none is, or two.
func (a api) onlyWorker() workerView {
	a.t.Helper()
	var list struct{ Workers []workerView }
	if a.do("GET", "/v1/workers", nil, &list) != http.StatusOK || len(list.Workers) != 1 {
		return workerView{}
	}
	return list.Workers[0]
}

// spilled is how many entries of a job are on disk.
func (a api) spilled(name string) int64 {
	a.t.Helper()
	var m struct {
		Spilled int64 `json:"spilled_entries"`
	}
	_ = a.do("GET", "/v1/jobs/"+name+"/metrics", nil, &m)
	return m.Spilled
}

// tenthsCounted checks the answer of tenths.
func (a api) tenthsCounted(name string, keys int) {
	a.t.Helper()
	var page struct {
		Rows []struct{ N, Keys int64 } `json:"rows"`
	}
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name+"/results", nil, &page)
	got := map[int64]int64{}
	for _, r := range page.Rows {
		got[r.N] = r.Keys
	}
	if want := map[int64]int64{1: int64(keys - keys/10), 2: int64(keys / 10)}; !maps.Equal(got, want) {
		a.t.Errorf("keys by how often they came: %v, want %v", got, want)
	}
}

// folderSize is the size of all files below a folder; 0: there is none.
func folderSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if d != nil && err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil { // else it has gone meanwhile
				n += info.Size()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// anonymous is the memory of a process that is its own: no file's.
func anonymous(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatalf("the worker is gone: %v", err)
	}
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == "Anonymous:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no Anonymous in smaps_rollup")
	return 0
}

// hold puts a process into a control group with a limit, if this machine lets us make one.
func hold(t *testing.T, pid int, limit int64) {
	t.Helper()
	name := fmt.Sprintf("weir-e2e-%d", pid)
	for _, g := range []struct{ dir, limit string }{
		{filepath.Join("/sys/fs/cgroup/memory", name), "memory.limit_in_bytes"},
		{filepath.Join("/sys/fs/cgroup", name), "memory.max"},
	} {
		if _, err := os.Stat(filepath.Dir(g.dir)); err != nil || os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { // before the process is killed
			_ = os.WriteFile(filepath.Join(filepath.Dir(g.dir), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
			until(t, time.Minute, "the control group is empty", func() bool { return os.Remove(g.dir) == nil })
		})
		err := os.WriteFile(filepath.Join(g.dir, g.limit), []byte(strconv.FormatInt(limit, 10)), 0o600)
		if err == nil {
			err = os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
		}
		if err == nil {
			return
		}
		t.Logf("no control group: %v", err)
	}
}

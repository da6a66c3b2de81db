//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A reject is a row of /v1/jobs/{job}/rejects.
type reject struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Raw  string `json:"raw"`
}

// tasks says of each worker that is there how many tasks it runs.
func (a api) tasks() map[string]int {
	a.t.Helper()
	var list struct {
		Workers []struct {
			ID    string `json:"id"`
			Tasks int    `json:"tasks"`
		} `json:"workers"`
	}
	a.must(http.StatusOK, "GET", "/v1/workers", nil, &list)
	tasks := map[string]int{}
	for _, w := range list.Workers {
		tasks[w.ID] = w.Tasks
	}
	return tasks
}

// tasksOf is how many tasks a worker runs; -1: it is not there.
func (a api) tasksOf(worker string) int {
	a.t.Helper()
	if n, ok := a.tasks()[worker]; ok {
		return n
	}
	return -1
}

// busyWorker names a worker that runs tasks.
func (a api) busyWorker() string {
	a.t.Helper()
	tasks := a.tasks()
	for id, n := range tasks {
		if n > 0 {
			return id
		}
	}
	a.t.Fatalf("no worker runs tasks: %+v", tasks)
	return ""
}

// M02, M15: rows at fault are kept, each once with its place and its bytes, though a
// worker is killed while the job runs; the command line shows them.
func TestRejectsSurviveKills(t *testing.T) {
	t.Parallel()
	const files, lines, every = 3, 5000, 50
	c := startCluster(t)
	in := filepath.Join(c.dir, "bad")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for f := range files {
		var b bytes.Buffer
		for i := 1; i <= lines; i++ {
			if i%every == 7 {
				fmt.Fprintf(&b, "{\"k\": <b>%d</b>\n", i)
			} else {
				fmt.Fprintf(&b, "{\"k\":\"a\"}\n")
			}
		}
		if err := os.WriteFile(filepath.Join(in, fmt.Sprint(f, ".json")), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{
		"name": "bad", "parallelism": 3, "on_row_error": "keep", "checkpoint": map[string]any{"interval": "100ms"},
		"sql": `CREATE TABLE b (k STRING) WITH ('connector' = 'filesystem', 'path' = 'bad', 'format' = 'json', 'rows-per-second' = '10000');
			SELECT k AS behavior, COUNT(*) AS n FROM b GROUP BY k`,
	}, nil)
	c.api.awaitJob("bad", 30*time.Second, "rows are rejected, a checkpoint is complete", func(j job) bool { return j.RowsRejected > 0 && j.Base != "nothing" })
	busy := c.api.busyWorker()
	c.workers[busy].kill()
	c.startWorker(busy)
	j, _ := c.api.awaitJob("bad", 30*time.Second, "the job ends", func(j job) bool { return j.Status == "FINISHED" })
	if j.Attempt < 2 || j.RowsRejected != files*lines/every {
		t.Errorf("attempt %d, %d rows rejected", j.Attempt, j.RowsRejected)
	}
	if got := c.api.counts("bad")["a"]; got != files*(lines-lines/every) {
		t.Errorf("%d rows were counted", got)
	}
	var got []reject
	for cursor := ""; ; {
		var page struct {
			Rows []reject `json:"rows"`
			Next string   `json:"next"`
		}
		c.api.must(http.StatusOK, "GET", "/v1/jobs/bad/rejects?limit=37"+cursor, nil, &page)
		if got = append(got, page.Rows...); page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	if len(got) != files*lines/every {
		t.Fatalf("%d rows are kept", len(got))
	}
	for i, r := range got {
		line := i%(lines/every)*every + 7
		want := reject{Path: fmt.Sprintf("bad/%d.json", i/(lines/every)), Line: line, Raw: fmt.Sprintf("{\"k\": <b>%d</b>", line)}
		if r != want {
			t.Fatalf("row %d is %+v, not %+v", i, r, want)
		}
	}
	out, errs, code := weir(t, c.dir, "", "job", "rejects", "bad", "--limit", "2", "--server", c.api.base)
	if code != 0 || !strings.Contains(out, "bad/0.json:57") || !strings.Contains(errs, "the first 2 of 300 rejected rows") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
}

// A run alone says what it rejected, for nobody can ask afterwards.
func TestRunAloneRejects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.csv"), []byte("a,1\nb,x\nc,3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sql := "CREATE TABLE s (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 's.csv', 'format' = 'csv'); SELECT SUM(v) AS v FROM s"
	out, errs, code := weir(t, dir, sql, "run", "-o", "json", "--on-row-error", "keep", "-")
	if code != 0 || out != "{\"v\":4}\n" || !strings.Contains(errs, "1 row rejected:\n  s: s.csv:2: v: \"x\" is not an INT: it is not a number\n") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	_, errs, code = weir(t, dir, sql, "run", "-")
	if code != 1 || !strings.Contains(errs, "s.csv:2: column v: ") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

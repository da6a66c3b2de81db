//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C under weir run: on a server the job stops with a savepoint, and the changes
// printed are those of the rows it stopped with; so does a job that waits for slots.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	start(t, "up", dir, "up", "--demo", "--data", filepath.Join(dir, "data"), "--listen", address)
	a := api{t, "http://" + address}
	until(t, 20*time.Second, "weir up is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	script := filepath.Join(dir, "carts.sql")
	if err := os.WriteFile(script, []byte("SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior"), 0o644); err != nil {
		t.Fatal(err)
	}

	table := interrupt(t, a, "carts", "run", script, "--server", a.base)
	says := regexp.MustCompile(`carts: stopped at savepoint:carts-\S+; go on with: weir job start carts --server ` + regexp.QuoteMeta(a.base))
	if !says.MatchString(table) || !strings.Contains(table, "buy ") {
		t.Errorf("it printed\n%s", table)
	}
	if out, errs, code := weir(t, dir, "", "job", "start", "carts", "--server", a.base); code != 0 || !strings.HasPrefix(out, "carts  ") {
		t.Errorf("start: %d\n%s%s", code, out, errs)
	}
	if out, errs, code := weir(t, dir, "", "job", "stop", "carts", "--server", a.base); code != 0 || out != "carts  STOPPED\n" {
		t.Errorf("stop: %d\n%s%s", code, out, errs)
	}

	changes := interrupt(t, a, "changes", "run", script, "--server", a.base, "--name", "changes", "--changes")
	printed := map[string]int64{}
	for _, line := range regexp.MustCompile(`(?m)^\{.*\}$`).FindAllString(changes, -1) {
		var c struct {
			Op  string `json:"op"`
			Row struct {
				Behavior string `json:"behavior"`
				N        int64  `json:"n"`
			} `json:"row"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if strings.HasPrefix(c.Op, "+") {
			printed[c.Row.Behavior] = c.Row.N
		}
	}
	for behavior, n := range a.counts("changes") {
		if printed[behavior] == 0 || printed[behavior] > n {
			t.Errorf("%s: %d rows, %d were printed", behavior, n, printed[behavior])
		}
	}

	wide := interrupt(t, a, "wide", "run", script, "--server", a.base, "--name", "wide", "--parallelism", "99")
	if !strings.Contains(wide, "wide: stopped at nothing") {
		t.Errorf("it printed\n%s", wide)
	}
}

// interrupt runs weir until its job has started, then sends Ctrl-C; it returns what
// weir printed.
func interrupt(t *testing.T, a api, name string, args ...string) string {
	t.Helper()
	p := start(t, name, "", args...)
	until(t, 20*time.Second, "job "+name+" has begun", func() bool {
		var list struct {
			Jobs []struct {
				Status string `json:"status"`
				RowsIn int64  `json:"rows_in"`
			} `json:"jobs"`
		}
		a.do("GET", "/v1/jobs?name="+name, nil, &list)
		return len(list.Jobs) == 1 && (list.Jobs[0].RowsIn > 0 || name == "wide" && list.Jobs[0].Status == "SCHEDULING")
	})
	if name == "changes" {
		until(t, 20*time.Second, "a change of each behavior is printed", func() bool {
			printed := p.log.String()
			return !slices.ContainsFunc([]string{"pv", "buy", "fav", "cart"}, func(b string) bool { return !strings.Contains(printed, `"`+b+`"`) })
		})
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	until(t, 20*time.Second, "weir run ends", func() bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.log)
	}
	return p.log.String()
}

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A size is a group of the count of counts: the users with n rows.
type size struct {
	N      int64 `json:"n"`
	Users  int64 `json:"users"`
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
	Months int64 `json:"months"`
}

// Rows that are taken back: a count of counts with MIN, MAX and DISTINCT over it stays
// exact over a kill -9 of a worker, and over a stop and a start at another parallelism.
func TestCountOfCountsSurvivesKills(t *testing.T) {
	t.Parallel()
	const rows, users = 60_000, 1000
	c := startCluster(t)
	writeBehavior(t, filepath.Join(c.dir, "behavior.json"), rows)
	sql := fmt.Sprintf(`CREATE TABLE b (user_id BIGINT, ts BIGINT)
		WITH ('connector' = 'filesystem', 'path' = 'behavior.json', 'format' = 'json', 'rows-per-second' = '20000');
		SET 'checkpoint.interval' = '200 ms';
		CREATE VIEW per_user AS SELECT user_id %% %d AS u, COUNT(*) AS n, MAX(ts) AS last FROM b GROUP BY 1;
		SELECT n, COUNT(*) AS users, MIN(last) AS first, MAX(last) AS last, COUNT(DISTINCT last %% 12) AS months FROM per_user GROUP BY n`, users)
	c.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "main", "sql": sql, "parallelism": 2}, nil)
	c.api.awaitJob("main", 30*time.Second, "a third is read", func(j job) bool { return j.RowsIn > rows/3 && j.Base != "nothing" })
	last, killed := c.attempt(), time.Now()
	c.workers["w1"].kill()
	c.awaitRunning("kill -9 of a worker", killed, last+1)
	c.startWorker("w1")
	c.awaitCheckpoint(last + 1)
	c.api.must(http.StatusAccepted, "POST", "/v1/jobs/main/stop", nil, nil)
	c.api.awaitJob("main", 30*time.Second, "STOPPED", func(j job) bool { return j.Status == "STOPPED" })
	c.api.must(http.StatusAccepted, "POST", "/v1/jobs/main/start", map[string]any{"parallelism": 3}, nil)
	c.api.awaitJob("main", time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	if diff := cmp.Diff(sizes(rows, users), c.sizes()); diff != "" {
		t.Errorf("sizes (-oracle +weir):\n%s", diff)
	}
}

func (c *cluster) sizes() map[int64]size {
	c.t.Helper()
	var page struct {
		Rows []size `json:"rows"`
	}
	c.api.must(http.StatusOK, "GET", "/v1/jobs/main/results?limit=1000", nil, &page)
	out := map[int64]size{}
	for _, s := range page.Rows {
		out[s.N] = s
	}
	return out
}

// sizes is the answer, from the rows as writeBehavior makes them.
func sizes(rows, users int) map[int64]size {
	n, last := make([]int64, users), make([]int64, users)
	for i := range rows {
		u := uint64(i+1) * 0x9e3779b97f4a7c15 >> 44 % uint64(users)
		n[u]++
		last[u] = 1511658000 + int64(i)
	}
	out, months := map[int64]size{}, map[[2]int64]bool{}
	for u := range n {
		if n[u] == 0 {
			continue
		}
		s, there := out[n[u]]
		s.N, s.Users = n[u], s.Users+1
		if !there || last[u] < s.First {
			s.First = last[u]
		}
		s.Last = max(s.Last, last[u])
		if m := [2]int64{n[u], last[u] % 12}; !months[m] {
			months[m] = true
			s.Months++
		}
		out[n[u]] = s
	}
	return out
}

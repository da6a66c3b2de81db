//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"weir/checkpoint/killpoint"
)

// zombieRounds stop a process at a point for longer than anybody waits for it, and wake
// it up while others have gone on in its place: it decides nothing any more. Where the
// metastore is SQLite there is one server, whose place nobody takes.
func zombieRounds() (rounds []round) {
	some := []string{"zombie-before-decision-server", "zombie-before-publish-w1"}
	for _, p := range killpoint.Points() {
		if slices.Contains([]string{"before-abort", "after-abort", "before-commit-only", "after-commit-only"}, p.Name) {
			continue
		}
		r := round{name: "zombie-" + p.Name + "-server", metastore: "postgres", plans: map[string]string{"server": p.Name + ":2,stop"}, drive: (*running).replaceServer}
		if p.Role == killpoint.Worker {
			r = round{name: "zombie-" + p.Name + "-w1", plans: map[string]string{"w1": p.Name + ":3,stop"}, drive: (*running).replaceWorker}
		}
		if p.Name == "within-put" {
			r.storage = "folder"
		}
		if os.Getenv("WEIR_LONG") != "" || slices.Contains(some, r.name) {
			rounds = append(rounds, r)
		}
	}
	return chosen(rounds, some)
}

func (r *running) replaceWorker() {
	r.arm()
	r.strike("w1")
	r.awaitStop(r.t, "w1")
	var asleep job
	r.a.must(http.StatusOK, "GET", "/v1/jobs/"+r.name, nil, &asleep)
	r.begin("w3", "")
	r.awaitNext(r.a, asleep.Attempt)
	r.wake(r.t, "w1")
	r.a.awaitJob(r.name, 30*time.Second, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	until(r.t, 20*time.Second, "w1 has given its tasks up", func() bool { return r.a.tasksOf("w1") == 0 })
	r.processes["w3"].kill()
	r.renew("w1")
}

func (r *running) replaceServer() {
	r.arm()
	r.strike("server")
	r.awaitStop(r.t, "server")
	r.begin("server2", "")
	a := r.api(r.t, "server2")
	until(r.t, 20*time.Second, "another server is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	until(r.t, 20*time.Second, "it takes over", func() bool { return strings.Contains(r.processes["server2"].log.String(), "lease gained") })
	r.awaitNext(a, 1)
	r.wake(r.t, "server")
	a.awaitJob(r.name, 30*time.Second, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	until(r.t, 20*time.Second, "the server that slept has lost its lease", func() bool {
		_, since, _ := strings.Cut(r.processes["server"].log.String(), "killpoint: stopped at") // while it sleeps it says nothing
		return strings.Contains(since, "lease lost")
	})
	r.renew("server")
	until(r.t, 20*time.Second, "the server is ready", func() bool { return r.a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	r.processes["server2"].kill()
}

// awaitNext waits until a later attempt runs without the process that sleeps, or the
// job has ended: a server may fall asleep over the clean-up of an older job.
func (r *running) awaitNext(a api, attempt int64) {
	r.t.Helper()
	a.awaitJob(r.name, 30*time.Second, "another attempt runs", func(j job) bool {
		return j.Attempt > attempt && j.Status == "RUNNING" || j.Status == "FINISHED"
	})
}

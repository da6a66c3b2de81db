//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"weir/checkpoint/killpoint"
)

// Intervals between checkpoints. With onRequest the first passage of a point is the
// savepoint's.
const (
	often     = "150 ms"
	onRequest = "0 s"
)

// stopRounds kill while a savepoint is taken, with a stop (C10) and without (C29). The
// savepoint ends, completed or not; a stop leads to STOPPED with the savepoint, or is
// taken back; either way no row is lost.
func stopRounds() (rounds []round) {
	some := []string{"stop-after-decision-server", "stop-before-publish-w1", "stop-before-ack-w1", "save-before-decision-server", "save-after-begin-server"}
	for _, p := range killpoint.Points() {
		if slices.ContainsFunc([]string{"abort", "discard", "delete", "commit-only"}, func(s string) bool { return strings.HasSuffix(p.Name, s) }) {
			continue
		}
		process := "server"
		if p.Role == killpoint.Worker {
			process = "w1"
		}
		for _, how := range []string{"stop", "save"} {
			r := round{name: how + "-" + p.Name + "-" + process, plans: map[string]string{process: p.Name + ":1"}}
			if p.Name == "within-put" {
				r.storage = "folder"
			}
			r.drive = func(r *running) { r.stop(process, how == "stop") }
			if how == "save" && process == "w1" && slices.ContainsFunc([]string{"publish", "mark", "commit", "confirm"}, func(s string) bool { return strings.HasSuffix(p.Name, s) }) {
				continue // a savepoint commits nothing
			}
			if how == "save" && slices.ContainsFunc([]string{"notify", "close"}, func(s string) bool { return strings.HasSuffix(p.Name, s) }) {
				continue
			}
			if os.Getenv("WEIR_LONG") != "" || slices.Contains(some, r.name) {
				rounds = append(rounds, r)
			}
		}
	}
	return chosen(rounds, some)
}

// chosen: all of some are rounds.
func chosen(rounds []round, some []string) []round {
	if os.Getenv("WEIR_LONG") == "" && len(rounds) != len(some) {
		panic(fmt.Sprintf("%d rounds are called %v", len(rounds), some))
	}
	return rounds
}

// stop takes a savepoint while a process waits to die of it.
func (r *running) stop(process string, stop bool) {
	r.submitAt(r.a, r.name, onRequest, r.perSecond/4) // it has to go on until the savepoint begins, on a slow machine too
	r.a.awaitJob(r.name, 20*time.Second, "RUNNING", func(j job) bool { return j.Status == "RUNNING" })
	r.arm()
	path := "/v1/jobs/" + r.name + "/savepoints"
	if stop {
		path = "/v1/jobs/" + r.name + "/stop"
	}
	r.a.do("POST", path, map[string]any{"name": r.name}, nil) // who asked may die before it answers
	r.awaitDeath(r.t, process)
	r.again(process)
	var code int
	until(r.t, 20*time.Second, "the savepoint ends", func() bool {
		var s struct {
			Status any `json:"status"` // a word; the code where there is no savepoint
		}
		code = r.a.do("GET", "/v1/savepoints/"+r.name, nil, &s)
		return code == http.StatusNotFound || code == http.StatusOK && s.Status != "pending"
	})
	if code == http.StatusNotFound && !strings.Contains(r.name, "before-begin") {
		r.t.Error("the savepoint is forgotten (C29)")
	}
	if !stop {
		return
	}
	j, _ := r.a.awaitJob(r.name, 20*time.Second, "the stop ends", func(j job) bool { return j.Status == "STOPPED" || j.Desired == "running" })
	if j.Status != "STOPPED" {
		r.t.Log("the stop was taken back")
		return
	}
	r.a.must(http.StatusOK, "GET", "/v1/savepoints/"+r.name, nil, nil)
	r.a.must(http.StatusAccepted, "POST", "/v1/jobs/"+r.name+"/start", nil, nil)
}

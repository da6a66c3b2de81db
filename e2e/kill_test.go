//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/checkpoint/blob/s3test"
	"weir/checkpoint/killpoint"
)

// A round is one job whose processes die at a point.
type round struct {
	name string
	// plans are the points of processes, without what arms them.
	plans map[string]string
	// storage and metastore are the only kinds that it can be played on; empty: every one.
	storage, metastore string
	// drive lets it happen; it returns once all that died runs again without its plan.
	drive func(r *running)
}

// A running is a round that is driven.
type running struct {
	*lane
	round round
	t     *testing.T
	a     api
	name  string // of its job
}

// A lane is a cluster that plays rounds, one after the other. A process gets the plan of
// its next round whenever it is started; the round arms it.
type lane struct {
	*doomed
	rounds []round
	at     int
}

// Each role is killed at each point that it passes; the job ends with exact output, a
// history without loose ends, and nothing left in storage. Rounds alternate over
// metastores and kinds of storage; with WEIR_LONG every point meets every combination.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	gateway := s3test.Start(t)
	all := slices.DeleteFunc(slices.Concat(pointRounds(), stopRounds(), zombieRounds()), func(r round) bool {
		only := os.Getenv("WEIR_ROUNDS")
		return only != "" && !slices.Contains(strings.Split(only, ","), r.name)
	})
	if len(all) == 0 {
		t.Fatalf("no round has one of the names %s", os.Getenv("WEIR_ROUNDS"))
	}
	var together sync.WaitGroup // most of a round is waiting: more of them run than there are cores
	defer together.Wait()
	for i, own := range deal(all) {
		s := settingOf(i)
		if len(own) == 0 {
			continue
		}
		together.Go(func() {
			t.Run(fmt.Sprintf("%d on %v", i, s), func(t *testing.T) { playLane(t, s, gateway, own) })
		})
	}
}

// lanes is how many clusters play rounds at the same time: three with each setting.
const lanes = 12

func settingOf(lane int) setting {
	return []setting{{"sqlite", "folder"}, {"postgres", "s3"}, {"sqlite", "s3"}, {"postgres", "folder"}}[lane%4]
}

// deal gives each lane its rounds: each round to one lane, or with WEIR_LONG to one lane
// of each setting. Those of a server take longer, since the next one waits for the lease
// of the last.
func deal(rounds []round) [lanes][]round {
	var own [lanes][]round
	var cost [lanes]int
	give := func(i int, r round, lanes []int) {
		lanes = slices.DeleteFunc(lanes, func(l int) bool {
			s := settingOf(l)
			return r.storage != "" && r.storage != s.storage || r.metastore != "" && r.metastore != s.metastore
		})
		if len(lanes) == 0 {
			return
		}
		least := lanes[i%len(lanes)] // another one each time, so that settings alternate
		for _, l := range lanes {
			if cost[l] < cost[least] {
				least = l
			}
		}
		own[least] = append(own[least], r)
		if cost[least] += len(r.plans); r.plans["server"] != "" {
			cost[least] += 2
		}
	}
	for i, r := range rounds {
		if os.Getenv("WEIR_LONG") == "" {
			give(i, r, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
			continue
		}
		for s := range 4 {
			give(i, r, []int{s, s + 4, s + 8})
		}
	}
	return own
}

func playLane(t *testing.T, s setting, gateway *s3test.Server, rounds []round) {
	l := &lane{doomed: startDoomed(t, s, gateway), rounds: rounds}
	for _, name := range []string{"server", "w1", "w2"} {
		l.begin(name, l.plan(name))
	}
	until(t, 20*time.Second, "the server is ready", func() bool { return l.api(t, "server").do("GET", "/readyz", nil, nil) == http.StatusOK })
	for ; l.at < len(rounds); l.at++ {
		r := rounds[l.at]
		ok := t.Run(r.name, func(t *testing.T) {
			x := &running{lane: l, round: r, t: t, a: l.api(t, "server"), name: r.name}
			defer func() { l.explain(x.a, x.name) }()
			began := time.Now()
			r.drive(x)
			j, _ := x.a.awaitJob(x.name, 40*time.Second, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
			if j.Attempt < 2 && !late(r.name) {
				t.Error("it ended in its first attempt: nothing was at stake when its process died")
			}
			l.checkOutput(t, x.name)
			l.checkHistory(x.a, x.name)
			switch zombie := strings.HasPrefix(r.name, "zombie-"); {
			case !zombie:
				l.checkObjects(x.a, x.name, 20*time.Second)
			case os.Getenv("WEIR_LONG") != "": // what it puts behind the clean-up goes a minute after its attempt
				l.checkObjects(x.a, x.name, 80*time.Second)
			}
			t.Logf("%s: %d ms", r.name, time.Since(began).Milliseconds())
		})
		if !ok {
			return // the cluster may be in any state
		}
	}
}

// late: its point is one that the last checkpoint passes when nothing but the job's end is
// left, or one of clean-up, which goes on after that.
func late(round string) bool {
	return slices.ContainsFunc([]string{"-confirm-", "-close-", "-discard-", "-delete-"}, func(s string) bool { return strings.Contains(round, s) })
}

// plan is what the process has to die of next, from the round being played on.
func (l *lane) plan(process string) string {
	for _, r := range l.rounds[l.at:] {
		if plan := r.plans[process]; plan != "" {
			return plan + ",armed=" + l.armed(r.name)
		}
	}
	return ""
}

func (l *lane) armed(round string) string { return filepath.Join(l.dir, "armed-"+round) }

// arm lets the plans of the round count.
func (r *running) arm() {
	r.t.Helper()
	if err := os.WriteFile(r.armed(r.round.name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// again starts a process that has died, with its plan of a later round.
func (r *running) again(process string) {
	r.at++
	r.begin(process, r.plan(process))
	r.at--
}

// pointRounds are the rounds of all points.
func pointRounds() []round {
	var rounds []round
	for i, p := range killpoint.Points() {
		var plans []string
		switch p.Role {
		case killpoint.Both:
			plans = []string{"server", "w1"}
		case killpoint.Server:
			plans = []string{"server"}
		case killpoint.Worker:
			plans = []string{"w1"}
		}
		for _, process := range plans {
			r := round{
				name:  p.Name + "-" + process,
				plans: map[string]string{process: fmt.Sprintf("%s:%d", p.Name, 2+i%2)},
				drive: func(r *running) { r.once(process) },
			}
			if p.Name == "within-put" {
				r.storage = "folder"
			}
			if special := driveOf(p.Name); special.drive != nil {
				special.name = r.name
				r = special
			}
			rounds = append(rounds, r)
		}
	}
	return rounds
}

// once kills a process at its point while the job runs, and starts it again.
func (r *running) once(process string) {
	r.arm()
	r.strike(process)
	r.awaitDeath(r.t, process)
	r.again(process)
}

// strike submits the job and waits until the process has met with its plan. Where the
// machine is so slow that the job ends before, another one follows: passages add up.
func (r *running) strike(process string) {
	r.t.Helper()
	for n := 2; ; n++ {
		r.submit(r.a, r.name, often)
		struck, ended := false, time.Time{}
		until(r.t, 20*time.Second, "the job ends, or "+process+" comes to its point", func() bool {
			struck = r.struck(process)
			if !struck && ended.IsZero() && r.a.finished(r.name) {
				ended = time.Now()
			}
			return struck || !ended.IsZero() && time.Since(ended) > time.Second // some points follow the end
		})
		if struck {
			return
		}
		r.t.Logf("%s has ended, and %s has not come to its point: once more", r.name, process)
		r.name = fmt.Sprintf("%s-%d", r.round.name, n)
	}
}

// driveOf is the round of a point that a job does not pass by itself.
func driveOf(point string) round {
	switch point {
	case "before-abort", "after-abort":
		// A worker sleeps before it acknowledges; its user cancels the checkpoint.
		return round{
			plans: map[string]string{"server": point + ":1", "w1": "before-ack:3,stop"},
			drive: func(r *running) {
				r.arm()
				r.strike("w1")
				r.awaitStop(r.t, "w1")
				r.cancelPending()
				r.awaitDeath(r.t, "server")
				r.again("server")
				r.wake(r.t, "w1")
				r.renew("w1")
			},
		}
	case "before-commit-only", "after-commit-only":
		// A worker dies before it commits; its job is canceled, and whoever commits in
		// its place dies too. A start goes on from there.
		return round{
			plans: map[string]string{"w1": "before-commit:3", "w2": point + ":1"},
			drive: func(r *running) {
				r.arm()
				r.strike("w1")
				r.awaitDeath(r.t, "w1")
				r.a.must(http.StatusAccepted, "POST", "/v1/jobs/"+r.name+"/cancel", nil, nil)
				r.awaitDeath(r.t, "w2")
				r.again("w1")
				r.again("w2")
				r.a.awaitJob(r.name, 20*time.Second, "CANCELED", func(j job) bool { return j.Status == "CANCELED" })
				r.checkHistory(r.a, r.name)
				r.a.must(http.StatusAccepted, "POST", "/v1/jobs/"+r.name+"/start", nil, nil)
			},
		}
	}
	return round{}
}

// cancelPending cancels the checkpoint that is pending; its server may die of it.
func (r *running) cancelPending() {
	r.t.Helper()
	until(r.t, 10*time.Second, "a pending checkpoint", func() bool {
		var h killHistory
		r.a.do("GET", "/v1/jobs/"+r.name+"/checkpoints?limit=1", nil, &h)
		if len(h.Checkpoints) == 0 || h.Checkpoints[0].Status != "pending" {
			return false
		}
		r.a.do("DELETE", fmt.Sprintf("/v1/jobs/%s/checkpoints/%d", r.name, h.Checkpoints[0].ID), nil, nil)
		return true
	})
}

// wake wakes a stopped process up, and waits until it does what it was about to do.
func (d *doomed) wake(t *testing.T, name string) {
	t.Helper()
	p := d.processes[name]
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, name+" goes on", func() bool { return strings.Contains(p.log.String(), "killpoint: goes on from") })
}

// renew kills a process and starts it with its next plan.
func (r *running) renew(process string) {
	r.processes[process].kill()
	r.again(process)
}

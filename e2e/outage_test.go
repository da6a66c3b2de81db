//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// long: the runs of make test-long.
func long() bool { return os.Getenv("WEIR_LONG") != "" }

// An outage is one job on a cluster whose parts go away and come back while it runs. Its
// rows are copied and counted by key, so that half of them cross from worker to worker.
type outage struct {
	*doomed
	a api
}

// outageJob is the job's name.
const outageJob = "outage"

// startOutage starts a NATS server, a server, two workers with room for half of the job
// each, and spare ones; h: each on a machine of its own, nil: all on this one. The job
// works for so long: an attempt that is held up catches up, one that begins anew does not.
func startOutage(t *testing.T, h *hosts, metastore string, work time.Duration, spare ...string) *outage {
	t.Helper()
	return startOutageWith(t, h, setting{metastore, "folder"}, nil, work, spare...)
}

// startOutageWith lets the caller change the cluster before anything of it runs.
func startOutageWith(t *testing.T, h *hosts, s setting, change func(*doomed), work time.Duration, spare ...string) *outage {
	t.Helper()
	nats := freeAddress(t)
	if h != nil {
		nats = h.address("nats") + ":4222"
	}
	d := newDoomed(t, s, nil, "nats://"+nats)
	d.perSecond, d.keys = 20_000, 20_000
	d.rows = int(work.Seconds()) * d.perSecond
	d.hosts = h
	if change != nil {
		change(d)
	}
	o := &outage{doomed: d, a: api{t: t}}
	o.startNATS()
	o.begin("server", "")
	o.a = d.api(t, "server")
	for _, name := range append([]string{"w1", "w2"}, spare...) {
		if name == "w1" || name == "w2" {
			o.begin(name, "")
		}
	}
	until(t, 20*time.Second, "the server is ready", func() bool { return o.a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	t.Cleanup(func() { o.explain(o.a, outageJob) })
	o.submit(o.a, outageJob, "300 ms")
	o.awaitFlow()
	for _, name := range spare {
		o.begin(name, "")
		until(t, 20*time.Second, name+" is heard", func() bool { return o.a.tasksOf(name) == 0 })
	}
	return o
}

// startNATS starts the NATS server, or starts it again at the same address.
func (o *outage) startNATS() {
	o.t.Helper()
	address := strings.TrimPrefix(o.nats, "nats://")
	cmd := own(o.t, "nats "+address)
	if o.hosts != nil {
		cmd = within(o.hosts.inner["nats"], cmd)
	}
	o.processes["nats"] = startCommand(o.t, "nats", "", cmd)
	if o.hosts != nil { // nobody but those inside can ask it; they need it once and say so
		until(o.t, 20*time.Second, "NATS is there", func() bool {
			return within(o.hosts.inner["nats"], bash("exec 3<>/dev/tcp/"+strings.ReplaceAll(address, ":", "/"))).Run() == nil
		})
		return
	}
	until(o.t, 20*time.Second, "NATS is there", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// job is how it stands with the job.
func (o *outage) job() job {
	o.t.Helper()
	var j job
	o.a.must(http.StatusOK, "GET", "/v1/jobs/"+outageJob, nil, &j)
	return j
}

// newest is the number of the job's last checkpoint, complete or not, and the number of
// the last complete one.
func (o *outage) newest() (begun, completed int64, ok bool) {
	o.t.Helper()
	var h checkpoints
	if o.a.do("GET", "/v1/jobs/"+outageJob+"/checkpoints?limit=20", nil, &h) != http.StatusOK {
		return 0, 0, false
	}
	for _, cp := range h.Checkpoints {
		if begun = max(begun, cp.ID); cp.Status == "completed" {
			completed = max(completed, cp.ID)
		}
	}
	return begun, completed, true
}

// awaitFlow waits until a checkpoint has completed that began after now: everything
// flows; or until all of it has flowed. It returns how long that took.
func (o *outage) awaitFlow() time.Duration {
	o.t.Helper()
	before := int64(-1)
	return until(o.t, 30*time.Second, "everything flows", func() bool {
		begun, completed, ok := o.newest()
		if !ok {
			return false
		}
		if before < 0 {
			before = begun
		}
		return completed > before || o.a.finished(outageJob)
	})
}

// awaitNext waits until a later attempt than that runs.
func (o *outage) awaitNext(attempt int64, limit time.Duration) job {
	o.t.Helper()
	j, took := o.a.awaitJob(outageJob, limit, fmt.Sprintf("an attempt after %d runs", attempt), func(j job) bool {
		return j.Attempt > attempt && j.Status == "RUNNING"
	})
	o.t.Logf("attempt %d runs after %d ms", j.Attempt, took.Milliseconds())
	return j
}

// same fails the test unless the job has gone on in that attempt.
func (o *outage) same(attempt int64, what string) {
	o.t.Helper()
	if j := o.job(); j.Attempt != attempt || j.Status != "RUNNING" && j.Status != "FINISHED" {
		o.t.Fatalf("%s: attempt %d is %s, want %d to run on", what, j.Attempt, j.Status, attempt)
	}
}

// through is an outage that no attempt ends of: it lasts, and no checkpoint that begins
// meanwhile completes; it ends, and all flows again.
func (o *outage) through(what string, lasts time.Duration, begin, end func()) {
	o.t.Helper()
	attempt := o.job().Attempt
	if o.a.finished(outageJob) {
		o.t.Fatalf("%s: the job has ended before: nothing is at stake", what)
	}
	begin()
	began, _, known := o.newest()
	pass(lasts)
	_, completed, knows := o.newest()
	if !known || !knows {
		o.t.Fatalf("%s: the server does not answer", what)
	}
	if completed > began {
		o.t.Fatalf("%s: checkpoint %d has completed, though it began after %d: nothing was out", what, completed, began)
	}
	end()
	took := o.awaitFlow()
	o.same(attempt, what)
	o.t.Logf("%s for %v: a checkpoint %d ms after", what, lasts, took.Milliseconds())
}

// finish waits for the job's end: every row was copied once and every key counted
// exactly, whatever happened.
func (o *outage) finish() job {
	o.t.Helper()
	limit := time.Duration(o.rows/o.perSecond)*time.Second + time.Minute
	j, _ := o.a.awaitJob(outageJob, limit, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	o.checkOutput(o.t, outageJob)
	o.checkHistory(o.a, outageJob)
	return j
}

// pass lets time pass: that of an outage.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func (o *outage) signal(name string, s syscall.Signal) {
	o.t.Helper()
	o.t.Logf("%s gets %v", name, s)
	if err := o.processes[name].cmd.Process.Signal(s); err != nil {
		o.t.Fatal(err)
	}
}

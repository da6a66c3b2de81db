package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tag names attempts in scripts: attempt n is n-x.
func attemptOf(n int64) weir.AttemptID {
	if n == 0 {
		return weir.AttemptID{}
	}
	return weir.AttemptID{Number: n, Tag: "x"}
}

// TestJob runs scripts over the job machine. Each command is an event, its output the
// actions, then where the machine stands:
//
//	job [status=] [attempt=] [desired=] [savepoint=] [base=] [saved] [ended] [restart={json}] [retention=]
//	wish desired [savepoint]     begun [saved]   loaded need=N tasks=N | loaded fail=TEXT [final]
//	placed w1 w2 | placed missing=N [wait]       slots       runs 0/0 0/1 … [attempt=]
//	failed TEXT [final] [attempt=]               lost w1     saved [fail=TEXT]
//	final       gone       committed [problem=TEXT]          tick DURATION
func TestJob(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/job", func(t *testing.T, path string) {
		s := &jobScript{now: epoch}
		datadriven.RunTest(t, path, s.run)
	})
}

type jobScript struct {
	m   *machine
	now time.Time
}

func (s *jobScript) run(t *testing.T, d *datadriven.TestData) string {
	var ev event
	switch d.Cmd {
	case "job":
		ev = s.job(t, d)
	case "wish":
		j := s.m.job
		j.Desired, j.StopSavepoint = weir.Desired(d.CmdArgs[0].Key), ""
		if len(d.CmdArgs) > 1 {
			j.StopSavepoint = d.CmdArgs[1].Key
		}
		ev = evWished{Job: j}
	case "begun":
		j := s.m.job
		j.Attempt, j.Status = attemptOf(j.Attempt.Number+1), weir.StatusScheduling
		j.EndedAt = time.Time{}
		ev = evBegun{j, d.HasArg("saved")}
	case "loaded":
		e := evLoaded{Restart: !d.HasArg("final")}
		if f := text(d, "fail"); f != "" {
			e.Failure = &weir.Failure{Reason: "restore", Message: f}
		} else {
			d.ScanArgs(t, "need", &e.Need)
			d.ScanArgs(t, "tasks", &e.Tasks)
		}
		ev = e
	case "placed":
		e := evPlaced{Wait: d.HasArg("wait")}
		d.MaybeScanArgs(t, "missing", &e.Missing)
		for _, a := range d.CmdArgs {
			if e.Missing == 0 && !e.Wait {
				e.Slots = append(e.Slots, weir.WorkerID(a.Key))
			}
		}
		ev = e
	case "runs":
		return s.runs(t, d)
	default:
		ev = s.other(t, d)
	}
	return s.step(ev)
}

func (s *jobScript) job(t *testing.T, d *datadriven.TestData) event {
	j := weir.Job{ID: "job_1", Status: weir.StatusCreated, Desired: weir.DesiredRunning}
	var attempt int64
	d.MaybeScanArgs(t, "status", (*string)(&j.Status))
	d.MaybeScanArgs(t, "desired", (*string)(&j.Desired))
	d.MaybeScanArgs(t, "savepoint", &j.StopSavepoint)
	d.MaybeScanArgs(t, "attempt", &attempt)
	j.Attempt = attemptOf(attempt)
	if d.HasArg("ended") {
		j.EndedAt = epoch
	}
	restart, err := ParseRestart([]byte(d.Input))
	if err != nil {
		t.Fatal(err)
	}
	s.m = newMachine(j, restart)
	return evStart{Saved: d.HasArg("saved")}
}

// text reads an argument in which "_" stands for a blank.
func text(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return strings.ReplaceAll(strings.Join(a.Vals, ", "), "_", " ")
		}
	}
	return ""
}

func (s *jobScript) runs(t *testing.T, d *datadriven.TestData) string {
	attempt := s.m.job.Attempt
	var n int64
	if d.MaybeScanArgs(t, "attempt", &n); n != 0 {
		attempt = attemptOf(n)
	}
	var out string
	for _, a := range d.CmdArgs {
		var id weir.TaskID
		if _, err := fmt.Sscanf(a.Key, "%d/%d", &id.Chain, &id.Subtask); err == nil {
			out = s.step(evTaskRuns{attempt, id})
		}
	}
	return out
}

func (s *jobScript) other(t *testing.T, d *datadriven.TestData) event {
	attempt := s.m.job.Attempt
	var n int64
	if d.MaybeScanArgs(t, "attempt", &n); n != 0 {
		attempt = attemptOf(n)
	}
	switch d.Cmd {
	case "slots":
		return evSlots{}
	case "failed":
		return evTaskFailed{attempt, weir.Failure{Reason: "operator", Message: d.CmdArgs[0].Key}, !d.HasArg("final")}
	case "lost":
		return evWorkerLost{weir.WorkerID(d.CmdArgs[0].Key), workerGone}
	case "saved":
		e := evSaved{Attempt: attempt}
		if f := text(d, "fail"); f != "" {
			e.Failure = &weir.Failure{Reason: "timeout", Message: f}
		}
		return e
	case "final":
		return evFinal{attempt}
	case "gone":
		return evEnded{attempt, !d.HasArg("left")}
	case "committed":
		return evCommitted{text(d, "problem")}
	case "tick":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(wait)
		return evTick{}
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil
}

func (s *jobScript) step(ev event) string {
	var b strings.Builder
	for _, a := range s.m.step(s.now, ev) {
		fmt.Fprintf(&b, "%s\n", describeAction(a))
	}
	fmt.Fprintf(&b, "-- %s, %v, attempt %d", s.m.job.Status, s.m.phase, s.m.job.Attempt.Number)
	if at := s.m.wake(); !at.IsZero() {
		fmt.Fprintf(&b, ", wakes in %v", at.Sub(s.now))
	}
	return b.String() + "\n"
}

func describeAction(a action) string {
	switch a := a.(type) {
	case actBegin:
		return "begin an attempt"
	case actLoad:
		return "load the base"
	case actPlace:
		return fmt.Sprintf("place %d slots", a.Need)
	case actDeploy:
		return "deploy"
	case actRun:
		return "start checkpoints"
	case actSave:
		return "take savepoint " + a.Name
	case actEnd:
		s := "end the attempt"
		if a.Close {
			s += ", tasks close"
		}
		if a.Wait {
			s += ", wait for all"
		}
		return s
	case actCommit:
		return "complete commits"
	case actStatus:
		s := "status " + string(a.To)
		if a.Failure != nil {
			s += fmt.Sprintf(" (%s: %s)", a.Failure.Reason, a.Failure.Message)
		}
		return s
	case actResume:
		return "take the stop back"
	case actNote:
		return fmt.Sprintf("note %s: %s", a.Kind, a.Message)
	case actDone:
		return "done"
	}
	return fmt.Sprintf("%T", a)
}

// TestPlace runs scripts over placement: a line per worker, then where the slots are.
// says where subtasks 0, 1, … were.
func TestPlace(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/place", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var workers []freeWorker
			for line := range strings.Lines(d.Input) {
				var w freeWorker
				if _, err := fmt.Sscanf(line, "%s free=%d", (*string)(&w.ID), &w.Free); err != nil {
					t.Fatal(err)
				}
				workers = append(workers, w)
			}
			var chains string
			parallelism := 1
			d.ScanArgs(t, "parallelism", &parallelism)
			d.ScanArgs(t, "chains", &chains)
			var before []deploy.Placed
			if d.HasArg("before") {
				var names string
				d.ScanArgs(t, "before", &names)
				for i, w := range strings.Split(names, "/") {
					before = append(before, deploy.Placed{Task: weir.TaskID{Subtask: i}, Worker: weir.WorkerID(w)})
				}
			}
			for i := range d.CmdArgs { // kept=WORKER:SUBTASK:CHECKPOINT…
				if d.CmdArgs[i].Key == "kept" {
					var beats []deploy.Heartbeat
					for _, text := range d.CmdArgs[i].Vals {
						part := strings.Split(text, ":")
						k := deploy.Kept{Job: "j"}
						if _, err := fmt.Sscan(part[1]+" "+part[2], &k.Subtask, &k.Checkpoint); err != nil {
							t.Fatal(err)
						}
						beats = append(beats, deploy.Heartbeat{Worker: weir.WorkerID(part[0]), Kept: []deploy.Kept{k, {Job: "other", Subtask: 1, Checkpoint: 99}}})
					}
					before = append(before, keepers("j", beats)...)
				}
			}
			var g plan.Graph
			for _, c := range chains {
				g.Chains = append(g.Chains, plan.Chain{Single: c == '1'})
			}
			slots, missing := place(workers, slotsNeeded(g, parallelism), before)
			if missing > 0 {
				return fmt.Sprintf("missing %d\n", missing)
			}
			return describePlaced(placeTasks(g, parallelism, stay(slots, before)))
		})
	})
}

func describePlaced(placed []deploy.Placed) string {
	var b strings.Builder
	for _, w := range workersIn(placed) {
		fmt.Fprintf(&b, "%s:", w)
		for _, p := range placed {
			if p.Worker == w {
				fmt.Fprintf(&b, " %v", p.Task)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestLease runs scripts over the lease machine. Times are those after the first
// moment:  at DURATION looks at the clock; answer DURATION asked=DURATION [holder= term=]
// [failed] is an answer.
func TestLease(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/lease", func(t *testing.T, path string) {
		m := newLeaseMachine("me", 3*time.Second)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			now := epoch.Add(duration(t, d.CmdArgs[0].Key))
			var do leaseDo
			if d.Cmd == "at" {
				do = m.step(now)
			} else {
				lease := &Lease{Holder: "me", Term: 1}
				var asked string
				d.ScanArgs(t, "asked", &asked)
				d.MaybeScanArgs(t, "holder", &lease.Holder)
				d.MaybeScanArgs(t, "term", &lease.Term)
				if d.HasArg("failed") {
					lease = nil
				}
				do = m.answered(now, epoch.Add(duration(t, asked)), lease)
			}
			var out []string
			for _, what := range []struct {
				done bool
				name string
			}{{do.Lapsed, "lapsed"}, {do.Kept, "kept"}, {do.Lost, "lost"}} {
				if what.done {
					out = append(out, what.name)
				}
			}
			if do.Gained != 0 {
				out = append(out, fmt.Sprintf("gained term %d", do.Gained))
			}
			if do.Ask {
				out = append(out, "ask")
			}
			state := "not held"
			switch {
			case m.lapsed:
				state = fmt.Sprintf("lapsed with term %d", m.term)
			case m.term != 0:
				state = fmt.Sprintf("held until %v", m.until.Sub(epoch))
			}
			again := "waits for the answer"
			if next := m.next(); !next.IsZero() {
				again = fmt.Sprintf("looks again at %v", next.Sub(epoch))
			}
			return strings.Join(append(out, fmt.Sprintf("-- %s, %s", state, again)), "\n") + "\n"
		})
	})
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestWorkers runs scripts over the registry. Times are those after the first moment:
//
//	beat TIME worker[:life] [slots=] [leaving|runs]  tick TIME [cut-off|servers=N] [cluster]
//	pong TIME worker life|nobody|silence [asked=]  exited TIME worker[:life]
//	starts TIME: we begin to listen
func TestWorkers(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/workers", func(t *testing.T, path string) {
		r, servers := newRegistry(), 1 // counts changes of the set of NATS servers
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			now := epoch.Add(duration(t, d.CmdArgs[0].Key))
			var out []string
			var dead []death
			id, life := weir.WorkerID(""), "a"
			if len(d.CmdArgs) > 1 {
				name, l, ok := strings.Cut(d.CmdArgs[1].Key, ":")
				if id = weir.WorkerID(name); ok {
					life = l
				}
			}
			switch d.Cmd {
			case "beat":
				b := deploy.Heartbeat{Worker: id, Incarnation: life, Slots: 4, Leaving: d.HasArg("leaving")}
				d.MaybeScanArgs(t, "slots", &b.Slots)
				if d.HasArg("runs") {
					b.Attempts = []deploy.Running{{}}
				}
				if r.twin(b) {
					out = append(out, "twin")
				}
				var joined bool
				before := r.settled()
				if joined, dead = r.heard(now, b); joined {
					out = append(out, "joined")
				}
				if at := r.settled(); at != before && d.HasArg("settled") {
					out = append(out, fmt.Sprintf("settled at %v", at.Sub(epoch)))
				}
			case "tick":
				var ping []weir.WorkerID
				d.MaybeScanArgs(t, "servers", &servers)
				stable := epoch.Add(time.Duration(servers))
				if d.HasArg("cut-off") {
					stable = time.Time{}
				}
				absentFor := 110 * time.Millisecond
				if d.HasArg("cluster") {
					absentFor = 250 * time.Millisecond
				}
				ping, dead = r.tick(now, stable, absentFor)
				for _, p := range ping {
					out = append(out, "ping "+string(p))
				}
			case "pong":
				result, incarnation := pingAnswered, d.CmdArgs[2].Key
				switch incarnation {
				case "nobody":
					result = pingNobody
				case "silence":
					result = pingSilence
				}
				asked := d.CmdArgs[0].Key
				d.MaybeScanArgs(t, "asked", &asked)
				dead = r.ponged(now, epoch.Add(duration(t, asked)), id, result, incarnation)
			case "starts":
				r.joins(now)
				out = append(out, fmt.Sprintf("settled at %v", r.settled().Sub(epoch)))
			case "woke":
				r.woke(now)
			case "exited":
				dead = r.exited(now, id, life)
			}
			for _, x := range dead {
				out = append(out, fmt.Sprintf("dead %s: %s", x.Worker, x.Why))
			}
			var living []string
			for _, w := range r.alive() {
				living = append(living, string(w.beat.Worker))
			}
			slices.Sort(living)
			return strings.Join(append(out, fmt.Sprintf("-- alive: %s", strings.Join(living, " "))), "\n") + "\n"
		})
	})
}

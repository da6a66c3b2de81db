package job

import (
	"fmt"
	"slices"
	"time"

	"weir"
)

// A phase is where a machine stands within a job's status.
type phase uint8

const (
	phaseIdle    phase = iota // nothing runs and nothing was asked for
	phaseBackoff              // waits before the next attempt
	phaseBegin                // the next attempt is being recorded
	phaseLoad                 // the manifest of its base is being read
	phasePlace                // waits for slots
	phaseDeploy               // waits for every task to run
	phaseRun
	phaseSave   // the savepoint of a stop is under way
	phaseEnd    // tasks and checkpoints of the attempt are being ended
	phaseCommit // decided output is being made visible
	phaseDone
)

func (p phase) String() string {
	return [...]string{"idle", "backoff", "begin", "load", "place", "deploy", "run", "save", "end", "commit", "done"}[p]
}

// commitRetry is the pause between tries at completing commits.
const commitRetry = 2 * time.Second

// strandedAfter is how long slots are missing until a stop waits for them no longer.
const strandedAfter = 3 * time.Second

// A machine decides for one job. It is pure: Step takes what happened and returns what
// to do, in order; the driver does it and feeds the outcomes back as events. wake says
// when it wants a tick.
type machine struct {
	job   weir.Job // the row as last read or written
	need  int      // slots
	phase phase

	slots   []weir.WorkerID      // of the attempt; nil: not placed
	tasks   int                  // of the attempt
	running map[weir.TaskID]bool // those that run
	begun   bool                 // the attempt of this machine has begun
	ending  weir.Status          // phaseEnd, phaseCommit: the status to come
	failure *weir.Failure        // with it
	runs    time.Time            // since when every task runs; zero: they do not
	wakeAt  time.Time            // zero: no tick is wanted
	missing int                  // slots, as last told
	patient time.Time            // phasePlace: until when a stop waits for them; zero: no slots are missing
	strands bool                 // it waits no longer
	stuck   string               // why commits are open, as last told
	restart restarts
}

// wake is when the machine wants a tick; zero: it wants none.
func (m *machine) wake() time.Time {
	if m.phase == phasePlace && !m.strands {
		return m.patient
	}
	if m.phase == phaseBackoff || m.phase == phaseCommit {
		return m.wakeAt
	}
	return time.Time{}
}

// newMachine makes the machine of a job as its row stands.
func newMachine(job weir.Job, opts RestartOptions) *machine {
	return &machine{job: job, restart: restarts{opts: opts}}
}

// step takes one event in and returns what to do.
func (m *machine) step(now time.Time, ev event) []action {
	var out actions
	switch ev := ev.(type) {
	case evStart:
		m.start(now, ev, &out)
	case evWished:
		m.job.Desired, m.job.StopSavepoint = ev.Job.Desired, ev.Job.StopSavepoint
	case evBegun:
		if m.phase == phaseBegin {
			m.begin(ev, &out)
		}
	case evLoaded:
		m.loaded(now, ev, &out)
	case evPlaced:
		m.placed(now, ev, &out)
	case evSlots:
		switch {
		case m.phase == phasePlace:
			out.add(actPlace{m.need})
		case m.phase == phaseCommit && !m.wakeAt.IsZero(): // it may be a worker that can
			m.wakeAt = time.Time{}
			out.add(actCommit{})
		}
	case evTaskRuns:
		m.taskRuns(now, ev, &out)
	case evTaskFailed:
		if m.active(ev.Attempt) {
			m.fail(now, ev.Failure, ev.Restart, &out)
		}
	case evWorkerLost:
		m.workerLost(now, ev, &out)
	case evSaved:
		m.saved(ev, &out)
	case evFinal:
		if m.active(ev.Attempt) && (m.phase == phaseRun || m.phase == phaseSave) {
			m.end(weir.StatusFinished, nil, &out)
		}
	case evEnded:
		m.ended(now, ev, &out)
	case evCommitted:
		m.committed(now, ev, &out)
	case evTick:
		m.tick(now, &out)
	}
	m.heed(&out)
	return out
}

type actions []action

func (a *actions) add(acts ...action) { *a = append(*a, acts...) }

// status moves the job to a status it is not in yet.
func (m *machine) status(to weir.Status, f *weir.Failure, out *actions) {
	if m.job.Status == to {
		return
	}
	if !m.job.Status.CanBecome(to) {
		panic(fmt.Sprintf("job: %s cannot become %s in phase %v", m.job.Status, to, m.phase))
	}
	m.job.Status, m.job.Failure = to, f
	out.add(actStatus{to, f})
}

// active reports whether attempt is this machine's and has not been given up.
func (m *machine) active(attempt weir.AttemptID) bool {
	return m.begun && attempt == m.job.Attempt && m.phase >= phaseLoad && m.phase <= phaseSave
}

// start decides from the row alone what is to be done: the former holder may have
// died at any step. What ran under it is ended and begun anew from the base.
func (m *machine) start(now time.Time, ev evStart, out *actions) {
	m.begun = m.job.Attempt != weir.AttemptID{}
	switch s := m.job.Status; {
	case settled(m.job):
		m.phase = phaseDone
		out.add(actDone{})
	case s == weir.StatusCreated || s.Terminal():
		m.next(now, now, out)
	case m.job.Desired == weir.DesiredStopped && ev.Saved:
		m.end(weir.StatusStopped, nil, out)
	case m.job.Desired == weir.DesiredCanceled || m.halted():
		m.phase = phaseBackoff // heed ends it
	default:
		m.status(weir.StatusRestarting, &weir.Failure{Reason: "server_lost", Message: "the server that ran it ended, or lost its lease to another one: its tasks begin anew from its base"}, out)
		m.next(now, now, out)
	}
}

// settled reports whether nothing is to be done for a job: it has ended, and no start
// followed, which takes the time of its end away.
func settled(j weir.Job) bool { return j.Status.Terminal() && !j.EndedAt.IsZero() }

// halted reports whether the user asked for a stop without a savepoint, as a restore
// does before it starts the job again.
func (m *machine) halted() bool {
	return m.job.Desired == weir.DesiredStopped && m.job.StopSavepoint == ""
}

// next begins the next attempt at a time, or now.
func (m *machine) next(now, at time.Time, out *actions) {
	m.slots, m.running, m.runs, m.missing = nil, map[weir.TaskID]bool{}, time.Time{}, 0
	m.ending, m.failure = "", nil
	m.patient, m.strands = time.Time{}, false
	if at.After(now) {
		m.phase, m.wakeAt = phaseBackoff, at
		return
	}
	m.phase, m.wakeAt = phaseBegin, time.Time{}
	if m.wantsNone() {
		m.phase = phaseBackoff // heed ends it
		return
	}
	out.add(actBegin{})
}

// wantsNone reports whether the user's wish ends the job without another attempt.
func (m *machine) wantsNone() bool {
	never := m.job.Attempt == weir.AttemptID{} // no state that a savepoint could hold
	return m.job.Desired == weir.DesiredCanceled || m.halted() || m.job.Desired == weir.DesiredStopped && never
}

// begin takes the attempt that was recorded.
func (m *machine) begin(ev evBegun, out *actions) {
	m.job, m.begun, m.phase = ev.Job, true, phaseLoad
	if ev.Saved && m.job.Desired == weir.DesiredStopped {
		m.end(weir.StatusStopped, nil, out)
		return
	}
	out.add(actLoad{})
}

func (m *machine) loaded(now time.Time, ev evLoaded, out *actions) {
	switch {
	case m.phase != phaseLoad:
	case ev.Failure != nil:
		m.fail(now, *ev.Failure, ev.Restart, out)
	default:
		m.need, m.tasks, m.phase = ev.Need, ev.Tasks, phasePlace
		out.add(actPlace{m.need})
	}
}

func (m *machine) placed(now time.Time, ev evPlaced, out *actions) {
	switch {
	case m.phase != phasePlace:
	case ev.Slots != nil:
		m.slots, m.phase = ev.Slots, phaseDeploy
		out.add(actDeploy{})
	case !ev.Wait && ev.Missing != m.missing:
		m.missing = ev.Missing
		if m.patient.IsZero() {
			m.patient = now.Add(strandedAfter)
		}
		out.add(actNote{"status", fmt.Sprintf("waits for slots: needs %d, %d missing: start a worker, stop another job, or start with a lower parallelism", m.need, ev.Missing)})
	}
}

func (m *machine) taskRuns(now time.Time, ev evTaskRuns, out *actions) {
	if m.phase != phaseDeploy || !m.active(ev.Attempt) {
		return
	}
	if m.running[ev.Task] = true; len(m.running) < m.tasks {
		return
	}
	m.phase, m.runs = phaseRun, now
	m.status(weir.StatusRunning, nil, out)
	out.add(actRun{})
}

func (m *machine) workerLost(now time.Time, ev evWorkerLost, out *actions) {
	if m.phase < phaseDeploy || m.phase > phaseSave || !slices.Contains(m.slots, ev.Worker) {
		return
	}
	m.fail(now, weir.Failure{Reason: "worker_lost", Worker: ev.Worker, Message: fmt.Sprintf("worker %s: %s", ev.Worker, ev.Why)}, true, out)
}

// fail ends the attempt for a failure: another one follows, or the job's end.
func (m *machine) fail(now time.Time, f weir.Failure, restart bool, out *actions) {
	wait, refusal := m.restart.failed(now, m.runs, f.Reason == "worker_lost")
	if !restart {
		m.end(weir.StatusFailed, &f, out)
		return
	}
	if refusal != "" {
		f.Message += " (not restarted: " + refusal + ")"
		m.end(weir.StatusFailed, &f, out)
		return
	}
	m.wakeAt = now.Add(wait)
	m.end(weir.StatusRestarting, &f, out)
}

// end begins the end of the attempt; to is the status that follows. A restart shows at
// once, the others once nothing runs any more and no commit is open.
func (m *machine) end(to weir.Status, f *weir.Failure, out *actions) {
	m.ending, m.failure, m.phase = to, f, phaseEnd
	if to == weir.StatusRestarting { // its tasks end at once, however long the metastore takes
		out.add(actEnd{})
		m.status(to, f, out)
		return
	}
	m.wakeAt = time.Time{}
	if to == weir.StatusStopped && m.job.Status == weir.StatusRunning {
		m.status(weir.StatusStopping, nil, out)
	}
	out.add(actEnd{Close: to == weir.StatusFinished, Wait: true})
}

func (m *machine) ended(now time.Time, ev evEnded, out *actions) {
	if m.phase != phaseEnd || ev.Attempt != m.job.Attempt {
		return
	}
	if m.ending == weir.StatusRestarting {
		m.next(now, m.wakeAt, out)
		return
	}
	if !ev.Waited {
		return // another attempt was to follow, and the job was canceled since: the end that waits is under way (J3)
	}
	m.phase = phaseCommit
	out.add(actCommit{})
}

func (m *machine) committed(now time.Time, ev evCommitted, out *actions) {
	if m.phase != phaseCommit {
		return
	}
	if ev.Problem != "" {
		m.wakeAt = now.Add(commitRetry)
		if m.job.Status.CanBecome(weir.StatusStopping) {
			m.status(weir.StatusStopping, m.failure, out)
		}
		if ev.Problem != m.stuck {
			m.stuck = ev.Problem
			out.add(actNote{"commit", ev.Problem + "; tried again until it succeeds, or the job is canceled with abandon_output"})
		}
		return
	}
	m.phase, m.wakeAt = phaseDone, time.Time{}
	m.status(m.ending, m.failure, out)
	out.add(actDone{})
}

func (m *machine) saved(ev evSaved, out *actions) {
	if m.phase != phaseSave || !m.active(ev.Attempt) {
		return
	}
	if ev.Failure == nil {
		m.end(weir.StatusStopped, nil, out)
		return
	}
	m.phase = phaseRun
	m.status(weir.StatusRunning, nil, out) // first: it is fenced, a wish is not
	out.add(actNote{"savepoint", "the stop was given up and the job runs on: its savepoint failed: " + ev.Failure.Message})
	if m.job.Desired == weir.DesiredStopped {
		out.add(actResume{m.job.StopSavepoint})
		m.job.Desired, m.job.StopSavepoint = weir.DesiredRunning, ""
	}
}

func (m *machine) tick(now time.Time, out *actions) {
	if m.phase == phasePlace {
		m.strands = !m.patient.IsZero() && !now.Before(m.patient)
		return
	}
	if m.wakeAt.IsZero() || now.Before(m.wakeAt) {
		return
	}
	switch m.phase {
	case phaseBackoff:
		m.next(now, now, out)
	case phaseCommit:
		m.wakeAt = time.Time{}
		out.add(actCommit{})
	}
}

// heed follows the user's wish as far as the phase allows; what it does not allow yet
// is followed when the phase has changed.
func (m *machine) heed(out *actions) {
	switch m.job.Desired {
	case weir.DesiredCanceled:
		m.giveUp(weir.StatusCanceled, out)
	case weir.DesiredStopped:
		switch {
		case m.halted() || m.phase == phaseBackoff && m.wantsNone():
			m.giveUp(weir.StatusStopped, out)
		case m.phase == phasePlace && m.strands:
			out.add(actNote{"savepoint", "stopped while it waited for slots: nothing ran, so no savepoint was taken; its base holds its state"})
			m.giveUp(weir.StatusStopped, out)
		case m.phase == phaseRun:
			m.phase = phaseSave
			m.status(weir.StatusStopping, nil, out)
			out.add(actSave{m.job.StopSavepoint})
		}
	}
}

// giveUp ends the job without a savepoint.
func (m *machine) giveUp(to weir.Status, out *actions) {
	switch m.phase {
	case phaseBackoff, phaseLoad, phasePlace, phaseDeploy, phaseRun, phaseSave:
		m.end(to, nil, out)
	case phaseEnd:
		if m.ending == weir.StatusRestarting {
			m.end(to, nil, out)
		}
	case phaseIdle, phaseBegin, phaseCommit, phaseDone:
	}
}

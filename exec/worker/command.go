package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/killpoint"
	"weir/exec"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// errHeard says of a command that it was heard, and not that it was done.
var errHeard = errors.New("heard")

// command runs one command of a server or of another worker. The error beside the answer
// says that it is not to be kept for who commands the same again: a refusal may have its
// reason no more, and a Commit that comes again is for sinks that have not confirmed.
func (w *Worker) command(ctx context.Context, kind string, body []byte) ([]byte, error) {
	reply, err := w.run(ctx, kind, body)
	answer := deploy.EncodeReply(reply, err)
	if err == nil && kind == deploy.KindCommit {
		err = errHeard
	}
	return answer, err
}

func (w *Worker) run(ctx context.Context, kind string, body []byte) ([]byte, error) {
	switch kind {
	case deploy.KindDeploy:
		var m deploy.Deploy
		return nil, decoded(deploy.Decode(body, &m), func() error { return w.deploy(m) })
	case deploy.KindTrigger:
		var m deploy.Trigger
		return nil, decoded(deploy.Decode(body, &m), func() error { return w.trigger(m) })
	case deploy.KindCommit:
		var m deploy.Commit
		return nil, decoded(deploy.Decode(body, &m), func() error { return w.commit(m) })
	case deploy.KindProgress:
		var m deploy.Progress
		if err := deploy.Decode(body, &m); err != nil {
			return nil, err
		}
		return w.progress(m)
	case deploy.KindChannels:
		var m deploy.Channels
		if err := deploy.Decode(body, &m); err != nil {
			return nil, err
		}
		return w.channels(m), nil
	case deploy.KindClose:
		var m deploy.Close
		return nil, decoded(deploy.Decode(body, &m), func() error { return w.close(ctx, m) })
	case deploy.KindStop:
		var m deploy.Stop
		if err := deploy.Decode(body, &m); err != nil {
			return nil, err
		}
		return w.stop(ctx, m)
	case deploy.KindCommitOnly:
		var m deploy.CommitOnly
		return nil, decoded(deploy.Decode(body, &m), func() error { return w.commitOnly(ctx, m) })
	case deploy.KindResults, deploy.KindChanges, deploy.KindRead:
		return w.read(ctx, kind, body)
	}
	return nil, fmt.Errorf("%w: a worker knows no command %q", weir.ErrInvalid, kind)
}

func decoded(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// deploy begins an attempt. The same one again changes nothing.
func (w *Worker) deploy(m deploy.Deploy) error {
	if len(m.Tasks) == 0 {
		return fmt.Errorf("%w: a deployment without tasks", weir.ErrInvalid)
	}
	if most, want := w.cfg.Network.MaxPayload(), min(m.FrameLimit, exec.MaxFrame); most > 0 && most < want {
		return fmt.Errorf("%w: the NATS server of worker %s takes frames of %d bytes, that of the server took %d: give all servers of a NATS cluster the same max_payload", weir.ErrConflict, w.cfg.ID, most, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	newest, known := w.mu.newest[m.Job]
	switch {
	case w.mu.leaving || w.runCtx.Err() != nil:
		return fmt.Errorf("%w: the worker is ending", weir.ErrConflict)
	case known && newest == m.Attempt:
		return nil // it runs, or it did
	case known && newest.Number >= m.Attempt.Number:
		return fmt.Errorf("%w: attempt %v of job %s is known", weir.ErrStale, newest, m.Job)
	}
	w.know(m.Job, m.Attempt)
	if old := w.mu.attempts[m.Job]; old != nil {
		old.cancel()
	}
	w.mu.attempts[m.Job] = w.start(m)
	return nil
}

// knownJobs bounds how many jobs' newest attempts are remembered.
const knownJobs = 10000

// know remembers the newest attempt of a job; w.mu is held.
func (w *Worker) know(job weir.JobID, attempt weir.AttemptID) {
	if len(w.mu.newest) >= knownJobs {
		for other := range w.mu.newest { // any that does not run
			if w.mu.attempts[other] == nil && other != job {
				delete(w.mu.newest, other)
				break
			}
		}
	}
	w.mu.newest[job] = attempt
}

// forget drops an attempt that has ended.
func (w *Worker) forget(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.attempts[a.m.Job] == a {
		delete(w.mu.attempts, a.m.Job)
	}
}

// find returns the attempt that runs, or weir.ErrStale.
func (w *Worker) find(job weir.JobID, id weir.AttemptID) (*attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.mu.attempts[job]
	if a == nil || a.m.Attempt != id {
		return nil, fmt.Errorf("%w: attempt %v of job %s does not run on worker %s", weir.ErrStale, id, job, w.cfg.ID)
	}
	return a, nil
}

// trigger begins a checkpoint at sources, and tells all tasks of the attempt which
// others are still wanted.
func (w *Worker) trigger(m deploy.Trigger) error {
	if err := w.wanted(m); err != nil || len(m.Tasks) == 0 {
		return err
	}
	killpoint.Here("before-take")
	err := w.each(m.Job, m.Attempt, m.Tasks, func(t *exec.Task) error { return t.Trigger(m.Trigger) })
	killpoint.Here("after-take")
	return err
}

func (w *Worker) commit(m deploy.Commit) error {
	return w.each(m.Job, m.Attempt, m.Tasks, func(t *exec.Task) error {
		t.Commit(m.Checkpoint)
		return nil
	})
}

func (w *Worker) wanted(m deploy.Trigger) error {
	a, err := w.find(m.Job, m.Attempt)
	if err != nil || len(m.Pending) == 0 {
		return err
	}
	w.kept.wanted(m.Trigger)
	for _, t := range a.m.Tasks {
		if task := a.task(t.Task); task != nil {
			task.Wanted(m.Checkpoint, m.Pending)
		}
	}
	return nil
}

// progress says how far the tasks of an attempt are with a checkpoint. It waits for
// none of them.
func (w *Worker) progress(m deploy.Progress) ([]byte, error) {
	a, err := w.find(m.Job, m.Attempt)
	if err != nil {
		return nil, err
	}
	answer, building := deploy.Progressed{Header: deploy.Head()}, "being opened"
	if a.m.Restored != 0 {
		building = "being restored"
	}
	for _, t := range a.m.Tasks {
		p := checkpoint.Progress{Task: t.Task, Worker: w.cfg.ID, Stage: checkpoint.StageWaiting, Doing: building}
		if task := a.task(t.Task); task != nil {
			p = task.Progress(m.Checkpoint)
		}
		answer.Tasks = append(answer.Tasks, p)
	}
	slices.SortFunc(answer.Tasks, func(a, b checkpoint.Progress) int { return a.Task.Compare(b.Task) })
	return deploy.Encode(answer), nil
}

// channels says how the channels here fare, of one job or of all, and what all of it takes
// of memory.
func (w *Worker) channels(m deploy.Channels) []byte {
	list, memory := w.cfg.Network.Channels(), w.heartbeat().Memory
	for _, c := range list {
		memory.Network += c.QueuedBytes + c.UnackedBytes
	}
	if m.Job != "" {
		list = slices.DeleteFunc(list, func(c weir.ChannelStats) bool { return c.Job != m.Job })
	}
	return deploy.Encode(deploy.ChannelList{Header: deploy.Head(), Channels: deploy.SumChannels(list, deploy.MaxChannels), Memory: memory})
}

// each tells tasks of an attempt, in turn; the first failure ends it.
func (w *Worker) each(job weir.JobID, attempt weir.AttemptID, tasks []weir.TaskID, tell func(*exec.Task) error) error {
	a, err := w.find(job, attempt)
	if err != nil {
		return err
	}
	for _, id := range tasks {
		t := a.task(id)
		if t == nil {
			return fmt.Errorf("%w: task %v does not run on worker %s", weir.ErrConflict, id, w.cfg.ID)
		}
		if err := tell(t); err != nil {
			return err
		}
	}
	return nil
}

// close ends the tasks of a finished attempt and waits for them.
func (w *Worker) close(ctx context.Context, m deploy.Close) error {
	a, err := w.find(m.Job, m.Attempt)
	if errors.Is(err, weir.ErrStale) {
		return nil // it was closed and stopped before
	}
	a.close()
	return a.wait(ctx, a.idleC)
}

// stop ends an attempt, and older ones of the job, waits for them, and says what they
// did. None of these can be deployed any more.
func (w *Worker) stop(ctx context.Context, m deploy.Stop) ([]byte, error) {
	w.mu.Lock()
	if newest := w.mu.newest[m.Job]; newest.Number < m.Attempt.Number {
		w.know(m.Job, m.Attempt)
	}
	a := w.mu.attempts[m.Job]
	w.mu.Unlock()
	if a == nil || a.m.Attempt.Number > m.Attempt.Number {
		return nil, nil
	}
	a.cancel()
	if err := a.wait(ctx, a.doneC); err != nil || a.m.Attempt != m.Attempt {
		return nil, err
	}
	return deploy.Encode(deploy.Stopped{Header: deploy.Head(), Tasks: a.running().Tasks}), nil
}

// wait waits for tasks to end, but not for ever: a command that waits takes the place of
// others, also of other jobs.
func (a *attempt) wait(ctx context.Context, doneC <-chan struct{}) error {
	timer := time.NewTimer(a.w.cfg.Patience)
	defer timer.Stop()
	select {
	case <-doneC:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: tasks of attempt %v of job %s have not ended within %v", weir.ErrConflict, a.m.Attempt, a.m.Job, a.w.cfg.Patience)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitOnly opens each sink that has open segments, has it commit them, and closes it.
func (w *Worker) commitOnly(ctx context.Context, m deploy.CommitOnly) error {
	for _, chain := range m.Graph.Chains {
		for i, op := range chain.Operators {
			if op.Kind != plan.Sink || len(m.Lists[op.ID]) == 0 {
				continue
			}
			setup := exec.Setup{
				Job: m.Job, Attempt: m.Attempt, Operator: op, Subtask: 0, Parallelism: 1, MaxParallelism: m.Graph.MaxParallelism,
				List: m.Lists[op.ID], Restored: true, Files: w.cfg.Files,
				Logger: w.cfg.Logger.With("job", m.Job, "attempt", m.Attempt, "op", op.ID),
			}
			if i > 0 {
				setup.Input = chain.Operators[i-1].Schema
			} else {
				setup.Input = op.Sink.Table.Columns
			}
			if err := w.commitSink(ctx, setup, m.Checkpoint); err != nil {
				return fmt.Errorf("%s: %w", op.Name, err)
			}
		}
	}
	return nil
}

func (w *Worker) commitSink(ctx context.Context, s exec.Setup, id weir.CheckpointID) (err error) {
	sink, err := w.cfg.Openers.Sink(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := sink.Close(); err == nil {
			err = cerr
		}
	}()
	c, ok := sink.(exec.Committer)
	if !ok {
		return nil
	}
	killpoint.Here("before-commit-only")
	err = c.Commit(ctx, id)
	killpoint.Here("after-commit-only")
	return err
}

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/exec/deploy"
)

func (s *Service) ping(ctx context.Context, id weir.WorkerID) {
	asked := s.now()
	incarnation, err := s.deps.Control.Ping(ctx, id)
	result := pingSilence
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		result = pingAnswered
	case errors.Is(err, weir.ErrNotFound):
		result = pingNobody
	}
	s.mu.Lock()
	dead := s.mu.workers.ponged(s.now(), asked, id, result, incarnation)
	s.mu.Unlock()
	s.mourn(dead)
}

// mourn tells the jobs of dead workers.
func (s *Service) mourn(dead []death) {
	for _, d := range dead {
		s.deps.Logger.Warn("worker lost", "worker", d.Worker, "err", d.Why)
		s.unask(d)
		s.broadcast(evWorkerLost(d))
	}
}

// WorkerExited says that the process of a worker has ended: whoever started it knows
// it first. An empty incarnation means the one heard last.
func (s *Service) WorkerExited(worker weir.WorkerID, incarnation string) {
	s.mu.Lock()
	dead := s.mu.workers.exited(s.now(), worker, incarnation)
	s.mu.Unlock()
	s.mourn(dead)
}

// heartbeat takes a worker's heartbeat in.
func (s *Service) heartbeat(body []byte) {
	var beat deploy.Heartbeat
	if err := deploy.Decode(body, &beat); err != nil {
		s.deps.Logger.Warn("heartbeat not understood", "err", err)
		return
	}
	s.mu.Lock()
	twin := s.mu.workers.twin(beat)
	joined, dead := s.mu.workers.heard(s.now(), beat)
	s.mu.Unlock()
	s.mourn(dead)
	if twin {
		s.deps.Logger.Warn("a process that was replaced still runs under the worker's name and gets no work: end it, or give it an --id of its own",
			"worker", beat.Worker, "host", beat.Host, "pid", beat.PID)
	}
	if joined {
		s.deps.Logger.Info("worker joined", "worker", beat.Worker, "slots", beat.Slots)
		s.broadcast(evSlots{})
	}
}

// report takes a worker's report in: weir.ErrConflict, not mine, come again;
// weir.ErrStale, the attempt is over.
func (s *Service) report(ctx context.Context, kind string, body []byte) ([]byte, error) {
	if kind == deploy.KindReturned {
		return s.returned(ctx, body)
	}
	var r deploy.Report
	if err := deploy.Decode(body, &r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	d, loaded := s.mu.jobs[r.Job], s.decidesLocked()
	s.mu.Unlock()
	var err error
	switch {
	case d != nil:
		err = d.report(r)
	case loaded:
		err = s.undriven(ctx, r.Job, r.Attempt)
	default:
		err = fmt.Errorf("%w: this server does not hold the lease", weir.ErrConflict)
	}
	if errors.Is(err, weir.ErrStale) && r.Ack != nil && r.Ack.Snapshot != nil {
		// Its objects may have come behind the clean-up of what is over.
		if uerr := s.deps.Checkpoints.Unswept(ctx, r.Job, r.Attempt); uerr != nil {
			s.deps.Logger.Warn("objects of an attempt that is over may stay", "job", r.Job, "attempt", r.Attempt, "err", uerr)
		}
	}
	return nil, err
}

// undriven says of an attempt that no driver here knows: weir.ErrStale, it is over;
// weir.ErrConflict, it is not, or nobody can say. Its job's row decides, not what we know:
// the database may have counted our lease shorter than we did, since its clock was set, or
// ours stood still, and another server runs it.
func (s *Service) undriven(ctx context.Context, job weir.JobID, attempt weir.AttemptID) error {
	j, err := s.deps.Store.Job(ctx, string(job))
	switch {
	case err != nil && !errors.Is(err, weir.ErrNotFound):
		return fmt.Errorf("%w: whether attempt %v of job %s is over is not known: %w", weir.ErrConflict, attempt, job, err)
	case err == nil && !settled(j) && j.Attempt == attempt:
		return fmt.Errorf("%w: attempt %v of job %s is another server's", weir.ErrConflict, attempt, job)
	}
	return fmt.Errorf("%w: job %s does not run", weir.ErrStale, job)
}

// returned tells a worker that was cut off, or asleep, which of its attempts are over.
// One that it has ended itself has failed. weir.ErrConflict: not known here, or not yet.
func (s *Service) returned(ctx context.Context, body []byte) ([]byte, error) {
	var m deploy.Returned
	if err := deploy.Decode(body, &m); err != nil {
		return nil, err
	}
	answer, failed := deploy.Over{Header: deploy.Head()}, map[*driver]weir.AttemptID{}
	for _, h := range m.Attempts {
		s.mu.Lock()
		d, decides := s.mu.jobs[h.Job], s.decidesLocked()
		s.mu.Unlock()
		if !decides {
			return nil, fmt.Errorf("%w: this server does not hold the lease", weir.ErrConflict)
		}
		over, err := s.isOver(ctx, d, h)
		switch {
		case err != nil:
			return nil, err
		case over:
			answer.Attempts = append(answer.Attempts, deploy.Held{Job: h.Job, Attempt: h.Attempt})
		case h.Ended:
			failed[d] = h.Attempt
		}
	}
	for d, attempt := range failed { // their order does not matter: each decides for itself
		d.post(evTaskFailed{attempt, weir.Failure{
			Reason: "worker_lost", Worker: m.Worker,
			Message: fmt.Sprintf("worker %s: it could not reach NATS for more than a minute and ended its tasks", m.Worker),
		}, true})
	}
	return deploy.Encode(answer), nil
}

// isOver reports whether an attempt that a worker holds is over; d drives its job, nil:
// nobody does here. An error is weir.ErrConflict.
func (s *Service) isOver(ctx context.Context, d *driver, h deploy.Held) (bool, error) {
	if d == nil {
		err := s.undriven(ctx, h.Job, h.Attempt)
		if errors.Is(err, weir.ErrStale) {
			return true, nil
		}
		return false, err
	}
	now, over := d.standing()
	if now.Number < h.Attempt.Number {
		return false, fmt.Errorf("%w: attempt %v of job %s is another server's", weir.ErrConflict, h.Attempt, h.Job)
	}
	return over || now != h.Attempt, nil
}

// decidesLocked reports whether we may say what runs and what is over: a server whose lease
// has lapsed, or that hung past its end, still has the drivers of then. s.mu is held.
func (s *Service) decidesLocked() bool { return s.mu.loaded && s.now().Before(s.mu.until) }

// report takes in what a worker says of a task.
func (d *driver) report(r deploy.Report) error {
	d.mu.Lock()
	attempt, run := d.mu.attempt, d.mu.run
	if r.Attempt == attempt && r.Ended != nil && run == nil {
		d.mu.ended = append(d.mu.ended, *r.Ended)
	}
	d.mu.Unlock()
	if r.Attempt.Number > attempt.Number {
		return fmt.Errorf("%w: attempt %v of job %s is another server's", weir.ErrConflict, r.Attempt, r.Job)
	}
	if r.Attempt != attempt {
		return fmt.Errorf("%w: attempt %v of job %s is over", weir.ErrStale, r.Attempt, r.Job)
	}
	switch {
	case r.Status != nil && r.Status.Failure != nil:
		d.post(evTaskFailed{r.Attempt, *r.Status.Failure, r.Status.Restart})
	case r.Status != nil:
		d.post(evTaskRuns{r.Attempt, r.Status.Task})
	case run == nil:
	case r.Ack != nil:
		run.runner.Ack(*r.Ack)
	case r.Ended != nil:
		run.runner.SourceEnded(*r.Ended)
	case r.Committed != nil:
		run.runner.Committed(r.Committed.Task, r.Committed.Checkpoint, nil)
	}
	return nil
}

// A stray is an attempt that a worker runs and that is over.
type stray struct {
	worker  weir.WorkerID
	job     weir.JobID
	attempt weir.AttemptID
}

// strayWithin bounds how long a stray's end is waited for before it is asked for again:
// a worker whose task hangs is not asked each time that we look.
const strayWithin = 20 * time.Second

// strays lists those that nobody is ending; their ends are the caller's.
func (s *Service) strays() []stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []stray
	if !s.decidesLocked() {
		return nil
	}
	for _, w := range s.mu.workers.alive() {
		for _, a := range w.beat.Attempts {
			st := stray{w.beat.Worker, a.Job, a.Attempt}
			if d := s.mu.jobs[a.Job]; !s.mu.strays[st] && (d == nil || d.attempt().Number > a.Attempt.Number) {
				s.mu.strays[st] = true
				list = append(list, st)
			}
		}
	}
	return list
}

func (s *Service) endStray(ctx context.Context, st stray) {
	ctx, cancel := context.WithTimeout(ctx, strayWithin)
	defer cancel()
	defer func() {
		s.mu.Lock()
		delete(s.mu.strays, st)
		s.mu.Unlock()
	}()
	if err := s.undriven(ctx, st.job, st.attempt); !errors.Is(err, weir.ErrStale) {
		return // it is not over, or the next look may tell
	}
	stop := deploy.Stop{Header: deploy.Head(), Job: st.job, Attempt: st.attempt}
	if _, err := s.ask(ctx, st.worker, deploy.KindStop, stop); err != nil && ctx.Err() == nil {
		s.deps.Logger.Warn("stale attempt not ended, tried again", "worker", st.worker, "job", st.job, "attempt", st.attempt, "err", err)
	}
}

// askWithin bounds what is asked of a worker or a server by who sets no bound.
const askWithin = 30 * time.Second

// ask sends a command to a worker and reads its reply; a command that comes twice, also
// of two servers, is carried out once (deploy.KeyOf). It is for the process that this
// server heard last under the worker's name: another one that was replaced, and wakes
// up, must not run the same tasks beside it.
func (s *Service) ask(ctx context.Context, worker weir.WorkerID, kind string, m deploy.Message) ([]byte, error) {
	s.mu.Lock()
	name := s.mu.workers.life(worker)
	s.mu.Unlock()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askWithin)
		defer cancel()
	}
	key, ok := deploy.KeyOf(kind, m)
	if !ok {
		key = weir.CommandKey{Kind: kind}
	}
	reply, err := s.deps.Control.Command(ctx, name, key, deploy.Encode(m))
	if err != nil {
		return nil, err
	}
	return deploy.DecodeReply(reply)
}

// errDied: a worker was found dead while it was asked.
var errDied = errors.New("the worker died")

// An asked is a command whose answer nobody waits for once its worker is found dead.
type asked struct {
	worker weir.WorkerID
	giveUp context.CancelCauseFunc
}

// askLiving is ask of a worker that has to answer itself: errDied once it is found dead.
func (s *Service) askLiving(ctx context.Context, worker weir.WorkerID, kind string, m deploy.Message) ([]byte, error) {
	actx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	a := &asked{worker, giveUp}
	s.mu.Lock()
	s.mu.asked[a] = true
	if why := s.mu.workers.lost(worker); why != "" {
		giveUp(fmt.Errorf("%w: %s", errDied, why))
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.mu.asked, a)
		s.mu.Unlock()
	}()
	body, err := s.ask(actx, worker, kind, m)
	if cause := context.Cause(actx); err != nil && errors.Is(cause, errDied) {
		return nil, fmt.Errorf("worker %s: %s: %w", worker, kind, cause)
	}
	return body, err
}

// unask ends what a dead worker was asked.
func (s *Service) unask(d death) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.mu.asked {
		if a.worker == d.Worker {
			a.giveUp(fmt.Errorf("%w: %s", errDied, d.Why))
		}
	}
}

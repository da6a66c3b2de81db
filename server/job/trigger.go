package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// A triggerRequest asks for a checkpoint or savepoint, or for the end of a pending one;
// between servers it is JSON.
type triggerRequest struct {
	deploy.Header
	Job       weir.JobID        `json:"job"`
	Savepoint bool              `json:"savepoint,omitempty"`
	Name      string            `json:"name,omitempty"`
	Cancel    weir.CheckpointID `json:"cancel,omitempty"` // the one to give up; 0: begin one
	Wait      time.Duration     `json:"-"`
}

func (r triggerRequest) kind() string {
	if r.Cancel != 0 {
		return deploy.KindCancelCheckpoint
	}
	return deploy.KindCheckpoint
}

// A triggered answers a triggerRequest.
type triggered struct {
	deploy.Header
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	Turn       checkpoint.Turn   `json:"turn,omitempty"` // of one that began
}

// triggerWithin bounds how long a trigger waits for its id where the user does not
// wait himself.
const triggerWithin = 10 * time.Second

func (s *Service) trigger(ctx context.Context, idOrName string, req triggerRequest) (Triggered, error) {
	what := "checkpointed"
	if req.Savepoint {
		what = "given a savepoint"
		if req.Name != "" && !validName(req.Name) {
			return Triggered{}, fmt.Errorf("%w: savepoint name %q: names match [a-z0-9][a-z0-9_-]{0,62}", weir.ErrInvalid, req.Name)
		}
	}
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return Triggered{}, err
	}
	until := s.now().Add(max(req.Wait, 0))
	if j, err = s.awaitRunning(ctx, j, what, req.Wait); err != nil {
		return Triggered{}, err
	}
	if req.Savepoint {
		if req.Name == "" {
			req.Name = s.savepointName(j)
		} else if err := s.checkSavepointName(ctx, req.Name); err != nil {
			return Triggered{}, err
		}
	}
	req.Header, req.Job = deploy.Head(), j.ID
	tctx, cancel := context.WithTimeout(ctx, max(triggerWithin, until.Sub(s.now())))
	defer cancel()
	t, err := s.triggerAtHolder(tctx, req)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = refuse(j, what, "the checkpoint under way has not ended yet: try again later, or ask with a longer wait")
	}
	if err != nil {
		return Triggered{}, err
	}
	r, err := s.awaitEnd(ctx, j.ID, t.Checkpoint, until)
	return Triggered{r, t.Turn}, err
}

// awaitRunning waits, at most for wait, until a job may be checkpointed.
func (s *Service) awaitRunning(ctx context.Context, j weir.Job, what string, wait time.Duration) (weir.Job, error) {
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := s.await(wctx, func() (bool, error) {
		switch {
		case settled(j):
			return false, refuse(j, what, "it has ended; start it first")
		case j.Status == weir.StatusStopping || j.Desired != weir.DesiredRunning:
			return false, refuse(j, what, "it is being ended")
		case j.Status == weir.StatusRunning:
			return true, nil
		case wait <= 0:
			return false, refuse(j, what, "wait until it is RUNNING, or ask with wait")
		}
		next, err := s.Get(wctx, string(j.ID))
		if err == nil {
			j = next
		}
		return false, err
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return j, refuse(j, what, fmt.Sprintf("it was not RUNNING within %v", wait))
	}
	return j, err
}

// awaitEnd reads a checkpoint's record, when it has ended or until has passed.
func (s *Service) awaitEnd(ctx context.Context, job weir.JobID, id weir.CheckpointID, until time.Time) (checkpoint.Record, error) {
	var r checkpoint.Record
	err := s.await(ctx, func() (bool, error) {
		var err error
		r, err = s.deps.Store.CheckpointByID(ctx, job, id)
		return err == nil && (r.Status != checkpoint.StatusPending || !s.now().Before(until)), err
	})
	return r, err
}

// cancelWithin bounds how long a cancel waits for the end of what it gave up.
const cancelWithin = 5 * time.Second

// cancelCheckpoint gives a pending checkpoint or savepoint up and returns its record.
func (s *Service) cancelCheckpoint(ctx context.Context, idOrName string, id weir.CheckpointID) (checkpoint.Record, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return checkpoint.Record{}, err
	}
	r, err := s.deps.Store.CheckpointByID(ctx, j.ID, id)
	if err != nil {
		return checkpoint.Record{}, err
	}
	if r.Status != checkpoint.StatusPending {
		return checkpoint.Record{}, fmt.Errorf("%w: checkpoint %d of job %q is %s: only a pending one can be canceled", weir.ErrConflict, id, j.Name, r.Status)
	}
	until := s.now().Add(cancelWithin)
	tctx, cancel := context.WithTimeout(ctx, triggerWithin)
	defer cancel()
	if _, err := s.triggerAtHolder(tctx, triggerRequest{Header: deploy.Head(), Job: j.ID, Cancel: id}); err != nil {
		return checkpoint.Record{}, err
	}
	return s.awaitEnd(ctx, j.ID, id, until)
}

// triggerAtHolder begins or cancels a checkpoint where the job's coordinator is: here, or at the
// server that holds the lease.
func (s *Service) triggerAtHolder(ctx context.Context, req triggerRequest) (triggered, error) {
	d, holder, err := s.holderOf(req.Job)
	if err != nil {
		return triggered{}, err
	}
	if d != nil {
		return d.trigger(ctx, req)
	}
	body, err := s.askHolder(ctx, holder, req.kind(), req)
	if err != nil {
		return triggered{}, err
	}
	var t triggered
	return t, deploy.Decode(body, &t)
}

// holderOf finds where a job is driven: here, or at another server, the holder of the
// lease.
func (s *Service) holderOf(job weir.JobID) (*driver, string, error) {
	s.mu.Lock()
	d, holder, loaded := s.mu.jobs[job], s.mu.holder, s.mu.loaded
	s.mu.Unlock()
	switch {
	case d != nil:
		return d, "", nil
	case loaded || holder == s.id:
		return nil, "", fmt.Errorf("%w: job %s does not run just now: try again", weir.ErrConflict, job)
	case holder == "":
		return nil, "", fmt.Errorf("%w: no server holds the lease yet: try again", ErrUnavailable)
	}
	return nil, holder, nil
}

// askHolder has the server that holds the lease carry out a command.
func (s *Service) askHolder(ctx context.Context, holder, kind string, m deploy.Message) ([]byte, error) {
	body, err := s.ask(ctx, serverName(holder), kind, m)
	if err != nil && ctx.Err() == nil && !deploy.Refused(err) {
		return nil, fmt.Errorf("%w: the server that holds the lease does not answer: try again once another one has taken over", ErrUnavailable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at server %s, which holds the lease: %w", kind, holder, err)
	}
	return body, nil
}

// command takes a command that another server sent to this one.
func (s *Service) command(ctx context.Context, kind string, body []byte) ([]byte, error) {
	var answer deploy.Message
	var err error
	switch kind {
	case deploy.KindCheckpoint, deploy.KindCancelCheckpoint:
		answer, err = s.triggerHere(ctx, body)
	case deploy.KindProgress:
		answer, err = s.progressHere(ctx, body)
	default:
		err = fmt.Errorf("%w: a server knows no command %q", weir.ErrInvalid, kind)
	}
	if err != nil {
		return deploy.EncodeReply(nil, err), nil
	}
	return deploy.EncodeReply(deploy.Encode(answer), nil), nil
}

func (s *Service) triggerHere(ctx context.Context, body []byte) (triggered, error) {
	var req triggerRequest
	if err := deploy.Decode(body, &req); err != nil {
		return triggered{}, err
	}
	d, err := s.driverHere(req.Job)
	if err != nil {
		return triggered{}, err
	}
	return d.trigger(ctx, req)
}

func (s *Service) progressHere(ctx context.Context, body []byte) (farAnswer, error) {
	var req deploy.Progress
	if err := deploy.Decode(body, &req); err != nil {
		return farAnswer{}, err
	}
	d, err := s.driverHere(req.Job)
	if err != nil {
		return farAnswer{}, err
	}
	return d.far(ctx, req.Checkpoint)
}

// driverHere is the driver of a job that another server takes this one to run.
func (s *Service) driverHere(job weir.JobID) (*driver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.mu.jobs[job]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("%w: job %s does not run here: try again", weir.ErrConflict, job)
}

package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
)

// alive are the statuses of a job that has not ended.
func alive() []weir.Status {
	return []weir.Status{weir.StatusCreated, weir.StatusScheduling, weir.StatusRunning, weir.StatusRestarting, weir.StatusStopping}
}

func ended() []weir.Status {
	return []weir.Status{weir.StatusStopped, weir.StatusCanceled, weir.StatusFinished, weir.StatusFailed}
}

// refuse says that a job's state does not allow something, and what would.
func refuse(j weir.Job, what, hint string) error {
	return fmt.Errorf("%w: job %q is %s: it cannot be %s: %s", weir.ErrConflict, j.Name, j.Status, what, hint)
}

func (s *Service) stop(ctx context.Context, idOrName string, req StopRequest) (weir.Job, error) {
	if req.Drain {
		return weir.Job{}, inField("drain", fmt.Errorf("%w: drain is not supported by this version: it would fire the windows that are open, and there are no windows yet: stop without it keeps everything open in the savepoint", weir.ErrInvalid))
	}
	if req.Name != "" && !validName(req.Name) {
		return weir.Job{}, inField("name", fmt.Errorf("%w: savepoint name %q: names match [a-z0-9][a-z0-9_-]{0,62}", weir.ErrInvalid, req.Name))
	}
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return weir.Job{}, err
	}
	switch {
	case j.Status == weir.StatusStopped && settled(j):
		return j, nil
	case settled(j):
		return weir.Job{}, refuse(j, "stopped", "it has ended; its checkpoints can be started from")
	case j.Desired == weir.DesiredCanceled:
		return weir.Job{}, refuse(j, "stopped", "it is being canceled")
	case j.Then != nil:
		return weir.Job{}, refuse(j, "stopped", "it is being restored; stop it once it is RUNNING, or cancel it")
	case j.Desired == weir.DesiredStopped && (req.Name == "" || req.Name == j.StopSavepoint):
		return j, nil
	case j.Desired == weir.DesiredStopped:
		return weir.Job{}, refuse(j, "stopped with savepoint "+req.Name, fmt.Sprintf("it is being stopped with savepoint %q", j.StopSavepoint))
	}
	name := req.Name
	if name == "" {
		name = s.savepointName(j)
	} else if err := s.checkSavepointName(ctx, name); err != nil {
		return weir.Job{}, err
	}
	return s.wish(ctx, j, Wish{Desired: weir.DesiredStopped, Savepoint: name})
}

// wish records what the user wants of a job that has not ended, or that waits for a
// start, and has it looked at.
func (s *Service) wish(ctx context.Context, j weir.Job, w Wish) (weir.Job, error) {
	from := alive()
	if j.Status.Terminal() {
		from, w.Savepoint = ended(), ""
	}
	j, err := s.deps.Store.SetDesired(ctx, j.ID, from, w)
	if err != nil {
		return weir.Job{}, err
	}
	s.wake()
	return j, nil
}

// savepointName makes a name up: the job's, the time, a random end.
func (s *Service) savepointName(j weir.Job) string {
	stem := j.Name
	if len(stem) > 40 {
		stem = strings.TrimRight(stem[:40], "-_")
	}
	return stem + "-" + s.now().UTC().Format("20060102-150405") + "-" + weir.NewIncarnation()[:4]
}

// checkSavepointName refuses a name that is in use before anything is begun; the
// metastore's constraint decides.
func (s *Service) checkSavepointName(ctx context.Context, name string) error {
	sp, err := s.deps.Store.Savepoint(ctx, name)
	if err == nil && (sp.Status == checkpoint.StatusCompleted || sp.Status == checkpoint.StatusPending) {
		return fmt.Errorf("%w: a savepoint named %q exists already: choose another name or delete it", weir.ErrConflict, name)
	}
	return nil
}

func (s *Service) cancel(ctx context.Context, idOrName string, abandon bool) (weir.Job, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return weir.Job{}, err
	}
	switch {
	case settled(j) && j.Status == weir.StatusCanceled:
	case settled(j):
		return weir.Job{}, refuse(j, "canceled", "it has ended already")
	case j.Desired != weir.DesiredCanceled:
		if j, err = s.wish(ctx, j, Wish{Desired: weir.DesiredCanceled}); err != nil {
			return weir.Job{}, err
		}
	}
	if abandon {
		return j, s.abandon(ctx, j)
	}
	return j, nil
}

// abandon gives up decided output that no sink has made visible yet: the commits of
// the job's checkpoints are closed as they are. What the sinks do meanwhile counts. It is
// for good: whoever starts from them leaves those segments out (attempt.go).
func (s *Service) abandon(ctx context.Context, j weir.Job) error {
	fence := weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term}
	kept, err := s.deps.Checkpoints.Retained(ctx, j.ID)
	if err != nil {
		return err
	}
	for _, r := range kept {
		if !r.CommitsOpen {
			continue
		}
		if err := s.deps.Checkpoints.AbandonCommits(ctx, fence, r.ID); err != nil {
			return fmt.Errorf("abandon output of checkpoint %d: %w", r.ID, err)
		}
	}
	s.wake()
	return nil
}

func (s *Service) start(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return weir.Job{}, err
	}
	from, err := ParseFrom(req.From)
	if err != nil {
		return weir.Job{}, inField("from", err)
	}
	if !settled(j) {
		return weir.Job{}, refuse(j, "started", "stop or cancel it first, or restore it, which does so")
	}
	if from.Latest && j.Status == weir.StatusFinished {
		return weir.Job{}, refuse(j, "started from latest", "all its input is worked off; give from: nothing to work it off again, or checkpoint:N or savepoint:NAME to go back to")
	}
	if err := s.room(ctx); err != nil {
		return weir.Job{}, err
	}
	wish := Wish{Desired: weir.DesiredRunning, Parallelism: req.Parallelism}
	chosen, err := s.choose(ctx, j, from, req)
	if err != nil {
		return weir.Job{}, err
	}
	if err := s.checkCommits(ctx, j, req.AbandonOutput); err != nil {
		return weir.Job{}, err
	}
	wish.Base = &chosen.Ref // also where it is the job's base: that may be given up just now
	j, err = s.deps.Store.SetDesired(ctx, j.ID, ended(), wish)
	if err != nil {
		return weir.Job{}, err
	}
	s.wake()
	return j, nil
}

// choose resolves what a job is to start from and checks that it can.
func (s *Service) choose(ctx context.Context, j weir.Job, from From, req StartRequest) (choice, error) {
	if req.Parallelism != 0 {
		if err := checkParallelism(req.Parallelism, j.MaxParallelism); err != nil {
			return choice{}, err
		}
	}
	chosen, err := s.resolve(ctx, j, from)
	if err != nil {
		return choice{}, inField("from", err)
	}
	return chosen, s.checkStart(ctx, j, cmp.Or(req.Parallelism, j.Parallelism), chosen, req.AllowDuplicateOutput)
}

// checkCommits makes sure that no decided output waits, which a start from elsewhere
// would lose. A job's end waits for it, so there is some only where that was cut short.
func (s *Service) checkCommits(ctx context.Context, j weir.Job, abandon bool) error {
	if abandon {
		return s.abandon(ctx, j)
	}
	kept, err := s.deps.Checkpoints.Retained(ctx, j.ID)
	if err != nil {
		return err
	}
	for _, r := range kept {
		if r.CommitsOpen && (weir.SnapshotRef{Job: j.ID, Checkpoint: r.ID}) != j.Base {
			return refuse(j, "started", fmt.Sprintf("its sinks have not committed checkpoint %d: start it from latest, or give that output up with abandon_output", r.ID))
		}
	}
	return nil
}

// haltWithin bounds how long a restore waits for the running attempt's end; after that
// it goes on without its caller.
const haltWithin = 60 * time.Second

func (s *Service) restore(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return weir.Job{}, err
	}
	if settled(j) {
		return s.start(ctx, idOrName, req)
	}
	from, err := ParseFrom(req.From)
	if err != nil {
		return weir.Job{}, inField("from", err)
	}
	if j.Desired != weir.DesiredRunning {
		return weir.Job{}, refuse(j, "restored", fmt.Sprintf("its user wants it %s; wait for that", j.Desired))
	}
	chosen, err := s.choose(ctx, j, from, req)
	if err != nil {
		return weir.Job{}, err
	}
	then := weir.Start{Parallelism: req.Parallelism}
	if !from.Latest { // latest is the base that the attempt will end with
		then.Base = &chosen.Ref
	}
	return s.restart(ctx, j, then, req.AbandonOutput)
}

// restart has a job ended as STOPPED without a savepoint and started again. Both are one
// wish in its row: whoever asked, and this server, may be gone before it is fulfilled.
func (s *Service) restart(ctx context.Context, j weir.Job, then weir.Start, abandon bool) (weir.Job, error) {
	j, err := s.wish(ctx, j, Wish{Desired: weir.DesiredStopped, Then: &then})
	if err != nil {
		return weir.Job{}, err
	}
	if abandon {
		if err := s.abandon(ctx, j); err != nil {
			return weir.Job{}, err
		}
	}
	wctx, cancel := context.WithTimeout(ctx, haltWithin)
	defer cancel()
	err = s.await(wctx, func() (bool, error) {
		next, err := s.Get(wctx, string(j.ID))
		if err == nil {
			j = next
		}
		return err == nil && j.Then == nil, err
	})
	switch {
	case err != nil && wctx.Err() != nil && ctx.Err() == nil:
		return j, nil // it goes on
	case err != nil:
		return weir.Job{}, err
	case j.Desired != weir.DesiredRunning:
		return weir.Job{}, refuse(j, "restored", "another wish has come between, or its snapshot was given up: its events say which")
	}
	return j, nil
}

// pollEvery is how often a call that waits looks at the metastore.
const pollEvery = 50 * time.Millisecond

// await calls done until it says true, fails, or ctx ends.
func (s *Service) await(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delete marks the job deleted; its objects are collected. Its savepoints, and what
// others have pinned, stay.
func (s *Service) delete(ctx context.Context, idOrName string, abandon bool) error {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return err
	}
	if !settled(j) {
		return refuse(j, "deleted", "stop or cancel it first")
	}
	if abandon {
		if err := s.abandon(ctx, j); err != nil {
			return err
		}
	}
	if err := s.deps.Store.DeleteJob(ctx, j.ID); err != nil {
		return err
	}
	s.clean.wake(j.ID)
	return nil
}

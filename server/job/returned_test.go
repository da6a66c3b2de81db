package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
)

// TestReturned is the answer to a worker that was cut off: what is current goes on, the rest
// is over; a server that may not decide says nothing.
func TestReturned(t *testing.T) {
	t.Parallel()
	store := &rows{}
	s := New(Deps{Store: store, Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
	at := func(n int64) weir.AttemptID { return weir.AttemptID{Number: n, Tag: "a1b2c3d4"} }
	ask := func(held ...deploy.Held) (deploy.Over, error) {
		t.Helper()
		var over deploy.Over
		body, err := s.report(t.Context(), deploy.KindReturned, deploy.Encode(deploy.Returned{Header: deploy.Head(), Worker: "w1", Attempts: held}))
		if err == nil {
			err = deploy.Decode(body, &over)
		}
		return over, err
	}
	if _, err := ask(deploy.Held{Job: "job_1", Attempt: at(1)}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("without the lease: %v", err)
	}
	s.mu.until = time.Now().Add(time.Hour)
	if _, err := ask(deploy.Held{Job: "job_1", Attempt: at(1)}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("before the jobs are known: %v", err)
	}
	s.mu.loaded = true
	runs := map[weir.JobID]int64{"job_runs": 3, "job_ended": 3, "job_over": 3}
	for id, n := range runs {
		d := newDriver(s, weir.Job{ID: id, Attempt: at(n)}, 1)
		d.mu.over = id == "job_over"
		s.mu.jobs[id] = d
	}
	over, err := ask(
		deploy.Held{Job: "job_runs", Attempt: at(3)}, deploy.Held{Job: "job_runs", Attempt: at(2)}, deploy.Held{Job: "job_over", Attempt: at(3)},
		deploy.Held{Job: "job_gone", Attempt: at(9)}, deploy.Held{Job: "job_ended", Attempt: at(3), Ended: true},
	)
	want := []deploy.Held{{Job: "job_runs", Attempt: at(2)}, {Job: "job_over", Attempt: at(3)}, {Job: "job_gone", Attempt: at(9)}}
	if diff := cmp.Diff(want, over.Attempts); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if n := len(s.mu.jobs["job_runs"].take()); n != 0 {
		t.Errorf("a job whose attempt goes on hears %d events", n)
	}
	events := s.mu.jobs["job_ended"].take()
	if failed, ok := events[0].(evTaskFailed); len(events) != 1 || !ok || !failed.Restart || failed.Failure.Reason != "worker_lost" {
		t.Errorf("a job whose attempt the worker ended hears %+v", events)
	}
	if _, err := ask(deploy.Held{Job: "job_runs", Attempt: at(4)}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("another server's attempt: %v", err)
	}
}

// rows is a metastore with the row of one job, if any.
type rows struct {
	Store
	job *weir.Job
	err error
}

func (r *rows) Job(context.Context, string) (weir.Job, error) {
	switch {
	case r.err != nil:
		return weir.Job{}, r.err
	case r.job == nil:
		return weir.Job{}, weir.ErrNotFound
	}
	return *r.job, nil
}

// A server that takes the lease for its own, and is wrong, ends no attempt of a job that it
// knows nothing of: the database's clock was set, or its own stood still, and another server
// has begun it. (R10)
func TestUndriven(t *testing.T) {
	t.Parallel()
	at := func(n int64) weir.AttemptID { return weir.AttemptID{Number: n, Tag: "a1b2c3d4"} }
	running := weir.Job{ID: "job_1", Status: weir.StatusRunning, Attempt: at(2), Term: 9}
	ended, waits := running, running
	ended.Status, ended.EndedAt = weir.StatusStopped, time.Now()
	waits.Status = weir.StatusStopped // for its start
	for _, tc := range []struct {
		name string
		row  *weir.Job
		err  error
		held int64
		want error
	}{
		{"it runs", &running, nil, 2, weir.ErrConflict},
		{"it is to start again", &waits, nil, 2, weir.ErrConflict},
		{"an older attempt", &running, nil, 1, weir.ErrStale},
		{"it has ended", &ended, nil, 2, weir.ErrStale},
		{"it was deleted", nil, nil, 2, weir.ErrStale},
		{"the metastore is away", &ended, context.DeadlineExceeded, 2, weir.ErrConflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			control := &stops{}
			s := New(Deps{Store: &rows{job: tc.row, err: tc.err}, Control: control, Reports: nobody{}, Logger: quiet()}, Options{})
			s.mu.until, s.mu.loaded = time.Now().Add(time.Hour), true
			_, err := s.report(t.Context(), "report", deploy.Encode(deploy.Report{Header: deploy.Head(), Job: "job_1", Attempt: at(tc.held)}))
			if !errors.Is(err, tc.want) {
				t.Errorf("a report: %v, want %v", err, tc.want)
			}
			_, err = s.report(t.Context(), deploy.KindReturned, deploy.Encode(deploy.Returned{Header: deploy.Head(), Attempts: []deploy.Held{{Job: "job_1", Attempt: at(tc.held)}}}))
			if over := err == nil; over != errors.Is(tc.want, weir.ErrStale) || !over && !errors.Is(err, weir.ErrConflict) {
				t.Errorf("a worker that returned: %v", err)
			}
			s.endStray(t.Context(), stray{"w1", "job_1", at(tc.held)})
			if stopped := control.n > 0; stopped != errors.Is(tc.want, weir.ErrStale) {
				t.Errorf("stopped %v", stopped)
			}
		})
	}
}

// stops is a control that counts commands.
type stops struct {
	nobody
	n int
}

func (c *stops) Command(context.Context, weir.WorkerID, weir.CommandKey, []byte) ([]byte, error) {
	c.n++
	return nil, weir.ErrNotFound
}

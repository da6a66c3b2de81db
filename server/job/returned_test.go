package job

import (
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
	s := New(Deps{Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
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

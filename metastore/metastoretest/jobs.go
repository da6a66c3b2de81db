package metastoretest

import (
	"testing"

	"weir"
)

var jobTests = map[string]func(*testing.T, suite){
	"job keeps every field":            jobRoundTrip,
	"job names are unique":             jobNames,
	"idempotency key gives the job":    jobIdempotency,
	"jobs are listed newest first":     jobList,
	"a wish needs one of the statuses": jobWish,
	"a start clears end and failure":   jobStart,
	"a restore starts what it stopped": jobRestore,
	"only what has ended is deleted":   jobDelete,
}

func jobRoundTrip(t *testing.T, s suite) {
	three := 3
	j := newJob("a")
	j.Shard, j.Term, j.Attempt = 1, 4, weir.AttemptID{Number: 7, Tag: "00ff00ff"}
	j.StopSavepoint, j.LastCheckpoint, j.RestoredFrom = "sp", 12, weir.SnapshotRef{Job: j.ID, Checkpoint: 9}
	j.Failure = &weir.Failure{Reason: "worker_lost", Operator: "agg", Subtask: &three, Worker: "w1", Message: "worker w1 is gone"}
	j.Then = &weir.Start{Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: 3}, Parallelism: 6}
	j.StartedAt, j.EndedAt = day.Add(5), day.Add(9)
	j.SQL = "SELECT 'ä', \"q\" -- $1 ?\nFROM t"
	want := j
	want.StartedAt, want.EndedAt = day, day // microseconds are kept
	got, err := s.CreateJob(t.Context(), j, "")
	ok(t, err)
	equal(t, got, want)
	equal(t, s.job(t, string(j.ID)), want)
	equal(t, s.job(t, "a"), want)

	bare := weir.Job{ID: weir.NewJobID(), Name: "b", Desired: weir.DesiredRunning, Status: weir.StatusCreated, CreatedAt: day}
	got, err = s.CreateJob(t.Context(), bare, "")
	ok(t, err)
	equal(t, got, bare)
}

func jobNames(t *testing.T, s suite) {
	j := s.create(t, "a")
	_, err := s.CreateJob(t.Context(), newJob("a"), "")
	fails(t, err, weir.ErrConflict)
	_, err = s.Job(t.Context(), "nobody")
	fails(t, err, weir.ErrNotFound)

	f := s.begin(t, j, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	_, err = s.Job(t.Context(), string(j.ID))
	fails(t, err, weir.ErrNotFound)
	s.create(t, "a")
}

func jobIdempotency(t *testing.T, s suite) {
	j, err := s.CreateJob(t.Context(), newJob("a"), "key")
	ok(t, err)
	again, err := s.CreateJob(t.Context(), newJob("a"), "key")
	ok(t, err)
	equal(t, again, j)
	other, err := s.CreateJob(t.Context(), newJob("b"), "key")
	ok(t, err)
	equal(t, other, j)
	_, err = s.Job(t.Context(), "b")
	fails(t, err, weir.ErrNotFound)
	for _, f := range []weir.JobFilter{{}, {IdempotencyKey: "key"}} {
		all, err := s.Jobs(t.Context(), f)
		ok(t, err)
		equal(t, names(all), []string{"a"})
	}
}

func jobList(t *testing.T, s suite) {
	ids := map[string]weir.JobID{}
	for _, name := range []string{"a", "b_1", "c", "d1"} {
		ids[name] = s.create(t, name).ID
	}
	s.begin(t, s.job(t, "c"), 1)
	f := s.begin(t, s.job(t, "d1"), 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: "r", Message: "m"}))
	_, err := s.SetDesired(t.Context(), ids["a"], []weir.Status{weir.StatusCreated}, weir.Wish{Desired: weir.DesiredCanceled})
	ok(t, err)

	for name, c := range map[string]struct {
		filter weir.JobFilter
		want   []string
	}{
		"all":        {weir.JobFilter{}, []string{"d1", "c", "b_1", "a"}},
		"status":     {weir.JobFilter{Status: []weir.Status{weir.StatusScheduling, weir.StatusFailed}}, []string{"d1", "c"}},
		"name":       {weir.JobFilter{Name: "1"}, []string{"d1", "b_1"}},
		"wildcard":   {weir.JobFilter{Name: "_"}, []string{"b_1"}},
		"percent":    {weir.JobFilter{Name: "%"}, nil},
		"desired":    {weir.JobFilter{Desired: []weir.Desired{weir.DesiredCanceled}}, []string{"a"}},
		"unsettled":  {weir.JobFilter{Unsettled: true}, []string{"c", "b_1", "a"}},
		"first page": {weir.JobFilter{Limit: 2}, []string{"d1", "c"}},
		"next page":  {weir.JobFilter{Limit: 2, After: ids["c"]}, []string{"b_1", "a"}},
		"skipped":    {weir.JobFilter{Limit: 1, Skip: 2, Unsettled: true}, []string{"a"}},
		"none left":  {weir.JobFilter{Limit: 1, Skip: 3, Unsettled: true}, nil},
		"no key":     {weir.JobFilter{IdempotencyKey: "key"}, nil},
		"last page":  {weir.JobFilter{Limit: 2, After: ids["a"]}, nil},
	} {
		got, err := s.Jobs(t.Context(), c.filter)
		ok(t, err)
		t.Log(name)
		equal(t, names(got), c.want)
	}
	_, err = s.Jobs(t.Context(), weir.JobFilter{After: weir.NewJobID()})
	fails(t, err, weir.ErrInvalid)
}

func jobWish(t *testing.T, s suite) {
	j := s.create(t, "a")
	_, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusRunning}, weir.Wish{Desired: weir.DesiredStopped})
	fails(t, err, weir.ErrConflict)
	equal(t, s.job(t, "a"), j)
	got, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusRunning, weir.StatusCreated}, weir.Wish{Desired: weir.DesiredStopped, Savepoint: "sp"})
	ok(t, err)
	j.Desired, j.StopSavepoint = weir.DesiredStopped, "sp"
	equal(t, got, j)
	back := weir.Wish{Desired: weir.DesiredRunning, TakesBack: "older"}
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusCreated}, back)
	fails(t, err, weir.ErrConflict)
	back.TakesBack, back.Fence.Term = "sp", 1 // of an owner that is none any more, or not yet
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusCreated}, back)
	fails(t, err, weir.ErrStale)
	back.Fence.Term, back.Fence.Attempt.Number = 0, 1
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusCreated}, back)
	fails(t, err, weir.ErrStale)
	back.Fence = weir.Fence{}
	got, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusCreated}, back)
	if err != nil || got.Desired != weir.DesiredRunning || got.StopSavepoint != "" {
		t.Errorf("the stop is taken back: %+v, %v", got, err)
	}
	_, err = s.SetDesired(t.Context(), weir.NewJobID(), []weir.Status{weir.StatusRunning}, weir.Wish{Desired: weir.DesiredStopped})
	fails(t, err, weir.ErrNotFound)
}

func jobStart(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	first := s.checkpoint(t, f, true)
	second := s.checkpoint(t, f, true)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: "r", Message: "m"}))
	j := s.job(t, "a")
	if j.EndedAt.IsZero() || j.Failure == nil {
		t.Fatalf("a failed job without its end or failure: %+v", j)
	}

	start := weir.Wish{Desired: weir.DesiredRunning, Parallelism: 5, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: first}}
	got, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, start)
	ok(t, err)
	if !got.EndedAt.IsZero() || got.Failure != nil || got.Parallelism != 5 || got.Base.Checkpoint != first || got.LastCheckpoint != second {
		t.Fatalf("started: %+v", got)
	}
	waiting, err := s.Jobs(t.Context(), weir.JobFilter{Unsettled: true})
	ok(t, err)
	equal(t, names(waiting), []string{"a"})

	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredCanceled})
	ok(t, err)
	waiting, err = s.Jobs(t.Context(), weir.JobFilter{Unsettled: true})
	ok(t, err)
	equal(t, names(waiting), nil)

	missing := weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: 99}}
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, missing)
	fails(t, err, weir.ErrNotFound)
	nothing := weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{}}
	got, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, nothing)
	ok(t, err)
	equal(t, got.Base, weir.SnapshotRef{})
	equal(t, got.Parallelism, 5)
}

func jobRestore(t *testing.T, s suite) {
	restore := func(j weir.Job, then weir.Start) {
		t.Helper()
		got, err := s.SetDesired(t.Context(), j.ID, []weir.Status{j.Status}, weir.Wish{Desired: weir.DesiredStopped, Then: &then})
		ok(t, err)
		if j.Status.Terminal() {
			return
		}
		if got.Desired != weir.DesiredStopped || got.Base != j.Base || got.Parallelism != j.Parallelism {
			t.Fatalf("before its end: %+v", got)
		}
		equal(t, got.Then, &then)
	}
	stop := func(f weir.Fence, name string) weir.Job {
		t.Helper()
		ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
		ok(t, s.SetStatus(t.Context(), f, weir.StatusStopped, nil))
		return s.job(t, name)
	}
	j, f := s.running(t, "a")
	first, second := s.checkpoint(t, f, true), s.checkpoint(t, f, true)
	restore(s.job(t, "a"), weir.Start{Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: first}, Parallelism: 5})
	got := stop(f, "a")
	if got.Status != weir.StatusStopped || !got.EndedAt.IsZero() || got.Desired != weir.DesiredRunning || got.Then != nil ||
		got.Parallelism != 5 || got.Base.Checkpoint != first || got.LastCheckpoint != second {
		t.Fatalf("after its end: %+v", got)
	}
	waiting, err := s.Jobs(t.Context(), weir.JobFilter{Unsettled: true})
	ok(t, err)
	equal(t, names(waiting), []string{"a"})

	// Without a choice it starts from the base that it ends with.
	f = s.begin(t, got, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	restore(s.job(t, "a"), weir.Start{})
	third := s.checkpoint(t, f, true)
	got = stop(f, "a")
	equal(t, got.Base.Checkpoint, third)
	equal(t, got.Parallelism, 5)

	// A later wish counts; a snapshot that is gone starts nothing.
	f = s.begin(t, got, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	restore(s.job(t, "a"), weir.Start{})
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusRunning}, weir.Wish{Desired: weir.DesiredCanceled})
	ok(t, err)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	got = s.job(t, "a")
	if got.EndedAt.IsZero() || got.Desired != weir.DesiredCanceled {
		t.Fatalf("canceled: %+v", got)
	}
	restore(got, weir.Start{Base: &weir.SnapshotRef{}}) // of a job that has ended: a start
	f = s.begin(t, s.job(t, "a"), 1)
	equal(t, s.job(t, "a").RestoredFrom, weir.SnapshotRef{})
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	restore(s.job(t, "a"), weir.Start{Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: 99}})
	got = stop(f, "a")
	if got.EndedAt.IsZero() || got.Desired != weir.DesiredStopped || got.Then != nil {
		t.Fatalf("without its snapshot: %+v", got)
	}
}

func jobDelete(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	fails(t, s.DeleteJob(t.Context(), j.ID), weir.ErrConflict)
	id := s.openCommits(t, f)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	fails(t, s.DeleteJob(t.Context(), j.ID), weir.ErrConflict)
	ok(t, s.CloseCommits(t.Context(), f, id, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	fails(t, s.DeleteJob(t.Context(), j.ID), weir.ErrNotFound)
	_, err := s.BeginAttempt(t.Context(), j.ID, f.Attempt, 9)
	fails(t, err, weir.ErrStale)
}

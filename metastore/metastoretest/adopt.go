package metastoretest

import (
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
)

var adoptTests = map[string]func(*testing.T, suite){
	"a job that is behind adopts what storage holds":    adoptBehind,
	"what is known is not adopted":                      adoptRefused,
	"an adopted savepoint has its name back if it can":  adoptNames,
	"forgotten savepoints are known again":              adoptForgotten,
	"an adopted row stands for the one of its number":   adoptReplaces,
	"an inventory is all that is known of objects":      inventory,
	"jobs that are deleted are listed until forgotten":  inventoryJobs,
	"an end that is repeated ends no job started anew":  endRepeated,
	"a restore that follows an end is not ended either": endRepeatedThen,
}

var forgotten = weir.AttemptID{Number: 4, Tag: "0badcafe"}

// adoption is that of a checkpoint which an attempt of a forgotten history took.
func adoption(j weir.Job, id weir.CheckpointID) checkpoint.Adoption {
	return checkpoint.Adoption{LastCheckpoint: id + 2, Attempt: forgotten.Number, Record: checkpoint.Record{
		Job: j.ID, ID: id, Attempt: forgotten, Type: checkpoint.TypeCheckpoint, Status: checkpoint.StatusCompleted,
		StateBytes: 77, Manifest: "adopted", CommitsOpen: true, Final: true,
	}}
}

// behind is a job whose metastore has gone back: it knows one checkpoint.
func (s suite) behind(t testing.TB, name string) (weir.Job, weir.Fence) {
	t.Helper()
	_, f := s.running(t, name)
	s.checkpoint(t, f, true)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: checkpoint.ReasonMetastoreBack, Message: "storage knows more"}))
	return s.job(t, name), f
}

func adoptBehind(t *testing.T, s suite) {
	j, f := s.behind(t, "a")
	equal(t, subject(t, s, j.ID).Behind, true)
	got, err := s.Adopt(t.Context(), j.ID, adoption(j, 7))
	ok(t, err)
	want := j
	want.Base, want.LastCheckpoint, want.Failure = weir.SnapshotRef{Job: j.ID, Checkpoint: 7}, 9, nil
	want.Attempt = weir.AttemptID{Number: forgotten.Number + 1, Tag: got.Attempt.Tag}
	equal(t, got, want)
	equal(t, s.job(t, "a"), want)
	equal(t, subject(t, s, j.ID).Behind, false)

	r, err := s.CheckpointByID(t.Context(), j.ID, 7)
	ok(t, err)
	if r.TriggeredAt.IsZero() || r.CompletedAt.IsZero() {
		t.Errorf("an adopted row without times: %+v", r)
	}
	row := adoption(j, 7).Record
	row.TriggeredAt, row.CompletedAt = r.TriggeredAt, r.CompletedAt
	equal(t, r, row)
	kept, err := s.Retained(t.Context(), j.ID)
	ok(t, err)
	equal(t, kept, []checkpoint.Retained{
		{ID: 7, Type: checkpoint.TypeCheckpoint, Manifest: "adopted", Base: true, CommitsOpen: true},
		{ID: 1, Type: checkpoint.TypeCheckpoint, Manifest: "m"},
	})
	attempts, err := s.Attempts(t.Context(), j.ID)
	ok(t, err)
	if len(attempts) != 2 || attempts[0].ID != got.Attempt || attempts[0].EndedBy != "adopted" || attempts[0].EndedAt.IsZero() {
		t.Errorf("attempts %+v", attempts)
	}

	// The owner of before is stale; the job goes on above all that was found.
	fails(t, s.SetStatus(t.Context(), f, weir.StatusFailed, nil), weir.ErrStale)
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredRunning})
	ok(t, err)
	f = s.begin(t, s.job(t, "a"), 1)
	equal(t, f.Attempt.Number, forgotten.Number+2)
	equal(t, s.job(t, "a").RestoredFrom, weir.SnapshotRef{Job: j.ID, Checkpoint: 7})
	ok(t, s.CloseCommits(t.Context(), f, 7, nil))
	equal(t, s.checkpoint(t, f, true), 10)
}

func subject(t *testing.T, s suite, id weir.JobID) checkpoint.Subject {
	t.Helper()
	sub, err := s.Subject(t.Context(), id)
	ok(t, err)
	return sub
}

func adoptRefused(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.checkpoint(t, f, true)
	refused := func() {
		t.Helper()
		before := s.job(t, "a")
		for _, id := range []weir.CheckpointID{1, 7} {
			if id == 7 && before.Status.Terminal() && !before.EndedAt.IsZero() {
				continue // storage knows more
			}
			_, err := s.Adopt(t.Context(), j.ID, adoption(j, id))
			fails(t, err, weir.ErrConflict)
		}
		equal(t, s.job(t, "a"), before)
	}
	refused() // it runs
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: "r", Message: "m"}))
	refused() // it knows the checkpoint
	_, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredRunning})
	ok(t, err)
	refused() // it is being started
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredStopped})
	ok(t, err)
	got, err := s.Adopt(t.Context(), j.ID, adoption(j, 7))
	ok(t, err)
	equal(t, got.Base.Checkpoint, 7)
	_, err = s.Adopt(t.Context(), weir.NewJobID(), adoption(j, 7))
	fails(t, err, weir.ErrNotFound)
	ok(t, s.CloseCommits(t.Context(), fenceOf(got), 7, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	_, err = s.Adopt(t.Context(), j.ID, adoption(j, 11))
	fails(t, err, weir.ErrNotFound)
}

func adoptNames(t *testing.T, s suite) {
	_, other := s.running(t, "z")
	s.savepoint(t, other, "taken")
	failed, err := s.BeginCheckpoint(t.Context(), other, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "free"})
	ok(t, err)
	_, err = s.AbortCheckpoint(t.Context(), other, checkpoint.Record{ID: failed, Status: checkpoint.StatusFailed})
	ok(t, err)
	for name, want := range map[string]checkpoint.Type{"taken": checkpoint.TypeCheckpoint, "free": checkpoint.TypeSavepoint, "new": checkpoint.TypeSavepoint} {
		j, _ := s.behind(t, name)
		a := adoption(j, 7)
		a.Record.Type, a.Record.Savepoint = checkpoint.TypeSavepoint, name
		for range 2 { // the second time it is in place already
			_, err := s.Adopt(t.Context(), j.ID, a)
			ok(t, err)
			r, err := s.CheckpointByID(t.Context(), j.ID, 7)
			ok(t, err)
			equal(t, r.Type, want)
			sp, err := s.Savepoint(t.Context(), name)
			ok(t, err)
			equal(t, sp.Job == j.ID, want == checkpoint.TypeSavepoint)
			equal(t, sp.Status, checkpoint.StatusCompleted)
			if want == checkpoint.TypeSavepoint && (sp.Checkpoint != 7 || sp.Manifest != "adopted" || sp.JobName != name) {
				t.Errorf("%+v", sp)
			}
			if s.job(t, name).Failure == nil {
				j := s.job(t, name)
				_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredRunning})
				ok(t, err)
				f := s.begin(t, s.job(t, name), 1)
				ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: checkpoint.ReasonMetastoreBack, Message: "again"}))
			}
		}
	}
}

// Savepoints between the backup and what is adopted are their user's, not orphans.
func adoptForgotten(t *testing.T, s suite) {
	_, other := s.running(t, "z")
	s.savepoint(t, other, "taken")
	j, f := s.behind(t, "a")
	a := adoption(j, 7)
	for id, name := range []string{1: "known", 5: "taken", 6: "five", 8: "eight"} {
		if name != "" {
			a.Savepoints = append(a.Savepoints, checkpoint.Record{
				Job: j.ID, ID: weir.CheckpointID(id), Attempt: forgotten,
				Type: checkpoint.TypeSavepoint, Status: checkpoint.StatusCompleted, Savepoint: name, Manifest: name,
			})
		}
	}
	_, err := s.Adopt(t.Context(), j.ID, a)
	ok(t, err)
	kept, err := s.Retained(t.Context(), j.ID)
	ok(t, err)
	equal(t, kept, []checkpoint.Retained{
		{ID: 8, Type: checkpoint.TypeSavepoint, Manifest: "eight"},
		{ID: 7, Type: checkpoint.TypeCheckpoint, Manifest: "adopted", Base: true, CommitsOpen: true},
		{ID: 6, Type: checkpoint.TypeSavepoint, Manifest: "five"},
		{ID: 1, Type: checkpoint.TypeCheckpoint, Manifest: "m"},
	})
	sp, err := s.Savepoint(t.Context(), "five")
	ok(t, err)
	equal(t, []any{sp.Job, sp.Checkpoint, sp.Status}, []any{j.ID, weir.CheckpointID(6), checkpoint.StatusCompleted})
	sp, err = s.Savepoint(t.Context(), "taken")
	ok(t, err)
	equal(t, sp.Job, other.Job)
	_, err = s.Savepoint(t.Context(), "known")
	fails(t, err, weir.ErrNotFound)
	events, err := s.Events(t.Context(), f.Job, 0, 0)
	ok(t, err)
	if !strings.HasSuffix(events[len(events)-1].Message, "; savepoint taken of checkpoint 5 is not kept: another one has its name") {
		t.Errorf("%q", events[len(events)-1].Message)
	}
}

// The metastore has given the number out again, to a checkpoint that came to nothing.
func adoptReplaces(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.checkpoint(t, f, true)
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sp"})
	ok(t, err)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: checkpoint.ReasonMetastoreBack, Message: "storage knows more"}))
	_, err = s.Adopt(t.Context(), j.ID, adoption(j, id))
	ok(t, err)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	if r.Status != checkpoint.StatusCompleted || r.Attempt != forgotten || r.Type != checkpoint.TypeCheckpoint || r.Failure != nil {
		t.Errorf("%+v", r)
	}
	events, err := s.Events(t.Context(), j.ID, 0, 0)
	ok(t, err)
	equal(t, events[len(events)-1].Message, "checkpoint 2 of attempt 4-0badcafe was adopted from storage: the job starts from it; its numbers go on from checkpoint 5 and attempt 6"+
		"; whether its output is visible is not known: the sinks commit it again, which changes nothing where it is")
}

func inventory(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.running(t, "b")
	first := s.checkpoint(t, f, true)
	saved := s.savepoint(t, f, "sp")
	base := s.checkpoint(t, f, true)
	failed, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: failed, Status: checkpoint.StatusFailed})
	ok(t, err)
	_, err = s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{first})
	ok(t, err)

	inv, err := s.Inventory(t.Context(), j.ID)
	ok(t, err)
	equal(t, inv.Subject.Fence, f)
	equal(t, inv.Subject.LastCheckpoint, failed)
	equal(t, inv.Running, true)
	equal(t, inv.Names, map[weir.CheckpointID]string{saved: "sp"})
	equal(t, inv.Retained, []checkpoint.Retained{
		{ID: base, Type: checkpoint.TypeCheckpoint, Manifest: "m", Base: true}, {ID: saved, Type: checkpoint.TypeSavepoint, Manifest: "m"},
	})
	equal(t, idsOf(inv.GivenUp.Checkpoints), []weir.CheckpointID{first, failed})
	equal(t, len(inv.GivenUp.Attempts), 0)

	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	inv, err = s.Inventory(t.Context(), j.ID)
	ok(t, err)
	equal(t, inv.Running, false)
	equal(t, inv.GivenUp.Attempts, []weir.AttemptID{f.Attempt})
	equal(t, inv.GivenUp.Job, false)
	ok(t, s.Collected(t.Context(), j.ID, inv.GivenUp))
	inv, err = s.Inventory(t.Context(), j.ID)
	ok(t, err)
	equal(t, inv.GivenUp.Empty(), true)

	ok(t, s.DeleteJob(t.Context(), j.ID))
	inv, err = s.Inventory(t.Context(), j.ID) // the savepoint stays
	ok(t, err)
	equal(t, inv.Names, map[weir.CheckpointID]string{saved: "sp"})
	equal(t, inv.GivenUp.Job, true)
	_, err = s.Inventory(t.Context(), weir.NewJobID())
	fails(t, err, weir.ErrNotFound)
}

func inventoryJobs(t *testing.T, s suite) {
	ids, err := s.JobIDs(t.Context())
	ok(t, err)
	equal(t, len(ids), 0)
	a, f := s.running(t, "a")
	b := s.create(t, "b")
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	ok(t, s.DeleteJob(t.Context(), a.ID))
	want := []weir.JobID{a.ID, b.ID}
	slices.Sort(want)
	ids, err = s.JobIDs(t.Context())
	ok(t, err)
	equal(t, ids, want)
}

// The answer to an end was lost, and the job's user has started it again before its owner
// says the end once more, under the same attempt.
func endRepeated(t *testing.T, s suite) {
	for name, end := range map[string]weir.Status{"a": weir.StatusStopped, "b": weir.StatusCanceled, "c": weir.StatusFinished, "d": weir.StatusFailed} {
		j, f := s.running(t, name)
		s.checkpoint(t, f, true)
		ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
		ok(t, s.SetStatus(t.Context(), f, end, nil))
		start := weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: 1}}
		started, err := s.SetDesired(t.Context(), j.ID, []weir.Status{end}, start)
		ok(t, err)
		s.endsNothing(t, started, f)
	}
	j := s.create(t, "e") // before its first attempt
	created := weir.Fence{Job: j.ID}
	ok(t, s.SetStatus(t.Context(), created, weir.StatusStopped, nil))
	started, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusStopped}, weir.Wish{Desired: weir.DesiredRunning})
	ok(t, err)
	s.endsNothing(t, started, created)
}

// endsNothing repeats every end of a job that was started again.
func (s suite) endsNothing(t testing.TB, started weir.Job, f weir.Fence) {
	t.Helper()
	before, err := s.Events(t.Context(), started.ID, 0, 0)
	ok(t, err)
	for _, end := range []weir.Status{weir.StatusStopped, weir.StatusCanceled, weir.StatusFinished, weir.StatusFailed} {
		fails(t, s.SetStatus(t.Context(), f, end, &weir.Failure{Reason: "r", Message: "m"}), weir.ErrConflict)
	}
	equal(t, s.job(t, started.Name), started)
	equal(t, started.EndedAt.IsZero() && started.Desired == weir.DesiredRunning, true)
	after, err := s.Events(t.Context(), started.ID, 0, 0)
	ok(t, err)
	equal(t, len(after), len(before))
	waiting, err := s.Jobs(t.Context(), weir.JobFilter{Unsettled: true})
	ok(t, err)
	equal(t, slices.Contains(names(waiting), started.Name), true)
	s.begin(t, started, max(started.Term, 1))
	fails(t, s.SetStatus(t.Context(), f, started.Status, nil), weir.ErrStale)
}

func endRepeatedThen(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.checkpoint(t, f, true)
	wish := weir.Wish{Desired: weir.DesiredStopped, Then: &weir.Start{Parallelism: 3}}
	_, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusRunning}, wish)
	ok(t, err)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopped, nil))
	s.endsNothing(t, s.job(t, "a"), f)
}

package metastore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/metastore"
)

// A model is one job as the metastore s must keep it, in the plainest form.
type model struct {
	s      *metastore.Store
	job    weir.Job
	status map[weir.CheckpointID]checkpoint.Status
	gone   map[weir.CheckpointID]bool
	reuses map[weir.CheckpointID]weir.CheckpointID // the base when it began
	ended  bool                                    // the current attempt
}

// fence draws the model's fence, or one that is stale in some way.
func (m *model) fence(t *rapid.T) (f weir.Fence, stale bool) {
	f = weir.Fence{Job: m.job.ID, Attempt: m.job.Attempt, Term: m.job.Term}
	switch rapid.SampledFrom([]string{"current", "current", "current", "current", "attempt", "term"}).Draw(t, "fence") {
	case "attempt":
		f.Attempt = weir.AttemptID{Number: f.Attempt.Number, Tag: f.Attempt.Tag + "x"}
		return f, true
	case "term":
		f.Term--
		return f, true
	}
	return f, false
}

func (m *model) abortPending() {
	for id, s := range m.status {
		if s == checkpoint.StatusPending {
			m.status[id] = checkpoint.StatusAborted
		}
	}
}

// TestModel compares random operations on SQLite with the model.
func TestModel(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteURL(t))
	rapid.Check(t, func(t *rapid.T) { checkModel(t, s) })
}

func checkModel(t *rapid.T, s *metastore.Store) {
	id := weir.NewJobID()
	job, err := s.CreateJob(t.Context(), weir.Job{ID: id, Name: "j" + string(id[4:]), Parallelism: 1, Desired: weir.DesiredRunning, Status: weir.StatusCreated}, "")
	if err != nil {
		t.Fatal(err)
	}
	m := &model{s: s, job: job, status: map[weir.CheckpointID]checkpoint.Status{}, gone: map[weir.CheckpointID]bool{}, reuses: map[weir.CheckpointID]weir.CheckpointID{}}
	t.Repeat(map[string]func(*rapid.T){
		"begin attempt":    m.beginAttempt,
		"set status":       m.setStatus,
		"begin checkpoint": m.beginCheckpoint,
		"complete":         m.complete,
		"abort":            m.abort,
		"discard":          m.discard,
		"":                 m.check,
	})
}

func expect(t *rapid.T, err, want error) {
	if !errors.Is(err, want) || err != nil && want == nil {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// anyID draws a checkpoint, or one that is not there.
func (m *model) anyID(t *rapid.T) weir.CheckpointID {
	return weir.CheckpointID(rapid.Int64Range(1, int64(m.job.LastCheckpoint)+1).Draw(t, "id"))
}

func (m *model) beginAttempt(t *rapid.T) {
	term := m.job.Term + rapid.Int64Range(-1, 1).Draw(t, "term")
	got, err := m.s.BeginAttempt(t.Context(), m.job.ID, m.job.Attempt, term)
	switch {
	case term < m.job.Term:
		expect(t, err, weir.ErrStale)
	case !m.job.Status.CanBecome(weir.StatusScheduling):
		expect(t, err, weir.ErrConflict)
	default:
		expect(t, err, nil)
		m.abortPending()
		m.ended = false
		m.job.Attempt.Number++
		m.job.Attempt.Tag, m.job.StartedAt, m.job.EndedAt = got.Attempt.Tag, got.StartedAt, got.EndedAt
		m.job.Term, m.job.Status, m.job.RestoredFrom = term, weir.StatusScheduling, m.job.Base
	}
}

func (m *model) setStatus(t *rapid.T) {
	f, stale := m.fence(t)
	to := rapid.SampledFrom(weir.Statuses()).Draw(t, "to")
	err := m.s.SetStatus(t.Context(), f, to, nil)
	switch {
	case stale:
		expect(t, err, weir.ErrStale)
	case !m.job.Status.CanBecome(to), to == weir.StatusScheduling:
		expect(t, err, weir.ErrConflict)
	default:
		expect(t, err, nil)
		if m.job.Status = to; to.Terminal() || to == weir.StatusRestarting {
			m.ended = true
			m.abortPending()
		}
	}
}

func (m *model) beginCheckpoint(t *rapid.T) {
	f, stale := m.fence(t)
	got, err := m.s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	if stale {
		expect(t, err, weir.ErrStale)
		return
	}
	expect(t, err, nil)
	m.job.LastCheckpoint++
	m.status[m.job.LastCheckpoint] = checkpoint.StatusPending
	m.reuses[m.job.LastCheckpoint] = m.job.Base.Checkpoint
	if got != m.job.LastCheckpoint {
		t.Fatalf("id %d, want %d", got, m.job.LastCheckpoint)
	}
}

func (m *model) complete(t *rapid.T) {
	f, stale := m.fence(t)
	cp := m.anyID(t)
	err := m.s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: cp}, true)
	status, known := m.status[cp]
	switch {
	case stale:
		expect(t, err, weir.ErrStale)
	case !known:
		expect(t, err, weir.ErrNotFound)
	case status == checkpoint.StatusPending && cp <= m.job.Base.Checkpoint: // a base never moves back
		expect(t, err, weir.ErrConflict)
	case status == checkpoint.StatusPending:
		expect(t, err, nil)
		m.status[cp], m.job.Base = checkpoint.StatusCompleted, weir.SnapshotRef{Job: m.job.ID, Checkpoint: cp}
	case status == checkpoint.StatusCompleted && err == nil: // a repeat within its attempt
	default:
		expect(t, err, weir.ErrConflict)
	}
}

func (m *model) abort(t *rapid.T) {
	f, stale := m.fence(t)
	cp := m.anyID(t)
	got, err := m.s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: cp, Status: checkpoint.StatusFailed})
	status, known := m.status[cp]
	switch {
	case stale:
		expect(t, err, weir.ErrStale)
	case !known:
		expect(t, err, weir.ErrNotFound)
	default:
		expect(t, err, nil)
		if status == checkpoint.StatusPending {
			m.status[cp] = checkpoint.StatusFailed
		}
		if got != m.status[cp] {
			t.Fatalf("abort says %s, want %s", got, m.status[cp])
		}
	}
}

func (m *model) discard(t *rapid.T) {
	f, stale := m.fence(t)
	cp := m.anyID(t)
	got, err := m.s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{cp})
	if stale {
		expect(t, err, weir.ErrStale)
		return
	}
	expect(t, err, nil)
	may := m.status[cp] == checkpoint.StatusCompleted && m.job.Base.Checkpoint != cp && (m.gone[cp] || !m.reused(cp))
	if may {
		m.gone[cp] = true
	}
	if slices.Contains(got, cp) != may {
		t.Fatalf("discarded %v, want %v", got, may)
	}
}

// reused reports whether a pending checkpoint may name objects of another.
func (m *model) reused(cp weir.CheckpointID) bool {
	for id, status := range m.status {
		if base := m.reuses[id]; status == checkpoint.StatusPending && base > 0 && base <= cp {
			return true
		}
	}
	return false
}

// check compares everything that the metastore shows with the model.
func (m *model) check(t *rapid.T) {
	job, err := m.s.Job(t.Context(), string(m.job.ID))
	if err != nil {
		t.Fatal(err)
	}
	m.job.EndedAt = job.EndedAt // the database's time
	if job.EndedAt.IsZero() == job.Status.Terminal() {
		t.Fatalf("%s and ended at %v", job.Status, job.EndedAt)
	}
	if diff := cmp.Diff(m.job, job); diff != "" {
		t.Fatalf("job: -want +got:\n%s", diff)
	}
	records, err := m.s.Checkpoints(t.Context(), m.job.ID, checkpoint.Filter{})
	if err != nil || len(records) != len(m.status) {
		t.Fatalf("%d checkpoints, want %d: %v", len(records), len(m.status), err)
	}
	for _, r := range records {
		if r.Status != m.status[r.ID] || r.Discarded != m.gone[r.ID] || r.CompletedAt.IsZero() != (r.Status == checkpoint.StatusPending) {
			t.Fatalf("checkpoint %+v, want %s, discarded %v", r, m.status[r.ID], m.gone[r.ID])
		}
	}
	attempts, err := m.s.Attempts(t.Context(), m.job.ID)
	if err != nil || int64(len(attempts)) != m.job.Attempt.Number {
		t.Fatalf("%d attempts, want %d: %v", len(attempts), m.job.Attempt.Number, err)
	}
	for i, a := range attempts {
		if current := i == 0 && !m.ended; a.EndedAt.IsZero() != current {
			t.Fatalf("attempt %+v of a job that is %s", a, job.Status)
		}
	}
}

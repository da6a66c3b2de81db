// Package checkpointtest has what tests around checkpoints need: a metastore in
// memory, and tasks that acknowledge.
package checkpointtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"weir"
	"weir/checkpoint"
)

// A Fault fails a call of a Store. The zero value lets it pass.
type Fault struct {
	Before error // returned instead of doing the work
	After  error // returned after the work was done: the caller cannot know
}

// A Store is the checkpoint.Store and the checkpoint.Rows of one job in memory.
type Store struct {
	mu struct {
		sync.Mutex
		fence   weir.Fence
		last    weir.CheckpointID
		base    weir.CheckpointID
		rows    map[weir.CheckpointID]checkpoint.Record
		pinned  map[weir.CheckpointID]bool
		reuses  map[weir.CheckpointID]weir.CheckpointID // the base when a row began
		keep    int
		over    []weir.AttemptID // that were not looked through
		deleted bool
		gone    map[weir.CheckpointID]bool // collected
		choose  func(method string) Fault
		methods []string
	}
}

// NewStore returns the store of the job whose owner has fence.
func NewStore(fence weir.Fence) *Store {
	s := &Store{}
	s.mu.fence = fence
	s.mu.rows = map[weir.CheckpointID]checkpoint.Record{}
	s.mu.pinned, s.mu.reuses, s.mu.keep = map[weir.CheckpointID]bool{}, map[weir.CheckpointID]weir.CheckpointID{}, 3
	s.mu.gone = map[weir.CheckpointID]bool{}
	s.mu.choose = func(string) Fault { return Fault{} }
	return s
}

// Own gives the job a new owner: everyone else's writes are stale. Rows still pending
// end with the attempt they belong to.
func (s *Store) Own(fence weir.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.mu.rows {
		if r.Status == checkpoint.StatusPending && r.Attempt != fence.Attempt {
			r.Status = checkpoint.StatusAborted
			r.Failure = &weir.Failure{Reason: checkpoint.ReasonAttemptEnded, Message: "the attempt ended"}
			s.mu.rows[id] = r
		}
	}
	if s.mu.fence.Attempt != fence.Attempt && s.mu.fence.Attempt != (weir.AttemptID{}) {
		s.mu.over = append(s.mu.over, s.mu.fence.Attempt)
	}
	s.mu.fence = fence
}

// Keep sets how many checkpoints the job's retention keeps; deleted: the job was.
func (s *Store) Keep(n int, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.keep, s.mu.deleted = n, deleted
	if deleted {
		s.mu.base = 0
	}
}

// Discard gives a checkpoint or savepoint up, as its user does.
func (s *Store) Discard(id weir.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.mu.rows[id]
	r.Discarded = true
	s.mu.rows[id] = r
}

// Fail lets choose decide the fate of every call from now on; method is its name.
func (s *Store) Fail(choose func(method string) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.choose = choose
}

// Pin pins a checkpoint, or lets it go.
func (s *Store) Pin(id weir.CheckpointID, pinned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pinned[id] = pinned
}

// Base is the job's base and Last the newest id given out.
func (s *Store) Base() (base, last weir.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.base, s.mu.last
}

// GoBack forgets every row above id, as a metastore restored from a backup does.
func (s *Store) GoBack(id weir.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for row := range s.mu.rows {
		if row > id {
			delete(s.mu.rows, row)
		}
	}
	s.mu.last, s.mu.base = id, min(s.mu.base, id)
}

// Rows lists all rows by id.
func (s *Store) Rows() []checkpoint.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []checkpoint.Record
	for _, r := range s.mu.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b checkpoint.Record) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// do runs one call under the job's lock, as its owner.
func (s *Store) do(ctx context.Context, method string, fence *weir.Fence, work func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	fault := s.mu.choose(method)
	if fault.Before != nil {
		return fault.Before
	}
	if fence != nil && *fence != s.mu.fence {
		return fmt.Errorf("%s: %w", method, weir.ErrStale)
	}
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return fault.After
}

func (s *Store) row(id weir.CheckpointID) (checkpoint.Record, error) {
	r, ok := s.mu.rows[id]
	if !ok {
		return r, fmt.Errorf("checkpoint %d: %w", id, weir.ErrNotFound)
	}
	return r, nil
}

// BeginCheckpoint implements checkpoint.Store.
func (s *Store) BeginCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record) (id weir.CheckpointID, err error) {
	err = s.do(ctx, "BeginCheckpoint", &fence, func() error {
		for _, old := range s.mu.rows {
			if r.Savepoint != "" && old.Savepoint == r.Savepoint && old.Status != checkpoint.StatusFailed && old.Status != checkpoint.StatusAborted {
				return fmt.Errorf("savepoint %s exists: %w", r.Savepoint, weir.ErrConflict)
			}
		}
		if s.mu.last < r.ID {
			return fmt.Errorf("checkpoint %d: %w", r.ID, weir.ErrNotFound)
		}
		s.mu.last++
		r.ID, r.Status = s.mu.last, checkpoint.StatusPending
		s.mu.rows[r.ID], s.mu.reuses[r.ID] = r, s.mu.base
		id = r.ID
		return nil
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

// CompleteCheckpoint implements checkpoint.Store.
func (s *Store) CompleteCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record, base bool) error {
	return s.do(ctx, "CompleteCheckpoint", &fence, func() error {
		old, err := s.row(r.ID)
		switch {
		case err != nil:
			return err
		case old.Status == checkpoint.StatusCompleted:
			return nil
		case old.Status != checkpoint.StatusPending:
			return fmt.Errorf("checkpoint %d is %s: %w", r.ID, old.Status, weir.ErrConflict)
		case base && r.ID <= s.mu.base:
			return fmt.Errorf("checkpoint %d is older than the base, %d: %w", r.ID, s.mu.base, weir.ErrConflict)
		}
		r.Status = checkpoint.StatusCompleted
		s.mu.rows[r.ID] = r
		if base {
			s.mu.base = r.ID
		}
		return nil
	})
}

// AbortCheckpoint implements checkpoint.Store.
func (s *Store) AbortCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record) (status checkpoint.Status, err error) {
	err = s.do(ctx, "AbortCheckpoint", &fence, func() error {
		old, err := s.row(r.ID)
		if err != nil {
			return err
		}
		if old.Status == checkpoint.StatusPending {
			old.Status, old.Failure, old.Acks, old.CompletedAt = r.Status, r.Failure, r.Acks, r.CompletedAt
			s.mu.rows[r.ID] = old
		}
		status = old.Status
		return nil
	})
	return status, err
}

// CloseCommits implements checkpoint.Store.
func (s *Store) CloseCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID, _ []checkpoint.CommitTime) error {
	return s.do(ctx, "CloseCommits", &fence, func() error {
		r, err := s.row(id)
		if err == nil {
			r.CommitsOpen = false
			s.mu.rows[id] = r
		}
		return err
	})
}

// Checkpoint implements checkpoint.Store.
func (s *Store) Checkpoint(ctx context.Context, fence weir.Fence, id weir.CheckpointID) (r checkpoint.Record, err error) {
	err = s.do(ctx, "Checkpoint", &fence, func() error {
		r, err = s.row(id)
		return err
	})
	return r, err
}

// Retained implements checkpoint.Rows.
func (s *Store) Retained(ctx context.Context, _ weir.JobID) (list []checkpoint.Retained, err error) {
	err = s.do(ctx, "Retained", nil, func() error {
		list = s.retained()
		return nil
	})
	return list, err
}

func (s *Store) retained() (list []checkpoint.Retained) {
	for id, r := range s.mu.rows {
		if r.Status == checkpoint.StatusCompleted && !r.Discarded {
			list = append(list, checkpoint.Retained{
				ID: id, Type: r.Type, Manifest: r.Manifest, Base: id == s.mu.base,
				Pinned: s.mu.pinned[id], Reused: s.reused(id), CommitsOpen: r.CommitsOpen,
			})
		}
	}
	slices.SortFunc(list, func(a, b checkpoint.Retained) int { return cmp.Compare(b.ID, a.ID) })
	return list
}

func (s *Store) reused(id weir.CheckpointID) bool {
	for _, r := range s.mu.rows {
		if base := s.mu.reuses[r.ID]; r.Status == checkpoint.StatusPending && base > 0 && base <= id {
			return true
		}
	}
	return false
}

// DiscardCheckpoints implements checkpoint.Rows.
func (s *Store) DiscardCheckpoints(ctx context.Context, fence weir.Fence, ids []weir.CheckpointID) (marked []weir.CheckpointID, err error) {
	err = s.do(ctx, "DiscardCheckpoints", &fence, func() error {
		for _, r := range s.retained() {
			if r.Free() && slices.Contains(ids, r.ID) {
				row := s.mu.rows[r.ID]
				row.Discarded = true
				s.mu.rows[r.ID] = row
			}
		}
		for _, id := range ids {
			if s.mu.rows[id].Discarded {
				marked = append(marked, id)
			}
		}
		return nil
	})
	return marked, err
}

// Subject implements checkpoint.Rows.
func (s *Store) Subject(ctx context.Context, _ weir.JobID) (out checkpoint.Subject, err error) {
	err = s.do(ctx, "Subject", nil, func() error {
		out = checkpoint.Subject{Fence: s.mu.fence, LastCheckpoint: s.mu.last, Keep: s.mu.keep, Deleted: s.mu.deleted}
		return nil
	})
	return out, err
}

// GivenUp implements checkpoint.Rows.
func (s *Store) GivenUp(ctx context.Context, _ weir.JobID, limit int, _ time.Duration) (out checkpoint.GivenUp, err error) {
	err = s.do(ctx, "GivenUp", nil, func() error {
		out.Attempts, out.Job = slices.Clone(s.mu.over), s.mu.deleted
		for _, r := range s.mu.rows {
			if !s.mu.gone[r.ID] && (r.Discarded || r.Status == checkpoint.StatusFailed || r.Status == checkpoint.StatusAborted) {
				out.Checkpoints = append(out.Checkpoints, r)
			}
		}
		slices.SortFunc(out.Checkpoints, func(a, b checkpoint.Record) int { return cmp.Compare(a.ID, b.ID) })
		out.Checkpoints = out.Checkpoints[:min(limit, len(out.Checkpoints))]
		return nil
	})
	return out, err
}

// Gone lists the checkpoints that were collected.
func (s *Store) Gone() []weir.CheckpointID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.mu.gone))
}

// Collected implements checkpoint.Rows.
func (s *Store) Collected(ctx context.Context, _ weir.JobID, done checkpoint.GivenUp) error {
	return s.do(ctx, "Collected", nil, func() error {
		for _, r := range done.Checkpoints {
			s.mu.gone[r.ID] = true
		}
		s.mu.over = slices.DeleteFunc(s.mu.over, func(a weir.AttemptID) bool { return slices.Contains(done.Attempts, a) })
		return nil
	})
}

package job

import (
	"context"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
)

// Adoptable lists the checkpoints and savepoints of a job whose manifests lie in storage,
// newest first, whatever the metastore knows of them.
func (s *Service) Adoptable(ctx context.Context, idOrName string) (weir.Job, []checkpoint.Candidate, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return j, nil, err
	}
	found, err := checkpoint.Find(ctx, s.deps.Blobs, j.ID)
	if err != nil {
		return j, nil, storageAway(err)
	}
	list, err := s.candidates(ctx, j, found)
	return j, list, err
}

// behind says what storage holds of a job that the metastore cannot know; empty: nothing,
// or storage does not answer.
func (s *Service) behind(ctx context.Context, id weir.JobID) string {
	found, err := checkpoint.Find(ctx, s.deps.Blobs, id)
	if err != nil {
		return ""
	}
	j, err := s.Get(ctx, string(id)) // after the search: ids are given out before objects are written
	if err != nil {
		return ""
	}
	return found.Behind(j.LastCheckpoint, j.Attempt)
}

// gone: a snapshot's bytes are not there any more, or damaged; asking again does not help.
func gone(err error) bool {
	return errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrInvalid)
}

// candidates adds to what storage holds whether it fits the job's query.
func (s *Service) candidates(ctx context.Context, j weir.Job, found *checkpoint.Found) ([]checkpoint.Candidate, error) {
	list, err := checkpoint.Candidates(ctx, s.deps.Blobs, found, j.LastCheckpoint)
	if err != nil {
		return nil, storageAway(err)
	}
	g, err := decodeGraph(j)
	if err != nil {
		return nil, err
	}
	for i, c := range list {
		if c.Problem == "" {
			if _, err := checkpoint.Restore(c.Manifest, g, j.Parallelism); err != nil {
				list[i].Problem = err.Error()
			}
		}
	}
	return list, nil
}

// Adopt lets a job go on after the metastore has gone back in time: a checkpoint that lies
// in storage becomes its base, id 0 meaning the newest whole one, and its numbers go on
// above all that storage holds. The job can then be started. weir.ErrConflict where the
// job has not ended, where there is nothing to adopt, or where the checkpoint is not whole.
func (s *Service) Adopt(ctx context.Context, idOrName string, id weir.CheckpointID) (weir.Job, checkpoint.Candidate, error) {
	none := checkpoint.Candidate{}
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return j, none, err
	}
	if !settled(j) {
		return j, none, refuse(j, "given a checkpoint to adopt", "only a job that has ended can adopt one; stop or cancel it first")
	}
	found, err := checkpoint.Find(ctx, s.deps.Blobs, j.ID)
	if err != nil {
		return j, none, storageAway(err)
	}
	list, err := s.candidates(ctx, j, found)
	if err != nil {
		return j, none, err
	}
	chosen, err := pick(j, list, id)
	if err != nil {
		return j, none, err
	}
	j, err = s.deps.Store.Adopt(ctx, j.ID, found.Adopt(chosen.Manifest, list))
	if err == nil {
		s.clean.wake(j.ID)
	}
	return j, chosen, err
}

// pick chooses the candidate that a user names, or the newest whole one.
func pick(j weir.Job, list []checkpoint.Candidate, id weir.CheckpointID) (checkpoint.Candidate, error) {
	for _, c := range list {
		switch {
		case id == 0 && c.Problem == "":
			return c, nil
		case id != 0 && c.Checkpoint == id && c.Problem != "":
			return c, fmt.Errorf("%w: checkpoint %d of job %q cannot be adopted: %s", weir.ErrConflict, id, j.Name, c.Problem)
		case id != 0 && c.Checkpoint == id:
			return c, nil
		}
	}
	if id != 0 {
		return checkpoint.Candidate{}, fmt.Errorf("%w: checkpoint %d of job %q in storage", weir.ErrNotFound, id, j.Name)
	}
	return checkpoint.Candidate{}, fmt.Errorf("%w: storage holds no whole checkpoint of job %q: start it from nothing, or from a savepoint of another job", weir.ErrConflict, j.Name)
}

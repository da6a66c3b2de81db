package metastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
)

// AbandonCommits closes the checkpoint's commits as they are: what its sinks have not made
// visible by now is given up, for good, which its row keeps and the job's history says.
// Where none are open nothing happens.
func (s *Store) AbandonCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID) error {
	return s.decide(ctx, "abandon commits", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		n, err := changed(tx.ExecContext(ctx, `UPDATE checkpoints SET commits_open = FALSE, output_given_up = TRUE WHERE job = $1 AND id = $2 AND commits_open`, j.ID, id))
		if err != nil || n == 0 {
			return err
		}
		note := fmt.Sprintf("output of checkpoint %d that was not visible yet was given up (abandon_output)", id)
		return addEvent(ctx, tx, weir.Event{Job: j.ID, Kind: "commit", Attempt: j.Attempt.Number, Message: note})
	})
}

// OutputGivenUp tells which of the uncommitted segments that a snapshot of a job holds were
// given up: those of barriers up to the one returned; 0: none. A checkpoint whose output was
// given up shares segments with another snapshot up to where they have one history.
func (s *Store) OutputGivenUp(ctx context.Context, ref weir.SnapshotRef) (weir.CheckpointID, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	const what = "read output given up"
	given, err := list(ctx, s.read, what, scanCut, `SELECT id, attempt, attempt_tag FROM checkpoints WHERE job = $1 AND output_given_up ORDER BY id`, ref.Job)
	if err != nil || len(given) == 0 {
		return 0, wrap(what, err)
	}
	snapshot, err := scanCut(s.read.QueryRowContext(ctx, `SELECT id, attempt, attempt_tag FROM checkpoints WHERE job = $1 AND id = $2`, ref.Job, ref.Checkpoint))
	if errors.Is(err, sql.ErrNoRows) { // a snapshot that the metastore does not know: its output counts as not given up
		return 0, nil
	}
	if err != nil {
		return 0, wrap(what, err)
	}
	steps, err := list(ctx, s.read, what, scanStep, `SELECT a.number, a.tag, c.id, c.attempt, c.attempt_tag FROM attempts a
		JOIN checkpoints c ON c.job = a.job AND c.id = a.restored_from_checkpoint WHERE a.job = $1 AND a.restored_from_job = $1`, ref.Job)
	if err != nil {
		return 0, wrap(what, err)
	}
	from := make(map[weir.AttemptID]checkpoint.Cut, len(steps))
	for _, st := range steps {
		from[st.attempt] = st.from
	}
	return checkpoint.GivenUpBefore(snapshot, given, from), nil
}

func scanCut(row interface{ Scan(...any) error }) (checkpoint.Cut, error) {
	var c checkpoint.Cut
	err := row.Scan(&c.Barrier, &c.Attempt.Number, &c.Attempt.Tag)
	return c, err
}

// A step is what an attempt started from.
type step struct {
	attempt weir.AttemptID
	from    checkpoint.Cut
}

func scanStep(row interface{ Scan(...any) error }) (step, error) {
	var s step
	err := row.Scan(&s.attempt.Number, &s.attempt.Tag, &s.from.Barrier, &s.from.Attempt.Number, &s.from.Attempt.Tag)
	return s, err
}

package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// completeCommits makes decided output visible whose attempt is over: one worker opens
// the sinks with the segments of the newest checkpoint that has some, which holds all
// earlier ones too. It returns why that could not be done, or nothing.
func (d *driver) completeCommits(ctx context.Context, fence weir.Fence) string {
	kept, err := d.s.deps.Checkpoints.Retained(ctx, d.id)
	if err != nil {
		return fmt.Sprintf("open commits cannot be read: %v", err)
	}
	open := slices.DeleteFunc(kept, func(r checkpoint.Retained) bool { return !r.CommitsOpen })
	if len(open) == 0 {
		return ""
	}
	what := fmt.Sprintf("output of checkpoint %d is not visible yet", open[0].ID)
	m, err := d.s.manifest(ctx, weir.SnapshotRef{Job: d.id, Checkpoint: open[0].ID})
	switch {
	case gone(err) && d.s.behind(ctx, d.id) != "":
		return "" // what the metastore forgot has committed it, or will once it is adopted
	case err != nil:
		return fmt.Sprintf("%s: %v", what, err)
	}
	lists, _, err := d.s.withoutGivenUp(ctx, m, m.OpenSegments())
	if err != nil {
		return fmt.Sprintf("%s: %v", what, err)
	}
	if len(lists) > 0 {
		if err := d.commitOnly(ctx, fence, open[0].ID, lists); err != nil {
			return fmt.Sprintf("%s: %v", what, err)
		}
	}
	for _, r := range slices.Backward(open) {
		if err := d.s.deps.Checkpoints.CloseCommits(ctx, fence, r.ID, nil); err != nil {
			return fmt.Sprintf("%s: %v", what, err)
		}
	}
	return ""
}

// withoutGivenUp takes what was given up of a snapshot's output out of lists.
func (s *Service) withoutGivenUp(ctx context.Context, m *checkpoint.Manifest, lists listItems) (kept, given listItems, err error) {
	upTo, err := s.deps.Checkpoints.OutputGivenUp(ctx, weir.SnapshotRef{Job: m.Job, Checkpoint: m.Checkpoint})
	if err != nil {
		return nil, nil, err
	}
	return m.WithoutGivenUp(lists, upTo)
}

// listItems are items of list state by their operator.
type listItems = map[weir.OperatorID][]json.RawMessage

// leavesOut says what an attempt does not make visible.
func leavesOut(r *restore) string {
	n := 0
	for _, items := range r.given {
		n += len(items)
	}
	return fmt.Sprintf("output that was given up (abandon_output) is left out of what checkpoint %d holds; segments: %d", r.ref.Checkpoint, n)
}

// commitOnly has a worker commit; where that one dies, another one at once: whatever the
// first has done changes nothing.
func (d *driver) commitOnly(ctx context.Context, fence weir.Fence, id weir.CheckpointID, lists listItems) error {
	m := deploy.CommitOnly{Header: deploy.Head(), Job: d.id, Attempt: fence.Attempt, Checkpoint: id, Graph: d.graph, Lists: lists}
	for {
		worker := d.s.anyWorker()
		if worker == "" {
			return errors.New("no worker lives that could commit it")
		}
		if _, err := d.s.askLiving(ctx, worker, deploy.KindCommitOnly, m); !errors.Is(err, errDied) {
			return err
		}
	}
}

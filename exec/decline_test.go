package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
	"weir/planner/plan"
)

// A lost is a source or operator whose list state cannot be taken, once.
type lost struct {
	exec.Operator
	exec.Source
	snapshot func() error
}

func (l *lost) Close() error {
	if l.Source != nil {
		return l.Source.Close()
	}
	return l.Operator.Close()
}

func (l *lost) Snapshot(id weir.CheckpointID) ([]json.RawMessage, error) {
	if fail := l.snapshot; fail != nil {
		l.snapshot = nil
		if err := fail(); err != nil {
			return nil, err
		}
	}
	if l.Source != nil {
		return l.Source.Snapshot(id)
	}
	return nil, nil
}

func declined(operator string, task weir.TaskID, message string) weir.Failure {
	return weir.Failure{
		Reason: checkpoint.ReasonDeclined, Operator: weir.OperatorID(operator), Subtask: &task.Subtask, Worker: "w1",
		Message: fmt.Sprintf("task %v: checkpoint 1: %s", task, message),
	}
}

// declines gives what was said of checkpoint 1 beside snapshots.
func declines(j *exectest.Job) (list []weir.Failure) {
	for _, a := range j.Acks(1) {
		if a.Failure != nil {
			list = append(list, *a.Failure)
		}
	}
	return list
}

// A source whose position cannot be taken declines and goes on.
func TestPositionDeclined(t *testing.T) {
	t.Parallel()
	c := config(5000)
	open := c.Openers.Source
	c.Openers.Source = func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		src, err := open(ctx, s)
		if err != nil || s.Subtask != 1 {
			return src, err
		}
		return &lost{Source: src, snapshot: func() error { return errors.New("the broker names no offset") }}, nil
	}
	j := exectest.Start(t, c)
	if _, err := j.Snapshot(); err == nil {
		t.Error("checkpoint 1 was taken")
	}
	want := []weir.Failure{declined("src", weir.TaskID{Subtask: 1}, "source(numbers): snapshot 1: the broker names no offset")}
	if diff := cmp.Diff(want, declines(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := j.Checkpoint(); err != nil {
		t.Error(err)
	}
	if groups, rows := finish(t, j); groups != 5000 || rows != 5000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
}

// An operator whose snapshot panics, or fails, declines, so that the checkpoint says why,
// and fails its task: what it keeps is not to be trusted.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, reason, message string
		snapshot              func() error
	}{
		{"panic", exec.ReasonPanic, "global_aggregate(n): snapshot 1: panic: index out of range", func() error { panic("index out of range") }},
		{"error", exec.ReasonOperator, "global_aggregate(n): snapshot 1: disk full", func() error { return errors.New("disk full") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := config(100)
			c.Parallelism = 1
			c.Openers.Operator = func(ctx context.Context, s exec.Setup) (exec.Operator, error) {
				o, err := op.Open(ctx, s)
				if err != nil || s.Operator.Kind != plan.GlobalAggregate {
					return o, err
				}
				return &lost{Operator: o, snapshot: test.snapshot}, nil
			}
			j := exectest.Start(t, c)
			if _, err := j.Finish(); err == nil {
				t.Error("checkpoint 1 was taken")
			}
			if err := j.Close(); err == nil {
				t.Error("its tasks ended well")
			}
			if diff := cmp.Diff([]weir.Failure{declined("agg", weir.TaskID{Chain: 1}, test.message)}, declines(j)); diff != "" {
				t.Errorf("declined (-want +got):\n%s", diff)
			}
			if f, restart := j.Failure(); f == nil || f.Reason != test.reason || f.Operator != "agg" || f.Message != test.message || !restart {
				t.Errorf("failed: %+v, restart %v", f, restart)
			}
		})
	}
}

// An upload that fails declines with its operator, and leaves nothing that it has stored.
func TestUploadDeclined(t *testing.T) {
	t.Parallel()
	c := config(20_000)
	c.Parallelism = 1
	inner := blob.NewMemory()
	c.Blobs = blob.NewFaulty(inner, blob.FailTimes(1, "Put", "/result-0/1-", blob.Fault{After: errors.New("the answer was lost")}))
	j := exectest.Start(t, c)
	if _, err := j.Finish(); err == nil {
		t.Error("checkpoint 1 was taken")
	}
	const object = "job_00000000000000000000000000000001/1-00000001/result-0/1-0"
	want := []weir.Failure{declined("result", weir.TaskID{Chain: 1}, "result: store "+object+": the answer was lost")}
	if diff := cmp.Diff(want, declines(j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if groups, rows := finish(t, j); groups != 20_000 || rows != 20_000 { // its tasks have ended
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
	if keys := stored(t, inner, 1); keys != nil {
		t.Errorf("left: %v", keys)
	}
}

package checkpointtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// Tasks are the tasks of an attempt that acknowledge every trigger at once, each with
// one object in Blobs, and confirm every commit at once. Answer, when set, may change
// or drop (false) an ack.
type Tasks struct {
	Fence  weir.Fence
	List   []checkpoint.Task
	Blobs  blob.Store
	Answer func(*checkpoint.Ack) bool
	// Far answers Progress; nil: no task answers.
	Far func(id weir.CheckpointID) ([]checkpoint.Progress, error)

	mu struct {
		sync.Mutex
		runner *checkpoint.Runner
		fail   error
		calls  []string
	}
}

// Bind gives the tasks the runner that they answer to.
func (t *Tasks) Bind(r *checkpoint.Runner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.runner = r
}

// Fail makes every call fail until it is called with nil.
func (t *Tasks) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.fail = err
}

// Calls lists the calls so far: "trigger 3 base 2", "notify 3".
func (t *Tasks) Calls() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.mu.calls...)
}

func (t *Tasks) call(format string, args ...any) (*checkpoint.Runner, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.calls = append(t.mu.calls, fmt.Sprintf(format, args...))
	return t.mu.runner, t.mu.fail
}

// Trigger implements checkpoint.Tasks.
func (t *Tasks) Trigger(ctx context.Context, tr checkpoint.Trigger, _ []weir.TaskID) error {
	r, err := t.call("trigger %d base %d", tr.Checkpoint, tr.Base)
	if err != nil {
		return err
	}
	for _, task := range t.List {
		a, err := t.ack(ctx, task, tr.Checkpoint)
		if err != nil {
			return err
		}
		if t.Answer == nil || t.Answer(&a) {
			r.Ack(a)
		}
	}
	return nil
}

func (t *Tasks) ack(ctx context.Context, task checkpoint.Task, id weir.CheckpointID) (checkpoint.Ack, error) {
	data := fmt.Appendf(nil, "state of %v in %d", task.ID, id)
	key := checkpoint.StateKey(t.Fence.Job, t.Fence.Attempt, task.Operator, task.ID.Subtask, id, 0)
	if err := t.Blobs.Put(ctx, key, bytes.NewReader(data)); err != nil {
		return checkpoint.Ack{}, err
	}
	op := checkpoint.OperatorSnapshot{Operator: task.Operator, Keyed: []checkpoint.Handle{{Object: key, Size: int64(len(data))}}}
	if task.Sink {
		op.List = []json.RawMessage{fmt.Appendf(nil, `{"segment":%d}`, id)}
	}
	return checkpoint.Ack{
		Version: 1, Job: t.Fence.Job, Attempt: t.Fence.Attempt, Task: task.ID, Checkpoint: id, Worker: "w1",
		Snapshot: &checkpoint.TaskSnapshot{Task: task.ID, Operators: []checkpoint.OperatorSnapshot{op}, Commits: task.Sink},
		Timing:   checkpoint.Timing{NewBytes: int64(len(data)), TotalBytes: int64(len(data))},
	}, nil
}

// Notify implements checkpoint.Tasks.
func (t *Tasks) Notify(_ context.Context, id weir.CheckpointID, tasks []weir.TaskID) error {
	r, err := t.call("notify %d", id)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		r.Committed(task, id, nil)
	}
	return nil
}

// Progress implements checkpoint.Tasks.
func (t *Tasks) Progress(_ context.Context, id weir.CheckpointID) ([]checkpoint.Progress, error) {
	if _, err := t.call("progress %d", id); err != nil || t.Far == nil {
		return nil, err
	}
	return t.Far(id)
}

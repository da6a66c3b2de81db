package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// crew are workers that answer for one task each, but for those that are asleep.
type crew struct {
	nobody
	asleep map[weir.WorkerID]bool
	mu     struct {
		sync.Mutex
		triggers map[weir.WorkerID]deploy.Trigger
	}
}

func (c *crew) Command(ctx context.Context, worker weir.WorkerID, key weir.CommandKey, body []byte) ([]byte, error) {
	if c.asleep[worker] {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	switch key.Kind {
	case deploy.KindCommitOnly, deploy.KindStop:
		return deploy.EncodeReply(nil, nil), nil
	case deploy.KindProgress:
		var m deploy.Progress
		if err := deploy.Decode(body, &m); err != nil {
			return nil, err
		}
		var number int
		if _, err := fmt.Sscanf(string(worker), "w%d", &number); err != nil {
			return nil, err
		}
		task := weir.TaskID{Chain: int(m.Checkpoint), Subtask: number}
		return deploy.EncodeReply(deploy.Encode(deploy.Progressed{Header: deploy.Head(), Tasks: []checkpoint.Progress{{Task: task, Stage: checkpoint.StageDone}}}), nil), nil
	case deploy.KindTrigger:
		var m deploy.Trigger
		if err := deploy.Decode(body, &m); err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.triggers[worker] = m
		return deploy.EncodeReply(nil, nil), nil
	}
	return nil, errors.New(key.Kind)
}

// crewed are the tasks of an attempt with a source on w1 and others on w2 and w3.
func crewed(asleep ...weir.WorkerID) (*tasks, *crew) {
	c := &crew{asleep: map[weir.WorkerID]bool{}}
	c.mu.triggers = map[weir.WorkerID]deploy.Trigger{}
	for _, w := range asleep {
		c.asleep[w] = true
	}
	s := New(Deps{Control: c, Reports: nobody{}, Logger: quiet()}, Options{})
	d := newDriver(s, weir.Job{ID: weir.NewJobID()}, term)
	return &tasks{d: d, placed: []deploy.Placed{
		{Task: weir.TaskID{}, Worker: "w1"}, {Task: weir.TaskID{Chain: 1}, Worker: "w3"}, {Task: weir.TaskID{Chain: 1, Subtask: 1}, Worker: "w2"},
	}}, c
}

// Progress is what those say that answer within two seconds, and who did not.
func TestTasksProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks, _ := crewed("w2")
		began := time.Now()
		got, err := tasks.Progress(t.Context(), 7)
		want := []checkpoint.Progress{
			{Task: weir.TaskID{Chain: 7, Subtask: 1}, Worker: "w1", Stage: checkpoint.StageDone},
			{Task: weir.TaskID{Chain: 7, Subtask: 3}, Worker: "w3", Stage: checkpoint.StageDone},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != 2*time.Second || err == nil || err.Error() != "worker w2 did not answer: context deadline exceeded" {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// A trigger reaches the sources, and every other worker for what it says is pending; it
// waits for the former alone.
func TestTasksTrigger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks, c := crewed("w2")
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		err := tasks.Trigger(ctx, checkpoint.Trigger{Checkpoint: 7, Pending: []weir.CheckpointID{5, 7}}, []weir.TaskID{{}})
		cancel()
		if err != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := tasks.d.group.Wait(); err != nil {
			t.Error(err)
		}
		for worker, sources := range map[weir.WorkerID]int{"w1": 1, "w3": 0} {
			if m, ok := c.mu.triggers[worker]; !ok || len(m.Tasks) != sources || len(m.Pending) != 2 {
				t.Errorf("worker %s was told %+v", worker, m)
			}
		}
	})
}

// The end of an attempt waits for a worker that does not answer, and so does output that
// is made visible, no longer than until it is found dead; another one commits then.
func TestDeadWorkerHoldsNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tasks, _ := crewed("w2@b")
		d := tasks.d
		for worker, incarnation := range map[weir.WorkerID]string{"w1": "a", "w2": "b"} {
			d.s.mu.workers.heard(time.Now(), deploy.Heartbeat{Worker: worker, Incarnation: incarnation, Slots: map[string]int{"a": 1, "b": 9}[incarnation]})
		}
		began := time.Now()
		d.async(func() {
			if err := d.commitOnly(t.Context(), weir.Fence{}, 7, nil); err != nil || time.Since(began) != 300*time.Millisecond {
				t.Errorf("committed after %v: %v", time.Since(began), err)
			}
		})
		d.async(func() {
			d.askAll(t.Context(), []weir.WorkerID{"w1", "w2"}, deploy.KindStop, deploy.Stop{Header: deploy.Head()}, stopWithin, func([]byte) {})
			if took := time.Since(began); took != 300*time.Millisecond {
				t.Errorf("ended after %v", took)
			}
		})
		time.AfterFunc(300*time.Millisecond, func() { d.s.WorkerExited("w2", "b") })
		if err := d.group.Wait(); err != nil {
			t.Error(err)
		}
		d.askAll(t.Context(), []weir.WorkerID{"w2"}, deploy.KindStop, deploy.Stop{Header: deploy.Head()}, stopWithin, func([]byte) {})
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("one that is known to be dead was waited for: %v", took)
		}
	})
}

package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// progress asks how far the tasks are with a checkpoint.
func (h *harness) progress(m deploy.Deploy, id weir.CheckpointID) []checkpoint.Progress {
	h.t.Helper()
	var p deploy.Progressed
	body := h.must(deploy.KindProgress, deploy.Progress{Header: deploy.Head(), Job: m.Job, Attempt: m.Attempt, Checkpoint: id})
	if err := deploy.Decode(body, &p); err != nil {
		h.t.Fatal(err)
	}
	return p.Tasks
}

// trigger triggers a checkpoint at some sources of the deployment's first chain.
func (h *harness) trigger(m deploy.Deploy, id weir.CheckpointID, pending []weir.CheckpointID, subtasks ...int) {
	h.t.Helper()
	t := deploy.Trigger{Header: deploy.Head(), Trigger: checkpoint.Trigger{Job: m.Job, Attempt: m.Attempt, Checkpoint: id, Pending: pending}}
	for _, s := range subtasks {
		t.Tasks = append(t.Tasks, weir.TaskID{Subtask: s})
	}
	h.must(deploy.KindTrigger, t)
}

// acks counts those of a checkpoint.
func acks(reports []deploy.Report, id weir.CheckpointID) (n int) {
	for _, r := range reports {
		if r.Ack != nil && r.Ack.Checkpoint == id && r.Ack.Failure == nil {
			n++
		}
	}
	return n
}

// runs deploys and waits until every task runs.
func (h *harness) runs(m deploy.Deploy) {
	h.t.Helper()
	h.must(deploy.KindDeploy, m)
	h.until("every task runs", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		n, _ := statuses(r, m.Attempt.Number)
		return n == len(m.Tasks)
	})
}

// A worker answers for all its tasks: who is done, and whose barrier is missing.
func TestProgress(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, endless)
	h.runs(m)
	h.trigger(m, 1, nil, 1) // one source of two
	var got string
	h.until("the barrier arrives, and its source is done", func([]deploy.Report, deploy.Heartbeat) bool {
		got = ""
		for _, p := range h.progress(m, 1) {
			got += fmt.Sprintf("%v %s missing %v %s\n", p.Task, p.Stage, p.Missing, p.Doing)
		}
		return strings.Count(got, string(checkpoint.StageAligning)) == 2 && strings.Contains(got, string(checkpoint.StageDone)) // also its snapshot is stored
	})
	const want = `0/0 waiting missing [] no trigger has come
0/1 done missing [] 
1/0 aligning missing [0/0] 
1/1 aligning missing [0/0] 
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	h.trigger(m, 1, nil, 0)
	h.until("all acknowledge", func(r []deploy.Report, _ deploy.Heartbeat) bool { return acks(r, 1) == len(m.Tasks) })
	if _, err := h.ask(deploy.KindProgress, deploy.Progress{Header: deploy.Head(), Job: jobID, Attempt: weir.AttemptID{Number: 9, Tag: "x"}}); !errors.Is(err, weir.ErrStale) {
		t.Errorf("an attempt that does not run: %v", err)
	}
}

// At-least-once reaches the tasks: a channel is read on behind its barrier.
func TestAtLeastOnceDeployed(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, endless)
	m.Mode = checkpoint.AtLeastOnce
	h.runs(m)
	h.trigger(m, 1, nil, 0)
	h.trigger(m, 2, nil, 0)
	h.until("the second barrier is read behind the first", func([]deploy.Report, deploy.Heartbeat) bool {
		p := h.progress(m, 2)
		return p[2].Stage == checkpoint.StageAligning && p[3].Stage == checkpoint.StageAligning
	})
	h.trigger(m, 1, nil, 1)
	h.trigger(m, 2, nil, 1)
	h.until("both align", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		return acks(r, 1) == len(m.Tasks) && acks(r, 2) == len(m.Tasks)
	})
}

// What a trigger names as pending reaches all tasks, also where no source is told to
// begin: what has ended is acknowledged by nobody.
func TestEndedCheckpointIsNotTaken(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, endless)
	h.runs(m)
	h.trigger(m, 5, []weir.CheckpointID{3, 5})
	for id := range weir.CheckpointID(5) {
		h.trigger(m, id+1, nil, 0, 1)
	}
	h.until("the pending ones are acknowledged", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		return acks(r, 3) == len(m.Tasks) && acks(r, 5) == len(m.Tasks)
	})
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for id, want := range map[weir.CheckpointID]int{1: 0, 2: 0, 3: len(m.Tasks), 4: 0} {
		if got := acks(h.c.mu.reports, id); got != want {
			t.Errorf("%d acks of checkpoint %d, want %d", got, id, want)
		}
	}
}

// An ack that is refused, as one that is too large for NATS, becomes a decline that says so;
// without, its checkpoint would expire, and nobody could tell why.
func TestAckRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, endless)
	h.runs(m)
	late := weir.TaskID{Chain: 1, Subtask: 1}
	h.c.note(func() {
		h.c.mu.refuse = func(r deploy.Report) error {
			if r.Ack != nil && r.Ack.Snapshot != nil && r.Ack.Task == late {
				return fmt.Errorf("%w: a message of 9 bytes is larger than the NATS server takes (8)", weir.ErrInvalid)
			}
			return nil
		}
	})
	h.trigger(m, 1, nil, 0, 1)
	var said string
	h.until("it is declined", func(reports []deploy.Report, _ deploy.Heartbeat) bool {
		for _, r := range reports {
			if r.Ack != nil && r.Ack.Task == late && r.Ack.Failure != nil {
				said = r.Ack.Failure.Message
			}
		}
		return said != "" && acks(reports, 1) == len(m.Tasks)-1
	})
	const want = "task 1/1: checkpoint 1: its snapshot is stored, but the ack is refused: a message of 9 bytes is larger than the NATS server takes (8)"
	if said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
}

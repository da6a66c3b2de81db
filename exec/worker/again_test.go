package worker_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

func at(number int64) weir.AttemptID { return weir.AttemptID{Number: number, Tag: "x"} }

func stopOf(attempt int64) deploy.Stop {
	return deploy.Stop{Header: deploy.Head(), Job: jobID, Attempt: at(attempt)}
}

func closeOf(attempt int64) deploy.Close {
	return deploy.Close{Header: deploy.Head(), Job: jobID, Attempt: at(attempt)}
}

// trigger is that of a checkpoint to the sources of a deployment.
func trigger(m deploy.Deploy, id weir.CheckpointID, pending ...weir.CheckpointID) deploy.Trigger {
	t := deploy.Trigger{Header: deploy.Head(), Trigger: checkpoint.Trigger{Job: jobID, Attempt: m.Attempt, Checkpoint: id, Pending: pending, At: time.Now()}}
	for _, task := range checkpoint.TasksOf(m.Graph, m.Parallelism) {
		if task.Source {
			t.Tasks = append(t.Tasks, task.ID)
		}
	}
	return t
}

// stored counts the acks of a checkpoint that hold a snapshot, by task.
func stored(reports []deploy.Report, id weir.CheckpointID) map[weir.TaskID]int {
	n := map[weir.TaskID]int{}
	for _, r := range reports {
		if r.Ack != nil && r.Ack.Checkpoint == id && r.Ack.Snapshot != nil {
			n[r.Ack.Task]++
		}
	}
	return n
}

func once(m deploy.Deploy) map[weir.TaskID]int {
	n := map[weir.TaskID]int{}
	for _, t := range m.Tasks {
		n[t.Task] = 1
	}
	return n
}

// run deploys endless and waits until all tasks run.
func (h *harness) run(attempt int64, sql string) deploy.Deploy {
	h.t.Helper()
	m := h.deployment(attempt, sql)
	h.must(deploy.KindDeploy, m)
	h.until("every task runs", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		n, _ := statuses(r, attempt)
		return n == len(m.Tasks)
	})
	return m
}

// only checks which attempts run.
func (h *harness) only(what string, want ...int64) {
	h.t.Helper()
	h.until(what, func(_ []deploy.Report, b deploy.Heartbeat) bool {
		var got []int64
		for _, a := range b.Attempts {
			got = append(got, a.Attempt.Number)
		}
		return slices.Equal(got, want)
	})
}

// Each command is harmless when it comes late: after what ended the attempt, or behind a
// newer one.
func TestLateCommands(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.must(deploy.KindStop, stopOf(1)) // before the deployment that it ends
	h.must(deploy.KindDeploy, h.deployment(1, endless))
	old := h.run(2, endless)
	m := h.run(3, endless)
	h.must(deploy.KindStop, stopOf(2))
	h.must(deploy.KindStop, stopOf(1))
	h.must(deploy.KindClose, closeOf(2))
	part := []deploy.Placed{m.Placement[len(m.Placement)-1]}
	for kind, late := range map[string]deploy.Message{
		deploy.KindDeploy:   old,
		deploy.KindTrigger:  trigger(old, 1, 1),
		deploy.KindCommit:   deploy.Commit{Header: deploy.Head(), Job: jobID, Attempt: at(2), Checkpoint: 1},
		deploy.KindProgress: deploy.Progress{Header: deploy.Head(), Job: jobID, Attempt: at(2), Checkpoint: 1},
		deploy.KindResults:  deploy.Results{Header: deploy.Head(), Job: jobID, Attempt: at(2), Parts: part},
		deploy.KindChanges:  deploy.Changes{Header: deploy.Head(), Job: jobID, Attempt: at(2), Parts: part},
		deploy.KindRead:     deploy.Read{Header: deploy.Head(), Job: jobID, Attempt: at(2), Tasks: []weir.TaskID{part[0].Task}},
	} {
		if _, err := h.ask(kind, late); !errors.Is(err, weir.ErrStale) {
			t.Errorf("%s of an older attempt: %v", kind, err)
		}
	}
	h.only("the newest goes on alone", 3)
	h.c.mu.Lock()
	for n := range int64(3) {
		if running, failed := statuses(h.c.mu.reports, n+1); failed > 0 || n == 0 && running > 0 {
			t.Errorf("attempt %d: %d tasks ran, %d failed", n+1, running, failed)
		}
	}
	h.c.mu.Unlock()
	h.must(deploy.KindStop, stopOf(3))
	h.must(deploy.KindClose, closeOf(3))
	h.must(deploy.KindDeploy, m) // late: it is over
	h.must(deploy.KindStop, stopOf(3))
	h.only("nothing runs")
}

// A trigger that comes twice begins one checkpoint; one that comes late, behind a newer one
// or after its checkpoint was given up, begins none.
func TestTriggersAgain(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.run(1, endless)
	all := func(id weir.CheckpointID) {
		t.Helper()
		h.until("every task acknowledges", func(r []deploy.Report, _ deploy.Heartbeat) bool { return len(stored(r, id)) == len(m.Tasks) })
	}
	for range 2 {
		h.must(deploy.KindTrigger, trigger(m, 2, 2))
	}
	all(2)
	h.must(deploy.KindTrigger, trigger(m, 1, 1, 2)) // overtaken
	h.must(deploy.KindTrigger, trigger(m, 4, 4))    // 3 was given up
	h.must(deploy.KindTrigger, trigger(m, 3, 3))    // and its trigger comes now
	all(4)
	h.must(deploy.KindTrigger, trigger(m, 2, 2))
	h.must(deploy.KindTrigger, trigger(m, 5, 5))
	all(5)
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for id, want := range map[weir.CheckpointID]map[weir.TaskID]int{1: {}, 2: once(m), 3: {}, 4: once(m), 5: once(m)} {
		if diff := cmp.Diff(want, stored(h.c.mu.reports, id)); diff != "" {
			t.Errorf("acks of checkpoint %d (-want +got):\n%s", id, diff)
		}
	}
}

// written is a finished deployment that has written five rows to a folder, and the
// segments of its checkpoint 1.
func (h *harness) written() (m deploy.Deploy, out string, lists map[weir.OperatorID][]json.RawMessage) {
	h.t.Helper()
	out = filepath.Join(h.dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		h.t.Fatal(err)
	}
	m = h.deployment(1, `CREATE TABLE r (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5');
CREATE TABLE w (k INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '`+out+`'); INSERT INTO w SELECT k FROM r`)
	h.must(deploy.KindDeploy, m)
	h.until("the sources end", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		ended := map[weir.TaskID]bool{}
		for _, x := range r {
			if x.Ended != nil {
				ended[*x.Ended] = true
			}
		}
		return len(ended) == len(trigger(m, 1).Tasks)
	})
	h.must(deploy.KindTrigger, trigger(m, 1, 1))
	lists = map[weir.OperatorID][]json.RawMessage{}
	h.until("every task acknowledges", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		clear(lists)
		for _, x := range r {
			if x.Ack != nil {
				for _, o := range x.Ack.Snapshot.Operators {
					lists[o.Operator] = append(lists[o.Operator], o.List...)
				}
			}
		}
		return len(stored(r, 1)) == len(m.Tasks)
	})
	return m, out, lists
}

// five checks that the five rows are visible, once.
func (h *harness) five(out string) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	rows := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			h.t.Fatal(err)
		}
		rows += strings.Count(string(text), "\n")
	}
	if rows != 5 {
		h.t.Errorf("%d rows are visible in %v, want 5", rows, files)
	}
}

// A commit that comes twice, or behind that of a later checkpoint, shows rows once, and each
// is confirmed: whoever asks again has not heard it.
func TestCommitsAgain(t *testing.T) {
	t.Parallel()
	h := start(t)
	m, out, _ := h.written()
	tasks := trigger(m, 1).Tasks
	confirmed := func(id weir.CheckpointID, times int) {
		t.Helper()
		h.must(deploy.KindCommit, deploy.Commit{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt, Checkpoint: id, Tasks: tasks})
		h.until("it is confirmed", func(r []deploy.Report, _ deploy.Heartbeat) bool {
			n := 0
			for _, x := range r {
				if x.Committed != nil && x.Committed.Checkpoint == id {
					n++
				}
			}
			return n == times*len(tasks)
		})
	}
	confirmed(1, 1)
	confirmed(1, 2)
	h.must(deploy.KindTrigger, trigger(m, 2, 2))
	h.until("the next checkpoint", func(r []deploy.Report, _ deploy.Heartbeat) bool { return len(stored(r, 2)) == len(m.Tasks) })
	confirmed(2, 1)
	confirmed(1, 3)
	h.five(out)
	for range 2 {
		h.must(deploy.KindClose, closeOf(1))
	}
	h.must(deploy.KindStop, stopOf(1))
	h.must(deploy.KindClose, closeOf(1))
	h.five(out)
}

// Two commit-only deployments of one checkpoint at a time, as two servers send them, and
// one more afterwards: the rows are visible once.
func TestCommitOnlyAtATime(t *testing.T) {
	t.Parallel()
	h := start(t)
	m, out, lists := h.written()
	h.must(deploy.KindStop, stopOf(1))
	commit := deploy.CommitOnly{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt, Checkpoint: 1, Graph: m.Graph, Lists: lists}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := h.ask(deploy.KindCommitOnly, commit); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	h.must(deploy.KindCommitOnly, commit)
	h.five(out)
}

package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// messages are one of each kind, every field set.
func messages() map[string]deploy.Message {
	const job = weir.JobID("job_000102030405060708090a0b0c0d0e0f")
	attempt := weir.AttemptID{Number: 3, Tag: "a1b2c3d4"}
	task, two := weir.TaskID{Chain: 1}, 2
	head := deploy.Head()
	graph := plan.Graph{Version: 1, MaxParallelism: 8, Bounded: true, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "src", Name: "source(r)", Kind: plan.Source, Schema: []plan.Column{}}}},
		{Operators: []plan.Operator{{ID: "out", Name: "sink(w)", Kind: plan.Sink, Schema: []plan.Column{}}}, Single: true},
	}, Edges: []plan.Edge{{From: 0, To: 1, Keys: []int{}}}}
	handle := checkpoint.Handle{Object: "a/b", Size: 9, Checksum: 1 << 63, KeyGroups: weir.KeyGroupRange{Start: 0, End: 4}, Trimmed: true}
	placed := []deploy.Placed{{Task: task, Worker: "w1"}}
	lists := map[weir.OperatorID][]json.RawMessage{"src": {json.RawMessage(`{"position":7}`)}}
	order := []deploy.Order{{Column: "n", Desc: true}, {Column: "k"}}
	query := deploy.Query{Limit: 10, OrderBy: order, After: []byte{1, 2}}
	failure := &weir.Failure{Reason: "row_error", Operator: "src", Subtask: &two, Worker: "w1", Message: "table r: rows.csv:2: column k: not a number"}
	row := json.RawMessage(`{"k":1}`)
	report := deploy.Report{Header: head, Worker: "w1", Incarnation: "00ff", Job: job, Attempt: attempt}
	with := func(set func(*deploy.Report)) deploy.Report { r := report; set(&r); return r }
	memory := deploy.Memory{Budget: 9, Heap: 8, State: 7, StateLimit: 6, Spilled: 5, Uploads: 4, Network: 3, Cache: 2}
	return map[string]deploy.Message{
		"deploy": deploy.Deploy{
			Header: head, Job: job, Attempt: attempt, Term: 5, Graph: graph, Mode: checkpoint.AtLeastOnce, Parallelism: 2, FrameLimit: 4096, MaxParallelism: 8,
			Restored: 4, RestoredJob: job, Placement: placed, Lists: lists, GivenUp: map[weir.OperatorID][]json.RawMessage{"out": {json.RawMessage(`{"barrier":4}`)}},
			Tasks: []deploy.Task{{Task: task, Ended: true, Keyed: []deploy.Keyed{{Operator: "agg", Handles: []checkpoint.Handle{handle}}}}},
		},
		"trigger": deploy.Trigger{Header: head, Tasks: []weir.TaskID{{}}, Trigger: checkpoint.Trigger{
			Job: job, Attempt: attempt, Checkpoint: 6,
			At: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Base: 4, Pending: []weir.CheckpointID{5, 6},
		}},
		"progress": deploy.Progress{Header: head, Job: job, Attempt: attempt, Checkpoint: 6},
		"channels": deploy.Channels{Header: head, Job: job},
		"channel_list": deploy.ChannelList{Header: head, Channels: []weir.ChannelStats{{
			Job: job, Attempt: attempt, Channel: weir.ChannelID{Edge: 1, From: weir.TaskID{Subtask: deploy.AllSubtasks}, To: task}, Local: true, Sending: true,
			QueuedBytes: 1, UnackedBytes: 2, CreditBytes: 3, BytesPerSecond: 4.5, Resent: 5,
		}}, Memory: memory},
		"progressed": deploy.Progressed{Header: head, Tasks: []checkpoint.Progress{{
			Task: task, Worker: "w1", Stage: checkpoint.StageAligning, SinceMS: 1.5, Missing: []weir.TaskID{{Subtask: 1}}, BackPressured: 0.5, Busy: 0.25, Doing: "storing object 3",
		}}},
		"commit":      deploy.Commit{Header: head, Job: job, Attempt: attempt, Checkpoint: 6, Tasks: []weir.TaskID{task}},
		"close":       deploy.Close{Header: head, Job: job, Attempt: attempt},
		"stop":        deploy.Stop{Header: head, Job: job, Attempt: attempt},
		"stopped":     deploy.Stopped{Header: head, Tasks: []deploy.TaskStats{{Task: task, RowsIn: 5}}},
		"commit_only": deploy.CommitOnly{Header: head, Job: job, Attempt: attempt, Checkpoint: 6, Graph: graph, Lists: lists},
		"results":     deploy.Results{Header: head, Job: job, Attempt: attempt, Parts: placed, Query: query},
		"results_of_a_snapshot": deploy.Results{
			Header: head, Job: job, Attempt: attempt, Query: deploy.Query{Limit: 1},
			Snapshot: &deploy.Snapshot{
				Operator: plan.Operator{ID: "res", Kind: plan.Result, Schema: []plan.Column{}, Result: &plan.ResultSpec{Keys: []int{0}, Show: []int{0}}},
				Input:    []plan.Column{{Name: "k", NotNull: true}}, MaxParallelism: 8, Handles: []checkpoint.Handle{handle},
			},
		},
		"page":    deploy.Page{Header: head, Rows: []json.RawMessage{row}, Next: []byte{3}, Total: 12, Counts: []deploy.Count{{Table: "r", Rows: 12}}},
		"changes": deploy.Changes{Header: head, Job: job, Attempt: attempt, Parts: placed, Since: []uint64{1 << 40}, Limit: 100},
		"changes_page": deploy.ChangesPage{
			Header: head, Rows: []deploy.Change{{Op: "-U", Row: row}}, Since: []uint64{1<<40 + 1}, Full: true, More: true,
			Truncated: true,
		},
		"read": deploy.Read{Header: head, Job: job, Attempt: attempt, Tasks: []weir.TaskID{task}, Query: query, Changes: true, Since: []uint64{7}},
		"parts": deploy.Parts{Header: head, Parts: []deploy.Part{{
			Task: task, Rows: []deploy.Row{{Op: "+I", Row: row, Sort: []byte{9}}}, Total: 1, Version: 8,
			Full: true, More: true, Counts: []deploy.Count{{Table: "r", Rows: 1}},
		}}},
		"report_ack": with(func(r *deploy.Report) {
			r.Ack = &checkpoint.Ack{
				Version: 1, Job: job, Attempt: attempt, Task: task, Checkpoint: 6, Worker: "w1",
				Snapshot: &checkpoint.TaskSnapshot{Task: task, Operators: []checkpoint.OperatorSnapshot{}, Commits: true}, Timing: checkpoint.Timing{UploadMS: 1.5},
			}
		}),
		"report_runs":      with(func(r *deploy.Report) { r.Status = &deploy.TaskStatus{Task: task} }),
		"report_failed":    with(func(r *deploy.Report) { r.Status = &deploy.TaskStatus{Task: task, Failure: failure, Restart: true} }),
		"report_ended":     with(func(r *deploy.Report) { r.Ended = &task }),
		"report_committed": with(func(r *deploy.Report) { r.Committed = &deploy.Committed{Task: task, Checkpoint: 6} }),
		"returned":         deploy.Returned{Header: head, Worker: "w1", Incarnation: "00ff", Attempts: []deploy.Held{{Job: job, Attempt: attempt, Ended: true}}},
		"over":             deploy.Over{Header: head, Attempts: []deploy.Held{{Job: job, Attempt: attempt}}},
		"heartbeat": deploy.Heartbeat{
			Header: head, Worker: "w1", Incarnation: "00ff", PID: 42, Host: "h", Slots: 4, UsedSlots: 1, Kept: []deploy.Kept{{Job: job, Subtask: 1, Checkpoint: 6}}, Leaving: true, Memory: memory,
			Attempts: []deploy.Running{{Job: job, Attempt: attempt, Tasks: []deploy.TaskStats{{
				Task: task, RowsIn: 5, RowsOut: 4, BytesIn: 50, BytesOut: 40, Age: 1000, Waited: 300, Blocked: 200,
				Operators: []deploy.OperatorStats{{RowsIn: 5, BytesIn: 50, Busy: 400}, {RowsIn: 4, BytesIn: 40, Busy: 100}},
				Ended:     true, Watermark: 1000, State: 77, Rejected: 3, Spilled: 6, Uploads: 9, Delta: 1.25,
			}}}},
		},
	}
}

// TestGolden pins the form of every message; what is there must be read by later code.
func TestGolden(t *testing.T) {
	t.Parallel()
	all := messages()
	seen := 0
	datadriven.RunTest(t, "testdata/messages", func(t *testing.T, d *datadriven.TestData) string {
		m, ok := all[d.Cmd]
		if !ok {
			t.Fatalf("no message %s", d.Cmd)
		}
		seen++
		body := deploy.Encode(m)
		again := reflect.New(reflect.TypeOf(m))
		if err := deploy.Decode(body, again.Interface().(deploy.Message)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again.Elem().Interface()); diff != "" {
			t.Errorf("%s read back (-want +got):\n%s", d.Cmd, diff)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, body, "", " "); err != nil {
			t.Fatal(err)
		}
		return text.String() + "\n"
	})
	if seen != len(all) {
		t.Errorf("%d messages of %d are pinned", seen, len(all))
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"version":3,"job":"x"}`: "version 3, this build reads 2", `{}`: "version 0", `{`: "unexpected end", `{"version":2,"attempt":"x"}`: "NUMBER-TAG",
	} {
		if err := deploy.Decode([]byte(body), &deploy.Stop{}); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if err := deploy.Decode([]byte(`{"version":2,"job":"j","attempt":"1-a","later":true}`), &deploy.Stop{}); err != nil {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	body, err := deploy.DecodeReply(deploy.EncodeReply([]byte(`{"a":1}`), nil))
	if err != nil || string(body) != `{"a":1}` {
		t.Errorf("%s, %v", body, err)
	}
	for _, sentinel := range []error{weir.ErrInvalid, weir.ErrNotFound, weir.ErrConflict, weir.ErrStale, nil} {
		told := errors.New("plain")
		if sentinel != nil {
			told = fmt.Errorf("task 1/2: %w: text", sentinel)
		}
		_, err := deploy.DecodeReply(deploy.EncodeReply([]byte(`{}`), told))
		if err == nil || err.Error() != told.Error() || sentinel != nil && !errors.Is(err, sentinel) || !deploy.Refused(err) {
			t.Errorf("%v came back as %v", told, err)
		}
	}
	if _, err := deploy.DecodeReply([]byte("garbage")); !errors.Is(err, weir.ErrInvalid) || deploy.Refused(err) {
		t.Errorf("garbage: %v", err)
	}
}

package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
)

// TestMergeChannels: both ends of a channel are one, of the newest attempt; where one
// worker tells sums, the others' figures join them.
func TestMergeChannels(t *testing.T) {
	t.Parallel()
	old, now := weir.AttemptID{Number: 1, Tag: "z"}, weir.AttemptID{Number: 2, Tag: "a"}
	id := func(edge, from, to int) weir.ChannelID {
		return weir.ChannelID{Edge: edge, From: weir.TaskID{Chain: edge, Subtask: from}, To: weir.TaskID{Chain: edge + 1, Subtask: to}}
	}
	got := mergeChannels([]weir.ChannelStats{
		{Job: "a", Attempt: old, Channel: id(0, 0, 0), Sending: true, QueuedBytes: 999},
		// A remote channel, told by both its workers.
		{Job: "a", Attempt: now, Channel: id(0, 0, 1), Sending: true, QueuedBytes: 1, UnackedBytes: 20, CreditBytes: 300, BytesPerSecond: 7, Resent: 4},
		{Job: "a", Attempt: now, Channel: id(0, 0, 1), QueuedBytes: 10, CreditBytes: 5, BytesPerSecond: 8},
		{Job: "a", Attempt: now, Channel: id(0, 0, 0), Local: true, Sending: true, QueuedBytes: 2, CreditBytes: 3, BytesPerSecond: 4},
		// One whose sender's worker, and one whose receiver's, does not answer.
		{Job: "a", Attempt: now, Channel: id(0, 1, 0), QueuedBytes: 6, CreditBytes: 7, BytesPerSecond: 8},
		{Job: "a", Attempt: now, Channel: id(0, 1, 1), Sending: true, UnackedBytes: 9, CreditBytes: 10, BytesPerSecond: 11},
		// An edge that one worker sums per receiver, and one does not.
		{Job: "a", Attempt: now, Channel: id(1, AllSubtasks, 0), Sending: true, CreditBytes: 100, BytesPerSecond: 1},
		{Job: "a", Attempt: now, Channel: id(1, 4, 0), Local: true, Sending: true, CreditBytes: 10, BytesPerSecond: 2},
		{Job: "a", Attempt: now, Channel: id(1, 5, 0), CreditBytes: 1000, BytesPerSecond: 3},
		{Job: "a", Attempt: now, Channel: id(1, 6, 0), CreditBytes: 1000, BytesPerSecond: 4},
		// Another job has attempts of its own.
		{Job: "b", Attempt: old, Channel: id(0, 0, 0), Local: true, Sending: true, CreditBytes: 1},
	})
	want := []Channel{
		{Job: "a", Attempt: now, ID: id(0, 0, 0), Local: true, QueuedBytes: 2, CreditBytes: 3, BytesPerSecond: 4},
		{Job: "a", Attempt: now, ID: id(0, 0, 1), QueuedBytes: 11, UnackedBytes: 20, CreditBytes: 300, BytesPerSecond: 8, Resent: 4},
		{Job: "a", Attempt: now, ID: id(0, 1, 0), QueuedBytes: 6, CreditBytes: 7, BytesPerSecond: 8},
		{Job: "a", Attempt: now, ID: id(0, 1, 1), UnackedBytes: 9, CreditBytes: 10, BytesPerSecond: 11},
		{Job: "a", Attempt: now, ID: id(1, AllSubtasks, 0), CreditBytes: 110, BytesPerSecond: 9},
		{Job: "b", Attempt: old, ID: id(0, 0, 0), Local: true, CreditBytes: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestQuiet: who was heard a while ago may hang, and is not waited for as long.
func TestQuiet(t *testing.T) {
	t.Parallel()
	r, now := newRegistry(), time.Now()
	r.heard(now, deploy.Heartbeat{Worker: "w1", Incarnation: "a", Slots: 1})
	for _, c := range []struct {
		worker weir.WorkerID
		after  time.Duration
		want   bool
	}{{"w1", 0, false}, {"w1", heardBefore, false}, {"w1", heardBefore + 1, true}, {"w2", 0, true}} {
		if got := r.quiet(now.Add(c.after), c.worker); got != c.want {
			t.Errorf("%s after %v: %v", c.worker, c.after, got)
		}
	}
}

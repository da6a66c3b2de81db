package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
)

func channel(edge, from, to int) weir.ChannelID {
	return weir.ChannelID{Edge: edge, From: weir.TaskID{Chain: edge, Subtask: from}, To: weir.TaskID{Chain: edge + 1, Subtask: to}}
}

// TestSumChannels: an answer is as fine as it may be, and loses nothing.
func TestSumChannels(t *testing.T) {
	t.Parallel()
	const all = deploy.AllSubtasks
	var list []weir.ChannelStats
	for edge := range 2 {
		for from := range 3 {
			for to := range 2 {
				list = append(list, weir.ChannelStats{
					Job: jobA, Channel: channel(edge, from, to), Sending: true, Local: from == 0,
					QueuedBytes: 1, UnackedBytes: 2, CreditBytes: 3, BytesPerSecond: 0.5, Resent: 4,
				})
			}
		}
	}
	sum := func(id weir.ChannelID, local bool, n int) weir.ChannelStats {
		return weir.ChannelStats{
			Job: jobA, Channel: id, Sending: true, Local: local, QueuedBytes: int64(n), UnackedBytes: int64(2 * n), CreditBytes: int64(3 * n),
			BytesPerSecond: 0.5 * float64(n), Resent: uint64(4 * n),
		}
	}
	var perTask, perEdge []weir.ChannelStats
	for edge := range 2 {
		for to := range 2 {
			perTask = append(perTask, sum(channel(edge, all, to), true, 1), sum(channel(edge, all, to), false, 2))
		}
		perEdge = append(perEdge, sum(channel(edge, all, all), true, 2), sum(channel(edge, all, all), false, 4))
	}
	for most, want := range map[int][]weir.ChannelStats{12: list, 11: perTask, 8: perTask, 7: perEdge, 1: perEdge} {
		got := deploy.SumChannels(list, most)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", most, diff)
		}
	}
}

const jobA = weir.JobID("job_0a")

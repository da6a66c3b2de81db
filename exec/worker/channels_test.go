package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec/deploy"
	"weir/exec/worker"
)

// manyChannels is a network that has channels as the test says.
type manyChannels struct {
	network
	list []weir.ChannelStats
}

// Channels are those of the test.
func (n manyChannels) Channels() []weir.ChannelStats { return slices.Clone(n.list) }

// TestTellsChannels: a worker tells the channels of one job or of all; however many there
// are, the answer is small, and nothing is missing in its sums.
func TestTellsChannels(t *testing.T) {
	t.Parallel()
	const few, side = weir.JobID("job_few"), 60
	n := manyChannels{list: []weir.ChannelStats{{Job: few, CreditBytes: 5}, {Job: few, Channel: weir.ChannelID{Edge: 1}, CreditBytes: 6}}}
	for from := range side {
		for to := range side {
			id := weir.ChannelID{From: weir.TaskID{Subtask: from}, To: weir.TaskID{Chain: 1, Subtask: to}}
			n.list = append(n.list, weir.ChannelStats{Job: jobID, Channel: id, Sending: true, CreditBytes: 1})
		}
	}
	h := &harness{t: t, c: &control{handler: make(chan func(context.Context, string, []byte) ([]byte, error), 1), moved: make(chan struct{}, 1)}}
	w := worker.New(worker.Config{ID: "w1", Control: h.c, Network: n, Blobs: blob.NewMemory(), Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer func() { cancel(); wg.Wait() }()
	h.handle = <-h.c.handler
	for job, want := range map[weir.JobID]struct {
		series int
		credit int64
	}{few: {2, 11}, jobID: {side, side * side}, "": {side + 2, side*side + 11}, "job_none": {0, 0}} {
		var got deploy.ChannelList
		if err := deploy.Decode(h.must(deploy.KindChannels, deploy.Channels{Header: deploy.Head(), Job: job}), &got); err != nil {
			t.Fatal(err)
		}
		var credit int64
		for _, c := range got.Channels {
			credit += c.CreditBytes
		}
		if len(got.Channels) != want.series || credit != want.credit {
			t.Errorf("job %q: %d series with a credit of %d, want %d with %d", job, len(got.Channels), credit, want.series, want.credit)
		}
	}
}

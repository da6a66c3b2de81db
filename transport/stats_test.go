package transport_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/transport/transporttest"
)

// TestChannelStats: what waits, what is unacknowledged and what may be sent is told for
// each end, in order.
func TestChannelStats(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	from, to := network(t, s.URL()), network(t, s.URL())
	remote := transporttest.Open(t, from, to, false)
	local := &transporttest.Line{Job: remote.Job, Attempt: weir.NewAttemptID(2), WakeC: make(chan struct{}, 1)}
	local.In = local.OpenIn(t, from, true)
	local.Out = local.OpenOut(t, from, true)
	for n := range 3 {
		remote.Send(t, transporttest.Records(n, 1000, false))
		local.Send(t, transporttest.Records(n, 1000, true))
	}
	remote.Next(t)
	remote.Next(t)
	local.Next(t)
	want := []weir.ChannelStats{
		{Job: remote.Job, Attempt: remote.Attempt, Channel: transporttest.Channel(), Sending: true},
		{Job: local.Job, Attempt: local.Attempt, Channel: transporttest.Channel(), Local: true, Sending: true},
	}
	got := from.Channels()
	if len(got) == 2 && (got[0].CreditBytes == 0 || got[1].CreditBytes == 0 || got[1].QueuedBytes < 2000 || got[1].QueuedBytes > 2400) {
		t.Errorf("%+v", got)
	}
	for i := range got {
		got[i].CreditBytes, got[i].QueuedBytes, got[i].UnackedBytes = 0, 0, 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := to.Channels(); len(got) != 1 || got[0].Sending || got[0].CreditBytes == 0 {
		t.Errorf("%+v", got)
	}
}

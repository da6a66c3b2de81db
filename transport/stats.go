package transport

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"weir"
)

// Stats are totals since the network was opened, for people and tests.
type Stats struct {
	Sent, Received   uint64 // frames, each once
	Resent           uint64 // frames sent again
	Repeats, Gaps    uint64 // frames dropped: delivered before; one before was missing
	Foreign, Damaged uint64 // frames of other attempts; messages that cannot be read
	Beyond           uint64 // frames dropped for want of credit
	Lost             uint64 // messages refused by a connection that was away
}

type counters struct {
	sent, received, resent, repeats, gaps, foreign, damaged, beyond, lost atomic.Uint64
}

func (c *counters) dropped(r DropReason) {
	switch r {
	case DropRepeat:
		c.repeats.Add(1)
	case DropGap:
		c.gaps.Add(1)
	case DropForeign:
		c.foreign.Add(1)
	case DropCredit:
		c.beyond.Add(1)
	}
}

// Stats returns the totals so far.
func (n *Network) Stats() Stats {
	c := &n.stats
	return Stats{
		Sent: c.sent.Load(), Received: c.received.Load(), Resent: c.resent.Load(),
		Repeats: c.repeats.Load(), Gaps: c.gaps.Load(), Foreign: c.foreign.Load(),
		Damaged: c.damaged.Load(), Beyond: c.beyond.Load(), Lost: c.lost.Load(),
	}
}

// Channels describes every channel of every attempt in this process, sorted by job,
// attempt and channel. Both ends of a remote channel appear where both are here; a local
// channel appears once.
func (n *Network) Channels() []weir.ChannelStats {
	n.mu.Lock()
	all := make([]*attempt, 0, len(n.mu.attempts))
	for _, a := range n.mu.attempts {
		all = append(all, a)
	}
	n.mu.Unlock()
	var list []weir.ChannelStats
	for _, a := range all {
		list = a.appendStats(list, time.Now())
	}
	slices.SortFunc(list, compareStats)
	return list
}

func compareStats(a, b weir.ChannelStats) int {
	sending := func(s weir.ChannelStats) int {
		if s.Sending {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.Job, b.Job),
		cmp.Compare(a.Attempt.Number, b.Attempt.Number), cmp.Compare(a.Attempt.Tag, b.Attempt.Tag),
		cmp.Compare(a.Channel.Edge, b.Channel.Edge),
		a.Channel.From.Compare(b.Channel.From), a.Channel.To.Compare(b.Channel.To),
		sending(a)-sending(b),
	)
}

func (a *attempt) appendStats(list []weir.ChannelStats, now time.Time) []weir.ChannelStats {
	a.mu.Lock()
	local, outs, ins := slices.Collect(maps.Values(a.mu.local)), slices.Collect(maps.Values(a.mu.outs)), slices.Collect(maps.Values(a.mu.ins))
	a.mu.Unlock()
	base := weir.ChannelStats{Job: a.job, Attempt: a.id}
	for _, c := range local {
		list = append(list, c.stats(base, now))
	}
	for _, out := range outs {
		list = append(list, out.stats(base, now))
	}
	for _, in := range ins {
		list = append(list, in.stats(base, now))
	}
	return list
}

func (c *localChannel) stats(s weir.ChannelStats, now time.Time) weir.ChannelStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Channel, s.Local, s.Sending = c.id, true, true
	s.QueuedBytes, s.CreditBytes = int64(c.mu.held), int64(max(c.mu.window.size-c.mu.held, 0))
	s.BytesPerSecond = c.mu.meter.rate(now)
	return s
}

func (o *remoteOut) stats(s weir.ChannelStats, now time.Time) weir.ChannelStats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Channel, s.Sending, s.Resent = o.id, true, o.mu.resent
	if !o.mu.gone {
		s.QueuedBytes, s.UnackedBytes, s.CreditBytes = o.mu.machine.Bytes()
		s.BytesPerSecond = o.mu.meter.rate(now)
	}
	return s
}

func (in *remoteIn) stats(s weir.ChannelStats, now time.Time) weir.ChannelStats {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.Channel = in.id
	if !in.mu.gone {
		s.QueuedBytes, s.CreditBytes = in.mu.machine.Bytes()
		s.BytesPerSecond = in.mu.meter.rate(now)
	}
	return s
}

// meterPeriod is the least time that a rate is measured over.
const meterPeriod = time.Second

// A meter measures bytes per second for those who look.
type meter struct {
	since time.Time
	bytes int
	last  float64 // of the period before since
}

// add counts n bytes.
func (m *meter) add(now time.Time, n int) {
	switch elapsed := now.Sub(m.since); {
	case m.since.IsZero():
		m.since = now
	case elapsed >= meterPeriod:
		m.last = float64(m.bytes) / elapsed.Seconds()
		m.since, m.bytes = now, 0
	}
	m.bytes += n
}

// rate is that of the running period where it is long enough, else of the last one.
func (m *meter) rate(now time.Time) float64 {
	elapsed := now.Sub(m.since)
	if m.since.IsZero() || elapsed < meterPeriod {
		return m.last
	}
	return float64(m.bytes) / elapsed.Seconds()
}

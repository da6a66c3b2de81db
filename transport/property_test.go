package transport

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestChannelProperty runs the machines over a network that drops, repeats, reorders
// and delays, and cuts either side off. Whatever it does, frames come once and in
// order (T1), credit is never negative (T2), memory is bounded (T3); and once the
// network is well again, everything arrives.
func TestChannelProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lim := Limits{
			MinCredit: rapid.IntRange(1, 2000).Draw(t, "min"),
			MaxCredit: rapid.IntRange(1, 8000).Draw(t, "max"),
			Message:   300, Collect: 100,
		}
		p := newPair(lim)
		p.connection("both", true)
		total := rapid.IntRange(1, 60).Draw(t, "frames")
		weights := rapid.SliceOfN(rapid.IntRange(headerLen, 900), total, total).Draw(t, "weights")
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			p.randomStep(t, weights)
			p.check(t, lim, weights)
		}
		p.heal(t, lim, weights)
	})
}

func (p *pair) randomStep(t *rapid.T, weights []int) {
	side := rapid.SampledFrom([]string{"data", "ack"}).Draw(t, "side")
	switch rapid.IntRange(0, 10).Draw(t, "step") {
	case 0, 1:
		p.sendNext(weights)
	case 2:
		p.toSender(Event{Kind: EvFlush})
	case 3:
		p.consume()
	case 4, 5:
		p.deliver(side)
	case 6:
		p.tamper(rapid.SampledFrom([]string{"drop", "repeat", "swap"}).Draw(t, "how"), side)
	case 7:
		p.wait(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
	case 8:
		p.cut(rapid.SampledFrom([]string{"sender", "receiver", "both"}).Draw(t, "who"))
	case 9:
		p.connection(rapid.SampledFrom([]string{"sender", "receiver"}).Draw(t, "who"), true)
	case 10:
		p.foreign(side)
	}
}

func (p *pair) sendNext(weights []int) {
	if next := p.sender.NextSeq(); int(next) <= len(weights) {
		p.send(weights[next-1])
	}
}

// cut takes a side's connection away with everything under way.
func (p *pair) cut(who string) {
	p.connection(who, false)
	p.data, p.acks = nil, nil
}

func (p *pair) check(t *rapid.T, lim Limits, weights []int) {
	heaviest := 0
	for _, w := range weights {
		heaviest = max(heaviest, w)
	}
	bound := max(lim.MaxCredit, heaviest)
	s, r := p.sender, p.receiver
	if s.sent > s.limit && s.sent-s.consumed > uint64(heaviest) {
		t.Fatalf("T2: sent %d of %d, consumed %d", s.sent, s.limit, s.consumed)
	}
	if held := int(r.received - r.consumed); held > bound {
		t.Fatalf("T3: receiver holds %d, bound %d", held, bound)
	}
	kept := 0
	for _, it := range s.kept[s.head:] {
		kept += it.weight
	}
	if kept > bound {
		t.Fatalf("T3: sender keeps %d, bound %d", kept, bound)
	}
	pending := 0
	for seq := s.next; seq <= s.last; seq++ {
		pending += s.kept[s.index(seq)].weight
	}
	if up := s.up && s.synced; up && pending != s.pending {
		t.Fatalf("pending is %d, should be %d", s.pending, pending)
	}
	for i, seq := range p.seen {
		if seq != uint64(i+1) {
			t.Fatalf("T1: delivered %v", p.seen)
		}
	}
}

// heal ends all faults and expects everything to arrive in bounded time.
func (p *pair) heal(t *rapid.T, lim Limits, weights []int) {
	p.connection("both", true)
	for range 200 * len(weights) {
		p.sendNext(weights)
		p.wait(5 * time.Millisecond)
		if p.flush {
			p.flush = false
			p.toSender(Event{Kind: EvFlush})
		}
		p.deliver("all")
		if len(p.queue) > 0 {
			p.consume()
		}
		p.check(t, lim, weights)
		if len(p.seen) == len(weights) && len(p.queue) == 0 && p.sender.Drained() {
			p.quiet(t)
			return
		}
		p.out.Reset()
	}
	t.Fatalf("delivered %d of %d\n%s", len(p.seen), len(weights), p.state())
}

// quiet expects that a channel with nothing to do falls silent.
func (p *pair) quiet(t *rapid.T) {
	for range 20 {
		p.wait(10 * time.Second)
		p.deliver("all")
	}
	if !p.sender.Deadline().IsZero() || !p.receiver.Deadline().IsZero() {
		t.Fatalf("not quiet: %v %v", p.sender.Deadline(), p.receiver.Deadline())
	}
}

package transport

import (
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestChannelProperty runs the machines over a network that drops, repeats, reorders
// and delays, cuts either side off, and opens either end anew. Whatever it does, frames
// come once and in order, all of one life of the sender to one life of the receiver
// (T1, T12), credit is never negative (T2), memory is bounded (T3), nothing breaks
// without cause; and once the network is well again, everything arrives, or an end says
// that the channel is broken.
func TestChannelProperty(t *testing.T) {
	t.Parallel()
	times := 15
	if os.Getenv("WEIR_LONG") != "" {
		times = 3000
	}
	for range times {
		rapid.Check(t, func(t *rapid.T) { newTrial(t).run(t) })
	}
}

// A trial is one run of the property.
type trial struct {
	*pair
	weights  []int
	restarts int
	unheard  time.Duration     // awake and connected since an ack came, at least
	taken    map[uint32]uint32 // life of a sender → life of the receiver that got its frames
	sleepy   bool              // it sleeps, and is silent for long
	away     int               // bytes on their way, when last looked at
}

func newTrial(t *rapid.T) *trial {
	lim := Limits{
		MinCredit: rapid.IntRange(1, 2000).Draw(t, "min"),
		MaxCredit: rapid.IntRange(1, 8000).Draw(t, "max"),
		Message:   300, Collect: 100,
	}
	total := rapid.SampledFrom([]int{1, 2, 5, 60}).Draw(t, "frames")
	p := newPair(lim)
	p.sends = Limits{ // the ends need not agree
		MinCredit: rapid.IntRange(1, 2000).Draw(t, "first"),
		Message:   rapid.IntRange(100, 900).Draw(t, "message"),
		Collect:   rapid.IntRange(1, 300).Draw(t, "collect"),
	}
	p.sender = NewSender(testAddress, p.senders, p.sends)
	return &trial{
		pair:    p,
		weights: rapid.SliceOfN(rapid.IntRange(headerLen, 900), total, total).Draw(t, "weights"),
		taken:   map[uint32]uint32{},
		sleepy:  rapid.Bool().Draw(t, "sleepy"),
	}
}

func (p *trial) run(t *rapid.T) {
	restarts := rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "restarts") // many would leave nothing but breaks
	p.connection("both", true)
	for range rapid.SampledFrom([]int{10, 50, 200, 500}).Draw(t, "steps") {
		p.step(t, restarts)
		p.check(t)
	}
	p.heal(t)
}

func (p *trial) step(t *rapid.T, restarts int) {
	side := rapid.SampledFrom([]string{"data", "ack"}).Draw(t, "side")
	switch rapid.IntRange(0, 15).Draw(t, "step") {
	case 0, 1:
		p.sendNext()
	case 2:
		p.toSender(Event{Kind: EvFlush})
	case 3:
		p.consume()
	case 4, 5, 6:
		p.hear(side)
	case 7:
		p.tamper(rapid.SampledFrom([]string{"drop", "repeat", "swap", "keep", "damage", "version"}).Draw(t, "how"), side)
	case 8:
		p.spend(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
	case 9:
		p.cut(rapid.SampledFrom([]string{"sender", "receiver", "both"}).Draw(t, "who"))
	case 10:
		p.takes = rapid.SampledFrom([]int{0, 0, 0, 800, 200}).Draw(t, "takes")
		p.connection(rapid.SampledFrom([]string{"sender", "receiver"}).Draw(t, "who"), true)
	case 11:
		p.foreign(side)
	case 12:
		p.lateOne()
	case 13:
		if p.restarts < restarts && rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(t, "now") == 4 {
			p.restarts++
			who := rapid.SampledFrom([]string{"sender", "receiver", "both"}).Draw(t, "who")
			p.restart(who)
			if who != "receiver" {
				p.unheard = 0
			}
		}
	case 14:
		if p.sleepy {
			p.long(t)
		}
	case 15:
		p.toReceiver(Event{Kind: EvShare, Weight: rapid.IntRange(1, p.lim.MaxCredit).Draw(t, "share")})
	}
}

// hear delivers a message; what a sender hears ends its silence, if it is no damage.
func (p *trial) hear(side string) {
	p.heard = false
	p.deliver(side)
	if p.heard {
		p.unheard = 0
	}
}

// lateOne lets a kept message arrive at the side that it was for.
func (p *trial) lateOne() {
	if len(p.kept) == 0 {
		return
	}
	f, _, err := decodeFrame(p.kept[0].data)
	if err == nil && f.kind == kindAck {
		p.heard = false
		if p.late("ack"); p.heard {
			p.unheard = 0
		}
		return
	}
	p.late("data")
}

// spend lets time pass with all ticks.
func (p *trial) spend(by time.Duration) {
	p.wait(by)
	p.unheard += by
}

// long is a sleep of minutes, or a silence that the sender has to notice if it waits
// for a word.
func (p *trial) long(t *rapid.T) {
	if rapid.Bool().Draw(t, "asleep") {
		by := time.Duration(rapid.SampledFrom([]int{1, 2, 10, 300}).Draw(t, "seconds")) * time.Second
		p.asleep(by)
		p.unheard += min(by, p.sender.lim.Asleep+p.sender.lim.ProbeMax)
		return
	}
	by := time.Duration(rapid.SampledFrom([]int{1, 10, 25, 40}).Draw(t, "seconds")) * time.Second
	expects := p.sentUp && (!p.sender.Drained() || p.sender.waiting > 0)
	p.silence(by)
	p.unheard += by
	if expects && by > p.sender.lim.Silence+2*p.sender.lim.ProbeMax && p.broken() == 0 {
		t.Fatalf("the peer was silent for %v, and it was not noticed\n%s", by, p.state())
	}
}

func (p *trial) sendNext() {
	if next := p.sender.NextSeq(); int(next) <= len(p.weights) {
		p.send(p.weights[next-1])
	}
}

// cut takes a side's connection away with everything under way.
func (p *trial) cut(who string) {
	p.connection(who, false)
	p.data, p.acks = nil, nil
}

func (p *trial) check(t *rapid.T) {
	p.checkFrames(t)
	p.checkBounds(t)
	why := max(p.sender.broken, p.receiver.broken)
	if (why == BreakPeer || why == BreakSelf) && p.restarts == 0 {
		t.Fatalf("broken (%v), though no end was opened anew", why)
	}
	if p.sender.broken == BreakSize && p.sender.takes == 0 {
		t.Fatalf("broken (%v), though the connection takes everything", p.sender.broken)
	}
	if p.sender.broken == BreakSilent && p.unheard < p.sender.lim.Silence {
		t.Fatalf("broken (%v) after %v", p.sender.broken, p.unheard)
	}
	if p.sender.broken != 0 && !p.sender.Deadline().IsZero() || p.receiver.broken != 0 && !p.receiver.Deadline().IsZero() {
		t.Fatalf("broken, and goes on")
	}
}

func (p *trial) checkFrames(t *rapid.T) {
	for i, f := range p.seen {
		if f.seq != uint64(i+1) || f.life != p.seen[0].life {
			t.Fatalf("T1: delivered %v", p.seen)
		}
	}
	if len(p.seen) == 0 {
		return
	}
	by, ok := p.taken[p.seen[0].life]
	if ok && by != p.receives {
		t.Fatalf("T12: frames of sender %d went to receivers %d and %d", p.seen[0].life, by, p.receives)
	}
	p.taken[p.seen[0].life] = p.receives
}

func (p *trial) checkBounds(t *rapid.T) {
	heaviest := 0
	for _, w := range p.weights {
		heaviest = max(heaviest, w)
	}
	bound := max(p.lim.MaxCredit, heaviest)
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
	if pending != s.pending {
		t.Fatalf("pending is %d, should be %d", s.pending, pending)
	}
	away := s.unacked - s.pending // more than the ramp only from before the loss
	if s.ramp > 0 && away > p.away && away > max(s.ramp, heaviest) {
		t.Fatalf("%d bytes are on their way after a loss, %d allowed", away, s.ramp)
	}
	p.away = away
}

// heal ends all faults and expects everything to arrive in bounded time, or the channel
// to be broken.
func (p *trial) heal(t *rapid.T) {
	p.connection("both", true)
	for range 200 * len(p.weights) {
		p.sendNext()
		p.spend(5 * time.Millisecond)
		if p.flush {
			p.flush = false
			p.toSender(Event{Kind: EvFlush})
		}
		p.hear("all")
		if len(p.queue) > 0 {
			p.consume()
		}
		p.check(t)
		if p.broken() != 0 {
			return
		}
		if len(p.seen) == len(p.weights) && len(p.queue) == 0 && p.sender.Drained() {
			p.quiet(t)
			return
		}
		p.out.Reset()
	}
	for range 3 { // an idle sender hears late that its receiver is another one
		p.spend(5 * time.Second)
		p.hear("all")
	}
	if p.broken() != 0 {
		return
	}
	t.Fatalf("delivered %d of %d\n%s", len(p.seen), len(p.weights), p.state())
}

// quiet expects that a channel with nothing to do falls silent.
func (p *trial) quiet(t *rapid.T) {
	for range 20 {
		p.wait(10 * time.Second)
		p.deliver("all")
	}
	if !p.sender.Deadline().IsZero() || !p.receiver.Deadline().IsZero() {
		t.Fatalf("not quiet: %v %v", p.sender.Deadline(), p.receiver.Deadline())
	}
}

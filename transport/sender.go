package transport

import (
	"fmt"
	"time"
)

// A Sender is the sending side of a channel: it numbers frames, keeps them until
// they are acknowledged, and sends again from the first gap.
type Sender struct {
	lim    Limits
	addr   Address
	bond   bond
	broken BreakReason

	up     bool // the connection is there
	synced bool // the peer has answered since the connection came up last
	takes  int  // bytes of the largest message that the connection takes; 0: any

	acked    uint64 // all up to it have arrived
	next     uint64 // first that is not on its way
	last     uint64 // given out
	kept     []item // acked+1 … last, from head on
	head     int
	pending  int    // weight of next … last
	unacked  int    // weight of acked+1 … last
	highest  uint64 // ever transmitted
	ramp     int    // after a loss: so much may be on its way, more with each ack; 0: all
	flushing bool   // ActFlushSoon was returned and EvFlush has not come

	sent     uint64 // weight of all frames
	consumed uint64 // weight the peer's task has taken
	limit    uint64 // weight the peer allows
	waiting  int    // weight of the frame that waits; 0: none

	probeAt  time.Time
	silent   time.Duration // for so long the peer has left us without an answer
	markAt   time.Time     // it is counted up to here
	backoff  time.Duration
	resentAt time.Time     // when a gap after acked was last answered
	resendIn time.Duration // and for how long it is not after that
	actions  []Action
}

type item struct {
	wire   *Buffer
	at     int
	weight int
}

// NewSender returns the sending side of channel addr, before the first EvUp. life is
// random and not 0.
func NewSender(addr Address, life uint32, lim Limits) *Sender {
	lim = lim.withDefaults()
	return &Sender{lim: lim, addr: addr, bond: bond{life: life}, next: 1, backoff: lim.ProbeFirst}
}

// Admits reports whether a frame of this weight may be sent now: it fits the credit,
// or everything sent so far was consumed (T2).
func (s *Sender) Admits(weight int) bool {
	if s.limit == 0 || s.broken != 0 {
		return false // the peer has not answered yet, or is no more
	}
	return s.sent+uint64(weight) <= s.limit || s.sent == s.consumed
}

// Lives are that of this end and that of the peer; 0: the peer has not answered yet.
func (s *Sender) Lives() (own, peer uint32) { return s.bond.life, s.bond.peer }

// NextSeq is the sequence that the next EvSend gives out.
func (s *Sender) NextSeq() uint64 { return s.last + 1 }

// Wire is where the frame with sequence seq lies, which must not be acknowledged yet.
func (s *Sender) Wire(seq uint64) (wire *Buffer, at, end int) {
	it := &s.kept[s.index(seq)]
	return it.wire, it.at, it.at + it.weight
}

// Drained reports whether every frame sent was acknowledged.
func (s *Sender) Drained() bool { return s.acked == s.last }

// Idle reports whether the peer is there and its task has taken every frame sent.
func (s *Sender) Idle() bool { return s.limit > 0 && s.sent == s.consumed }

// Bytes gives the weights of what waits to be transmitted, of what is not acknowledged
// and of what may be sent now.
func (s *Sender) Bytes() (queued, unacked, credit int64) {
	return int64(s.pending), int64(s.unacked), int64(s.limit - min(s.sent, s.limit))
}

// Deadline is when EvTick is due; zero means never.
func (s *Sender) Deadline() time.Time { return s.probeAt }

// Step takes an event and returns what is to be done about it. Once the channel is
// broken that is nothing, but for a word to a receiver that does not know.
func (s *Sender) Step(now time.Time, ev Event) []Action {
	s.actions = s.actions[:0]
	if s.broken != 0 {
		s.tell(ev)
		return s.actions
	}
	switch ev.Kind {
	case EvSend:
		s.send(now, ev)
	case EvWait:
		s.waiting = ev.Weight
		s.probeBy(now)
	case EvFlush:
		s.flushing = false
		s.transmit()
	case EvAck:
		s.ack(now, ev)
	case EvTick:
		if s.up && due(now, s.probeAt) {
			s.tick(now)
		}
	case EvUp:
		if !s.up {
			s.up, s.synced, s.backoff = true, false, s.lim.ProbeFirst
			s.takes, s.ramp, s.resentAt = ev.Weight, s.lim.MinCredit, time.Time{}
			s.probe(now)
		}
	case EvDown:
		s.up, s.probeAt = false, time.Time{} // T7
		s.silent = 0                         // what was not answered may be our loss
	default:
		panic(fmt.Sprintf("transport: sender has no event %d", ev.Kind))
	}
	return s.actions
}

func (s *Sender) send(now time.Time, ev Event) {
	if !s.Admits(ev.Weight) {
		panic(fmt.Sprintf("transport: frame of %d bytes sent beyond credit (T2)", ev.Weight))
	}
	s.last++
	s.kept = append(s.kept, item{wire: ev.Wire, at: ev.At, weight: ev.Weight})
	s.sent += uint64(ev.Weight)
	s.pending += ev.Weight
	s.unacked += ev.Weight
	s.waiting = 0
	s.probeBy(now)
	switch {
	case !s.up || !s.synced:
	case s.pending >= s.lim.Collect:
		s.transmit()
	case !s.flushing:
		s.flushing = true
		s.do(Action{Kind: ActFlushSoon})
	}
}

// transmit puts what is not on its way into messages of bounded size: all of it, or as
// much as the ramp lets go.
func (s *Sender) transmit() {
	if !s.up || !s.synced {
		return
	}
	for begun := s.next; s.next <= s.last && s.ramped(); {
		first, weight := s.next, s.kept[s.index(s.next)].weight
		if s.takes > 0 && weight > s.takes {
			if first == begun { // else next time: what goes now has to be kept
				s.breakOff(Action{Break: BreakSize, Seq: first, Weight: weight, Limit: uint64(s.takes)})
			}
			return
		}
		s.collect()
		s.do(Action{Kind: ActTransmit, Seq: first, Last: s.next - 1, Again: first <= s.highest})
		s.highest = max(s.highest, s.next-1)
	}
	if s.next > s.last {
		s.ramp = 0
	}
}

// collect puts the next frame on its way, and those behind it that go in the same message.
func (s *Sender) collect() {
	most, bytes := s.lim.Message, 0
	if s.takes > 0 {
		most = min(most, s.takes)
	}
	for s.next <= s.last {
		weight := s.kept[s.index(s.next)].weight
		if bytes > 0 && (bytes+weight > most || !s.ramped()) {
			return
		}
		bytes += weight
		s.pending -= weight
		s.next++
	}
}

// ramped reports whether the ramp lets the next frame go: it fits, or goes alone. What is
// sent again would otherwise come as one burst, and be lost again by what lost it before.
func (s *Sender) ramped() bool {
	away := s.unacked - s.pending
	return s.ramp == 0 || away == 0 || away+s.kept[s.index(s.next)].weight <= s.ramp
}

func (s *Sender) ack(now time.Time, ev Event) {
	if ev.From != s.addr || ev.Life == 0 {
		s.do(Action{Kind: ActDrop, Reason: DropForeign}) // T6
		return
	}
	if why := s.bond.hear(ev); why != 0 { // T12
		s.breakOff(Action{Break: why})
		s.tell(ev)
		return
	}
	if ev.Seq > s.last || ev.Consumed > s.sent {
		s.do(Action{Kind: ActDrop, Reason: DropForeign}) // it was granted to nobody of ours
		return
	}
	s.silent, s.markAt = 0, now
	news := ev.Limit > s.limit || ev.Seq > s.acked || ev.Consumed > s.consumed
	s.limit, s.consumed = max(s.limit, ev.Limit), max(s.consumed, ev.Consumed)
	s.synced = s.up
	s.free(ev.Seq)
	if ev.Gap && ev.Seq == s.acked && s.acked+1 < s.next && now.Sub(s.resentAt) >= s.resendIn {
		s.rewind(now)
	}
	s.transmit()
	if s.waiting > 0 && s.Admits(s.waiting) {
		s.waiting = 0
		s.do(Action{Kind: ActWake})
	}
	if news {
		s.backoff = s.lim.ProbeFirst
		s.probeAt = time.Time{}
	}
	if s.Drained() && s.waiting == 0 {
		s.probeAt = time.Time{}
		return
	}
	s.probeBy(now)
}

// free forgets the frames up to seq.
func (s *Sender) free(seq uint64) {
	for s.acked < seq {
		it := &s.kept[s.head]
		s.do(Action{Kind: ActFree, Wire: it.wire})
		s.acked++
		s.unacked -= it.weight
		if s.ramp > 0 {
			s.ramp += it.weight
		}
		if s.next <= s.acked {
			s.pending -= it.weight
			s.next = s.acked + 1
		}
		*it = item{}
		s.head++
		s.resentAt = time.Time{}
	}
	if s.head == len(s.kept) {
		s.kept, s.head = s.kept[:0], 0
	} else if s.head > 64 && s.head*2 >= len(s.kept) {
		n := copy(s.kept, s.kept[s.head:])
		clear(s.kept[n:])
		s.kept, s.head = s.kept[:n], 0
	}
}

// rewind makes everything after acked wait to be transmitted again, little of it at first.
// Where the way is long, or slow, what the receiver said before any of that reached it still
// comes: as long as nothing shows an effect least of all goes again, and ever more seldom.
func (s *Sender) rewind(now time.Time) {
	if s.resentAt.IsZero() {
		s.ramp, s.resendIn = s.lim.MinCredit, s.lim.ResendGap
	} else {
		s.ramp, s.resendIn = min(s.lim.MinCredit, s.lim.Collect), min(2*s.resendIn, 4*s.lim.ProbeMax)
	}
	s.next, s.resentAt, s.pending = s.acked+1, now, s.unacked
}

// tick probes once more, or gives up a peer that has been silent for too long.
func (s *Sender) tick(now time.Time) {
	if s.count(now); s.silent >= s.lim.Silence {
		s.breakOff(Action{Break: BreakSilent})
		return
	}
	if s.transmit(); s.broken == 0 {
		s.probe(now)
	}
}

// count adds the time since markAt to the silence of the peer, as far as an answer was
// due and we were awake to hear it.
func (s *Sender) count(now time.Time) {
	if s.Drained() && s.waiting == 0 {
		return
	}
	if now.Sub(s.probeAt) > s.lim.Asleep {
		now = s.probeAt // the rest is our own sleep
	}
	s.silent += max(now.Sub(s.markAt), 0) // a word may have come while the tick was late
}

// breakOff ends the channel for good, for the reason that a gives.
func (s *Sender) breakOff(a Action) {
	s.broken, s.probeAt, s.waiting = a.Break, time.Time{}, 0
	s.kept, s.head, s.acked, s.next, s.pending, s.unacked = nil, 0, s.last, s.last+1, 0, 0
	a.Kind = ActBroken
	s.do(a)
}

// tell lets another receiver than the one we were bound to know that we were, so that it
// breaks too: its task may wait for frames that went to the one before. It says no word
// more then.
func (s *Sender) tell(ev Event) {
	if ev.Kind == EvAck && ev.From == s.addr && s.bond.peer != 0 && ev.Life != s.bond.peer {
		s.do(Action{Kind: ActProbe, Life: s.bond.life, Peer: s.bond.peer, Seq: s.last})
	}
}

// probe names what was transmitted: the rest cannot be missing.
func (s *Sender) probe(now time.Time) {
	s.do(Action{Kind: ActProbe, Life: s.bond.life, Peer: s.bond.peer, Seq: s.next - 1})
	s.markAt, s.probeAt = now, now.Add(s.backoff)
	s.backoff = min(2*s.backoff, s.lim.ProbeMax)
}

// probeBy makes sure that a probe is due, if nothing is heard.
func (s *Sender) probeBy(now time.Time) {
	if s.up && s.probeAt.IsZero() {
		s.markAt, s.probeAt = now, now.Add(s.backoff)
	}
}

func (s *Sender) index(seq uint64) int { return s.head + int(seq-s.acked) - 1 }

func (s *Sender) do(a Action) { s.actions = append(s.actions, a) }

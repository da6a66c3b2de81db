package transport

import (
	"fmt"
	"time"
)

// A Sender is the sending side of a channel: it numbers frames, keeps them until
// they are acknowledged, and sends again from the first gap.
type Sender struct {
	lim  Limits
	addr Address

	up     bool // the connection is there
	synced bool // the peer has answered since the connection came

	acked    uint64 // all up to it have arrived
	next     uint64 // first that is not on its way
	last     uint64 // given out
	kept     []item // acked+1 … last, from head on
	head     int
	pending  int    // weight of next … last
	highest  uint64 // ever transmitted
	flushing bool   // ActFlushSoon was returned and EvFlush has not come

	sent     uint64 // weight of all frames
	consumed uint64 // weight the peer's task has taken
	limit    uint64 // weight the peer allows
	waiting  int    // weight of the frame that waits; 0: none

	probeAt  time.Time
	backoff  time.Duration
	resentAt time.Time // when a gap after acked was last answered
	actions  []Action
}

type item struct {
	wire   *Buffer
	weight int
}

// NewSender returns the sending side of channel addr, before the first EvUp.
func NewSender(addr Address, lim Limits) *Sender {
	lim = lim.withDefaults()
	return &Sender{lim: lim, addr: addr, next: 1, backoff: lim.ProbeFirst}
}

// Admits reports whether a frame of this weight may be sent now: it fits the credit,
// or everything sent so far was consumed (T2).
func (s *Sender) Admits(weight int) bool {
	if s.limit == 0 {
		return false // the peer has not answered yet
	}
	return s.sent+uint64(weight) <= s.limit || s.sent == s.consumed
}

// NextSeq is the sequence that the next EvSend gives out.
func (s *Sender) NextSeq() uint64 { return s.last + 1 }

// Wire is the frame with sequence seq, which must not be acknowledged yet.
func (s *Sender) Wire(seq uint64) *Buffer { return s.kept[s.index(seq)].wire }

// Drained reports whether every frame sent was acknowledged.
func (s *Sender) Drained() bool { return s.acked == s.last }

// Idle reports whether the peer is there and its task has taken every frame sent.
func (s *Sender) Idle() bool { return s.limit > 0 && s.sent == s.consumed }

// Bytes gives the weights of what waits to be transmitted, of what is not acknowledged
// and of what may be sent now.
func (s *Sender) Bytes() (queued, unacked, credit int64) {
	for i, it := range s.kept[s.head:] {
		unacked += int64(it.weight)
		if s.acked+uint64(i)+1 >= s.next {
			queued += int64(it.weight)
		}
	}
	return queued, unacked, int64(s.limit - min(s.sent, s.limit))
}

// Deadline is when EvTick is due; zero means never.
func (s *Sender) Deadline() time.Time { return s.probeAt }

// Step takes an event and returns what is to be done about it.
func (s *Sender) Step(now time.Time, ev Event) []Action {
	s.actions = s.actions[:0]
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
			s.transmit()
			s.probe(now)
		}
	case EvUp:
		if !s.up {
			s.up, s.synced, s.backoff = true, false, s.lim.ProbeFirst
			s.probe(now)
		}
	case EvDown:
		s.up, s.synced, s.probeAt = false, false, time.Time{} // T7
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
	s.kept = append(s.kept, item{wire: ev.Wire, weight: ev.Weight})
	s.sent += uint64(ev.Weight)
	s.pending += ev.Weight
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

// transmit puts everything that is not on its way into messages of bounded size.
func (s *Sender) transmit() {
	if !s.up || !s.synced {
		return
	}
	for s.next <= s.last {
		first, bytes := s.next, 0
		for s.next <= s.last {
			weight := s.kept[s.index(s.next)].weight
			if bytes > 0 && bytes+weight > s.lim.Message {
				break
			}
			bytes += weight
			s.next++
		}
		s.do(Action{Kind: ActTransmit, Seq: first, Last: s.next - 1, Again: first <= s.highest})
		s.highest = max(s.highest, s.next-1)
	}
	s.pending = 0
}

func (s *Sender) ack(now time.Time, ev Event) {
	if ev.From != s.addr || ev.Seq > s.last || ev.Consumed > s.sent {
		s.do(Action{Kind: ActDrop, Reason: DropForeign}) // T6
		return
	}
	news := ev.Limit > s.limit || ev.Seq > s.acked || ev.Consumed > s.consumed
	s.limit, s.consumed = max(s.limit, ev.Limit), max(s.consumed, ev.Consumed)
	s.synced = s.up
	s.free(ev.Seq)
	if ev.Gap && ev.Seq == s.acked && s.acked+1 < s.next && now.Sub(s.resentAt) >= s.lim.ResendGap {
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

// rewind makes everything after acked wait to be transmitted again.
func (s *Sender) rewind(now time.Time) {
	s.next, s.resentAt, s.pending = s.acked+1, now, 0
	for i := s.head; i < len(s.kept); i++ {
		s.pending += s.kept[i].weight
	}
}

func (s *Sender) probe(now time.Time) {
	s.do(Action{Kind: ActProbe, Seq: s.last})
	s.probeAt = now.Add(s.backoff)
	s.backoff = min(2*s.backoff, s.lim.ProbeMax)
}

// probeBy makes sure that a probe is due, if nothing is heard.
func (s *Sender) probeBy(now time.Time) {
	if s.up && s.probeAt.IsZero() {
		s.probeAt = now.Add(s.backoff)
	}
}

func (s *Sender) index(seq uint64) int { return s.head + int(seq-s.acked) - 1 }

func (s *Sender) do(a Action) { s.actions = append(s.actions, a) }

package transport

import (
	"fmt"
	"time"
)

// unheard is the repetition of an ack, the pause before which is 5 s, that goes on while
// no sender has been heard.
const unheard = 4

// A Receiver is the receiving side of a channel: it puts frames through in order,
// once, and tells the sender what arrived and how much more may come.
type Receiver struct {
	lim    Limits
	addr   Address
	window window
	bond   bond
	broken BreakReason

	up       bool
	last     uint64 // delivered
	received uint64 // weight of what was delivered
	consumed uint64 // weight of what the task took
	limit    uint64 // weight the sender was allowed; never falls

	gap     bool      // something after last was seen
	gapAt   time.Time // when the sender was last told
	ackAt   time.Time // when an ack is due; zero: none
	told    Action    // the last ack
	repeats int       // acks without news since the last news
	actions []Action
}

// NewReceiver returns the receiving side of channel addr, before the first EvUp. life is
// random and not 0.
func NewReceiver(addr Address, life uint32, lim Limits) *Receiver {
	lim = lim.withDefaults()
	return &Receiver{lim: lim, addr: addr, bond: bond{life: life}, window: newWindow(lim)}
}

// Bytes gives the weights of what waits for the task and of what the sender may send.
func (r *Receiver) Bytes() (queued, credit int64) {
	return int64(r.received - r.consumed), int64(r.limit - min(r.received, r.limit))
}

// Deadline is when EvTick is due; zero means never.
func (r *Receiver) Deadline() time.Time { return r.ackAt }

// Step takes an event and returns what is to be done about it. Once the channel is
// broken that is nothing.
func (r *Receiver) Step(now time.Time, ev Event) []Action {
	r.actions = r.actions[:0]
	if r.broken != 0 {
		return nil
	}
	switch ev.Kind {
	case EvFrame, EvProbe:
		r.message(now, ev)
	case EvConsume:
		r.consume(now, ev)
	case EvShare:
		r.window.share(ev.Weight, r.lim.MinCredit)
	case EvTick:
		if r.up && due(now, r.ackAt) {
			r.ack(now)
		}
	case EvUp:
		if !r.up {
			r.up, r.repeats = true, 0
			r.ack(now)
		}
	case EvDown:
		r.up, r.ackAt = false, time.Time{} // T7
	default:
		panic(fmt.Sprintf("transport: receiver has no event %d", ev.Kind))
	}
	return r.actions
}

// message takes in a frame or a probe of any sender.
func (r *Receiver) message(now time.Time, ev Event) {
	// A frame is sent to a receiver that has granted credit, so it names one.
	if ev.From != r.addr || ev.Life == 0 || ev.Kind == EvFrame && ev.Peer == 0 {
		r.drop(DropForeign) // T6
		return
	}
	if why := r.bond.hear(ev); why != 0 { // T12
		r.broken, r.ackAt = why, time.Time{}
		r.do(Action{Kind: ActBroken, Break: why})
		return
	}
	if ev.Kind == EvProbe {
		r.gap = ev.Seq > r.last
		r.ack(now)
		return
	}
	r.frame(now, ev)
}

func (r *Receiver) frame(now time.Time, ev Event) {
	switch {
	case ev.Seq <= r.last:
		r.drop(DropRepeat)
		r.ackBy(now)
	case ev.Seq > r.last+1:
		r.drop(DropGap)
		r.tellGap(now)
	case !r.allowed(ev.Weight):
		r.drop(DropCredit) // T3
		r.ackBy(now)
	default:
		if r.received == r.consumed {
			r.window.arrive(now)
		}
		r.do(Action{Kind: ActDeliver, Seq: ev.Seq})
		r.last++
		r.received += uint64(ev.Weight)
		r.gap, r.gapAt, r.repeats = false, time.Time{}, 0
		r.ackBy(now)
	}
}

// allowed mirrors Sender.Admits.
func (r *Receiver) allowed(weight int) bool {
	return r.received+uint64(weight) <= r.limit || r.received == r.consumed
}

// tellGap asks for what is missing, once per gap and once more where that stays
// without effect.
func (r *Receiver) tellGap(now time.Time) {
	r.gap, r.repeats = true, 0
	if r.gapAt.IsZero() || now.Sub(r.gapAt) >= 2*r.lim.ResendGap {
		r.ack(now)
	}
}

func (r *Receiver) consume(now time.Time, ev Event) {
	r.consumed += uint64(ev.Weight)
	if r.consumed > r.received {
		panic(fmt.Sprintf("transport: consumed %d bytes of %d", r.consumed, r.received))
	}
	r.window.consume(now, ev.Weight)
	r.repeats = 0
	fresh := r.grant() - r.told.Limit // what the sender does not know yet
	short := r.told.Limit - min(r.told.Limit, r.received)
	quarter := uint64(r.window.size / 4)
	if fresh >= quarter || r.consumed == r.received && short < 2*quarter {
		r.ack(now)
		return
	}
	if r.consumed == r.received { // the sender holds rows back until it knows
		r.ackWithin(now, r.lim.AckIdle)
		return
	}
	r.ackBy(now)
}

// grant is the limit that the window allows now.
func (r *Receiver) grant() uint64 { return max(r.limit, r.consumed+uint64(r.window.size)) }

// ack sends an ack and plans its repetition.
func (r *Receiver) ack(now time.Time) {
	if !r.up {
		return
	}
	r.limit = r.grant()
	a := Action{Kind: ActAck, Life: r.bond.life, Peer: r.bond.peer, Seq: r.last, Consumed: r.consumed, Limit: r.limit, Gap: r.gap}
	r.do(a)
	r.told = a
	if r.gap {
		r.gapAt = now
	}
	r.ackAt = time.Time{}
	most := r.lim.Repeats // a sender that needs to know more asks for it
	if r.bond.peer == 0 {
		// An idle sender that knew a receiver before us has to hear of us.
		most, r.repeats = unheard, min(r.repeats, unheard-1)
	}
	if r.repeats < most {
		r.repeats++
		r.ackAt = now.Add(r.lim.AckAfter << (2 * r.repeats))
	}
}

// ackBy makes sure that an ack is sent soon.
func (r *Receiver) ackBy(now time.Time) { r.ackWithin(now, r.lim.AckAfter) }

func (r *Receiver) ackWithin(now time.Time, d time.Duration) {
	if r.up {
		r.ackAt = earlier(r.ackAt, now.Add(d))
	}
}

func (r *Receiver) drop(reason DropReason) { r.do(Action{Kind: ActDrop, Reason: reason}) }

func (r *Receiver) do(a Action) { r.actions = append(r.actions, a) }

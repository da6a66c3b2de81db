package transport

import "time"

// This file holds what the two machines of a channel, Sender and Receiver, share:
// their events, actions and limits. Both are pure: Step takes the time and an event
// and returns actions, in a slice that is valid until the next Step.

// An EventKind says what happened to a machine.
type EventKind uint8

// The events. Each machine knows its own and EvTick, EvUp and EvDown.
const (
	EvSend    EventKind = iota + 1 // sender: the task sends a frame that Admits has allowed
	EvWait                         // sender: the task waits until a frame of Weight is admitted
	EvFlush                        // sender: send what was held back to be sent together
	EvAck                          // sender: an ack arrived
	EvFrame                        // receiver: a frame arrived
	EvProbe                        // receiver: a probe arrived
	EvConsume                      // receiver: the task took a frame of Weight
	EvShare                        // receiver: Weight is the new maximum of the window
	EvTick                         // a deadline has passed
	EvUp                           // the connection is there (again), and takes messages of Weight bytes
	EvDown                         // the connection is gone
)

// An Event is the input of Step; which fields count follows from Kind.
type Event struct {
	Kind     EventKind
	From     Address // EvAck, EvFrame, EvProbe: the channel that the message names
	Life     uint32  // EvAck, EvFrame, EvProbe: who sent it
	Peer     uint32  // EvAck, EvFrame, EvProbe: whom it was sent to; 0: not known then
	Seq      uint64  // EvFrame; EvProbe: the sender's last; EvAck: the receiver's last in order
	Weight   int     // EvSend, EvWait, EvFrame, EvConsume, EvShare; EvUp (0: any)
	Wire     *Buffer // EvSend: it holds the encoded frame, of Weight bytes
	At       int     // EvSend: from here on
	Consumed uint64  // EvAck
	Limit    uint64  // EvAck
	Gap      bool    // EvAck
}

// An ActionKind says what a driver has to do.
type ActionKind uint8

// The actions.
const (
	ActTransmit  ActionKind = iota + 1 // send frames Seq to Last in one message
	ActFlushSoon                       // step EvFlush once whatever runs now has run
	ActProbe                           // send a probe that names Seq
	ActWake                            // the frame that waits may be admitted now
	ActFree                            // a frame in Wire is acknowledged and no longer needed
	ActDeliver                         // give the frame of this event to the task
	ActDrop                            // do not deliver it; Reason says why
	ActAck                             // send an ack
	ActBroken                          // the channel is broken, Break says why; nothing is delivered or admitted any more
)

// An Action is an output of Step; which fields count follows from Kind.
type Action struct {
	Kind     ActionKind
	Life     uint32 // ActProbe, ActAck: of this machine
	Peer     uint32 // ActProbe, ActAck: of the other one; 0: not known yet
	Seq      uint64 // ActTransmit, ActProbe, ActAck; ActBroken for BreakSize
	Last     uint64 // ActTransmit
	Again    bool   // ActTransmit: sent before
	Consumed uint64 // ActAck
	Limit    uint64 // ActAck; ActBroken for BreakSize: what the connection takes
	Gap      bool   // ActAck
	Weight   int    // ActBroken for BreakSize
	Wire     *Buffer
	Reason   DropReason
	Break    BreakReason
}

// A DropReason says why a frame was not delivered. None of them loses it: the
// frame was delivered before, will be sent again, or was never ours.
type DropReason uint8

// The reasons.
const (
	DropRepeat  DropReason = iota + 1 // delivered before
	DropGap                           // one before it is missing
	DropForeign                       // of another attempt or channel
	DropCredit                        // more than the sender was allowed
)

// String gives one word.
func (r DropReason) String() string {
	switch r {
	case DropRepeat:
		return "repeat"
	case DropGap:
		return "gap"
	case DropForeign:
		return "foreign"
	case DropCredit:
		return "credit"
	}
	return "unknown"
}

// A BreakReason says why a channel is broken. Zero: it is not.
type BreakReason uint8

// The reasons.
const (
	BreakPeer   BreakReason = iota + 1 // another life of the peer was heard before
	BreakSelf                          // the peer knows another life of this end
	BreakSilent                        // the peer leaves probes unanswered
	BreakSize                          // frame Seq, of Weight, is larger than the connection takes now
)

// String gives one word.
func (r BreakReason) String() string {
	switch r {
	case BreakPeer:
		return "peer"
	case BreakSelf:
		return "self"
	case BreakSilent:
		return "silent"
	case BreakSize:
		return "size"
	}
	return "unknown"
}

// A bond is who the two ends of a channel are, as one of them knows it: each opening of
// an end is a life of its own, and what one life knew no other one knows. An end is
// bound to the first life it hears.
type bond struct {
	life uint32 // of this end
	peer uint32 // of the other one; 0: not heard yet
}

// hear takes in the lives that a message of this channel names. Whatever they tell
// apart from the bond means that an end was opened anew: frames that a life before took
// or sent are not to be had any more, or a life after is the one that counts.
func (b *bond) hear(ev Event) BreakReason {
	switch {
	case ev.Peer != 0 && ev.Peer != b.life:
		return BreakSelf
	case b.peer != 0 && ev.Life != b.peer:
		return BreakPeer
	}
	b.peer = ev.Life
	return 0
}

// A Buffer holds encoded frames until they are acknowledged.
type Buffer struct {
	b      []byte
	frames int // that are not acknowledged
}

// Limits are the constants of the protocol. The zero value of each field means its
// default.
type Limits struct {
	MinCredit  int           // smallest window in bytes, and what goes first after a loss; 64 KiB
	MaxCredit  int           // largest window in bytes; 8 MiB
	CreditSpan time.Duration // how much work a window is; 200 ms
	Message    int           // frames are collected up to this many bytes; 256 KiB
	Collect    int           // fewer bytes than this wait for company; 16 KiB
	AckAfter   time.Duration // an ack waits for company so long; 20 ms
	AckIdle    time.Duration // so long, if the task has taken all that came; 2 ms
	ProbeFirst time.Duration // a probe follows this long after silence, then doubles; 50 ms
	ProbeMax   time.Duration // up to this; 500 ms
	ResendGap  time.Duration // one gap is not answered twice within this; 50 ms
	Repeats    int           // an ack with no news is repeated so many times; 2
	Silence    time.Duration // a peer that answers nothing for so long breaks the channel; 30 s
	Asleep     time.Duration // a tick that comes later than this shows that we slept; 2 s
}

// withDefaults fills the fields that are zero.
func (l Limits) withDefaults() Limits {
	orInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	orTime := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	orInt(&l.MinCredit, 64<<10)
	orInt(&l.MaxCredit, 8<<20)
	orTime(&l.CreditSpan, 200*time.Millisecond)
	orInt(&l.Message, 256<<10)
	orInt(&l.Collect, 16<<10)
	orTime(&l.AckAfter, 20*time.Millisecond)
	orTime(&l.AckIdle, 2*time.Millisecond)
	orTime(&l.ProbeFirst, 50*time.Millisecond)
	orTime(&l.ProbeMax, 500*time.Millisecond)
	orTime(&l.ResendGap, 50*time.Millisecond)
	orInt(&l.Repeats, 2)
	orTime(&l.Silence, 30*time.Second)
	orTime(&l.Asleep, 2*time.Second)
	return l
}

// due reports whether deadline is set and has come.
func due(now, deadline time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// earlier returns the earlier of two deadlines, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

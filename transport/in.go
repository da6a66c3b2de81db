package transport

import (
	"sync"
	"time"

	"weir"
)

// A remoteIn drives the Receiver of one channel.
type remoteIn struct {
	net     *Network
	id      weir.ChannelID
	addr    Address
	subject string // of its acks
	wakeC   chan<- struct{}
	alarm   alarm

	mu struct {
		sync.Mutex
		machine *Receiver
		queue   frameQueue
		meter   meter // what the task took
		flips   int64 // of the link, as the machine knows it
		share   int
		fresh   bool // frames were put into the queue in this step
		scratch []byte
		broken  error // why no frame comes any more
		gone    bool
	}
}

func newRemoteIn(a *attempt, ch weir.ChannelID, wakeC chan<- struct{}) (*remoteIn, error) {
	addr, err := remoteAddress(a, ch)
	if err != nil {
		return nil, err
	}
	in := &remoteIn{net: a.net, id: ch, addr: addr, wakeC: wakeC, subject: a.net.names.acks(a.job, a.id, ch)}
	in.alarm.end = in
	in.mu.machine = NewReceiver(addr, newLife(), a.net.opts.Limits)
	return in, nil
}

// Poll implements weir.Inbound.
func (in *remoteIn) Poll() (weir.Frame, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	q, ok := in.mu.queue.pop()
	if !ok {
		return weir.Frame{}, false, in.mu.broken
	}
	now := time.Now()
	in.mu.meter.add(now, q.weight)
	in.step(now, Event{Kind: EvConsume, Weight: q.weight}, nil)
	return q.frame, true, nil
}

// handle takes frames and probes from the subscription's goroutine.
func (in *remoteIn) handle(frames []wireFrame) {
	now := time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.fresh = false
	for i := range frames {
		switch {
		case in.mu.gone:
		case frames[i].kind == kindAck:
			in.net.stats.foreign.Add(1) // T6
		default:
			in.step(now, frameEvent(&frames[i]), &frames[i])
		}
	}
	if in.mu.fresh {
		wake(in.wakeC)
	}
}

// tick brings the machine up to date and sets the alarm anew.
func (in *remoteIn) tick(now time.Time, share int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.alarm.rang()
	if in.mu.gone {
		return
	}
	if in.mu.share != share {
		in.mu.share = share
		in.step(now, Event{Kind: EvShare, Weight: share}, nil)
	}
	if in.net.link.flips.Load() != in.mu.flips {
		in.step(now, Event{Kind: EvDown}, nil)
		in.mu.flips = in.net.link.flips.Load()
	}
	if in.net.link.up() {
		in.step(now, Event{Kind: EvUp}, nil)
	}
	if due(now, in.mu.machine.Deadline()) {
		in.step(now, Event{Kind: EvTick}, nil)
	}
	in.net.dueAt(&in.alarm, in.mu.machine.Deadline())
}

// step performs what the machine answers to ev; f is the frame that arrived, if one
// did. The caller holds mu.
func (in *remoteIn) step(now time.Time, ev Event, f *wireFrame) {
	for _, act := range in.mu.machine.Step(now, ev) {
		switch act.Kind {
		case ActDeliver:
			in.mu.queue.push(queued{weight: ev.Weight, frame: weir.Frame{
				Kind: f.kind, Value: f.value, Bytes: f.payload, Size: len(f.payload),
			}})
			in.net.stats.received.Add(1)
			in.mu.fresh = true
		case ActAck:
			in.mu.scratch = appendAck(in.mu.scratch[:0], in.addr, act)
			in.net.publish(in.subject, in.mu.scratch)
		case ActDrop:
			in.net.stats.dropped(act.Reason)
		case ActBroken:
			in.mu.broken = errAnew(in.id, act.Break, "sending", in.id.From, "what it had not sent yet")
			in.mu.queue = frameQueue{}
			wake(in.wakeC)
		}
	}
	in.net.dueAt(&in.alarm, in.mu.machine.Deadline())
}

func (in *remoteIn) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.gone = true
	in.mu.queue = frameQueue{}
}

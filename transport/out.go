package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"weir"
)

// A remoteOut drives the Sender of one channel.
type remoteOut struct {
	net     *Network
	id      weir.ChannelID
	addr    Address
	subject string
	broken  func(error) // may be nil
	goneC   <-chan struct{}
	roomC   chan struct{} // capacity 1: a waiting Send may look again
	alarm   alarm

	mu struct {
		sync.Mutex
		machine *Sender
		slab    *Buffer // that takes the next frame, if it fits; may be nil
		meter   meter   // what the task sent
		flips   int64   // of the link, as the machine knows it
		scratch []byte
		resent  uint64
		broken  error // why no Send succeeds any more
		closed  bool
		gone    bool
	}
}

func newRemoteOut(a *attempt, ch weir.ChannelID, broken func(error)) (*remoteOut, error) {
	addr, err := remoteAddress(a, ch)
	if err != nil {
		return nil, err
	}
	out := &remoteOut{
		net: a.net, id: ch, addr: addr, broken: broken, goneC: a.goneC, roomC: make(chan struct{}, 1),
		subject: a.net.names.data(a.job, a.id, ch),
	}
	out.alarm.end = out
	out.mu.machine = NewSender(addr, newLife(), a.net.opts.Limits)
	return out, nil
}

// Send implements weir.Outbound.
func (o *remoteOut) Send(ctx context.Context, f weir.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.Batch != nil {
		return fmt.Errorf("%w: channel %v leaves this process: a batch has to be encoded", weir.ErrInvalid, o.id)
	}
	for {
		sent, err := o.trySend(&f)
		if sent || err != nil {
			return err
		}
		select {
		case <-o.roomC:
		case <-o.goneC:
			return errReleased(o.id)
		case <-ctx.Done():
			o.event(Event{Kind: EvWait}) // nobody waits
			return ctx.Err()
		}
	}
}

func (o *remoteOut) trySend(f *weir.Frame) (bool, error) {
	weight := headerLen + len(f.Bytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.mu.gone:
		return false, errReleased(o.id)
	case o.mu.broken != nil:
		return false, o.mu.broken
	case o.mu.closed:
		return false, errClosed(o.id)
	case !o.mu.machine.Admits(weight):
		o.step(time.Now(), Event{Kind: EvWait, Weight: weight})
		return false, nil
	}
	own, peer := o.mu.machine.Lives()
	slab := o.room(weight)
	at := len(slab.b)
	slab.b = appendFrame(slab.b, &wireFrame{
		addr: o.addr, kind: f.Kind, seq: o.mu.machine.NextSeq(), value: f.Value, life: own, peer: peer, payload: f.Bytes,
	})
	slab.frames++
	now := time.Now()
	o.mu.meter.add(now, weight)
	o.step(now, Event{Kind: EvSend, Weight: weight, Wire: slab, At: at})
	o.net.stats.sent.Add(1)
	return true, o.mu.broken // by this very frame
}

// Idle implements weir.Outbound.
func (o *remoteOut) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.gone || o.mu.broken != nil || o.mu.machine.Idle() // a Send will say why
}

// Close implements weir.Outbound.
func (o *remoteOut) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.closed = true
	return nil
}

// event gives the machine an event from another goroutine than the task's.
func (o *remoteOut) event(ev Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mu.gone {
		o.step(time.Now(), ev)
	}
}

// tick brings the machine up to date and sets the alarm anew.
func (o *remoteOut) tick(now time.Time, _ int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alarm.rang()
	if o.mu.gone {
		return
	}
	if o.net.link.flips.Load() != o.mu.flips {
		o.step(now, Event{Kind: EvDown})
		o.mu.flips = o.net.link.flips.Load()
	}
	if most, ok := o.net.link.room(); ok {
		o.step(now, Event{Kind: EvUp, Weight: int(most)})
	}
	if due(now, o.mu.machine.Deadline()) {
		o.step(now, Event{Kind: EvTick})
	}
	o.net.dueAt(&o.alarm, o.mu.machine.Deadline())
}

// step performs what the machine answers to ev. The caller holds mu.
func (o *remoteOut) step(now time.Time, ev Event) {
	for _, act := range o.mu.machine.Step(now, ev) {
		switch act.Kind {
		case ActTransmit:
			o.transmit(act)
		case ActFlushSoon:
			o.net.flushSoon(o)
		case ActProbe:
			o.mu.scratch = appendFrame(o.mu.scratch[:0], &wireFrame{
				addr: o.addr, kind: kindProbe, seq: act.Seq, life: act.Life, peer: act.Peer,
			})
			o.net.publish(o.subject, o.mu.scratch)
		case ActWake:
			wake(o.roomC)
		case ActFree:
			o.free(act.Wire)
		case ActDrop:
			o.net.stats.foreign.Add(1)
		case ActBroken:
			o.mu.broken = o.errBroken(act)
			wake(o.roomC)
			if o.broken != nil {
				o.broken(o.mu.broken)
			}
		}
	}
	o.net.dueAt(&o.alarm, o.mu.machine.Deadline())
}

// Frames are encoded one behind the other into slabs, so that those that go together are
// one message as they lie. A slab is used again once all its frames are acknowledged.
// Where little is under way it is small, and stays with its channel.
const (
	smallSlab  = 4 << 10
	mediumSlab = 32 << 10
	largeSlab  = 512 << 10 // a larger one is not kept
)

// room returns a slab that has room for a frame. The caller holds mu.
func (o *remoteOut) room(weight int) *Buffer {
	if s := o.mu.slab; s != nil && len(s.b)+weight <= cap(s.b) {
		return s
	}
	_, unacked, _ := o.mu.machine.Bytes()
	pool, size := &o.net.large, (weight+mediumSlab-1)/mediumSlab*mediumSlab
	switch {
	case weight <= smallSlab && unacked < 2*smallSlab:
		pool, size = nil, smallSlab
	case weight <= mediumSlab:
		pool, size = &o.net.medium, mediumSlab
	}
	o.mu.slab = nil
	if pool != nil {
		if kept, ok := pool.Get().(*Buffer); ok && cap(kept.b) >= weight {
			o.mu.slab = kept
		}
	}
	if o.mu.slab == nil {
		o.mu.slab = &Buffer{b: make([]byte, 0, size)}
	}
	return o.mu.slab
}

// free takes a frame out of its slab. The caller holds mu.
func (o *remoteOut) free(slab *Buffer) {
	if slab.frames--; slab.frames > 0 {
		return
	}
	slab.b = slab.b[:0]
	size := cap(slab.b)
	if size <= smallSlab {
		return // the channel's own, or forgotten
	}
	if slab == o.mu.slab {
		o.mu.slab = nil
	}
	switch {
	case size <= mediumSlab:
		o.net.medium.Put(slab)
	case size <= largeSlab:
		o.net.large.Put(slab)
	}
}

// errBroken says why the channel is broken.
func (o *remoteOut) errBroken(act Action) error {
	switch act.Break {
	case BreakSilent:
		return errBroken(o.id, fmt.Sprintf("the receiving task %v has answered nothing for %v", o.id.To, o.net.opts.Limits.Silence))
	case BreakSize:
		return errBroken(o.id, fmt.Sprintf("frame %d of %d bytes is larger than the NATS server takes (max_payload is %d)", act.Seq, act.Weight, act.Limit))
	}
	return errAnew(o.id, act.Break, "receiving", o.id.To, "what it had taken in")
}

// transmit sends frames in one message, or one for each slab that they lie in. The caller
// holds mu.
func (o *remoteOut) transmit(act Action) {
	if act.Again {
		o.net.stats.resent.Add(act.Last - act.Seq + 1)
		o.mu.resent += act.Last - act.Seq + 1
	}
	slab, at, end := o.mu.machine.Wire(act.Seq)
	for seq := act.Seq + 1; seq <= act.Last; seq++ {
		next, from, to := o.mu.machine.Wire(seq)
		if next != slab || from != end {
			o.net.publish(o.subject, slab.b[at:end])
			slab, at = next, from
		}
		end = to
	}
	o.net.publish(o.subject, slab.b[at:end])
}

func (o *remoteOut) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.gone = true
	o.mu.machine, o.mu.slab, o.mu.scratch = nil, nil, nil
}

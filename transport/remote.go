package transport

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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

	mu struct {
		sync.Mutex
		machine *Sender
		meter   meter // what the task sent
		flips   int64 // of the link, as the machine knows it
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
	out.mu.machine = NewSender(addr, newLife(), a.net.opts.Limits)
	return out, nil
}

// newLife draws a life: random, so that two openings of an end differ, and not 0.
func newLife() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails (crypto/rand)
		if life := binary.LittleEndian.Uint32(b[:]); life != 0 {
			return life
		}
	}
}

func remoteAddress(a *attempt, ch weir.ChannelID) (Address, error) {
	if a.net.link == nil {
		return Address{}, fmt.Errorf("%w: channel %v leaves this process, which has no NATS", weir.ErrInvalid, ch)
	}
	return NewAddress(a.job, a.id, ch)
}

// Send implements Outbound.
func (o *remoteOut) Send(ctx context.Context, f weir.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.Batch != nil {
		return fmt.Errorf("%w: channel %v leaves this process: a batch has to be encoded", weir.ErrInvalid, o.id)
	}
	if most := o.net.MaxPayload(); len(f.Bytes) > most {
		return fmt.Errorf("%w: channel %v: a frame of %d bytes is larger than the NATS server takes (%d); use smaller rows or raise its max_payload",
			weir.ErrInvalid, o.id, len(f.Bytes), most)
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
	wire := o.net.pool.Get().(*Buffer)
	wire.b = appendFrame(wire.b[:0], &wireFrame{
		addr: o.addr, kind: f.Kind, seq: o.mu.machine.NextSeq(), value: f.Value, life: own, peer: peer, payload: f.Bytes,
	})
	now := time.Now()
	o.mu.meter.add(now, weight)
	o.step(now, Event{Kind: EvSend, Weight: weight, Wire: wire})
	o.net.stats.sent.Add(1)
	return true, nil
}

// Idle implements Outbound.
func (o *remoteOut) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.gone || o.mu.broken != nil || o.mu.machine.Idle() // a Send will say why
}

// Close implements Outbound.
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

// tick brings the machine up to date and returns its next deadline.
func (o *remoteOut) tick(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.gone {
		return time.Time{}
	}
	if o.net.link.flips.Load() != o.mu.flips {
		o.step(now, Event{Kind: EvDown})
		o.mu.flips = o.net.link.flips.Load()
	}
	if o.net.link.up() {
		o.step(now, Event{Kind: EvUp})
	}
	if due(now, o.mu.machine.Deadline()) {
		o.step(now, Event{Kind: EvTick})
	}
	return o.mu.machine.Deadline()
}

// step performs what the machine answers to ev. The caller holds mu.
func (o *remoteOut) step(now time.Time, ev Event) {
	before := o.mu.machine.Deadline()
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
			if cap(act.Wire.b) <= pooledMost {
				o.net.pool.Put(act.Wire)
			}
		case ActDrop:
			o.net.stats.foreign.Add(1)
		case ActBroken:
			o.mu.broken = errBroken(o.id, true, act.Break, o.net.opts.Limits.Silence)
			wake(o.roomC)
			if o.broken != nil {
				o.broken(o.mu.broken)
			}
		}
	}
	if after := o.mu.machine.Deadline(); after != before {
		o.net.dueAt(after)
	}
}

// pooledMost keeps a rare giant frame from staying in the pool.
const pooledMost = 512 << 10

// transmit sends frames in as few messages as NATS takes. The caller holds mu.
func (o *remoteOut) transmit(act Action) {
	if act.Again {
		o.net.stats.resent.Add(act.Last - act.Seq + 1)
		o.mu.resent += act.Last - act.Seq + 1
	}
	if act.Seq == act.Last {
		o.net.publish(o.subject, o.mu.machine.Wire(act.Seq).b)
		return
	}
	most := int(o.net.link.nc.MaxPayload()) // less than Limits.Message, where it was lowered since
	o.mu.scratch = o.mu.scratch[:0]
	for seq := act.Seq; seq <= act.Last; seq++ {
		wire := o.mu.machine.Wire(seq).b
		if len(o.mu.scratch) > 0 && len(o.mu.scratch)+len(wire) > most {
			o.net.publish(o.subject, o.mu.scratch)
			o.mu.scratch = o.mu.scratch[:0]
		}
		o.mu.scratch = append(o.mu.scratch, wire...)
	}
	o.net.publish(o.subject, o.mu.scratch)
}

func (o *remoteOut) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.gone = true
	o.mu.machine, o.mu.scratch = nil, nil
}

// A remoteIn drives the Receiver of one channel.
type remoteIn struct {
	net     *Network
	id      weir.ChannelID
	addr    Address
	subject string // of its acks
	wakeC   chan<- struct{}

	mu struct {
		sync.Mutex
		machine *Receiver
		queue   frameQueue
		meter   meter // what the task took
		flips   int64 // of the link, as the machine knows it
		share   int
		scratch []byte
		broken  error // why no frame comes any more
		gone    bool
	}
}

func (a *attempt) newRemoteIn(ch weir.ChannelID, wakeC chan<- struct{}) (*remoteIn, error) {
	addr, err := remoteAddress(a, ch)
	if err != nil {
		return nil, err
	}
	in := &remoteIn{net: a.net, id: ch, addr: addr, wakeC: wakeC, subject: a.net.names.acks(a.job, a.id, ch)}
	in.mu.machine = NewReceiver(addr, newLife(), a.net.opts.Limits)
	return in, nil
}

// Poll implements Inbound.
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

// handle takes a frame or a probe from the subscription's goroutine.
func (in *remoteIn) handle(f *wireFrame) {
	ev := frameEvent(f)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.mu.gone {
		in.step(time.Now(), ev, f)
	}
}

// tick brings the machine up to date and returns its next deadline.
func (in *remoteIn) tick(now time.Time, share int) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.gone {
		return time.Time{}
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
	return in.mu.machine.Deadline()
}

// step performs what the machine answers to ev; f is the frame that arrived, if one
// did. The caller holds mu.
func (in *remoteIn) step(now time.Time, ev Event, f *wireFrame) {
	before := in.mu.machine.Deadline()
	for _, act := range in.mu.machine.Step(now, ev) {
		switch act.Kind {
		case ActDeliver:
			in.mu.queue.push(queued{weight: ev.Weight, frame: weir.Frame{
				Kind: f.kind, Value: f.value, Bytes: f.payload, Size: len(f.payload),
			}})
			in.net.stats.received.Add(1)
			wake(in.wakeC)
		case ActAck:
			in.mu.scratch = appendAck(in.mu.scratch[:0], in.addr, act)
			in.net.publish(in.subject, in.mu.scratch)
		case ActDrop:
			in.net.stats.dropped(act.Reason)
		case ActBroken:
			in.mu.broken = errBroken(in.id, false, act.Break, 0)
			in.mu.queue = frameQueue{}
			wake(in.wakeC)
		}
	}
	if after := in.mu.machine.Deadline(); after != before {
		in.net.dueAt(after)
	}
}

func (in *remoteIn) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.gone = true
	in.mu.queue = frameQueue{}
}

// errBroken says of a channel, at its sending or receiving end, that and why it is broken.
func errBroken(ch weir.ChannelID, sending bool, why BreakReason, silence time.Duration) error {
	peer, role, lost := ch.From, "sending", "what it had not sent yet"
	if sending {
		peer, role, lost = ch.To, "receiving", "what it had taken in"
	}
	text := fmt.Sprintf("the %s task %v was opened anew, and %s is gone", role, peer, lost)
	switch why {
	case BreakSelf:
		text = fmt.Sprintf("the %s task %v knows another life of this end, which was opened anew", role, peer)
	case BreakSilent:
		text = fmt.Sprintf("the %s task %v has answered nothing for %v", role, peer, silence)
	}
	return fmt.Errorf("%w: channel %v: %s; the job goes on from its last checkpoint", weir.ErrBroken, ch, text)
}

// damaged notes a message that cannot be read; its frames will be sent again (T5). A peer
// of another version sends nothing else: the log has one line a second.
func (n *Network) damaged(subject string, err error) {
	n.stats.damaged.Add(1)
	now, last := int64(time.Since(n.start)), n.warned.Load()
	if last != 0 && now-last < int64(time.Second) || !n.warned.CompareAndSwap(last, now) {
		return
	}
	n.opts.Log.Warn("message dropped", "subject", subject, "err", err)
}

// publish sends or loses a message; what it carries will be repeated.
func (n *Network) publish(subject string, data []byte) {
	if err := n.link.publish(subject, data); err != nil {
		n.stats.lost.Add(1)
	}
}

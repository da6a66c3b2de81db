package transport

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

// An attempt holds the channels of one attempt in this process.
type attempt struct {
	net   *Network
	job   weir.JobID
	id    weir.AttemptID
	goneC chan struct{} // closed by release

	mu struct {
		sync.Mutex
		local map[weir.ChannelID]*localChannel
		outs  map[Address]*remoteOut
		ins   map[Address]*remoteIn
		acks  map[weir.TaskID]bool // sending tasks whose acks are subscribed
		data  map[weir.TaskID]bool // receiving tasks whose frames are subscribed
		subs  []*subscription
		gone  bool
	}
}

func newAttempt(n *Network, job weir.JobID, id weir.AttemptID) *attempt {
	a := &attempt{net: n, job: job, id: id, goneC: make(chan struct{})}
	a.mu.local = map[weir.ChannelID]*localChannel{}
	a.mu.outs = map[Address]*remoteOut{}
	a.mu.ins = map[Address]*remoteIn{}
	a.mu.acks = map[weir.TaskID]bool{}
	a.mu.data = map[weir.TaskID]bool{}
	return a
}

// localChannel returns the channel named ch: both ends meet here, whichever is
// created first.
func (a *attempt) localChannel(ch weir.ChannelID) (*localChannel, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.gone {
		return nil, errReleased(ch)
	}
	c := a.mu.local[ch]
	if c == nil {
		c = newLocalChannel(ch, a.net.opts.Limits, a.goneC)
		a.mu.local[ch] = c
	}
	return c, nil
}

// remoteOutbound creates the sending end of ch and begins to look for its peer.
func (a *attempt) remoteOutbound(ch weir.ChannelID, broken func(error)) (*remoteOut, error) {
	out, err := newRemoteOut(a, ch, broken)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	err = a.addOut(ch, out)
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	out.tick(time.Now(), 0)
	return out, nil
}

// addOut registers out, and listens for the acks of its task. The caller holds mu.
func (a *attempt) addOut(ch weir.ChannelID, out *remoteOut) error {
	switch {
	case a.mu.gone:
		return errReleased(ch)
	case a.mu.outs[out.addr] != nil:
		return errTaken("sending", ch)
	}
	if !a.mu.acks[ch.From] {
		if err := a.listen(a.net.names.acksTo(a.job, a.id, ch.From), a.handleAck); err != nil {
			return err
		}
		a.mu.acks[ch.From] = true
	}
	a.mu.outs[out.addr] = out
	return nil
}

// openingPart is the part of its share that a channel grants before its task has
// consumed anything. What is granted is never taken back, and when the first of many
// tasks open, they do not know yet how many will share with them: the first windows
// of n tasks sum up to the budget times 1+1/2+…+1/n, over openingPart.
const openingPart = 8

// remoteInbound creates the receiving end of ch, which listens from now on.
func (a *attempt) remoteInbound(ch weir.ChannelID, wakeC chan<- struct{}) (*remoteIn, error) {
	in, err := newRemoteIn(a, ch, wakeC)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	err = a.addIn(ch, in)
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	in.tick(time.Now(), a.net.share(1)/openingPart)
	a.net.shares.Store(true) // those of the others are smaller now
	wake(a.net.kickC)
	return in, nil
}

// addIn registers in and listens for the frames of its task, once however many inputs it
// opens: a second subscription would bring every frame twice. The caller holds mu.
func (a *attempt) addIn(ch weir.ChannelID, in *remoteIn) error {
	switch {
	case a.mu.gone:
		return errReleased(ch)
	case a.mu.ins[in.addr] != nil:
		return errTaken("receiving", ch)
	}
	if !a.mu.data[ch.To] {
		if err := a.listen(a.net.names.dataTo(a.job, a.id, ch.To), (&inbox{attempt: a}).handle); err != nil {
			return err
		}
		a.mu.data[ch.To] = true
	}
	a.mu.ins[in.addr] = in
	return nil
}

// listen subscribes without the client's limits: credit bounds what waits. The
// caller holds mu.
func (a *attempt) listen(subject string, handle nats.MsgHandler) error {
	sub, err := a.net.link.subscribe(subject, handle, -1)
	if err != nil {
		return err
	}
	a.mu.subs = append(a.mu.subs, sub)
	return nil
}

// An inbox takes the messages of one task's data subscription, on its goroutine.
type inbox struct {
	attempt *attempt
	frames  []wireFrame // of a message
}

func (b *inbox) handle(m *nats.Msg) {
	b.frames = b.frames[:0]
	for rest := m.Data; len(rest) > 0; {
		f, after, err := decodeFrame(rest)
		if err != nil {
			b.attempt.net.damaged(m.Subject, err)
			break
		}
		b.frames, rest = append(b.frames, f), after
	}
	for left := b.frames; len(left) > 0; { // a sender's message is of one channel
		n := 1
		for n < len(left) && left[n].addr == left[0].addr {
			n++
		}
		b.attempt.handle(left[:n])
		left = left[n:]
	}
	clear(b.frames)
}

// handle takes frames of one channel.
func (a *attempt) handle(frames []wireFrame) {
	a.mu.Lock()
	in := a.mu.ins[frames[0].addr]
	a.mu.Unlock()
	if in == nil {
		a.net.stats.foreign.Add(uint64(len(frames))) // T6
		return
	}
	in.handle(frames)
}

// handleAck runs on the goroutine of an ack subscription.
func (a *attempt) handleAck(m *nats.Msg) {
	f, _, err := decodeFrame(m.Data)
	if err != nil {
		a.net.damaged(m.Subject, err)
		return
	}
	ev, err := ackEvent(&f)
	if err != nil {
		a.net.damaged(m.Subject, err)
		return
	}
	a.mu.Lock()
	out := a.mu.outs[f.addr]
	a.mu.Unlock()
	if out == nil {
		a.net.stats.foreign.Add(1) // T6
		return
	}
	out.event(ev)
}

// tick gives the due events to every channel.
func (a *attempt) tick(now time.Time, share int) {
	a.mu.Lock()
	ends := make([]ticker, 0, len(a.mu.outs)+len(a.mu.ins))
	for _, out := range a.mu.outs {
		ends = append(ends, out)
	}
	for _, in := range a.mu.ins {
		ends = append(ends, in)
	}
	a.mu.Unlock()
	for _, end := range ends {
		end.tick(now, share)
	}
}

// release ends every channel of the attempt.
func (a *attempt) release() {
	a.mu.Lock()
	a.mu.gone = true
	subs, ins, outs, local := a.mu.subs, a.mu.ins, a.mu.outs, a.mu.local
	a.mu.subs = nil
	a.mu.Unlock()
	for _, sub := range subs {
		_ = sub.end() // fails only if the connection is closed, and then it is gone too
	}
	close(a.goneC)
	for _, c := range local {
		c.release()
	}
	for _, in := range ins {
		in.release()
	}
	for _, out := range outs {
		out.release()
	}
	a.net.share(-len(ins))
}

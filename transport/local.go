package transport

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"weir"
)

// A localChannel joins two tasks of one worker: a bounded queue in memory with the
// rules of a remote channel (T1 to T4). A frame's batch passes through as it is.
// Both ends are this one value, seen through the interfaces Outbound and Inbound.
type localChannel struct {
	id    weir.ChannelID
	roomC chan struct{} // capacity 1: a waiting Send may look again
	goneC <-chan struct{}

	mu struct {
		sync.Mutex
		window   window
		meter    meter // what the task took
		queue    frameQueue
		held     int // weight of queue
		wakeC    chan<- struct{}
		hasOut   bool
		hasIn    bool
		closed   bool
		waiting  bool
		released bool
	}
}

func newLocalChannel(id weir.ChannelID, lim Limits, goneC <-chan struct{}) *localChannel {
	c := &localChannel{id: id, roomC: make(chan struct{}, 1), goneC: goneC}
	c.mu.window = newWindow(lim)
	return c
}

// claimOut takes the sending end, which there is one of.
func (c *localChannel) claimOut() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.hasOut {
		return errTaken("sending", c.id)
	}
	c.mu.hasOut = true
	return nil
}

// claimIn takes the receiving end and says whom to wake; frames that came before
// wake it at once.
func (c *localChannel) claimIn(wakeC chan<- struct{}) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.hasIn {
		return errTaken("receiving", c.id)
	}
	c.mu.hasIn, c.mu.wakeC = true, wakeC
	if c.mu.queue.len() > 0 {
		wake(wakeC)
	}
	return nil
}

// Send implements weir.Outbound.
func (c *localChannel) Send(ctx context.Context, f weir.Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	weight := headerLen + f.Size
	if f.Kind == weir.FrameRecords {
		f.Bytes = bytes.Clone(f.Bytes)
	}
	for {
		sent, err := c.trySend(f, weight)
		if sent || err != nil {
			return err
		}
		select {
		case <-c.roomC:
		case <-c.goneC:
			return errReleased(c.id)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *localChannel) trySend(f weir.Frame, weight int) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.released:
		return false, errReleased(c.id)
	case c.mu.closed:
		return false, errClosed(c.id)
	case c.mu.held > 0 && c.mu.held+weight > c.mu.window.size: // T2
		c.mu.waiting = true
		return false, nil
	}
	if c.mu.held == 0 {
		c.mu.window.arrive(time.Now())
	}
	c.mu.held += weight
	c.mu.queue.push(queued{frame: f, weight: weight})
	wake(c.mu.wakeC)
	return true, nil
}

// Idle implements weir.Outbound.
func (c *localChannel) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.held == 0
}

// Close implements weir.Outbound.
func (c *localChannel) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	return nil
}

// Poll implements Inbound.
func (c *localChannel) Poll() (weir.Frame, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, ok := c.mu.queue.pop()
	if !ok {
		return weir.Frame{}, false, nil
	}
	now := time.Now()
	c.mu.held -= q.weight
	c.mu.meter.add(now, q.weight)
	c.mu.window.consume(now, q.weight)
	if c.mu.waiting && c.mu.held <= c.mu.window.size/2 {
		c.mu.waiting = false
		wake(c.roomC)
	}
	return q.frame, true, nil
}

// release drops what is queued; Send fails and Poll finds nothing from now on.
func (c *localChannel) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.released = true
	c.mu.queue, c.mu.held = frameQueue{}, 0
}

type queued struct {
	frame  weir.Frame
	weight int
}

// A frameQueue is a FIFO that reuses its memory.
type frameQueue struct {
	items []queued
	head  int
}

func (q *frameQueue) len() int { return len(q.items) - q.head }

func (q *frameQueue) push(v queued) { q.items = append(q.items, v) }

func (q *frameQueue) pop() (queued, bool) {
	if q.head == len(q.items) {
		return queued{}, false
	}
	v := q.items[q.head]
	q.items[q.head] = queued{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 64 && q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v, true
}

// wake sends without blocking: one wake-up that waits to be seen is enough.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func errTaken(side string, ch weir.ChannelID) error {
	return fmt.Errorf("%w: the %s side of channel %v was created before", weir.ErrConflict, side, ch)
}

func errReleased(ch weir.ChannelID) error {
	return fmt.Errorf("channel %v: its attempt was released: %w", ch, weir.ErrStale)
}

func errClosed(ch weir.ChannelID) error {
	return fmt.Errorf("%w: channel %v is closed for sending", weir.ErrConflict, ch)
}

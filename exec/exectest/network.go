package exectest

import (
	"bytes"
	"context"
	"sync"

	"weir"
)

// A Network joins the tasks of one attempt by bounded queues in memory.
type Network struct {
	capacity int
	encode   bool
	mu       struct {
		sync.Mutex
		channels map[weir.ChannelID]*channel
	}
}

// NewNetwork returns a network whose channels hold capacity frames of records; with
// encode, batches travel as bytes, as between workers.
func NewNetwork(capacity int, encode bool) *Network {
	n := &Network{capacity: capacity, encode: encode}
	n.mu.channels = map[weir.ChannelID]*channel{}
	return n
}

func (n *Network) channel(id weir.ChannelID) *channel {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.mu.channels[id]
	if c == nil {
		c = &channel{framesC: make(chan weir.Frame, n.capacity)}
		n.mu.channels[id] = c
	}
	return c
}

// Inbound implements exec.Network.
func (n *Network) Inbound(id weir.ChannelID, wake chan<- struct{}) (weir.Inbound, error) {
	c := n.channel(id)
	c.mu.Lock()
	c.mu.wake = wake
	c.mu.Unlock()
	return c, nil
}

// Outbound implements exec.Network.
func (n *Network) Outbound(id weir.ChannelID, _ func(error)) (weir.Outbound, bool, error) {
	return n.channel(id), !n.encode, nil
}

type channel struct {
	framesC chan weir.Frame
	mu      struct {
		sync.Mutex
		wake chan<- struct{}
	}
}

// Poll implements weir.Inbound.
func (c *channel) Poll() (weir.Frame, bool, error) {
	select {
	case f := <-c.framesC:
		return f, true, nil
	default:
		return weir.Frame{}, false, nil
	}
}

// Send implements weir.Outbound.
func (c *channel) Send(ctx context.Context, f weir.Frame) error {
	f.Bytes = bytes.Clone(f.Bytes)
	select {
	case c.framesC <- f:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.mu.wake <- struct{}{}:
	default:
	}
	return nil
}

// Idle implements weir.Outbound.
func (c *channel) Idle() bool { return len(c.framesC) == 0 }

// Close implements weir.Outbound.
func (c *channel) Close() error { return nil }

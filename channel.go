package weir

import (
	"context"
	"fmt"
)

// A ChannelID names a channel of an attempt: from one task to another over one
// edge (its index in the graph).
type ChannelID struct {
	Edge int    `json:"edge"`
	From TaskID `json:"from"`
	To   TaskID `json:"to"`
}

// String gives "from>to#edge".
func (c ChannelID) String() string { return fmt.Sprintf("%v>%v#%d", c.From, c.To, c.Edge) }

// An Outbound is the sending end of a channel, for one task. Send blocks while the channel
// has no credit and keeps the order of its calls. A batch, and what a control frame carries, is
// the channel's from then on; the bytes of records it copies, so they are the caller's again. It fails with ErrStale once the attempt is released, with ErrBroken once the
// channel is broken, with ErrInvalid if the frame cannot travel, and with the error of ctx.
// Idle reports whether the receiving task has taken all that was sent; it never blocks.
// Close says that no Send follows; what was sent still arrives.
type Outbound interface {
	Send(ctx context.Context, f Frame) error
	Idle() bool
	Close() error
}

// An Inbound is the receiving end of a channel, for one task. Poll never blocks: it takes
// the next frame, and so grants the sender credit, or says that none is there. An error,
// which wraps ErrBroken, means that no frame will come any more. A frame's Bytes belong to
// the caller and may share memory with those of others.
type Inbound interface {
	Poll() (Frame, bool, error)
}

// ChannelStats says how one end of a channel fares in a worker, or that end of several
// channels together.
type ChannelStats struct {
	Job     JobID     `json:"job"`
	Attempt AttemptID `json:"attempt"`
	Channel ChannelID `json:"channel"`
	Local   bool      `json:"local"`   // both ends are there
	Sending bool      `json:"sending"` // the sending end, or a local channel
	// QueuedBytes wait there: at the sending end to be transmitted, at the receiving end
	// and on a local channel for the task.
	QueuedBytes    int64   `json:"queued_bytes"`
	UnackedBytes   int64   `json:"unacked_bytes"`    // sent and not acknowledged
	CreditBytes    int64   `json:"credit_bytes"`     // may be sent now
	BytesPerSecond float64 `json:"bytes_per_second"` // the task sent, or took, over the last second or more
	Resent         uint64  `json:"resent"`           // frames sent again
}

// Add adds the figures of another channel.
func (c *ChannelStats) Add(o ChannelStats) {
	c.QueuedBytes += o.QueuedBytes
	c.UnackedBytes += o.UnackedBytes
	c.CreditBytes += o.CreditBytes
	c.BytesPerSecond += o.BytesPerSecond
	c.Resent += o.Resent
}

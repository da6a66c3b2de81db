package transport

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"weir"
)

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

// errBroken says of a channel why it is broken.
func errBroken(ch weir.ChannelID, why string) error {
	return fmt.Errorf("%w: channel %v: %s; the job goes on from its last checkpoint", weir.ErrBroken, ch, why)
}

// errAnew says of a channel that one of its ends was opened anew: the peer's, in its role,
// with which something was lost, or this one.
func errAnew(ch weir.ChannelID, why BreakReason, role string, peer weir.TaskID, lost string) error {
	if why == BreakSelf {
		return errBroken(ch, fmt.Sprintf("the %s task %v knows another life of this end, which was opened anew", role, peer))
	}
	return errBroken(ch, fmt.Sprintf("the %s task %v was opened anew, and %s is gone", role, peer, lost))
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

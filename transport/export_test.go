package transport

import (
	"net"
	"os"
	"sync/atomic"

	"weir"
)

// LimitPending gives the subscriptions of an attempt limits of the client library, which
// then drops what is beyond them.
func (n *Network) LimitPending(job weir.JobID, id weir.AttemptID, messages, bytes int) error {
	a, err := n.attempt(job, id)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sub := range a.mu.subs {
		if err := sub.on.SetPendingLimits(messages, bytes); err != nil {
			return err
		}
	}
	return nil
}

// DroppedPending is how many messages the client library has dropped of an attempt.
func (n *Network) DroppedPending(job weir.JobID, id weir.AttemptID) (int, error) {
	a, err := n.attempt(job, id)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	total := 0
	for _, sub := range a.mu.subs {
		dropped, err := sub.on.Dropped()
		if err != nil {
			return 0, err
		}
		total += dropped
	}
	return total, nil
}

// ToldPayload is the max_payload that NATS told the client library last.
func ToldPayload(n *Network) int64 { return n.link.nc().MaxPayload() }

// A fullConn takes nothing at a write for which full is set, within the time that it has.
type fullConn struct {
	net.Conn
	full *atomic.Bool
}

// Write implements net.Conn.
func (c *fullConn) Write(b []byte) (int, error) {
	if c.full.CompareAndSwap(true, false) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(b)
}

// DialFull connects c anew, so that the next write after full was set fails.
func DialFull(c *Control, full *atomic.Bool) error {
	d, nc := c.link.nc().Opts.CustomDialer.(dialer), c.link.nc()
	nc.Opts.CustomDialer = dialer{func(network, address string) (net.Conn, error) {
		conn, err := d.dial(network, address)
		return &fullConn{conn, full}, err
	}}
	return nc.ForceReconnect()
}

// Reconnect connects c anew.
func Reconnect(c *Control) error { return c.link.nc().ForceReconnect() }

// ConnectTimeout bounds each try to connect.
const ConnectTimeout = connectTimeout

// DeafLimit is how long NATS may take to say what a new connection may not hear.
const DeafLimit = deafLimit

// Plans is how many things are to be done about the connection of c.
func Plans(c *Control) int {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return len(c.link.mu.plans)
}

// Reconnects is how often c was connected anew.
func Reconnects(c *Control) uint64 { return c.link.nc().Stats().Reconnects }

package transport

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

// lost notes that the connection is gone; the log has one line for each outage. What the
// server had forbidden is forgotten: the next connection is told anew, maybe before back.
func (l *link) lost(nc *nats.Conn, err error) {
	l.mu.Lock()
	clear(l.mu.denied)
	if l.deafLocked() == "" { // all was heard
		l.mu.wait = 0
	}
	l.mu.sure = false
	for _, t := range l.mu.plans {
		t.Stop()
	}
	l.mu.plans = nil
	say := !l.mu.away && !l.ours.Load()
	l.mu.away = true
	l.mu.Unlock()
	l.pool.Store(int64(len(nc.Servers())))
	l.refusals.Store(0) // one may have ended this connection
	l.flip()
	if err == nil {
		err = nc.LastError()
	}
	if say {
		l.log.Warn("nats connection lost", "err", err)
	}
}

// back notes that there is a connection again. One to a server that takes too little is
// left soon, for another server, or to look whether its max_payload was raised: only a new
// connection is told.
func (l *link) back(nc *nats.Conn) {
	l.refusals.Store(0)
	most := nc.MaxPayload()
	if most < leastMessage {
		l.leave(nc, most)
		return
	}
	l.takes.Store(most)
	l.mu.Lock()
	say := !l.mu.quiet || l.mu.told
	l.mu.away, l.mu.told, l.mu.small, l.mu.quiet = false, false, 0, false
	l.mu.since = time.Now()
	l.mu.Unlock()
	l.flip()
	if say {
		l.log.Info("nats connection is back", "address", nc.ConnectedAddr())
	}
	if most < l.most.Load() && l.say.due("max_payload", time.Now()) {
		l.log.Warn("the max_payload of nats is lower than it was: channels with larger frames break, and their jobs begin again with smaller ones; give all nats servers the same", "address", nc.ConnectedAddr(), "max_payload", most, "was", l.most.Load())
	}
}

// leave gives up a connection that is of no use: at once where other servers have not
// been tried, else after a while.
func (l *link) leave(nc *nats.Conn, most int64) {
	if l.say.due("small", time.Now()) {
		l.log.Error("nats is of no use; it is tried again", "err", errSmall(nc.ConnectedAddr(), most))
	}
	l.mu.Lock()
	l.mu.small++
	wait := unwelcomeWait
	if l.mu.small%max(len(nc.Servers()), 1) != 0 {
		wait = reconnectWait
	}
	l.plan(wait, func() {
		switch {
		case !nc.IsConnected(): // lost meanwhile, and tried again for that
		case nc.MaxPayload() < leastMessage:
			_ = nc.ForceReconnect() // closed: then nobody wants it
		default:
			l.back(nc)
		}
	})
	l.mu.Unlock()
}

// plan has something done about this connection after a while, unless it is lost before. The
// caller holds mu.
func (l *link) plan(wait time.Duration, do func()) {
	l.mu.plans = append(l.mu.plans, time.AfterFunc(wait, do))
}

// errSmall says that a NATS server takes too little.
func errSmall(where string, most int64) error {
	return fmt.Errorf("the max_payload of the NATS server at %s is %d bytes, and weir needs at least %d (4 KiB and a header): raise it, on all servers alike; 1 MiB is what NATS has by itself",
		where, most, leastMessage)
}

// refused takes why a try to connect again failed. However many servers there are, the log
// has one line for an outage, and one every now and then.
func (l *link) refused(err error) {
	if unwelcome(err) {
		l.refusals.Add(1)
		l.say.refused(err)
		return
	}
	l.refusals.Store(0)
	l.mu.Lock()
	first := !l.mu.told
	l.mu.told = true
	l.mu.Unlock()
	if l.say.due("unreachable", time.Now()) || first {
		l.log.Warn("nats cannot be reached; it is tried again", "err", err, "advice", l.say.advice(err))
	}
}

// isAway reports whether lost was called since the last back; nats.go calls these two, and
// trouble, one after another.
func (l *link) isAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.away
}

// trouble takes what nats.go reports of a connection.
func (l *link) trouble(nc *nats.Conn, sub *nats.Subscription, err error) {
	var broken *net.OpError // the loss of the connection follows, and is said
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		l.deny(nc, err)
		l.say.denied(err)
	case unwelcome(err) && !l.isAway(): // it ends what was connected; the next try may be welcome
		l.log.Debug("nats ends the connection", "err", err)
	case unwelcome(err), !nc.IsConnected():
		l.refused(err)
	case errors.As(err, &broken):
		l.log.Debug("nats connection fails", "err", err)
	default:
		l.log.Warn("nats error", "err", err, "subject", subjectOf(sub))
	}
}

// deafWait is the time before the first try to hear again where a subscription is forbidden,
// then doubled, up to deafMost.
const (
	deafWait = 5 * time.Second
	deafMost = time.Minute
	// deafLimit is how long NATS may take to say what a new connection may not subscribe to.
	deafLimit = 500 * time.Millisecond
)

// deny keeps what the NATS server does not allow. A subscription that is forbidden stays so
// when its permission is mended: only a new connection makes it anew.
func (l *link) deny(nc *nats.Conn, err error) {
	verb, subject := violation(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if verb == "subscribe" {
		if !l.mu.sure {
			l.mu.wait = min(max(2*l.mu.wait, deafWait), deafMost)
			l.plan(l.mu.wait, func() { l.listenAgain(nc) })
		}
		l.mu.deaf, l.mu.sure = subject, true
		return
	}
	if len(l.mu.denied) >= complaintsKept { // answers have subjects without end
		clear(l.mu.denied)
	}
	l.mu.denied[subject] = true
}

// listenAgain makes the connection anew, if there is one and something is forbidden on it.
func (l *link) listenAgain(nc *nats.Conn) {
	l.mu.Lock()
	again := l.mu.deaf != "" && nc.IsConnected()
	if again {
		l.mu.away, l.mu.quiet = true, true
	}
	l.mu.Unlock()
	if again {
		_ = nc.ForceReconnect() // closed: then nobody wants it
	}
}

// deaf is a subject that this connection may not subscribe to; empty: none. What the one
// before might not counts until NATS would have said it of this one.
func (l *link) deaf() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deafLocked()
}

func (l *link) deafLocked() string {
	if !l.mu.sure && !l.mu.away && time.Since(l.mu.since) > deafLimit {
		l.mu.deaf = ""
	}
	return l.mu.deaf
}

// forgive forgets that a subject was forbidden: who tries anew finds out.
func (l *link) forgive(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.denied, subject)
}

// forbidden reports whether NATS has refused a message on subject.
func (l *link) forbidden(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.denied[subject]
}

// settle notes that the connection, or what it leads to, has changed.
func (l *link) settle() {
	now := time.Now()
	l.stable.Store(&now)
}

// flip notes that the connection was lost or came back.
func (l *link) flip() {
	l.settle()
	l.flips.Add(1)
	l.asking.interrupt()
	wake(l.alertC)
}

package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A subscription is one of a link, whichever connection that has now.
type subscription struct {
	link    *link
	subject string
	handle  nats.MsgHandler
	turn    sync.Mutex         // of handle: that of a connection which was closed may still be at work
	bytes   int                // that may wait for handle; -1: any
	on      *nats.Subscription // guarded by link.subs; closed with its connection
}

// subscribe has handle take the messages of a subject, one at a time, of which so many bytes
// may wait; -1: any.
func (l *link) subscribe(subject string, handle nats.MsgHandler, bytes int) (*subscription, error) {
	s := &subscription{link: l, subject: subject, handle: handle, bytes: bytes}
	l.subs.Lock()
	defer l.subs.Unlock()
	if err := s.begin(); err != nil && (l.ours.Load() || !errors.Is(err, nats.ErrConnectionClosed)) {
		return nil, err
	}
	l.subs.all[s] = true // without a connection it begins with the next one
	return s, nil
}

// begin subscribes on the connection that the link has now. The caller holds link.subs.
func (s *subscription) begin() error {
	on, err := s.link.nc().Subscribe(s.subject, s.take)
	if err != nil {
		return err
	}
	s.on = on
	return on.SetPendingLimits(-1, s.bytes)
}

func (s *subscription) take(m *nats.Msg) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.handle(m)
}

// end ends the subscription, whose connection may be gone already.
func (s *subscription) end() error {
	s.link.subs.Lock()
	delete(s.link.subs.all, s)
	on := s.on
	s.link.subs.Unlock()
	if on == nil {
		return nil
	}
	err := on.Unsubscribe()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// closed takes note that nats.go has closed the connection for good, as it does after an
// error of the NATS server that it does not know: of a message beyond a max_payload that a
// reload has lowered, say. Then there is another connection soon, unless we close the link.
func (l *link) closed(*nats.Conn) {
	if !l.ours.Load() {
		time.AfterFunc(reconnectWait, l.renew)
	}
}

// renew makes another connection in the place of one that was closed for good, with all
// subscriptions.
func (l *link) renew() {
	if l.ours.Load() {
		return
	}
	nc, err := l.dial()
	if err != nil {
		l.refused(err)
		wait := reconnectWait
		if unwelcome(err) {
			wait = unwelcomeWait
		}
		time.AfterFunc(wait, l.renew)
		return
	}
	if !l.adopt(nc) {
		nc.Close()
		return
	}
	l.back(nc)
}

// adopt makes nc the connection of the link, unless that was closed meanwhile.
func (l *link) adopt(nc *nats.Conn) bool {
	l.subs.Lock()
	defer l.subs.Unlock()
	if l.ours.Load() {
		return false
	}
	l.conn.Store(nc)
	for s := range l.subs.all { // their order does not show
		if err := s.begin(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // else once more
			l.log.Error("nats takes no subscription", "err", err, "subject", s.subject)
		}
	}
	return true
}

// close ends the connection, and the calls that wait for an answer.
func (l *link) close() {
	l.subs.Lock()
	l.ours.Store(true)
	nc := l.nc()
	l.subs.Unlock()
	nc.Close()
	l.asking.interrupt()
}

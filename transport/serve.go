package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"weir"
)

// A Handler runs a command or takes a report. Its ctx ends with the Serve that called
// it, and, where the message has no key, when nobody waits for the answer any more: what
// has a key is not left half done. A body together with an error is an answer that is
// not kept for others who say the same. It may be called by several goroutines at a time.
type Handler = func(ctx context.Context, kind string, body []byte) ([]byte, error)

// Serve takes the commands for worker (or for a server, by the name it gives itself),
// and those for this life of it alone (weir.WorkerID.Life), until ctx ends and all
// running handlers have returned. A command runs once per key, anything else once per message,
// whatever is repeated (T8). Pings are answered with incarnation, even while handlers are busy.
func (c *Control) Serve(ctx context.Context, worker weir.WorkerID, incarnation string, handler Handler) error {
	if err := errors.Join(checkToken("worker", string(worker)), checkToken("incarnation", incarnation)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newDesk(ctx, c, handler, nil)
	hello, err := json.Marshal(pong{Version: messageVersion, Worker: string(worker), Incarnation: incarnation})
	if err != nil {
		return fmt.Errorf("serve worker %s: %w", worker, err)
	}
	take := func(m *nats.Msg) { d.take(kindOf(m.Subject), m.Data, m.Respond) }
	subs, err := c.subscribe(
		listener{c.names.ping(worker), func(m *nats.Msg) {
			if ctx.Err() == nil { // this incarnation is not over
				d.send(m.Respond, hello)
			}
		}},
		listener{c.names.command(worker, "*"), take},
		listener{c.names.command(worker.Life(incarnation), "*"), take},
	)
	if err == nil {
		<-ctx.Done()
	}
	cancel()
	err = errors.Join(err, c.unlisten(subs))
	d.wait()
	if err != nil {
		return fmt.Errorf("serve worker %s: %w", worker, err)
	}
	return nil
}

// A listener is a subject and what is done with its messages, one at a time.
type listener struct {
	subject string
	handle  nats.MsgHandler
}

// subscribe returns those subscriptions that it made, also with an error.
func (c *Control) subscribe(all ...listener) ([]*subscription, error) {
	var subs []*subscription
	for _, l := range all {
		sub, err := c.link.subscribe(l.subject, l.handle, nats.DefaultSubPendingBytesLimit)
		if err != nil {
			return subs, fmt.Errorf("listen at %s: %w", l.subject, err)
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

// unlisten ends subscriptions; where the connection allows, the NATS server has then
// forgotten them.
func (c *Control) unlisten(subs []*subscription) error {
	var errs []error
	for _, sub := range subs {
		errs = append(errs, sub.end())
	}
	if c.Connected() {
		if err := c.link.nc().FlushTimeout(pingLimit); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			c.opts.Log.Warn("the NATS server did not confirm the end of subscriptions", "err", err)
		}
	}
	return errors.Join(errs...)
}

// ServeReports takes the reports of workers until ctx ends and all running handlers
// have returned. Every server gets every report, and the one whom it concerns
// answers: a handler's result, and its errors weir.ErrInvalid, weir.ErrNotFound and
// weir.ErrStale, are answers; weir.ErrConflict ("not mine", "not now") and other errors
// are not, and the report comes again.
func (c *Control) ServeReports(ctx context.Context, handler Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newDesk(ctx, c, handler, func(err error) bool {
		return errors.Is(err, weir.ErrInvalid) || errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrStale)
	})
	subs, err := c.subscribe(listener{c.names.report(), func(m *nats.Msg) { d.take("", m.Data, m.Respond) }})
	if err == nil {
		<-ctx.Done()
	}
	cancel()
	err = errors.Join(err, c.unlisten(subs))
	d.wait()
	return err
}

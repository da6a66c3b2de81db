package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"

	"weir"
)

const (
	handlersMost = 64       // requests that one Serve runs at a time
	answersKept  = 1024     // for requests that are repeated late
	answersBytes = 16 << 20 // weight of those
)

// A Handler runs a command or takes a report. Its ctx ends with the Serve that called
// it. It may be called by several goroutines at a time.
type Handler = func(ctx context.Context, kind string, body []byte) ([]byte, error)

// Serve takes the commands for worker (or for a server, by the name it gives itself),
// and those for this life of it alone (weir.WorkerID.Life), until ctx ends and all
// running handlers have returned. A command runs once per id, whatever is repeated
// (T8). Pings are answered with incarnation, even while handlers are busy.
func (c *Control) Serve(ctx context.Context, worker weir.WorkerID, incarnation string, handler Handler) error {
	if err := errors.Join(checkToken("worker", string(worker)), checkToken("incarnation", incarnation)); err != nil {
		return err
	}
	d := newDesk(ctx, c, handler, func(error) bool { return true })
	hello, err := json.Marshal(pong{Version: messageVersion, Worker: string(worker), Incarnation: incarnation})
	if err != nil {
		return fmt.Errorf("serve worker %s: %w", worker, err)
	}
	take := func(m *nats.Msg) { d.take(kindOf(m.Subject), m.Data, m.Respond) }
	subs, err := c.subscribe(
		listener{c.names.ping(worker), func(m *nats.Msg) {
			if ctx.Err() == nil { // this incarnation is not over
				d.reply(m.Respond, hello)
			}
		}},
		listener{c.names.command(worker, "*"), take},
		listener{c.names.command(worker.Life(incarnation), "*"), take},
	)
	if err == nil {
		<-ctx.Done()
	}
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
func (c *Control) subscribe(all ...listener) ([]*nats.Subscription, error) {
	var subs []*nats.Subscription
	for _, l := range all {
		sub, err := c.link.nc.Subscribe(l.subject, l.handle)
		if err != nil {
			return subs, fmt.Errorf("listen at %s: %w", l.subject, err)
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

// unlisten ends subscriptions; where the connection allows, the NATS server has then
// forgotten them.
func (c *Control) unlisten(subs []*nats.Subscription) error {
	var errs []error
	for _, sub := range subs {
		errs = append(errs, unsubscribe(sub))
	}
	if c.Connected() {
		if err := c.link.nc.FlushTimeout(pingLimit); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
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
	d := newDesk(ctx, c, handler, func(err error) bool {
		return errors.Is(err, weir.ErrInvalid) || errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrStale)
	})
	sub, err := c.link.nc.Subscribe(c.names.report(), func(m *nats.Msg) {
		d.take("", m.Data, m.Respond)
	})
	if err != nil {
		return fmt.Errorf("listen for reports: %w", err)
	}
	<-ctx.Done()
	err = unsubscribe(sub)
	d.wait()
	return err
}

// A desk runs requests, each id once, and answers those that are repeated.
type desk struct {
	ctx     context.Context
	log     *slog.Logger
	most    int64 // bytes of an answer
	handler Handler
	final   func(error) bool // whether an error is an answer
	slotsC  chan struct{}    // holds one value per running handler
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		calls  map[string]*call
		order  []string // ids answered, oldest first
		bytes  int      // weight of their answers
		closed bool
	}
}

// A call is one id: running until done, answered then.
type call struct {
	done    bool
	answer  []byte
	respond func([]byte) error // to the latest repetition
}

func newDesk(ctx context.Context, c *Control, handler Handler, final func(error) bool) *desk {
	d := &desk{
		ctx: ctx, log: c.opts.Log, most: c.link.nc.MaxPayload(),
		handler: handler, final: final, slotsC: make(chan struct{}, handlersMost),
	}
	d.mu.calls = map[string]*call{}
	return d
}

// take receives one request on the subscription's goroutine, which it blocks while
// too many are running. kind is what NATS has let pass ("": any); the message may not
// say something else.
func (d *desk) take(kind string, data []byte, respond func([]byte) error) {
	msg, err := decodeMessage(data)
	if err == nil && kind != "" && msg.Kind != kind {
		err = fmt.Errorf("%w: a message of kind %q came as %q", weir.ErrInvalid, msg.Kind, kind)
	}
	if err != nil {
		d.reply(respond, encodeAnswer(msg.ID, nil, err))
		return
	}
	if !d.begin(msg.ID, respond) {
		return
	}
	select {
	case d.slotsC <- struct{}{}:
		go d.run(msg)
	case <-d.ctx.Done():
		d.running.Done()
	}
}

// begin reports whether id is to be run; if it is running or answered, respond is
// dealt with.
func (d *desk) begin(id string, respond func([]byte) error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return false
	}
	known := d.mu.calls[id]
	switch {
	case known == nil:
		d.mu.calls[id] = &call{respond: respond}
		d.running.Add(1) // wait may not have begun: closed is false
		return true
	case known.done:
		d.reply(respond, known.answer)
	default:
		known.respond = respond
	}
	return false
}

// run is the goroutine of one request.
func (d *desk) run(msg message) {
	defer d.running.Done()
	defer func() { <-d.slotsC }()
	body, err := d.handler(d.ctx, msg.Kind, msg.Body)
	if err != nil && !d.final(err) {
		if !errors.Is(err, weir.ErrConflict) {
			d.log.Warn("report not taken, it will come again", "kind", msg.Kind, "err", err)
		}
		d.mu.Lock()
		delete(d.mu.calls, msg.ID)
		d.mu.Unlock()
		return
	}
	answer := encodeAnswer(msg.ID, body, err)
	if int64(len(answer)) > d.most {
		answer = encodeAnswer(msg.ID, nil, fmt.Errorf("%w: an answer of %d bytes is larger than the NATS server takes (%d); ask for less or raise its max_payload",
			weir.ErrInvalid, len(answer), d.most))
	}
	d.finish(msg.ID, answer)
}

// finish answers the latest repetition of id and keeps the answer for later ones.
func (d *desk) finish(id string, answer []byte) {
	d.mu.Lock()
	known := d.mu.calls[id]
	known.done, known.answer = true, answer
	respond := known.respond
	known.respond = nil
	d.mu.order = append(d.mu.order, id)
	d.mu.bytes += len(answer)
	for len(d.mu.order) > answersKept || d.mu.bytes > answersBytes && len(d.mu.order) > 1 {
		oldest := d.mu.order[0]
		d.mu.order = d.mu.order[1:]
		d.mu.bytes -= len(d.mu.calls[oldest].answer)
		delete(d.mu.calls, oldest)
	}
	d.mu.Unlock()
	d.reply(respond, answer)
}

// reply answers; if that fails, the request will be repeated.
func (d *desk) reply(respond func([]byte) error, answer []byte) {
	if err := respond(answer); err != nil {
		d.log.Warn("answer not sent", "err", err)
	}
}

// wait takes nothing more and returns when all handlers have.
func (d *desk) wait() {
	d.mu.Lock()
	d.mu.closed = true
	d.mu.Unlock()
	d.running.Wait()
}

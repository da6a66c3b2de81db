package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"weir"
)

// serviceName is what `nats micro ls` shows; metadata tell workers apart.
const serviceName = "weir"

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
// (T8). Pings are answered with incarnation, even while handlers are busy. All show in
// `nats micro ls`.
func (c *Control) Serve(ctx context.Context, worker weir.WorkerID, incarnation string, handler Handler) error {
	if err := checkToken("worker", string(worker)); err != nil {
		return err
	}
	svc, err := micro.AddService(c.link.nc, micro.Config{
		Name: serviceName, Version: "1.0.0", Description: "a process of Weir that takes commands",
		Metadata:           map[string]string{"worker": string(worker), "incarnation": incarnation},
		QueueGroupDisabled: true,
	})
	if err != nil {
		return fmt.Errorf("serve worker %s: %w", worker, err)
	}
	d := newDesk(ctx, c, handler, func(error) bool { return true })
	hello, err := json.Marshal(pong{Version: messageVersion, Worker: string(worker), Incarnation: incarnation})
	if err == nil {
		err = svc.AddEndpoint("ping", micro.HandlerFunc(func(r micro.Request) {
			if ctx.Err() != nil {
				return // this incarnation is over
			}
			if err := r.Respond(hello); err != nil {
				c.opts.Log.Warn("ping not answered", "err", err)
			}
		}), micro.WithEndpointSubject(c.names.ping(worker)))
	}
	take := micro.HandlerFunc(func(r micro.Request) {
		d.take(r.Data(), func(b []byte) error { return r.Respond(b) })
	})
	if err == nil {
		err = svc.AddEndpoint("command", take, micro.WithEndpointSubject(c.names.command(worker)))
	}
	if err == nil {
		err = svc.AddEndpoint("life", take, micro.WithEndpointSubject(c.names.command(worker.Life(incarnation))))
	}
	if err == nil {
		<-ctx.Done()
	}
	err = errors.Join(err, c.stop(svc))
	d.wait()
	if err != nil {
		return fmt.Errorf("serve worker %s: %w", worker, err)
	}
	return nil
}

// stop ends a service; where the connection allows, the NATS server has then
// forgotten it.
func (c *Control) stop(svc micro.Service) error {
	err := svc.Stop()
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil
	}
	if err == nil && c.Connected() {
		if flushErr := c.link.nc.FlushTimeout(pingLimit); flushErr != nil {
			c.opts.Log.Warn("service ended without confirmation", "err", flushErr)
		}
	}
	return err
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
		d.take(m.Data, m.Respond)
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
// too many are running.
func (d *desk) take(data []byte, respond func([]byte) error) {
	msg, err := decodeMessage(data)
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

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"weir"
)

const (
	handlersMost = 64       // requests that one Serve runs at a time
	waitingMost  = 1024     // that wait for their turn
	askersMost   = 64       // messages that wait for the same answer
	answersKept  = 1024     // for requests that are repeated late
	answersBytes = 16 << 20 // weight of those
)

// A desk runs requests, each name once, and answers those that are repeated: a command
// by its key, anything else by the id of its message.
type desk struct {
	ctx     context.Context
	c       *Control
	log     *slog.Logger
	handler Handler
	report  func(error) bool // whether an error answers a report; nil: it serves commands
	slotsC  chan struct{}    // holds one value per running handler
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		calls  map[string]*call
		order  []*call                       // kept ones, oldest first
		bytes  int                           // their weight
		newest map[weir.JobID]weir.AttemptID // of the jobs of commands that came
		active int
		closed bool
	}
}

// A call is what has one name. Its fields but msg are the desk's, under its mutex; while
// active is true a goroutine is at it.
type call struct {
	msg     message
	until   time.Time // nobody waits longer; zero: somebody does
	expiry  *time.Timer
	active  bool
	done    bool // the answer is there
	waiting []asker
	body    []byte // the answer
	err     error
	last    string // the message that was answered last: not how, which would keep it in memory
	reply   []byte
	weight  int
}

// An asker is a message that waits for an answer.
type asker struct {
	id      string
	respond func([]byte) error // to its latest repetition
}

func newDesk(ctx context.Context, c *Control, handler Handler, report func(error) bool) *desk {
	d := &desk{ctx: ctx, c: c, log: c.opts.Log, handler: handler, report: report, slotsC: make(chan struct{}, handlersMost)}
	d.mu.calls, d.mu.newest = map[string]*call{}, map[weir.JobID]weir.AttemptID{}
	return d
}

// take receives one request on the subscription's goroutine, which it does not block.
// kind is what NATS has let pass ("": any); the message may not say something else.
func (d *desk) take(kind string, data []byte, respond func([]byte) error) {
	msg, err := decodeMessage(data)
	if err == nil && kind != "" && msg.Kind != kind {
		err = fmt.Errorf("%w: a message of kind %q came as %q", weir.ErrInvalid, msg.Kind, kind)
	}
	if err != nil {
		d.send(respond, newAnswer(msg.ID, nil, err).encode())
		return
	}
	var until time.Time
	if msg.WaitMS > 0 {
		until = time.Now().Add(time.Duration(msg.WaitMS) * time.Millisecond)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return
	}
	d.outdate(msg.Key)
	known := d.mu.calls[msg.name()]
	if known != nil && known.done && d.old(msg.Key) {
		d.forget(known) // whoever waits for its answer still gets it
		known = nil
	}
	if known != nil {
		known.join(asker{msg.ID, respond}, until)
		if !known.active {
			d.start(known, d.answerAll)
		}
		return
	}
	if d.mu.active >= waitingMost {
		d.log.Warn("too many requests, one is put off", "kind", msg.Kind)
		return // it is repeated
	}
	fresh := &call{msg: msg, until: until, waiting: []asker{{msg.ID, respond}}}
	d.mu.calls[msg.name()] = fresh
	d.start(fresh, d.run)
}

// start begins a goroutine for a call; d.mu is held.
func (d *desk) start(c *call, work func(*call)) {
	c.active = true
	d.mu.active++
	d.running.Add(1) // wait may not have begun: closed is false
	go func() {
		defer d.running.Done()
		work(c)
	}()
}

// outdate forgets answers to commands of older attempts of a job; d.mu is held.
func (d *desk) outdate(key *messageKey) {
	if key == nil || key.Attempt.Number <= d.mu.newest[key.Job].Number {
		return
	}
	if len(d.mu.newest) >= answersKept {
		clear(d.mu.newest) // it only tells what may be forgotten sooner
	}
	d.mu.newest[key.Job] = key.Attempt
	kept := d.mu.order[:0]
	for _, c := range d.mu.order {
		if old := c.msg.Key; old != nil && old.Job == key.Job && old.Attempt.Number < key.Attempt.Number {
			d.forget(c)
			d.mu.bytes -= c.weight
		} else {
			kept = append(kept, c)
		}
	}
	clear(d.mu.order[len(kept):])
	d.mu.order = kept
}

// old reports whether a command is of an attempt that another one has followed; d.mu is held.
func (d *desk) old(key *messageKey) bool {
	return key != nil && key.Attempt.Number < d.mu.newest[key.Job].Number
}

// forget takes a call's name away; d.mu is held.
func (d *desk) forget(c *call) {
	if name := c.msg.name(); d.mu.calls[name] == c {
		delete(d.mu.calls, name)
	}
}

// join adds a message to those that wait; the latest repetition of each is answered.
func (c *call) join(a asker, until time.Time) {
	if until.IsZero() || !c.until.IsZero() && until.After(c.until) {
		c.until = until
		if c.expiry != nil {
			if until.IsZero() {
				c.expiry.Stop()
			} else {
				c.expiry.Reset(time.Until(until))
			}
		}
	}
	for i := range c.waiting {
		if c.waiting[i].id == a.id {
			c.waiting[i] = a
			return
		}
	}
	if len(c.waiting) < askersMost {
		c.waiting = append(c.waiting, a)
	}
}

// run is the goroutine of one request.
func (d *desk) run(c *call) {
	select {
	case d.slotsC <- struct{}{}:
		defer func() { <-d.slotsC }()
	case <-d.ctx.Done():
		d.end(c)
		return
	}
	ctx, cancel, wanted := d.begin(c)
	defer cancel()
	if !wanted {
		d.log.Info("request not begun: nobody waits for it any more", "kind", c.msg.Kind)
		return
	}
	body, err := []byte(c.msg.Body), error(nil)
	if c.msg.Object != nil {
		body, err = d.c.objects.get(ctx, c.msg.Object)
	}
	if err != nil && d.report != nil { // its sender puts it anew
		d.log.Warn("report not read, it will come again", "kind", c.msg.Kind, "err", err)
		d.end(c)
		return
	}
	read := err == nil
	if read {
		body, err = d.handle(ctx, c.msg.Kind, body)
	}
	if d.report == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		d.end(c) // its asker says so better
		return
	}
	if d.report != nil && err != nil && !d.report(err) {
		if !errors.Is(err, weir.ErrConflict) {
			d.log.Warn("report not taken, it will come again", "kind", c.msg.Kind, "err", err)
		}
		d.end(c)
		return
	}
	d.finish(c, body, err, read)
}

// handle calls the handler, of which a panic is an error like others: it ends no process.
func (d *desk) handle(ctx context.Context, kind string, body []byte) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("request handler failed", "kind", kind, "err", p, "stack", string(debug.Stack()))
			answer, err = nil, fmt.Errorf("%s failed: %v; this is a fault of Weir, of which the log has more", kind, p) //nolint:err113 // nobody knows it
		}
	}()
	return d.handler(ctx, kind, body)
}

// begin makes a handler's context, unless nobody waits any more. What has a key is not
// left half done: only the end of Serve ends it.
func (d *desk) begin(c *call) (ctx context.Context, cancel context.CancelFunc, wanted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.until.IsZero() && !time.Now().Before(c.until) {
		d.endLocked(c)
		return d.ctx, func() {}, false
	}
	if c.msg.Key != nil || d.report != nil || c.until.IsZero() {
		ctx, cancel = context.WithCancel(d.ctx)
		return ctx, cancel, true
	}
	ctx, end := context.WithCancelCause(d.ctx)
	c.expiry = time.AfterFunc(time.Until(c.until), func() { end(context.DeadlineExceeded) })
	timer := c.expiry
	return ctx, func() { timer.Stop(); end(nil) }, true
}

// finish answers all who wait, and keeps the answer where it is for good.
func (d *desk) finish(c *call, body []byte, err error, read bool) {
	d.mu.Lock()
	c.msg.Body, c.expiry = nil, nil
	c.body, c.err, c.done = body, err, true
	if body != nil {
		c.err = nil
	}
	if !read || err != nil && c.msg.Key != nil {
		d.forget(c) // who says the same later is judged anew
	}
	d.mu.Unlock()
	d.answerAll(c)
}

// answerAll answers until nobody waits; then the call rests.
func (d *desk) answerAll(c *call) {
	for {
		d.mu.Lock()
		waiting := c.waiting
		if c.waiting = nil; len(waiting) == 0 {
			d.rest(c)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		for _, a := range waiting {
			d.answer(c, a)
		}
	}
}

// rest ends a call's goroutine and keeps its answer; d.mu is held.
func (d *desk) rest(c *call) {
	c.active = false
	d.mu.active--
	if d.mu.calls[c.msg.name()] != c || c.weight > 0 { // forgotten, or kept already
		return
	}
	if d.old(c.msg.Key) {
		d.forget(c)
		return
	}
	c.weight = 1 + len(c.body) + len(c.reply)
	d.mu.order = append(d.mu.order, c)
	d.mu.bytes += c.weight
	for len(d.mu.order) > answersKept || d.mu.bytes > answersBytes && len(d.mu.order) > 1 {
		oldest := d.mu.order[0]
		d.mu.order[0] = nil
		d.mu.order = d.mu.order[1:]
		d.mu.bytes -= oldest.weight
		d.forget(oldest)
	}
}

// answer answers one message; a repetition of it gets the same bytes, be it that they
// name an object, which the asker deletes, or say why there is none.
func (d *desk) answer(c *call, to asker) {
	if c.reply != nil && c.last == to.id {
		d.send(to.respond, c.reply)
		return
	}
	c.last, c.reply = to.id, d.reply(newAnswer(to.id, c.body, c.err))
	d.send(to.respond, c.reply)
}

// reply gives the bytes of an answer, whose body may go as an object.
func (d *desk) reply(a answer) []byte {
	most := d.c.link.nc().MaxPayload()
	if int64(len(a.Body)) < most {
		if reply := a.encode(); int64(len(reply)) <= most {
			return reply
		}
	}
	o, err := d.c.objects.put(d.ctx, a.Body, len(a.Body), most)
	if err != nil {
		return newAnswer(a.ID, nil, err).encode()
	}
	a.Body, a.Object = nil, o
	return a.encode()
}

// end ends a call that is not answered: a repetition begins anew.
func (d *desk) end(c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(c)
}

func (d *desk) endLocked(c *call) {
	d.forget(c)
	c.active = false
	d.mu.active--
}

// send answers; if that fails, the request will be repeated.
func (d *desk) send(respond func([]byte) error, reply []byte) {
	if err := respond(reply); err != nil {
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

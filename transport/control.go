package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

const (
	firstTry    = 500 * time.Millisecond // an answer is waited for so long, then doubled
	longestTry  = 2 * time.Second        // up to this, before the message is repeated
	betweenAsk  = 50 * time.Millisecond  // between tries that failed at once
	absentAfter = 2 * time.Second        // "no responders" for so long ends a Request
	askLimit    = 30 * time.Second       // of a Request whose context has no deadline
	pingLimit   = time.Second            // of a Ping; after it there is silence

	heartbeatsWait = 1024 // heartbeats that wait to be handled
)

// A Control carries commands from servers to workers and reports from workers to
// servers, over a connection of its own. Bodies are JSON and opaque.
type Control struct {
	opts  Options
	names subjects
	link  *link
}

// OpenControl connects for control. Close ends it.
func OpenControl(ctx context.Context, opts Options) (*Control, error) {
	opts = opts.withDefaults()
	names, err := newSubjects(opts.Cluster)
	if err != nil {
		return nil, err
	}
	l, err := connect(ctx, opts, names, "control")
	if err != nil {
		return nil, err
	}
	return &Control{opts: opts, names: names, link: l}, nil
}

// Close ends the connection; running calls fail.
func (c *Control) Close() { c.link.nc.Close() }

// Connected reports whether the connection is up.
func (c *Control) Connected() bool { return c.link.up() }

// StableSince is when the connection came up, or the set of NATS servers last
// changed; zero while it is down. Whoever judges the silence of others asks it first.
func (c *Control) StableSince() time.Time { return c.link.stableSince() }

// Request has worker run a command and returns its answer. It is repeated with the
// same id until an answer comes, so it runs once (T8). It fails with the error of
// ctx; with the worker's own error, as a *RemoteError; with weir.ErrNotFound if
// nobody answers for the worker for 2 s while the connection is stable. Without a
// deadline in ctx it ends after 30 s, not counting time without a connection.
func (c *Control) Request(ctx context.Context, worker weir.WorkerID, kind string, body []byte) ([]byte, error) {
	if err := checkToken("worker", string(worker)); err != nil {
		return nil, err
	}
	if err := checkToken("kind", kind); err != nil {
		return nil, err
	}
	a := ask{control: c, subject: c.names.command(worker, kind), absent: absentAfter}
	if _, limited := ctx.Deadline(); !limited {
		a.limit = askLimit
	}
	reply, err := a.run(ctx, kind, body)
	if err != nil {
		return nil, fmt.Errorf("worker %s: %s: %w", worker, kind, err)
	}
	return reply, nil
}

// MaxPayload is the largest payload of a frame that the NATS server takes.
func (c *Control) MaxPayload() int { return c.link.maxPayload() }

// Publish reports to the servers and returns the answer of the one whom it concerns.
// It is repeated with the same id until a server answers or ctx ends, so nothing is
// lost silently (T9); a server may see it more than once.
func (c *Control) Publish(ctx context.Context, kind string, body []byte) ([]byte, error) {
	a := ask{control: c, subject: c.names.report()}
	reply, err := a.run(ctx, kind, body)
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", kind, err)
	}
	return reply, nil
}

// An ask is one message that wants one answer, however often it has to be sent.
type ask struct {
	control *Control
	subject string
	absent  time.Duration // how long nobody may listen; 0: for ever
	limit   time.Duration // connected time without an answer; 0: for ever

	absentSince time.Time
	spent       time.Duration
}

func (a *ask) run(ctx context.Context, kind string, body []byte) ([]byte, error) {
	id := weir.NewIncarnation()
	data, err := encodeMessage(message{ID: id, Kind: kind, Body: body})
	if err != nil {
		return nil, err
	}
	if most := a.control.link.nc.MaxPayload(); int64(len(data)) > most {
		return nil, fmt.Errorf("%w: a message of %d bytes is larger than the NATS server takes (%d); raise its max_payload", weir.ErrInvalid, len(data), most)
	}
	for try := firstTry; ; try = min(2*try, longestTry) {
		began := time.Now()
		reply, err := a.once(ctx, data, try)
		if err == nil {
			return decodeAnswer(reply.Data, id)
		}
		if err := a.giveUp(ctx, err, time.Since(began)); err != nil {
			return nil, err
		}
		if err := pause(ctx, betweenAsk); err != nil {
			return nil, fmt.Errorf("no answer: %w", err)
		}
	}
}

func (a *ask) once(ctx context.Context, data []byte, try time.Duration) (*nats.Msg, error) {
	tryCtx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	return a.control.link.nc.RequestWithContext(tryCtx, a.subject, data)
}

// giveUp decides whether the failure of a try is final.
func (a *ask) giveUp(ctx context.Context, err error, took time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
	if errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("the connection was closed: %w", weir.ErrStale)
	}
	if a.absent > 0 && a.control.link.forbidden(a.subject) {
		return fmt.Errorf("%w: %w", weir.ErrInvalid, errDenied(a.subject))
	}
	stable := a.control.StableSince()
	if stable.IsZero() {
		a.absentSince = time.Time{} // T7
		return nil
	}
	if a.spent += took + betweenAsk; a.limit > 0 && a.spent > a.limit {
		return fmt.Errorf("no answer within %v: %w", a.limit, context.DeadlineExceeded)
	}
	switch now := time.Now(); {
	case !errors.Is(err, nats.ErrNoResponders):
		a.absentSince = time.Time{}
	case a.absentSince.IsZero() || stable.After(a.absentSince):
		a.absentSince = now
	case a.absent > 0 && now.Sub(a.absentSince) > a.absent:
		return fmt.Errorf("%w: nobody has listened for %v", weir.ErrNotFound, a.absent)
	}
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ping asks worker for its incarnation, once. weir.ErrNotFound: nobody listens
// there; weir.ErrConflict: our own connection is down; context.DeadlineExceeded:
// silence for 1 s, or until ctx ended.
func (c *Control) Ping(ctx context.Context, worker weir.WorkerID) (string, error) {
	if err := checkToken("worker", string(worker)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	reply, err := c.link.nc.RequestWithContext(ctx, c.names.ping(worker), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "", fmt.Errorf("ping worker %s: %w: nobody listens", worker, weir.ErrNotFound)
	case err != nil && ctx.Err() != nil && c.Connected():
		return "", fmt.Errorf("ping worker %s: silence: %w", worker, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("ping worker %s: %w: no connection to NATS: %w", worker, weir.ErrConflict, err)
	}
	var p pong
	if err := json.Unmarshal(reply.Data, &p); err != nil {
		return "", fmt.Errorf("ping worker %s: %w", worker, err)
	}
	return p.Incarnation, checkVersion(p.Version)
}

// Heartbeat tells every server that listens, at most once: the next one makes up for
// a lost one. It fails if there is no connection.
func (c *Control) Heartbeat(ctx context.Context, body []byte) error {
	data, err := encodeMessage(message{Kind: "heartbeat", Body: body})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.link.publish(c.names.heartbeat(), data); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// Heartbeats calls handle with the body of every heartbeat until ctx ends, one at a
// time and on the caller's goroutine. Where handle is too slow, heartbeats are lost.
func (c *Control) Heartbeats(ctx context.Context, handle func(body []byte)) error {
	msgC := make(chan *nats.Msg, heartbeatsWait)
	sub, err := c.link.nc.ChanSubscribe(c.names.heartbeat(), msgC)
	if err != nil {
		return fmt.Errorf("listen for heartbeats: %w", err)
	}
	for {
		select {
		case m := <-msgC:
			msg, err := decodeMessage(m.Data)
			if err != nil {
				c.opts.Log.Warn("message dropped", "subject", m.Subject, "err", err)
				continue
			}
			handle(msg.Body)
		case <-ctx.Done():
			return unsubscribe(sub)
		}
	}
}

// unsubscribe ends a subscription whose connection may be gone already.
func unsubscribe(sub *nats.Subscription) error {
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
		return fmt.Errorf("unsubscribe: %w", err)
	}
	return nil
}

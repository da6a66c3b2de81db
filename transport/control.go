package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

// pingLimit bounds a Ping; after it there is silence.
const pingLimit = time.Second

// A Control carries commands from servers to workers and reports from workers to
// servers, over a connection of its own. Bodies are JSON and opaque.
type Control struct {
	opts    Options
	names   subjects
	link    *link
	objects *store
	mail    *mailbox
	life    string        // names this process in the parts of its heartbeats, and its inbox
	beats   atomic.Uint64 // heartbeats that went in parts
}

// OpenControl connects for control. Close ends it.
func OpenControl(ctx context.Context, opts Options) (*Control, error) {
	opts = opts.withDefaults()
	names, err := newSubjects(opts.Cluster)
	if err != nil {
		return nil, err
	}
	l, err := connect(ctx, opts, roleControl)
	if err != nil {
		return nil, err
	}
	c := &Control{opts: opts, names: names, link: l, objects: newStore(opts), life: weir.NewIncarnation()}
	at := names.inbox(opts.Worker, c.life)
	c.mail, err = openMailbox(l, at+">", func(from, id string) string { return at + from + "." + id })
	if err != nil {
		l.close()
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	return c, nil
}

// Close ends the connection; running calls fail.
func (c *Control) Close() { c.link.close() }

// Connected reports whether the connection is up.
func (c *Control) Connected() bool { return c.link.up() }

// Ready says why commands and reports wait: there is no connection, or the NATS server takes
// too little to be of use; nil: they need not.
func (c *Control) Ready() error { return c.link.ready() }

// StableSince is when the connection came up, or the set of NATS servers last
// changed; zero while it is down. Whoever judges the silence of others asks it first.
func (c *Control) StableSince() time.Time { return c.link.stableSince() }

// AbsentFor is for how long nobody answers under the name of a worker that lives, at most:
// until its connection has come back, or leads to another NATS server of the cluster.
func (c *Control) AbsentFor() time.Duration { return c.link.absentFor() }

// Request asks worker anew and returns its answer: it is repeated with the same id
// until an answer comes, so it is asked once (T8). It fails with the error of ctx; with
// the worker's own error, as a *RemoteError; with weir.ErrNotFound if nobody answers for
// the worker for 2 s while the connection is stable. Without a deadline in ctx it ends
// after 30 s, not counting time without a connection.
func (c *Control) Request(ctx context.Context, worker weir.WorkerID, kind string, body []byte) ([]byte, error) {
	return c.Command(ctx, worker, weir.CommandKey{Kind: kind}, body)
}

// Command is Request of what has a name: a worker carries it out once, whichever server
// sends it and however often. An answer that it was done is kept there and given again;
// a refusal is not, it may have other reasons the next time. A key without a job asks
// anew.
func (c *Control) Command(ctx context.Context, worker weir.WorkerID, key weir.CommandKey, body []byte) ([]byte, error) {
	if err := checkToken("worker", string(worker)); err != nil {
		return nil, err
	}
	if err := checkToken("kind", key.Kind); err != nil {
		return nil, err
	}
	a := ask{control: c, subject: c.names.command(worker, key.Kind), from: c.names.from(worker), absent: absentAfter, body: body}
	a.message.Kind = key.Kind
	if key.Job != "" {
		a.message.Key = &messageKey{key.Job, key.Attempt, key.ID}
	}
	if _, limited := ctx.Deadline(); !limited {
		a.limit = askLimit
	}
	reply, err := a.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("worker %s: %s: %w", worker, key.Kind, err)
	}
	return reply, nil
}

// MaxPayload is the largest payload of a frame that the NATS server takes.
func (c *Control) MaxPayload() int { return c.link.maxPayload() }

// Publish reports to the servers and returns the answer of the one whom it concerns.
// It is repeated with the same id until a server answers or ctx ends, so nothing is
// lost silently (T9); a server may see it more than once.
func (c *Control) Publish(ctx context.Context, kind string, body []byte) ([]byte, error) {
	a := ask{control: c, subject: c.names.report(), from: c.names.from(""), report: true, body: body}
	a.message.Kind = kind
	reply, err := a.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", kind, err)
	}
	return reply, nil
}

// Ping asks worker for its incarnation, once. weir.ErrNotFound: nobody listens
// there; weir.ErrConflict: our own connection is down; context.DeadlineExceeded:
// silence for 1 s, or until ctx ended.
func (c *Control) Ping(ctx context.Context, worker weir.WorkerID) (string, error) {
	if err := checkToken("worker", string(worker)); err != nil {
		return "", err
	}
	if err := c.Ready(); err != nil {
		return "", fmt.Errorf("ping worker %s: %w: %w", worker, weir.ErrConflict, err)
	}
	try, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	defer c.link.asking.add(cancel)() // it may be our own connection that swallows it
	reply, err := c.mail.ask(try, c.names.from(worker), c.names.ping(worker), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "", fmt.Errorf("ping worker %s: %w: nobody listens", worker, weir.ErrNotFound)
	case err != nil && c.Connected() && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)):
		return "", fmt.Errorf("ping worker %s: silence: %w", worker, err)
	case err != nil:
		return "", fmt.Errorf("ping worker %s: %w: no connection to NATS: %w", worker, weir.ErrConflict, err)
	}
	var p pong
	if err := json.Unmarshal(reply.Data, &p); err != nil {
		return "", fmt.Errorf("ping worker %s: %w", worker, err)
	}
	return p.Incarnation, checkVersion(p.Version)
}

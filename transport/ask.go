package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

const (
	firstTry    = 500 * time.Millisecond // an answer is waited for so long, then doubled
	longestTry  = 2 * time.Second        // up to this, before the message is repeated
	betweenAsk  = 50 * time.Millisecond  // between tries that failed at once, then doubled
	rarestAsk   = 400 * time.Millisecond // up to this
	absentAfter = 2 * time.Second        // "no responders" for so long ends a Request
	askLimit    = 30 * time.Second       // of a Request whose context has no deadline
)

// An ask is one message that wants one answer, however often it has to be sent.
type ask struct {
	control *Control
	subject string
	from    string // who is to answer, as in the subject of the answer
	message message
	body    []byte
	report  bool          // it goes on until ctx ends
	absent  time.Duration // how long nobody may listen; 0: for ever
	limit   time.Duration // connected time without an answer; 0: for ever

	try         time.Duration // how long the next one waits
	between     time.Duration // before the next one, where the last failed at once
	absentSince time.Time
	spent       time.Duration
	last        error // what storage said to the last try
}

func (a *ask) run(ctx context.Context) ([]byte, error) {
	a.message.ID, a.try, a.between = weir.NewIncarnation(), firstTry, betweenAsk
	if len(a.body) > 0 && !json.Valid(a.body) {
		return nil, fmt.Errorf("%w: body of %q is not JSON", weir.ErrInvalid, a.message.Kind)
	}
	a.control.link.forgive(a.subject) // its permission may have been mended
	defer func() { a.drop(ctx, a.message.Object) }()
	for {
		began := time.Now()
		reply, err := a.once(ctx)
		if err == nil {
			return a.read(ctx, reply)
		}
		if err := a.giveUp(ctx, err, time.Since(began)); err != nil {
			return nil, err
		}
		wait := a.between/2 + rand.N(a.between/2)
		a.spent += wait
		if err := pause(ctx, wait); err != nil {
			return nil, a.noAnswer(err)
		}
	}
}

// once sends the message and waits for its answer; the connection's end, or its return,
// ends the wait: what was under way is lost.
func (a *ask) once(ctx context.Context) (*nats.Msg, error) {
	link := a.control.link
	if link.ours.Load() {
		return nil, nats.ErrConnectionClosed
	}
	if !link.up() { // nothing is written to storage for nobody
		return nil, nats.ErrReconnectBufExceeded
	}
	data, err := a.pack(ctx)
	if err != nil {
		return nil, err
	}
	tryCtx, cancel := context.WithTimeout(ctx, a.try)
	defer cancel()
	defer link.asking.add(cancel)()
	return a.control.mail.ask(tryCtx, a.from, a.subject, data)
}

// pack makes the message as it is to be sent now. A body that is too large for it goes
// as an object; that of a report anew each time, since its readers do not answer where
// they could not have it.
func (a *ask) pack(ctx context.Context) ([]byte, error) {
	a.message.WaitMS = int64(max(a.remaining(ctx), 0) / time.Millisecond)
	most, ok := a.control.link.room()
	if !ok { // since once has looked
		return nil, nats.ErrReconnectBufExceeded
	}
	if a.message.Object == nil {
		a.message.Body = a.body
		data, err := encodeMessage(a.message)
		if err != nil || int64(len(data)) <= most {
			return data, err
		}
		a.message.Body = nil
		if a.message.Object, err = a.control.objects.put(ctx, a.body, len(data), most); err != nil {
			a.message.Object = nil
			return nil, &storageError{err}
		}
	} else if a.report {
		if err := a.control.objects.putAt(ctx, a.message.Object, a.body, len(a.body), most); err != nil {
			return nil, &storageError{err}
		}
	}
	data, err := encodeMessage(a.message)
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%w: a message of %d bytes without its body is larger than the NATS server takes (%d); raise its max_payload", weir.ErrInvalid, len(data), most)
	}
	return data, err
}

// A storageError says that a body could not be left in storage.
type storageError struct{ error }

// Unwrap gives what storage said.
func (e *storageError) Unwrap() error { return e.error }

// remaining is how long the answer is still waited for; 0: for ever.
func (a *ask) remaining(ctx context.Context) time.Duration {
	wait := time.Duration(0)
	if a.limit > 0 {
		wait = max(a.limit-a.spent, time.Millisecond)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := max(time.Until(deadline), time.Millisecond); wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

// read takes the answer out of its message, or out of storage.
func (a *ask) read(ctx context.Context, reply *nats.Msg) ([]byte, error) {
	got, err := decodeAnswer(reply.Data, a.message.ID)
	switch {
	case err != nil:
		return nil, err
	case got.Error != nil:
		return nil, got.Error.restore()
	case got.Object == nil:
		return got.Body, nil
	}
	defer a.drop(ctx, got.Object)
	body, err := a.control.objects.get(ctx, got.Object)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return body, nil
}

func (a *ask) drop(ctx context.Context, o *object) {
	if err := a.control.objects.drop(ctx, o); err != nil {
		a.control.opts.Log.Warn("object of a control message stays for now", "err", err)
	}
}

// giveUp decides whether the failure of a try is final.
func (a *ask) giveUp(ctx context.Context, err error, took time.Duration) error {
	var storage *storageError
	away := errors.As(err, &storage)
	switch {
	case ctx.Err() != nil:
		return a.noAnswer(ctx.Err())
	case errors.Is(err, nats.ErrConnectionClosed) && a.control.link.ours.Load():
		return fmt.Errorf("the connection was closed: %w", weir.ErrStale)
	case errors.Is(err, weir.ErrInvalid):
		return err
	case away && !a.report:
		return err
	}
	if a.absent > 0 && a.control.link.forbidden(a.subject) {
		return fmt.Errorf("%w: %w", weir.ErrInvalid, errDenied(a.subject))
	}
	if a.last = nil; away {
		a.last = err
		a.control.opts.Log.Warn("report not sent, tried again", "kind", a.message.Kind, "err", err)
	}
	stable := a.control.StableSince()
	if stable.IsZero() {
		a.absentSince, a.between = time.Time{}, betweenAsk // T7
		return nil
	}
	if a.spent += took; a.limit > 0 && a.spent > a.limit {
		return fmt.Errorf("no answer within %v: %w", a.limit, context.DeadlineExceeded)
	}
	nobody := errors.Is(err, nats.ErrNoResponders)
	if !nobody && !away { // silence: it has been waited for
		a.absentSince, a.between, a.try = time.Time{}, betweenAsk, min(2*a.try, longestTry)
		return nil
	}
	a.between = min(2*a.between, rarestAsk)
	switch now := time.Now(); {
	case !nobody:
	case a.absentSince.IsZero() || stable.After(a.absentSince):
		a.absentSince = now
	case a.absent > 0 && now.Sub(a.absentSince) > a.absent:
		return fmt.Errorf("%w: nobody has listened for %v", weir.ErrNotFound, a.absent)
	}
	return nil
}

func (a *ask) noAnswer(why error) error {
	if a.last != nil {
		return fmt.Errorf("no answer: %w: %w", why, a.last)
	}
	return fmt.Errorf("no answer: %w", why)
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

// asking are the tries under way on a connection.
type asking struct {
	mu struct {
		sync.Mutex
		next    int
		cancels map[int]context.CancelFunc
	}
}

// add notes a try; what it returns forgets it.
func (a *asking) add(cancel context.CancelFunc) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.cancels == nil {
		a.mu.cancels = map[int]context.CancelFunc{}
	}
	id := a.mu.next
	a.mu.next++
	a.mu.cancels[id] = cancel
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.mu.cancels, id)
	}
}

// interrupt ends all of them.
func (a *asking) interrupt() {
	a.mu.Lock()
	cancels := slices.Collect(maps.Values(a.mu.cancels)) // their order does not show
	a.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
}

package transport

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"weir"
)

// A Network holds the channels of all attempts that have tasks in this process, over
// one connection for data.
type Network struct {
	opts  Options
	names subjects
	link  *link // nil: local channels only
	stats counters
	// Buffers of mediumSlab, and larger ones.
	medium, large sync.Pool

	flushC chan struct{} // capacity 1: some channel is dirty
	kickC  chan struct{} // capacity 1: an alarm is to ring sooner, or shares have changed
	start  time.Time
	alarms alarms
	shares atomic.Bool  // they are smaller than the inputs know
	warned atomic.Int64 // when the last damaged message was logged, in nanoseconds after start

	mu struct {
		sync.Mutex
		attempts map[attemptKey]*attempt
		released []attemptKey // the last ones, oldest first
		shared   int          // remote inbound channels
		dirty    []*remoteOut // small frames wait to be sent
		closed   bool
	}
}

type attemptKey struct {
	job weir.JobID
	id  weir.AttemptID
}

const (
	releasedKept = 1024 // attempts remembered as released
	idleWake     = 10 * time.Second
	gather       = time.Millisecond      // Run lets alarms gather for so long
	sharePause   = 10 * time.Millisecond // and changes of shares, which concern every input
)

// OpenNetwork connects for data. With an empty URL it serves local channels only.
// Run must be called for channels to work; it closes the connection.
func OpenNetwork(ctx context.Context, opts Options) (*Network, error) {
	opts = opts.withDefaults()
	names, err := newSubjects(opts.Cluster)
	if err != nil {
		return nil, err
	}
	n := &Network{opts: opts, names: names, start: time.Now()}
	n.flushC, n.kickC = make(chan struct{}, 1), make(chan struct{}, 1)
	n.mu.attempts = map[attemptKey]*attempt{}
	if opts.URL == "" {
		return n, nil
	}
	if n.link, err = connect(ctx, opts, roleData); err != nil {
		return nil, err
	}
	return n, nil
}

// MaxPayload is the largest payload of a frame that the NATS server takes.
func (n *Network) MaxPayload() int {
	if n.link == nil {
		return 0
	}
	return n.link.maxPayload()
}

// Connected reports whether the connection for data is up.
func (n *Network) Connected() bool { return n.link != nil && n.link.up() }

// Outbound creates the sending end of channel ch. local says that the receiving task
// runs in this process too. broken is called once, if the channel breaks, with what Send
// fails with from then on; it must not block, and may be nil. A released attempt is
// weir.ErrStale, an end created twice weir.ErrConflict.
func (n *Network) Outbound(job weir.JobID, id weir.AttemptID, ch weir.ChannelID, local bool, broken func(error)) (weir.Outbound, error) {
	a, err := n.attempt(job, id)
	if err != nil {
		return nil, fmt.Errorf("open channel %v: %w", ch, err)
	}
	if local {
		c, err := a.localChannel(ch)
		if err != nil {
			return nil, err
		}
		return c, c.claimOut()
	}
	return a.remoteOutbound(ch, broken)
}

// Inbound creates the receiving end of channel ch. local says that the sending task runs
// in this process too. When a frame becomes available, or the channel breaks, wakeC, of
// capacity 1 and shared by the inputs of a task, gets a value unless it holds one. Errors
// are as those of Outbound; after one, the attempt has to be released.
func (n *Network) Inbound(job weir.JobID, id weir.AttemptID, ch weir.ChannelID, local bool, wakeC chan<- struct{}) (weir.Inbound, error) {
	if cap(wakeC) != 1 {
		return nil, fmt.Errorf("%w: open channel %v: wake-up channel of capacity %d (want 1)", weir.ErrInvalid, ch, cap(wakeC))
	}
	a, err := n.attempt(job, id)
	if err != nil {
		return nil, fmt.Errorf("open channel %v: %w", ch, err)
	}
	if local {
		c, err := a.localChannel(ch)
		if err != nil {
			return nil, err
		}
		return c, c.claimIn(wakeC)
	}
	return a.remoteInbound(ch, wakeC)
}

// Release drops every channel of an attempt: blocked and later calls of Send fail
// with weir.ErrStale, Poll finds nothing, late frames are ignored, and the attempt
// cannot be opened again. Releasing what is not there is no error.
func (n *Network) Release(job weir.JobID, id weir.AttemptID) {
	key := attemptKey{job, id}
	n.mu.Lock()
	a := n.mu.attempts[key]
	delete(n.mu.attempts, key)
	n.mu.released = append(n.mu.released, key)
	if over := len(n.mu.released) - releasedKept; over > 0 {
		n.mu.released = append(n.mu.released[:0], n.mu.released[over:]...)
	}
	n.mu.Unlock()
	if a != nil {
		a.release()
	}
}

// attempt returns the channels of an attempt, new if need be.
func (n *Network) attempt(job weir.JobID, id weir.AttemptID) (*attempt, error) {
	key := attemptKey{job, id}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.closed {
		return nil, fmt.Errorf("the network was stopped: %w", weir.ErrStale)
	}
	if a := n.mu.attempts[key]; a != nil {
		return a, nil
	}
	for _, gone := range n.mu.released {
		if gone == key {
			return nil, fmt.Errorf("attempt %v of %s was released: %w", id, job, weir.ErrStale)
		}
	}
	a := newAttempt(n, job, id)
	n.mu.attempts[key] = a
	return a, nil
}

// Run keeps the channels going until ctx ends; then it releases every attempt and
// closes the connection, and returns nil.
func (n *Network) Run(ctx context.Context) error {
	var alertC <-chan struct{} // nil without a connection
	if n.link != nil {
		alertC = n.link.alertC
	}
	timer := time.NewTimer(0) // alarms may have been set before
	defer timer.Stop()
	var b beat
	for {
		select {
		case <-ctx.Done():
			n.close()
			return nil
		case <-n.flushC:
			n.flush()
			continue
		case <-alertC:
			b.alert = true
		case <-n.kickC:
		case <-timer.C:
		}
		timer.Reset(n.beat(&b))
	}
}

// A beat is what Run keeps from one look at the alarms to the next.
type beat struct {
	alert    bool // the connection was lost or came back
	sharedAt time.Time
	due      []*alarm
}

// beat gives every channel its due events, and says after how long to do it again.
func (n *Network) beat(b *beat) time.Duration {
	now := time.Now()
	wait := idleWake
	if late := n.shares.Load(); b.alert || late && now.Sub(b.sharedAt) >= sharePause {
		n.shares.Store(false)
		b.alert, b.sharedAt = false, now
		n.tickAll(now)
	} else if late {
		wait = sharePause
	}
	b.due = n.alarms.ring(int64(now.Sub(n.start)), b.due[:0])
	share := n.share(0)
	for _, a := range b.due {
		a.end.tick(now, share)
	}
	clear(b.due)
	at := int64(time.Since(n.start))
	return time.Duration(n.alarms.sleep(at+int64(gather), at+int64(wait)) - at)
}

// flush sends the small frames that were held back.
func (n *Network) flush() {
	n.mu.Lock()
	dirty := n.mu.dirty
	n.mu.dirty = nil
	n.mu.Unlock()
	for _, out := range dirty {
		out.event(Event{Kind: EvFlush})
	}
}

// flushSoon has Run flush out.
func (n *Network) flushSoon(out *remoteOut) {
	n.mu.Lock()
	n.mu.dirty = append(n.mu.dirty, out)
	n.mu.Unlock()
	wake(n.flushC)
}

// tickAll gives every channel of every attempt its due events.
func (n *Network) tickAll(now time.Time) {
	var all []*attempt
	n.mu.Lock()
	for _, a := range n.mu.attempts { // their order does not show
		all = append(all, a)
	}
	n.mu.Unlock()
	share := n.share(0)
	for _, a := range all {
		a.tick(now, share)
	}
}

// dueAt sets an alarm to deadline, unless it rings before. The caller holds its end's
// mutex.
func (n *Network) dueAt(a *alarm, deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	at := max(int64(deadline.Sub(n.start)), 1)
	if a.at != 0 && a.at <= at {
		return
	}
	a.at = at
	if n.alarms.set(a) {
		wake(n.kickC)
	}
}

// share divides the budget of the connection among the remote inputs, of which there
// are now delta more, and returns each one's part.
func (n *Network) share(delta int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.shared += delta
	return min(n.opts.Budget/max(n.mu.shared, 1), n.opts.Limits.MaxCredit)
}

func (n *Network) close() {
	n.mu.Lock()
	n.mu.closed = true
	var all []attemptKey
	for key := range n.mu.attempts { // their order does not show
		all = append(all, key)
	}
	n.mu.Unlock()
	for _, key := range all {
		n.Release(key.job, key.id)
	}
	if n.link != nil {
		n.link.close()
	}
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

// reconnectWait is the workers' reconnect bound of ARCHITECTURE §7.
const reconnectWait = 100 * time.Millisecond

// A server that hears "no responders" for longer than this, while its own connection is
// stable, may take the worker for dead.
const (
	absentAlone = reconnectWait + 10*time.Millisecond
	// In a cluster the NATS server of a worker dies alone, and others need not notice:
	// nats.go tells of servers that leave only where it found them by itself. To be heard
	// elsewhere takes a worker two round trips, with TLS and its own three to four: below
	// 5 ms nearby, 120 ms where 30 ms lie between; and 75 ms more if none was there at first.
	absentInCluster = 250 * time.Millisecond
	// madeAtOnce is how long a connection may take to be made within these, and madeMost
	// bounds what is added where it took longer.
	madeAtOnce = 30 * time.Millisecond
	madeMost   = 500 * time.Millisecond
)

// What a connection is for, part of its name.
const (
	roleData    = "data"
	roleControl = "control"
)

// How soon a connection that leads nowhere is given up: after two to three pings. Data may
// queue before an answer; commands are few, and who hears none for 5 s is taken for dead.
const (
	pingData    = 5 * time.Second
	pingControl = time.Second
)

// leastPayload is the least payload of a frame with which a network is of use, and
// leastMessage the least max_payload of a NATS server. One that takes less is as good as
// none: it is left again.
const (
	leastPayload = 4 << 10
	leastMessage = leastPayload + headerLen
)

// unwelcomeWait is the time between tries that the server refuses, or that lead to one which
// takes too little: what is wrong has to be mended there, or in a file here.
const unwelcomeWait = time.Second

// writeTimeout is how long a full socket may take nothing. nats.go holds its lock
// meanwhile, so that neither pings nor anything else notice that the server is gone.
const writeTimeout = 4 * time.Second

// connectTimeout bounds each try to connect. The first connection has several, as long as the
// server only is slow, and firstWithin is not over.
const (
	connectTimeout = 2 * time.Second
	firstWithin    = 10 * time.Second
)

// Options say how to reach NATS. The zero value of each field but URL and Name is a
// working default.
type Options struct {
	URL     string // nats://host:port, or several with commas
	Name    string // of the connection, as NATS shows it
	Cluster string // sets clusters on one NATS apart; "default"
	// Worker is whose process this is, "" a server's: answers arrive below that name.
	Worker   weir.WorkerID
	Security Security
	Log      *slog.Logger // nil: nothing is logged
	Limits   Limits       // of channels
	Budget   int          // bytes in flight to this connection over all channels; 32 MiB
	Objects  Objects      // for control messages that NATS does not take; nil: they are refused
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Budget == 0 {
		o.Budget = 32 << 20
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// A link is one connection to NATS that never gives up. What it publishes while
// away is lost at once rather than kept and sent late: the protocols above repeat.
type link struct {
	conn atomic.Pointer[nats.Conn]
	dial func() (*nats.Conn, error) // makes one, once
	// stable is when the connection came up or the set of servers last changed.
	stable  atomic.Pointer[time.Time]
	servers atomic.Pointer[string] // as last looked at: nats.go tells of those that join only
	flips   atomic.Int64           // times the connection was lost or came back
	alertC  chan struct{}          // capacity 1: it was lost or came back
	ours    atomic.Bool            // we close it
	asking  asking
	several bool         // NATS servers were given
	most    atomic.Int64 // max_payload, as the first connection found it
	takes   atomic.Int64 // max_payload, as the last one did; nats.go gives it under a lock
	say     *complaints
	// refusals are the tries in a row that were refused for want of credentials.
	refusals atomic.Int64
	pool     atomic.Int64  // NATS servers known when the connection was lost
	made     time.Duration // how long the first connection took to make
	// reconnects is how often the connection had come back when it was last looked at.
	reconnects atomic.Uint64
	log        *slog.Logger

	subs struct {
		sync.Mutex
		all map[*subscription]bool
	}
	mu struct {
		sync.Mutex
		denied map[string]bool // subjects that this connection may not publish to
		deaf   string          // one that it, or the one before, may not subscribe to; empty: none
		sure   bool            // it is this one that may not
		since  time.Time       // this connection was made
		away   bool            // the log says that the connection was lost, and not that it is back
		told   bool            // and also that it is tried again
		small  int             // servers in a row that take too little
		wait   time.Duration   // before the last try to hear what is forbidden
		plans  []*time.Timer   // of what is to be done about this connection
		quiet  bool            // the next one is made to be heard again, and nobody need know
	}
}

// connect makes a connection; the first one has to succeed.
func connect(ctx context.Context, opts Options, role string) (*link, error) {
	log := opts.Log.With("conn", role)
	l := &link{alertC: make(chan struct{}, 1), say: newComplaints(log, opts.Security), several: strings.Contains(opts.URL, ","), log: log}
	l.mu.denied, l.subs.all = map[string]bool{}, map[*subscription]bool{}
	l.settle()
	if opts.Worker != "" {
		if err := checkWorker(opts.Worker); err != nil {
			return nil, err
		}
	}
	if err := checkSchemes(opts); err != nil {
		return nil, err
	}
	from := opts.Security.Names.in("URL")
	if len(opts.Security.ways()) > 0 && redacted(opts.URL) != opts.URL {
		return nil, fmt.Errorf("%w: NATS at %s: the URL%s says who connects, and so does %s: choose one",
			weir.ErrInvalid, redacted(opts.URL), from, opts.Security.ways()[0])
	}
	secured, err := opts.Security.options(l.say)
	if err != nil {
		return nil, err
	}
	if role == roleControl { // once for a process
		opts.Security.exposed(log)
	}
	all := append(append(l.options(opts.Name+" "+role), nats.PingInterval(pingEvery(role))), secured...)
	l.dial = func() (*nats.Conn, error) { return nats.Connect(opts.URL, all...) }
	nc, err := l.first(ctx)
	var malformed *url.Error // it repeats the URL, with its password
	if errors.As(err, &malformed) {
		return nil, fmt.Errorf("connect to NATS at %s%s: this is no URL: want nats://HOST:PORT, several with commas", redacted(opts.URL), from)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s%s: %w; %s", redacted(opts.URL), from, err, l.say.advice(err))
	}
	l.conn.Store(nc)
	l.most.Store(nc.MaxPayload())
	l.takes.Store(nc.MaxPayload())
	if most := l.most.Load(); most < leastMessage {
		l.close()
		return nil, fmt.Errorf("%w: %w", weir.ErrInvalid, errSmall(redacted(opts.URL), most))
	}
	if err := ctx.Err(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// first makes the first connection.
func (l *link) first(ctx context.Context) (*nats.Conn, error) {
	for start := time.Now(); ; {
		began := time.Now()
		nc, err := l.dial()
		l.made = time.Since(began)
		var slow net.Error
		if !errors.As(err, &slow) || !slow.Timeout() || time.Since(start) > firstWithin || ctx.Err() != nil {
			return nc, err
		}
	}
}

// nc is the connection as it is now; it is another one after NATS has closed one for good.
func (l *link) nc() *nats.Conn { return l.conn.Load() }

func (l *link) options(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.Timeout(connectTimeout),
		nats.SetCustomDialer(dialer{(&net.Dialer{Timeout: connectTimeout}).Dial}),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(func(round int) time.Duration {
			if round == 1 { // the server may have ended nothing but this connection
				return rand.N(reconnectWait / 8)
			}
			if n := l.refusals.Load(); n > 0 && n >= l.pool.Load() { // all of them
				return unwelcomeWait
			}
			return reconnectWait/2 + rand.N(reconnectWait/4)
		}),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(writeTimeout),
		nats.DisconnectErrHandler(l.lost),
		nats.ReconnectHandler(l.back),
		nats.ClosedHandler(l.closed),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.refused(err) }),
		nats.DiscoveredServersHandler(func(*nats.Conn) { l.settle() }),
		nats.ErrorHandler(func(c *nats.Conn, sub *nats.Subscription, err error) { l.trouble(c, sub, err) }),
	}
}

func pingEvery(role string) time.Duration {
	if role == roleControl {
		return pingControl
	}
	return pingData
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// maxPayload is the largest payload of a frame that the server takes.
func (l *link) maxPayload() int { return int(l.takes.Load()) - headerLen }

// room is the largest message that the server takes now; ok is false where there is no
// connection, or one that is of no use.
func (l *link) room() (most int64, ok bool) {
	nc := l.nc()
	most = nc.MaxPayload()
	return most, most >= leastMessage && nc.IsConnected()
}

// up reports whether the connection is there now, and of use.
func (l *link) up() bool {
	_, ok := l.room()
	return ok
}

// ready is why the connection is not up; nil: it is.
func (l *link) ready() error {
	most, ok := l.room()
	switch {
	case ok:
		return nil
	case l.nc().IsConnected():
		return errSmall(l.nc().ConnectedAddr(), most)
	}
	return errors.New("not connected to NATS")
}

// publish sends or loses data; it never keeps it. NATS may tell of a lower max_payload
// while the connection stays: that is as if it had come anew.
func (l *link) publish(subject string, data []byte) error {
	nc := l.nc()
	err := nc.Publish(subject, data)
	if errors.Is(err, nats.ErrMaxPayload) {
		if now := nc.MaxPayload(); l.takes.Swap(now) != now {
			l.flip()
		}
	}
	return err
}

// absentFor is for how long nobody answers for a worker that is alive, at most.
// A worker's next connection takes about as long to make as ours did: where that is much,
// as with passwords that NATS has as costly hashes, it counts twice, since others make theirs
// at the same time.
func (l *link) absentFor() time.Duration {
	slow := min(max(2*(l.made-madeAtOnce), 0), madeMost)
	if l.several || l.nc().ConnectedClusterName() != "" {
		return absentInCluster + slow
	}
	return absentAlone + slow
}

// stableSince is when the connection came up or the servers last changed; zero
// while it is down.
func (l *link) stableSince() time.Time {
	if !l.up() {
		return time.Time{}
	}
	// The callback that says so may be late.
	if n := l.nc().Stats().Reconnects; l.reconnects.Load() != n {
		l.settle()
		l.reconnects.Store(n)
	}
	known := l.nc().Servers()
	slices.Sort(known)
	now := strings.Join(known, ",")
	if before := l.servers.Swap(&now); before != nil && *before != now {
		l.settle()
	}
	return *l.stable.Load()
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

// leastPayload is the least payload of a frame with which a network is of use.
const leastPayload = 4 << 10

// unwelcomeWait is the time between tries that the server refuses: what is wrong has to
// be mended there, or in a file here.
const unwelcomeWait = time.Second

// writeTimeout is how long a full socket may take nothing. nats.go holds its lock
// meanwhile, so that neither pings nor anything else notice that the server is gone.
const writeTimeout = 4 * time.Second

// connectTimeout bounds the first connection, and each later try.
const connectTimeout = 2 * time.Second

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
	nc *nats.Conn
	// stable is when the connection came up or the set of servers last changed.
	stable  atomic.Pointer[time.Time]
	servers atomic.Pointer[string] // as last looked at: nats.go tells of those that join only
	flips   atomic.Int64           // times the connection was lost or came back
	alertC  chan struct{}          // capacity 1: it was lost or came back
	asking  asking
	several bool         // NATS servers were given
	most    atomic.Int64 // max_payload, as the first connection found it
	takes   atomic.Int64 // max_payload, as the last one did; nats.go gives it under a lock
	say     *complaints
	// shunned says that the last try was refused for want of credentials.
	shunned atomic.Bool

	mu struct {
		sync.Mutex
		denied map[string]bool // subjects that this connection may not publish to
		deaf   string          // one that it may not subscribe to; empty: none
	}
}

// connect makes a connection; the first one has to succeed.
func connect(ctx context.Context, opts Options, names subjects, role string) (*link, error) {
	log := opts.Log.With("conn", role)
	l := &link{alertC: make(chan struct{}, 1), say: newComplaints(log), several: strings.Contains(opts.URL, ",")}
	l.mu.denied = map[string]bool{}
	l.settle()
	if opts.Worker != "" {
		if err := checkWorker(opts.Worker); err != nil {
			return nil, err
		}
	}
	if len(opts.Security.ways()) > 0 && redacted(opts.URL) != opts.URL {
		return nil, fmt.Errorf("%w: NATS at %s: the URL says who connects, and so does %s: choose one",
			weir.ErrInvalid, redacted(opts.URL), opts.Security.ways()[0])
	}
	secured, err := opts.Security.options(log)
	if err != nil {
		return nil, err
	}
	opts.Security.exposed(log)
	all := append(l.options(opts.Name+" "+role, log), nats.PingInterval(pingEvery(role)), nats.CustomInboxPrefix(names.inbox(opts.Worker)))
	nc, err := nats.Connect(opts.URL, append(all, secured...)...)
	var malformed *url.Error // it repeats the URL, with its password
	if errors.As(err, &malformed) {
		return nil, fmt.Errorf("connect to NATS at %s: this is no URL: want nats://HOST:PORT, several with commas", redacted(opts.URL))
	}
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w; %s", redacted(opts.URL), err, advice(err))
	}
	l.nc = nc
	l.most.Store(nc.MaxPayload())
	l.takes.Store(nc.MaxPayload())
	if most := l.most.Load(); most < leastPayload+headerLen {
		nc.Close()
		return nil, fmt.Errorf("%w: the max_payload of the NATS server at %s is %d bytes, and weir needs at least %d (4 KiB and a header): raise it, on all servers alike; 1 MiB is what NATS has by itself",
			weir.ErrInvalid, redacted(opts.URL), most, leastPayload+headerLen)
	}
	if err := ctx.Err(); err != nil {
		nc.Close()
		return nil, err
	}
	return l, nil
}

func (l *link) options(name string, log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(func(int) time.Duration {
			if l.shunned.Load() {
				return unwelcomeWait
			}
			return reconnectWait/2 + rand.N(reconnectWait/4)
		}),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(writeTimeout),
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			l.flip()
			if !c.IsClosed() { // not by ourselves
				log.Warn("nats connection lost", "err", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			l.takes.Store(c.MaxPayload())
			l.welcome()
			l.flip()
			log.Info("nats connection is back", "address", c.ConnectedAddr())
			if now := c.MaxPayload(); now < l.most.Load() && l.say.due("max_payload", time.Now()) {
				log.Warn("the max_payload of nats is lower than it was: larger frames of running jobs cannot be sent until it is raised again; give all nats servers the same", "address", c.ConnectedAddr(), "max_payload", now, "was", l.most.Load())
			}
		}),
		nats.ReconnectErrHandler(func(c *nats.Conn, err error) { l.trouble(log, c, nil, err) }),
		nats.DiscoveredServersHandler(func(*nats.Conn) { l.settle() }),
		nats.ErrorHandler(func(c *nats.Conn, sub *nats.Subscription, err error) { l.trouble(log, c, sub, err) }),
	}
}

func pingEvery(role string) time.Duration {
	if role == roleControl {
		return pingControl
	}
	return pingData
}

// trouble takes what nats.go reports of a connection.
func (l *link) trouble(log *slog.Logger, nc *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		l.deny(violation(err))
		l.say.denied(err)
	case unwelcome(err):
		l.shunned.Store(true)
		l.say.refused(err)
	case !nc.IsConnected():
		l.shunned.Store(false)
		if l.say.due(err.Error(), time.Now()) {
			log.Warn("nats cannot be reached; it is tried again", "err", err, "advice", advice(err))
		}
	default:
		log.Warn("nats error", "err", err, "subject", subjectOf(sub))
	}
}

// deny keeps what the NATS server does not allow.
func (l *link) deny(verb, subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if verb == "subscribe" {
		l.mu.deaf = subject
		return
	}
	if len(l.mu.denied) >= complaintsKept { // answers have subjects without end
		clear(l.mu.denied)
	}
	l.mu.denied[subject] = true
}

// deaf is a subject that this connection may not subscribe to; empty: none.
func (l *link) deaf() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.deaf
}

// welcome forgets what the connection before was refused.
func (l *link) welcome() {
	l.shunned.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.mu.denied)
	l.mu.deaf = ""
}

// forbidden reports whether NATS has refused a message on subject.
func (l *link) forbidden(subject string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.denied[subject]
}

// settle notes that the connection, or what it leads to, has changed.
func (l *link) settle() {
	now := time.Now()
	l.stable.Store(&now)
}

// flip notes that the connection was lost or came back.
func (l *link) flip() {
	l.settle()
	l.flips.Add(1)
	l.asking.interrupt()
	wake(l.alertC)
}

// redacted leaves out of a list of URLs who the user is: a password, or a token. It
// need not parse, and a password may hold a comma.
func redacted(urls string) string {
	all := strings.Split(urls, ",")
	last := len(all) // the part that names the user's host
	for i := len(all) - 1; i >= 0; i-- {
		one := all[i]
		if at := strings.LastIndex(one, "@"); at >= 0 {
			last = i
			all[i] = scheme(one[:at]) + one[at+1:]
		} else if last < len(all) && !plainHost(one) { // the beginning of a user with a comma
			all[i] = scheme(one) + all[last][strings.Index(all[last], "://")+3:]
			all = append(all[:i+1], all[last+1:]...)
			last = len(all)
		}
	}
	return strings.Join(all, ",")
}

// scheme is that of a URL, or of the beginning of one.
func scheme(one string) string {
	name, _, ok := strings.Cut(one, "://")
	if !ok {
		name = "nats"
	}
	return strings.TrimSpace(name) + "://"
}

// plainHost reports whether a URL names a port, or nothing that may be a secret.
func plainHost(one string) bool {
	_, address, ok := strings.Cut(one, "://")
	if !ok {
		address = one
	}
	_, port, ok := strings.Cut(address, ":")
	return !ok || strings.Trim(port, "0123456789") == ""
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// maxPayload is the largest payload of a frame that the server takes.
func (l *link) maxPayload() int { return l.maxMessage() - headerLen }

// maxMessage is the largest message that the server takes which the connection leads to.
func (l *link) maxMessage() int { return int(l.takes.Load()) }

// up reports whether the connection is there now.
func (l *link) up() bool { return l.nc.IsConnected() }

// publish sends or loses data; it never keeps it.
func (l *link) publish(subject string, data []byte) error {
	return l.nc.Publish(subject, data)
}

// absentFor is for how long nobody answers for a worker that is alive, at most.
func (l *link) absentFor() time.Duration {
	if l.several || l.nc.ConnectedClusterName() != "" {
		return absentInCluster
	}
	return absentAlone
}

// stableSince is when the connection came up or the servers last changed; zero
// while it is down.
func (l *link) stableSince() time.Time {
	if !l.up() {
		return time.Time{}
	}
	known := l.nc.Servers()
	slices.Sort(known)
	now := strings.Join(known, ",")
	if before := l.servers.Swap(&now); before != nil && *before != now {
		l.settle()
	}
	return *l.stable.Load()
}

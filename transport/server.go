package transport

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
)

// ServerOptions say where an embedded NATS server listens.
type ServerOptions struct {
	Host string // "127.0.0.1"
	Port int    // 0: any free one
	Name string // "weir"
	// Token is what every client has to show; "": anybody may connect.
	Token string
	// MaxPayload is the largest message it takes; 0: 1 MiB.
	MaxPayload int
	Log        *slog.Logger // nil: nothing is logged
}

// serverReady bounds the wait for a server that starts.
const serverReady = 5 * time.Second

// serverPending is what the server keeps for a client that reads slowly: far more
// than the budgets of Options let be under way.
const serverPending = 256 << 20

// serverPayload is the largest message, as everywhere in NATS: frames are smaller, and a
// control message that is larger goes by storage.
const serverPayload = 1 << 20

// A Server is a NATS server inside this process, without storage of its own.
type Server struct {
	ns *server.Server
}

// StartServer starts a server and waits until it takes connections. A port in use
// is weir.ErrConflict. Stop ends it.
func StartServer(ctx context.Context, opts ServerOptions) (*Server, error) {
	if opts.Host == "" {
		opts.Host = "127.0.0.1"
	}
	if opts.Name == "" {
		opts.Name = "weir"
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := portFree(opts); err != nil {
		return nil, err
	}
	port := opts.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	ns, err := server.NewServer(&server.Options{
		ServerName: opts.Name, Host: opts.Host, Port: port,
		NoSigs: true, Authorization: opts.Token, MaxPending: serverPending, MaxPayload: int32(cmp.Or(opts.MaxPayload, serverPayload)),
	})
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	log := &serverLog{log: opts.Log}
	ns.SetLogger(log, false, false)
	ns.Start()
	if err := awaitReady(ctx, ns, log); err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, fmt.Errorf("embedded NATS server on %s:%d: %w", opts.Host, opts.Port, err)
	}
	return &Server{ns: ns}, nil
}

// portFree says in plain words that another program has the port.
func portFree(opts ServerOptions) error {
	addr := net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: embedded NATS server: cannot listen on %s: %w; is another weir running? choose another port", weir.ErrConflict, addr, err)
	}
	return l.Close()
}

func awaitReady(ctx context.Context, ns *server.Server, log *serverLog) error {
	const slice = 50 * time.Millisecond
	for began := time.Now(); !ns.ReadyForConnections(slice); {
		if msg := log.fatal.Load(); msg != nil {
			return fmt.Errorf("%w: %s", weir.ErrConflict, *msg)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(began) > serverReady {
			return fmt.Errorf("not ready after %v", serverReady)
		}
	}
	return nil
}

// URL is where clients connect.
func (s *Server) URL() string { return s.ns.ClientURL() }

// Port is the port it listens on.
func (s *Server) Port() int { return s.ns.Addr().(*net.TCPAddr).Port }

// Clients are the connections to it just now.
func (s *Server) Clients() int { return s.ns.NumClients() }

// Subscriptions are those of all connections just now.
func (s *Server) Subscriptions() int { return int(s.ns.NumSubscriptions()) }

// Stop ends the server and waits until it has ended; its clients see their
// connections break.
func (s *Server) Stop() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// A serverLog passes on what the NATS server has to say, as one constant message.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[string]
}

func (l *serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "nats server", "note", fmt.Sprintf(format, v...))
}

func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }

func (l *serverLog) Fatalf(format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	l.fatal.Store(&msg)
	l.log.Error("nats server", "note", msg)
}

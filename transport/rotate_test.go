package transport_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
	"weir/transport"
)

// TestRotationInOrder: the file has the new password before NATS is told, as docs/nats.md
// says. The worker is away for less than takes it for dead: it tries at once, is not refused,
// and does not say that it was. Where the machine is busy it takes longer, but not the second
// after which who was refused tries again; judged by the quickest rotation.
func TestRotationInOrder(t *testing.T) {
	t.Parallel()
	const first, second = secret + "-1", secret + "-2"
	for name, has := range map[string]map[string]string{
		"plain": {first: first, second: second},
		"bcrypt": {
			first:  "$2a$04$gVF2F4dR8mfiQzqM4duvnOCX7F1FFq4JlyvYC4hTcxn9HSa7AJFbO",
			second: "$2a$04$P/ylLYVgHE2BBWzXkKw/lOecnGlk7uWjN5frdvzXs1iUf6L.G3Msi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			users := func(password string, port int) server.Options {
				return server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, AuthTimeout: 60, Users: []*server.User{
					{Username: "server", Password: has[first]}, {Username: "worker", Password: has[password]},
				}}
			}
			url, ns := guarded(t, users(first, 0))
			path := file(t, first)
			as := func(s transport.Security, d *diary) *transport.Control {
				c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: s.User, Security: s, Log: d.log()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return c
			}
			said := newDiary(t)
			lead, worker := as(transport.Security{User: "server", Password: first}, newDiary(t)), as(transport.Security{User: "worker", PasswordFile: path}, said)
			serve(t, worker, "life", echo)
			pinged(t, lead, "life")
			quickest := time.Hour
			for n, next := range []string{second, first, second, first, second, first, second, first} {
				if err := os.WriteFile(path, []byte(next), 0o600); err != nil {
					t.Fatal(err)
				}
				opts := users(next, ns.Addr().(*net.TCPAddr).Port)
				doneC := make(chan error, 1)
				go func() { doneC <- ns.ReloadOptions(&opts) }()
				away := awayFor(t, lead, func() bool { return strings.Count(said.String(), "nats connection is back") > n })
				if err := <-doneC; err != nil {
					t.Fatal(err)
				}
				if quickest = min(quickest, away); away < lead.AbsentFor() {
					if strings.Contains(said.String(), "refuses") {
						t.Errorf("what went well looks like an error: %s", said)
					}
					return
				}
			}
			if quickest >= 900*time.Millisecond {
				t.Errorf("the worker was away for %v at least, and would be taken for dead after %v", quickest, lead.AbsentFor())
			}
		})
	}
}

// awayFor says for how long nobody answers for the worker until it is back.
func awayFor(t *testing.T, lead *transport.Control, back func() bool) time.Duration {
	t.Helper()
	var since time.Time
	for ctx := bounded(t); ; {
		was := back()
		pingCtx, cancel := context.WithTimeout(ctx, 20*time.Millisecond) // what was under way when it was cut off is lost
		_, err := lead.Ping(pingCtx, testWorker)
		cancel()
		switch {
		case ctx.Err() != nil:
			t.Fatal("the worker was not cut off, or did not come back")
		case err == nil && was && since.IsZero():
			return 0
		case err == nil && was:
			return time.Since(since)
		case errors.Is(err, weir.ErrNotFound) && since.IsZero():
			since = time.Now()
		}
	}
}

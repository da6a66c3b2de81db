package transporttest

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Cluster is NATS servers in this process, joined by routes over loopback. Each can be
// stopped, so that its connections break, and started again on its ports.
type Cluster struct {
	members []*member
}

// Secured says how the servers of a Cluster are protected. The zero value is not at all.
type Secured struct {
	TLS            *tls.Config // of clients' connections
	User, Password string
	// Unnamed servers tell clients nothing of each other.
	Unnamed bool
}

type member struct {
	opts server.Options

	mu struct {
		sync.Mutex
		ns *server.Server // nil: it is stopped
	}
}

// StartCluster starts n servers and waits until each knows all others; they end with the
// test.
func StartCluster(t testing.TB, n int) *Cluster { return StartSecured(t, n, Secured{}) }

// StartSecured is StartCluster with servers that ask who connects.
func StartSecured(t testing.TB, n int, s Secured) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range n {
		m := &member{opts: server.Options{
			ServerName: "nats-" + strconv.Itoa(i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoAdvertise: s.Unnamed},
			Routes:  c.routes(i), NoSigs: true, NoLog: true,
			TLSConfig: s.TLS, TLS: s.TLS != nil, TLSTimeout: Patience.Seconds(), Username: s.User, Password: s.Password,
		}}
		c.members = append(c.members, m)
		c.start(t, i)
		ns := m.running()
		m.opts.Port, m.opts.Cluster.Port = ns.Addr().(*net.TCPAddr).Port, ns.ClusterAddr().Port
		t.Cleanup(m.stop)
	}
	for i, m := range c.members {
		m.opts.Routes = c.routes(i)
	}
	c.await(t)
	return c
}

// routes are where a server looks for the ones before and after it, as far as known.
func (c *Cluster) routes(of int) []*url.URL {
	var all []*url.URL
	for i, m := range c.members {
		if i != of {
			all = append(all, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(m.opts.Cluster.Port))})
		}
	}
	return all
}

func (m *member) running() *server.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.ns
}

func (m *member) stop() {
	m.mu.Lock()
	ns := m.mu.ns
	m.mu.ns = nil
	m.mu.Unlock()
	if ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// URL is where clients connect to server i.
func (c *Cluster) URL(i int) string {
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.members[i].opts.Port))
}

// URLs are those of all servers, as flags have them.
func (c *Cluster) URLs() string {
	var all []string
	for i := range c.members {
		all = append(all, c.URL(i))
	}
	return strings.Join(all, ",")
}

// Stop ends server i; its clients and the other servers see their connections break.
func (c *Cluster) Stop(i int) { c.members[i].stop() }

// Start starts server i again, on its ports, and waits until it and the others that run
// know each other.
func (c *Cluster) Start(t testing.TB, i int) {
	t.Helper()
	c.start(t, i)
	c.await(t)
}

func (c *Cluster) start(t testing.TB, i int) {
	t.Helper()
	m := c.members[i]
	opts := m.opts // a server changes what it is given
	ns, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	if !ns.ReadyForConnections(Patience) {
		t.Fatalf("nats server %d is not ready after %v", i, Patience)
	}
	m.mu.Lock()
	m.mu.ns = ns
	m.mu.Unlock()
}

// await waits until every server that runs knows every other one.
func (c *Cluster) await(t testing.TB) {
	t.Helper()
	Until(t, "all servers know each other", func() bool {
		var up []*server.Server
		for _, m := range c.members {
			if ns := m.running(); ns != nil {
				up = append(up, ns)
			}
		}
		for _, ns := range up {
			z, err := ns.Routez(nil)
			if err != nil {
				t.Fatal(err)
			}
			known := map[string]bool{}
			for _, r := range z.Routes {
				known[r.RemoteID] = true
			}
			if len(known) != len(up)-1 {
				return false
			}
		}
		return true
	})
}

// Holder is the server that has the connection of that name; -1: none has it.
func (c *Cluster) Holder(t testing.TB, name string) int {
	t.Helper()
	at, _ := c.find(t, name)
	return at
}

func (c *Cluster) find(t testing.TB, name string) (at int, id uint64) {
	t.Helper()
	for i, m := range c.members {
		ns := m.running()
		if ns == nil {
			continue
		}
		z, err := ns.Connz(&server.ConnzOptions{Limit: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		for _, conn := range z.Conns {
			if conn.Name == name {
				return i, conn.Cid
			}
		}
	}
	return -1, 0
}

// Move breaks the connection of that name until server i has it.
func (c *Cluster) Move(t testing.TB, name string, i int) {
	t.Helper()
	Until(t, fmt.Sprintf("%s is connected to server %d", name, i), func() bool {
		at, id := c.find(t, name)
		if at >= 0 && at != i {
			if ns := c.members[at].running(); ns != nil {
				_ = ns.DisconnectClientByID(id) // gone meanwhile: then it moves anyhow
			}
		}
		return at == i
	})
}

// Until waits until ok, with a bound.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

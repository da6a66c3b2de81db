package transporttest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy passes TCP connections on to a target and breaks them on demand.
type Proxy struct {
	target string
	listen net.Listener
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		conns  map[net.Conn]bool
		refuse bool
		goC    chan struct{} // closed while bytes flow
	}
}

// NewProxy listens on a free loopback port; it ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listen: l}
	p.mu.conns = map[net.Conn]bool{}
	p.mu.goC = make(chan struct{})
	close(p.mu.goC)
	p.work.Add(1)
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.Resume()
		p.Refuse()
		p.work.Wait()
	})
	return p
}

// URL is where to connect instead of the target, as NATS writes it.
func (p *Proxy) URL() string { return "nats://" + p.listen.Addr().String() }

// Cut breaks every connection; new ones are taken at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.mu.conns {
		c.Close()
	}
}

// Refuse breaks every connection and takes no new one until Accept.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.refuse = true
	p.cut()
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.refuse = false
}

// Stall keeps connections open and passes nothing on until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.mu.goC:
		p.mu.goC = make(chan struct{})
	default: // stalled already
	}
}

// Resume ends Stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.mu.goC:
	default:
		close(p.mu.goC)
	}
}

func (p *Proxy) accept() {
	defer p.work.Done()
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		var d net.Dialer
		server, err := d.DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if p.add(client, server) {
			p.work.Add(2)
			go p.pass(client, server)
			go p.pass(server, client)
		}
	}
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.mu.refuse {
			c.Close()
			continue
		}
		p.mu.conns[c] = true
	}
	return !p.mu.refuse
}

// pass copies one direction until either end breaks.
func (p *Proxy) pass(from, to net.Conn) {
	defer p.work.Done()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		goC := p.mu.goC
		p.mu.Unlock()
		<-goC
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil && !errors.Is(err, io.ErrNoProgress) {
			break
		}
	}
	from.Close()
	to.Close()
	p.mu.Lock()
	delete(p.mu.conns, from)
	p.mu.Unlock()
}

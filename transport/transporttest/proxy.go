package transporttest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy passes TCP connections on to a target and breaks, delays or swallows them on
// demand.
type Proxy struct {
	target string
	listen net.Listener
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		pipes    map[*pipe]bool
		refuse   bool
		weather  [2]Weather    // by Way
		changedC chan struct{} // closed when weather changes
	}
}

// A Way is a direction through a Proxy.
type Way int

// The two ways.
const (
	Up   Way = iota // from the client to the server
	Down            // from the server to the client
)

// A Weather is what a Proxy does to the bytes of one way. The zero value passes them on.
type Weather struct {
	Delay  time.Duration // bytes arrive so much later
	Jitter time.Duration // and up to so much earlier or later than that, in order
	Rate   int           // so many bytes pass per second; 0: as fast as they come
	Hole   bool          // nothing passes, and the connections stay
}

// readBuffer is what a connection takes in that is not read: else tens of MiB fit in.
const readBuffer = 256 << 10

// NewProxy listens on a free loopback port; it ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, listen: l}
	p.mu.pipes = map[*pipe]bool{}
	p.mu.changedC = make(chan struct{})
	p.work.Add(1)
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.Refuse()
		p.work.Wait()
	})
	return p
}

// URL is where to connect instead of the target, as NATS writes it.
func (p *Proxy) URL() string { return "nats://" + p.listen.Addr().String() }

// Set changes the weather of the given ways, or of both if none is given.
func (p *Proxy) Set(w Weather, ways ...Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(ways) == 0 {
		ways = []Way{Up, Down}
	}
	for _, way := range ways {
		p.mu.weather[way] = w
	}
	close(p.mu.changedC)
	p.mu.changedC = make(chan struct{})
}

// Heal ends whatever Set has begun. What was held back arrives, late.
func (p *Proxy) Heal() { p.Set(Weather{}) }

// Stall keeps connections open and passes nothing on until Heal.
func (p *Proxy) Stall() { p.Set(Weather{Hole: true}) }

// Cut resets every connection, and what was under way is lost; new ones are taken at
// once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for pi := range p.mu.pipes {
		pi.end()
	}
}

// Refuse resets every connection and takes no new one until Accept.
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

// now returns the weather of a way, and what is closed when it changes.
func (p *Proxy) now(way Way) (Weather, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.weather[way], p.mu.changedC
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
		for _, c := range []net.Conn{client, server} {
			_ = c.(*net.TCPConn).SetReadBuffer(readBuffer) // fails only where it is closed
		}
		brokenC := make(chan struct{})
		end := sync.OnceFunc(func() {
			close(brokenC)
			reset(client)
			reset(server)
		})
		p.start(&pipe{proxy: p, way: Up, from: client, to: server, brokenC: brokenC, end: end})
		p.start(&pipe{proxy: p, way: Down, from: server, to: client, brokenC: brokenC, end: end})
	}
}

// reset closes a connection and drops what it has not sent.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0) // fails only where it is closed
	c.Close()
}

func (p *Proxy) start(pi *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.refuse {
		pi.end()
		return
	}
	p.mu.pipes[pi] = true
	pi.chunkC, pi.takenC = make(chan chunk, 64), make(chan struct{}, 1)
	p.work.Add(2)
	go pi.read()
	go pi.write()
}

func (p *Proxy) forget(pi *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.pipes, pi)
}

// A pipe is one way of one connection.
type pipe struct {
	proxy    *Proxy
	way      Way
	from, to net.Conn
	chunkC   chan chunk
	takenC   chan struct{} // capacity 1: the writer took a chunk
	brokenC  chan struct{} // closed by end
	end      func()        // resets the connection, both ways
}

type chunk struct {
	bytes []byte
	due   time.Time
}

// read takes what arrives until either end breaks.
func (pi *pipe) read() {
	defer pi.proxy.work.Done()
	defer pi.proxy.forget(pi)
	defer pi.end()
	defer close(pi.chunkC)
	buf := make([]byte, 32<<10)
	var last time.Time
	for {
		n, err := pi.from.Read(buf)
		if err != nil {
			return
		}
		w, _ := pi.proxy.now(pi.way)
		due := time.Now().Add(w.Delay + jitter(w.Jitter))
		if due.Before(last) {
			due = last
		}
		last = due
		select {
		case pi.chunkC <- chunk{append([]byte(nil), buf[:n]...), due}:
		case <-pi.brokenC:
			return
		}
		if !pi.awaitRoom() {
			return
		}
	}
}

// awaitRoom lets little wait here where it waits for something else than a delay, so
// that who sends feels that nothing moves.
func (pi *pipe) awaitRoom() bool {
	for {
		w, changedC := pi.proxy.now(pi.way)
		if !w.Hole && w.Rate == 0 || len(pi.chunkC) == 0 {
			return true
		}
		select {
		case <-pi.takenC:
		case <-changedC:
		case <-pi.brokenC:
			return false
		}
	}
}

// write passes chunks on, each when its time has come.
func (pi *pipe) write() {
	defer pi.proxy.work.Done()
	defer pi.end()
	for c := range pi.chunkC {
		select {
		case pi.takenC <- struct{}{}:
		default:
		}
		w, ok := pi.awaitPassage()
		if !ok || !pi.awaitTime(c.due) {
			return
		}
		if _, err := pi.to.Write(c.bytes); err != nil {
			return
		}
		if w.Rate > 0 && !pi.awaitTime(time.Now().Add(time.Second*time.Duration(len(c.bytes))/time.Duration(w.Rate))) {
			return
		}
	}
}

// awaitPassage waits while nothing passes.
func (pi *pipe) awaitPassage() (Weather, bool) {
	for {
		w, changedC := pi.proxy.now(pi.way)
		if !w.Hole {
			return w, true
		}
		select {
		case <-changedC:
		case <-pi.brokenC:
			return w, false
		}
	}
}

func (pi *pipe) awaitTime(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-pi.brokenC:
		return false
	}
}

// jitter is a random time between -most and most.
func jitter(most time.Duration) time.Duration {
	if most == 0 {
		return 0
	}
	return rand.N(2*most) - most
}

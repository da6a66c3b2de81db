package metastore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/metastore"
	"weir/metastore/postgrestest"
)

// What a cutter does with the next COMMIT.
const (
	pass    int32 = iota
	forward       // the server gets it; its answer does not come back
	swallow       // the server never gets it
	freeze        // the server does not get it, and both connections stay as they are
)

// A cutter stands between a client and PostgreSQL and cuts the connection at COMMIT.
// A driver that loses a connection asks the server, on another one, to cancel what
// runs there, and a COMMIT that has not got far is then rolled back: where the cut
// alone is to count, such requests are dropped, as they are where a network is cut.
type cutter struct {
	net.Listener
	next    atomic.Int32
	cuts    atomic.Int32
	cancels atomic.Bool // they come through
	thawC   chan struct{}
}

func newCutter(t *testing.T) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, thawC: make(chan struct{})}
	done := make(chan struct{})
	go func() { defer close(done); c.serve() }()
	t.Cleanup(func() { close(c.thawC); l.Close(); <-done })
	return c
}

func (c *cutter) serve() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", postgrestest.Socket())
		if err != nil {
			client.Close()
			continue
		}
		var cut atomic.Bool
		go func() { // the answers
			buf := make([]byte, 64<<10)
			for {
				n, err := server.Read(buf)
				if err != nil || cut.Load() {
					break
				}
				client.Write(buf[:n])
			}
			client.Close()
			server.Close()
		}()
		go c.requests(client, server, &cut)
	}
}

func (c *cutter) requests(client, server net.Conn, cut *atomic.Bool) {
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil || isCancel(buf[:n]) && !c.cancels.Load() {
			return
		}
		if bytes.Contains(buf[:n], []byte("commit\x00")) {
			if what := c.next.Swap(pass); what != pass {
				c.cuts.Add(1)
				if what == freeze {
					<-c.thawC
					client.Close()
					return
				}
				cut.Store(true)
				if what == forward {
					server.Write(buf[:n])
				}
				client.Close()
				if what == forward { // the server works on
					server.Read(buf)
				}
				return
			}
		}
		server.Write(buf[:n])
	}
}

// isCancel reports whether a client's message is a CancelRequest: 16 bytes, and the
// code that stands where others have their version.
func isCancel(message []byte) bool {
	return len(message) == 16 && binary.BigEndian.Uint32(message[4:]) == 1234<<16|5678
}

func (c *cutter) open(t *testing.T) *metastore.Store {
	t.Helper()
	direct := postgrestest.Database(t)
	open(t, direct)
	return c.through(t, direct, 5*time.Second)
}

// through opens the database at a direct URL through the cutter.
func (c *cutter) through(t *testing.T, direct string, timeout time.Duration) *metastore.Store {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	s, err := metastore.Open(t.Context(), "postgres://postgres@"+c.Addr().String()+u.Path+"?sslmode=disable", metastore.Options{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestUnknownOutcome cuts the connection at the COMMIT of each deciding method: the
// answer must be what became of the transaction.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	s := c.open(t)
	var job weir.Job
	var id weir.CheckpointID
	fence := func() weir.Fence { return weir.Fence{Job: job.ID, Attempt: job.Attempt, Term: job.Term} }
	record := func() checkpoint.Record {
		return checkpoint.Record{ID: id, Type: checkpoint.TypeCheckpoint, Status: checkpoint.StatusFailed}
	}
	ctx := t.Context()
	steps := []struct {
		name string
		do   func() error
		done func(weir.Job) bool
	}{
		{"begin attempt", func() (err error) {
			j, err := s.BeginAttempt(ctx, job.ID, job.Attempt, job.Term)
			if err == nil {
				job = j
			}
			return err
		}, func(j weir.Job) bool { return j.Status == weir.StatusScheduling }},
		{"running", func() error { return s.SetStatus(ctx, fence(), weir.StatusRunning, nil) }, func(j weir.Job) bool { return j.Status == weir.StatusRunning }},
		{"take over", func() error {
			j, err := s.TakeOver(ctx, fence(), 7)
			if err == nil {
				job = j
			}
			return err
		}, func(j weir.Job) bool { return j.Term == 7 }},
		{"begin checkpoint", func() (err error) {
			got, err := s.BeginCheckpoint(ctx, fence(), record())
			if err == nil {
				id = got
			}
			return err
		}, func(j weir.Job) bool { return j.LastCheckpoint == 1 }},
		{"complete checkpoint", func() error { return s.CompleteCheckpoint(ctx, fence(), record(), true) }, func(j weir.Job) bool { return j.Base.Checkpoint == 1 }},
		{"wish", func() error {
			_, err := s.SetDesired(ctx, job.ID, []weir.Status{weir.StatusRunning}, weir.Wish{Desired: weir.DesiredCanceled})
			return err
		}, func(j weir.Job) bool { return j.Desired == weir.DesiredCanceled }},
		{"canceled", func() error { return s.SetStatus(ctx, fence(), weir.StatusCanceled, nil) }, func(j weir.Job) bool { return j.Status == weir.StatusCanceled }},
	}
	for _, what := range []int32{swallow, forward} { // a creation is tried again: it succeeds either way
		c.next.Store(what)
		j := weir.Job{ID: weir.NewJobID(), Name: map[int32]string{swallow: "a", forward: "b"}[what], Desired: weir.DesiredRunning, Status: weir.StatusCreated}
		var err error
		if job, err = s.CreateJob(ctx, j, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range steps {
		c.next.Store(swallow)
		err := step.do()
		now, jerr := s.Job(ctx, "b")
		if err == nil || errors.Is(err, weir.ErrStale) || jerr != nil || step.done(now) {
			t.Fatalf("%s, COMMIT lost on its way: %v, %+v, %v", step.name, err, now, jerr)
		}
		c.next.Store(forward)
		err = step.do()
		now, jerr = s.Job(ctx, "b")
		if err != nil || jerr != nil || !step.done(now) {
			t.Fatalf("%s, answer to COMMIT lost: %v, %+v, %v", step.name, err, now, jerr)
		}
	}
	if got := c.cuts.Load(); got != int32(2+2*len(steps)) {
		t.Fatalf("%d connections were cut", got)
	}
}

// TestCanceledCommit cuts the connection behind the COMMIT and lets the driver's request
// to cancel it through, which may come before, in or after it: whatever became of the
// transaction, the answer says that.
func TestCanceledCommit(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	c.cancels.Store(true)
	s := c.open(t)
	ctx := t.Context()
	job, err := s.CreateJob(ctx, weir.Job{ID: weir.NewJobID(), Name: "a", Desired: weir.DesiredRunning, Status: weir.StatusCreated}, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		want := weir.DesiredStopped
		if job.Desired == want {
			want = weir.DesiredRunning
		}
		c.next.Store(forward)
		_, err := s.SetDesired(ctx, job.ID, []weir.Status{weir.StatusCreated}, weir.Wish{Desired: want})
		now, jerr := s.Job(ctx, "a")
		if jerr != nil || (err == nil) != (now.Desired == want) {
			t.Fatalf("wish %s: %v, the row says %s, %v", want, err, now.Desired, jerr)
		}
		job = now
	}
	if got := c.cuts.Load(); got != 20 {
		t.Fatalf("%d connections were cut", got)
	}
}

// TestFrozenOwner stops a server's process in the middle of a transaction that holds a
// job's row: the next owner gets the row all the same, while the process still sleeps.
func TestFrozenOwner(t *testing.T) {
	t.Parallel()
	c := newCutter(t)
	direct := postgrestest.Database(t)
	next := open(t, direct)
	frozen := c.through(t, direct, time.Second)
	ctx := t.Context()
	job, err := frozen.CreateJob(ctx, weir.Job{ID: weir.NewJobID(), Name: "a", Desired: weir.DesiredRunning, Status: weir.StatusCreated}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.next.Store(freeze)
	slept := make(chan struct{})
	go func() {
		defer close(slept)
		frozen.SetDesired(ctx, job.ID, []weir.Status{weir.StatusCreated}, weir.Wish{Desired: weir.DesiredCanceled})
	}()
	for c.cuts.Load() == 0 {
		<-time.After(time.Millisecond)
	}
	began := time.Now()
	j, err := next.BeginAttempt(ctx, job.ID, job.Attempt, job.Term)
	if err != nil || j.Attempt.Number != 1 || j.Desired != weir.DesiredRunning {
		t.Fatalf("%+v, %v", j, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	<-slept
}

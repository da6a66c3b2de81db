package worker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/deploy"
	"weir/exec/source"
	"weir/exec/worker"
)

// A deaf is a network in which what goes to subtask 1 arrives nowhere: a Send waits until
// its context ends.
type deaf struct {
	worker.Network
	waitingC chan<- struct{}
}

func (d deaf) Outbound(j weir.JobID, a weir.AttemptID, ch weir.ChannelID, local bool, broken func(error)) (weir.Outbound, error) {
	out, err := d.Network.Outbound(j, a, ch, local, broken)
	if err != nil || ch.To.Subtask != 1 {
		return out, err
	}
	return deafOut{out, d.waitingC}, nil
}

type deafOut struct {
	weir.Outbound
	waitingC chan<- struct{}
}

func (d deafOut) Send(ctx context.Context, _ weir.Frame) error {
	select {
	case d.waitingC <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// A survivor that waits for room at a peer which is gone ends when it is told to.
func TestSurvivorSends(t *testing.T) {
	t.Parallel()
	waitingC := make(chan struct{}, 1)
	h := startAs(t, func(c *worker.Config) { c.Network = deaf{c.Network, waitingC} })
	h.run(1, endless)
	<-waitingC
	h.must(deploy.KindStop, stopOf(1))
	h.only("nothing runs")
}

// wide has a state that does not fit into an ack, and that does not outgrow a busy machine.
const wide = `CREATE TABLE r (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200000', 'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '49999');
SELECT k, COUNT(*) AS n FROM r GROUP BY k`

// A stuck is storage that takes nothing: each call waits until its context ends or, where
// it heeds none, as a dead file server's, until goneC is closed.
type stuck struct {
	blob.Store
	heeds     bool
	puttingC  chan<- struct{}
	goneC     <-chan struct{}
	deletions atomic.Int64
	patience  atomic.Int64 // the longest that a deletion might take
}

func (s *stuck) wait(ctx context.Context) error {
	over := ctx.Done()
	if !s.heeds {
		over = nil
	}
	select {
	case <-over:
		return ctx.Err()
	case <-s.goneC:
		return errors.New("gone")
	}
}

func (s *stuck) Put(ctx context.Context, _ string, _ io.Reader) error {
	select {
	case s.puttingC <- struct{}{}:
	default:
	}
	return s.wait(ctx)
}

func (s *stuck) Delete(ctx context.Context, _ string) error {
	if until, ok := ctx.Deadline(); ok {
		s.patience.Store(max(s.patience.Load(), int64(time.Until(until))))
	}
	s.deletions.Add(1)
	return s.wait(ctx)
}

// putting takes checkpoints until storage is asked to take a snapshot.
func (h *harness) putting(m deploy.Deploy, puttingC <-chan struct{}) {
	h.t.Helper()
	for id := weir.CheckpointID(1); ; id++ {
		h.must(deploy.KindTrigger, trigger(m, id, id))
		select {
		case <-puttingC:
			return
		case <-time.After(50 * time.Millisecond << min(id, 10)): // its state was small so far, or the next one gave it up before a busy machine had written it
		}
	}
}

// A survivor that waits for storage which hangs ends when it is told to, and spends little
// on what it has stored in vain.
func TestSurvivorUploads(t *testing.T) {
	t.Parallel()
	puttingC := make(chan struct{}, 1)
	var store *stuck
	h := startAs(t, func(c *worker.Config) {
		store = &stuck{Store: c.Blobs, heeds: true, puttingC: puttingC, goneC: make(chan struct{})}
		c.Blobs = store
	})
	h.putting(h.run(1, wide), puttingC)
	h.must(deploy.KindStop, stopOf(1))
	h.only("nothing runs")
	if most := time.Duration(store.patience.Load()); store.deletions.Load() == 0 || most > 250*time.Millisecond {
		t.Errorf("%d deletions, each of which may take %v", store.deletions.Load(), most)
	}
}

// A survivor that hangs in a call which heeds nothing is left behind: the next attempt runs
// beside it, and when it comes back it says nothing and changes nothing.
func TestSurvivorLeftBehind(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"in a read", "in an upload"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			inC, puttingC, goneC := make(chan struct{}, 2), make(chan struct{}, 1), make(chan struct{})
			h := startAs(t, func(c *worker.Config) {
				c.Patience = time.Millisecond
				if where == "in an upload" {
					c.Blobs = &stuck{Store: c.Blobs, puttingC: puttingC, goneC: goneC}
					return
				}
				c.Openers.Source = func(ctx context.Context, s exec.Setup) (exec.Source, error) {
					src, err := source.Open(ctx, s)
					if s.Attempt == at(1) {
						src = hung{src, inC, goneC}
					}
					return src, err
				}
			})
			m := h.run(1, wide)
			if where == "in an upload" {
				h.putting(m, puttingC)
			} else {
				<-inC
			}
			if _, err := h.ask(deploy.KindStop, stopOf(1)); !errors.Is(err, weir.ErrConflict) {
				t.Errorf("the end of what hangs: %v", err)
			}
			h.run(2, endless)
			h.only("the next attempt runs", 2)
			close(goneC)
			h.until("the first has left its channels", func([]deploy.Report, deploy.Heartbeat) bool {
				return !slices.ContainsFunc(h.channels(), func(c weir.ChannelStats) bool { return c.Attempt == at(1) })
			})
			h.only("the next attempt runs on", 2)
			h.c.mu.Lock()
			defer h.c.mu.Unlock()
			if _, failed := statuses(h.c.mu.reports, 1); failed > 0 {
				t.Errorf("%d failures of what was left behind", failed)
			}
		})
	}
}

// channels are all that the worker has.
func (h *harness) channels() []weir.ChannelStats {
	h.t.Helper()
	var list deploy.ChannelList
	if err := deploy.Decode(h.must(deploy.KindChannels, deploy.Channels{Header: deploy.Head()}), &list); err != nil {
		h.t.Fatal(err)
	}
	return list.Channels
}

// A full source finds no room on the disk, once it is.
type full struct {
	exec.Source
	full *atomic.Bool
}

func (f full) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if f.full.Load() {
		return nil, 0, time.Time{}, &os.PathError{Op: "write", Path: "spill", Err: syscall.ENOSPC}
	}
	return f.Source.Next(ctx)
}

// Where a task fails since the disk is full, the worker gives up its copies of state: they are
// for speed, and the next attempt needs the room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	var isFull atomic.Bool
	dir := t.TempDir()
	h := startAs(t, func(c *worker.Config) {
		c.Keep, c.KeepBytes = dir, 64<<20
		c.Openers.Source = func(ctx context.Context, s exec.Setup) (exec.Source, error) {
			src, err := source.Open(ctx, s)
			return full{src, &isFull}, err
		}
	})
	copies := func() int {
		list, err := filepath.Glob(filepath.Join(dir, "[0-9]*"))
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	m := h.run(1, wide)
	for id := weir.CheckpointID(1); copies() == 0; id++ {
		h.must(deploy.KindTrigger, trigger(m, id, id))
		<-time.After(50 * time.Millisecond << min(id, 10))
	}
	isFull.Store(true)
	h.until("the copies have gone", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		_, failed := statuses(r, 1)
		return failed > 0 && copies() == 0
	})
}

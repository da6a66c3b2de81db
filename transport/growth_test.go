package transport_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// natsServer starts a NATS server that shows what it counts.
func natsServer(t testing.TB, opts server.Options) *server.Server {
	t.Helper()
	opts.Host, opts.NoSigs = "127.0.0.1", true
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	ns, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(transporttest.Patience) {
		t.Fatal("the server takes no connections")
	}
	return ns
}

// A mesh joins every task of one network to every task of the other one.
type mesh struct {
	job     weir.JobID
	attempt weir.AttemptID
	outs    []weir.Outbound
	ins     [][]weir.Inbound // by task
	wakeCs  []chan struct{}
}

func openMesh(t testing.TB, from, to *transport.Network, tasks int) *mesh {
	t.Helper()
	m := &mesh{job: weir.NewJobID(), attempt: weir.NewAttemptID(1)}
	for j := range tasks {
		wakeC := make(chan struct{}, 1)
		ins := transporttest.OpenIns(t, to, m.job, m.attempt, transporttest.FanIn(tasks, weir.TaskID{Chain: 1, Subtask: j}), false, wakeC)
		m.ins, m.wakeCs = append(m.ins, ins), append(m.wakeCs, wakeC)
	}
	for i := range tasks {
		for j := range tasks {
			out, err := from.Outbound(m.job, m.attempt, weir.ChannelID{From: weir.TaskID{Subtask: i}, To: weir.TaskID{Chain: 1, Subtask: j}}, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.outs = append(m.outs, out)
		}
	}
	return m
}

// once sends one frame through every channel and takes it.
func (m *mesh) once(ctx context.Context, tasks int) error {
	var work sync.WaitGroup
	errs := make([]error, 2*tasks)
	for i := range tasks {
		work.Go(func() {
			for _, out := range m.outs[i*tasks : (i+1)*tasks] {
				if err := out.Send(ctx, transporttest.Records(i, 10, false)); err != nil {
					errs[i] = err
					return
				}
			}
		})
		work.Go(func() {
			for from, in := range m.ins[i] {
				f, err := transporttest.Await(ctx, in, m.wakeCs[i])
				if err != nil || f.Value != int64(from) {
					errs[tasks+i] = fmt.Errorf("from %d to %d: got %d: %w", from, i, f.Value, err)
					return
				}
				select { // what woke for this input may have been for a later one
				case m.wakeCs[i] <- struct{}{}:
				default:
				}
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestGrowth: what a worker has open grows with its tasks, not with its channels. It
// counts goroutines of the process, so it runs alone.
func TestGrowth(t *testing.T) {
	counts := []int{1, 10, 30}
	if long() {
		counts = []int{1, 10, 100}
	}
	for _, tasks := range counts {
		t.Run(fmt.Sprint(tasks), func(t *testing.T) { growth(t, tasks) })
	}
}

func growth(t *testing.T, tasks int) {
	ns := natsServer(t, server.Options{})
	from, to := network(t, ns.ClientURL()), network(t, ns.ClientURL())
	if got := ns.NumClients(); got != 2 {
		t.Errorf("%d connections, want one for data per worker", got)
	}
	subs, routines, bytes := ns.NumSubscriptions(), runtime.NumGoroutine(), heap()
	began := time.Now()
	m := openMesh(t, from, to, tasks)
	opened := time.Since(began)
	ctx, cancel := context.WithTimeout(t.Context(), 10*transporttest.Patience) // of 10,000 channels the race detector makes 1 s 45
	defer cancel()
	if err := m.once(ctx, tasks); err != nil {
		t.Fatal(err)
	}
	through := time.Since(began)
	moreSubs, moreRoutines := int(ns.NumSubscriptions()-subs), runtime.NumGoroutine()-routines
	channels := tasks * tasks
	if both := 2 * tasks; moreSubs > both || moreRoutines > both+10 {
		t.Errorf("%d subscriptions, %d goroutines more for %d tasks in each of two workers: want one of each per task", moreSubs, moreRoutines, tasks)
	}
	if got := ns.NumClients(); got != 2 {
		t.Errorf("%d connections", got)
	}
	perChannel := (heap() - bytes) / int64(channels)
	if long() {
		<-time.After(30 * time.Second) // the last repetition of an ack is over by then
		idle := cpu()
		<-time.After(time.Second)
		t.Logf("idle: %v of processor time in a second", cpu()-idle)
	}
	t.Logf("%d tasks, %d channels: %d subscriptions, %d goroutines, 2 connections; opened in %v, a frame through each after %v; %d bytes per channel, both ends; %+v",
		tasks, channels, moreSubs, moreRoutines, opened, through, perChannel, from.Stats())
	runtime.KeepAlive(m)
}

// TestBudget: senders of many channels whose readers do not read fill no more than the
// budget allows.
func TestBudget(t *testing.T) {
	t.Parallel()
	tasks := 30
	if long() {
		tasks = 100
	}
	ns := natsServer(t, server.Options{})
	from, to := network(t, ns.ClientURL()), network(t, ns.ClientURL())
	m := openMesh(t, from, to, tasks)
	const size, budget = 1000, 32 << 20
	span := 500 * time.Millisecond
	if long() {
		span = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var work sync.WaitGroup
	for _, out := range m.outs {
		work.Go(func() {
			for out.Send(ctx, transporttest.Records(0, size, false)) == nil {
			}
		})
	}
	work.Wait()
	bytes := from.Stats().Sent * size
	t.Logf("%d channels hold %d KiB", tasks*tasks, bytes>>10)
	if bytes > budget {
		t.Errorf("%d channels took %d MiB that nobody has read; the budget is %d MiB", tasks*tasks, bytes>>20, budget>>20)
	}
	if got := ns.NumSlowConsumers(); got != 0 {
		t.Errorf("%d slow consumers", got)
	}
}

// BenchmarkMesh sends a small frame through each of 10,000 channels, all at once, in every
// round: what timers and acks cost that are as many as the channels.
func BenchmarkMesh(b *testing.B) {
	const tasks = 100
	ns := natsServer(b, server.Options{})
	from, to := network(b, ns.ClientURL()), network(b, ns.ClientURL())
	m := openMesh(b, from, to, tasks)
	ctx := context.Background()
	if err := m.once(ctx, tasks); err != nil {
		b.Fatal(err)
	}
	begun := cpu()
	for b.Loop() {
		if err := m.once(ctx, tasks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-begun)/float64(b.N)/tasks/tasks, "cpu-ns/frame")
}

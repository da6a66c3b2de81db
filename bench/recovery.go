package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// recoveryBench kills workers that run a job with a million keys, and sees when that is
// known, when all tasks run again, when there is new output, and when it has caught up.
type recoveryBench struct {
	kills int
	rate  float64
	only  string
}

func (b *recoveryBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.kills, "kills", 20, "in each set-up")
	f.Float64Var(&b.rate, "rate", 100_000, "rows per second")
	f.StringVar(&b.only, "only", "", "up or machines alone")
}

// recoveryFigures are those of one set-up: milliseconds from the kill, one of each per kill.
type recoveryFigures struct {
	Setup    string    `json:"setup"`
	Known    []float64 `json:"known_ms"`
	Running  []float64 `json:"running_ms"`
	Output   []float64 `json:"first_new_output_ms"`
	CaughtUp []float64 `json:"caught_up_ms"`
}

func (b *recoveryBench) run(ctx context.Context, c common) (any, string, error) {
	var all []recoveryFigures
	for _, s := range []struct {
		name string
		open func(context.Context, common) (*scene, error)
	}{{"up", b.openUp}, {"machines", b.openMachines}} {
		if b.only != "" && b.only != s.name {
			continue
		}
		scene, err := s.open(ctx, c)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", s.name, err)
		}
		f, err := b.killAll(ctx, s.name, scene)
		scene.end()
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, f)
	}
	return all, showRecovery(all), nil
}

func showRecovery(all []recoveryFigures) string {
	var w strings.Builder
	w.WriteString("| worker killed | kills | known, ms: median (worst) | RUNNING | first new output | caught up |\n|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&w, "| %s | %d |", f.Setup, len(f.Known))
		for _, v := range [][]float64{f.Known, f.Running, f.Output, f.CaughtUp} {
			fmt.Fprintf(&w, " %.0f (%.0f) |", median(v), slices.Max(v))
		}
		w.WriteString("\n")
	}
	w.WriteString("| target, median | | up < 50, machines < 300 | < 1000 | – | – |\n")
	return w.String()
}

// A scene is a cluster on which workers can be killed.
type scene struct {
	api  *api
	sql  string
	pool int // workers to be there before a kill
	// refill makes up for a worker that was killed, where nobody else does.
	refill func(ctx context.Context, killed string) error
	// due is what an undisturbed job has counted by now; nil: the source makes up for nothing,
	// and the job has caught up when it has counted again what it had at the kill.
	due func(now time.Time) float64
	end func()
}

const recoveryQuery = "SET 'checkpoint.interval' = '1 s';\nSELECT COUNT(*) AS users, SUM(n) AS n FROM (SELECT user_id, COUNT(*) AS n FROM %s GROUP BY user_id) AS c;"

// openUp is weir up, which sees its workers exit and starts them again. Its table is a
// datagen, which goes on at its pace.
func (b *recoveryBench) openUp(ctx context.Context, c common) (*scene, error) {
	a, end, err := startUp(ctx, c.weir, os.TempDir(), 2, 4)
	if err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("CREATE TABLE g (user_id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '%.0f', 'fields.user_id.start' = '0', 'fields.user_id.end' = '999999');\n", b.rate)
	return &scene{api: a, sql: sql + fmt.Sprintf(recoveryQuery, "g"), pool: 2, end: end, refill: func(context.Context, string) error { return nil }}, nil
}

// openMachines is a server, NATS and workers that nobody starts again: the job goes on
// in the slots of the others. The bench starts a new one before the next kill.
func (b *recoveryBench) openMachines(ctx context.Context, c common) (*scene, error) {
	w, err := startCluster(ctx, c.weir)
	if err != nil {
		return nil, err
	}
	s := &scene{api: w.api, sql: stampedTable(b.rate) + fmt.Sprintf(recoveryQuery, "stamped"), pool: 3, end: w.stop}
	began := time.Now()
	s.due = func(now time.Time) float64 { return b.rate * now.Sub(began).Seconds() }
	n := 0
	s.refill = func(ctx context.Context, killed string) error {
		if p := w.workers[killed]; p != nil {
			<-p.done
			delete(w.workers, killed)
		}
		n++
		return w.startWorker(ctx, fmt.Sprintf("w%d", n), 2)
	}
	for range s.pool {
		if err := s.refill(ctx, ""); err != nil {
			w.stop()
			return nil, err
		}
	}
	return s, nil
}

const recoveryJob = "recovery"

// killAll runs the job and kills a worker of it again and again.
func (b *recoveryBench) killAll(ctx context.Context, name string, s *scene) (recoveryFigures, error) {
	f := recoveryFigures{Setup: name}
	if err := s.api.submit(ctx, recoveryJob, s.sql); err != nil {
		return f, err
	}
	if err := s.api.awaitStatus(ctx, recoveryJob, "RUNNING", 20*time.Second); err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts := &counting{api: s.api}
	go counts.watch(ctx)
	err := await(ctx, time.Minute, "a million keys", func() (bool, error) { return counts.last().users >= stampedUsers, nil })
	for range b.kills {
		if err == nil {
			err = b.killOne(ctx, s, counts, &f)
		}
	}
	return f, err
}

// killOne waits until all is well, kills a worker and adds what was seen to f.
func (b *recoveryBench) killOne(ctx context.Context, s *scene, counts *counting, f *recoveryFigures) error {
	before, victim, err := s.steady(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, time.Duration(rand.Int64N(int64(time.Second)))); err != nil { // at no particular moment of a checkpoint
		return err
	}
	if s.due != nil { // the lag of an undisturbed job, found where it is undisturbed
		lag := s.due(time.Now()) - float64(counts.last().n)
		was := s.due
		s.due = func(now time.Time) float64 { return was(now) - lag }
	}
	killed := time.Now()
	had := counts.last().n
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", victim.ID, err)
	}
	var next attemptView
	err = await(ctx, time.Minute, "the next attempt is RUNNING", func() (bool, error) {
		list, err := s.api.attempts(ctx, recoveryJob)
		if err != nil || len(list) == 0 || list[0].Number == before || list[0].RunningAt == nil {
			return false, err
		}
		next = list[0]
		return true, nil
	})
	if err != nil {
		return err
	}
	known, err := s.known(ctx, killed)
	if err != nil {
		return err
	}
	output, caughtUp, err := counts.recovered(ctx, *next.RunningAt, func(c reading) bool {
		if s.due == nil {
			return c.n >= had
		}
		return float64(c.n) >= s.due(c.at)-b.rate/10
	})
	if err != nil {
		return err
	}
	since := func(t time.Time) float64 { return milliseconds(t.Sub(killed)) }
	f.Known, f.Running = append(f.Known, since(known.At)), append(f.Running, since(*next.RunningAt))
	f.Output, f.CaughtUp = append(f.Output, since(output)), append(f.CaughtUp, since(caughtUp))
	fmt.Fprintf(os.Stderr, "recovery: %s: %d: known %.0f, RUNNING %.0f, output %.0f, caught up %.0f ms: %s\n",
		f.Setup, len(f.Known), since(known.At), since(*next.RunningAt), since(output), since(caughtUp), known.Message)
	return s.refill(ctx, victim.ID)
}

// steady waits until the workers are there and the job has had two checkpoints in its attempt;
// it returns the attempt and a worker that runs tasks.
func (s *scene) steady(ctx context.Context) (attempt int64, victim workerView, err error) {
	err = await(ctx, time.Minute, "the job runs, with checkpoints, and all workers are there", func() (bool, error) {
		all, err := s.api.workers(ctx)
		if err != nil || len(all) < s.pool {
			return false, err
		}
		list, err := s.api.attempts(ctx, recoveryJob)
		if err != nil || len(list) == 0 || list[0].RunningAt == nil {
			return false, err
		}
		done, err := s.api.checkpoints(ctx, recoveryJob)
		n := 0
		for _, k := range done {
			if k.Status == "completed" && k.TriggeredAt.After(*list[0].RunningAt) {
				n++
			}
		}
		victim = workerView{}
		for _, w := range all {
			if w.Tasks > victim.Tasks {
				victim = w
			}
		}
		attempt = list[0].Number
		return n >= 2 && victim.Tasks > 0, err
	})
	return attempt, victim, err
}

// known is when the server wrote down the failure, the first event after the kill that
// is about no checkpoint.
func (s *scene) known(ctx context.Context, killed time.Time) (eventView, error) {
	list, err := s.api.events(ctx, recoveryJob)
	if err != nil {
		return eventView{}, err
	}
	slices.Reverse(list)
	for _, e := range list {
		if !e.At.Before(killed.Truncate(time.Millisecond)) && (e.Kind == "failure" || e.Kind == "status" || e.Kind == "attempt") {
			return e, nil
		}
	}
	return eventView{}, fmt.Errorf("no event tells of the kill: %+v", list)
}

// A reading is what the job's result said.
type reading struct {
	at, asked time.Time
	users, n  int64
}

// A counting reads the result every 5 ms.
type counting struct {
	api *api
	mu  struct {
		sync.Mutex
		all []reading // the last ones
	}
}

// watch reads until ctx ends. A read that a dead worker should answer holds up no other.
func (c *counting) watch(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	room := make(chan struct{}, 64)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case room <- struct{}{}:
			go func() {
				c.read(ctx)
				<-room
			}()
		default: // enough wait for answers
		}
	}
}

func (c *counting) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	asked := time.Now()
	page, err := c.api.results(ctx, recoveryJob, "limit=1")
	if err != nil || !page.AsOf.Live || len(page.Rows) != 1 {
		return
	}
	var row struct {
		Users int64 `json:"users"`
		N     int64 `json:"n"`
	}
	if json.Unmarshal(page.Rows[0], &row) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.all = append(c.mu.all, reading{at: time.Now(), asked: asked, users: row.Users, n: row.N})
	if len(c.mu.all) > 20_000 {
		c.mu.all = append(c.mu.all[:0], c.mu.all[10_000:]...)
	}
}

// last is the newest answer.
func (c *counting) last() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.all) == 0 {
		return reading{}
	}
	return c.mu.all[len(c.mu.all)-1]
}

// recovered waits for the first answer, among those to questions asked after the attempt
// ran, that shows a change, and for the first that is enough.
func (c *counting) recovered(ctx context.Context, running time.Time, enough func(reading) bool) (output, caughtUp time.Time, err error) {
	err = await(ctx, time.Minute, "the job has caught up", func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		output, caughtUp = time.Time{}, time.Time{}
		seen := map[int64]bool{}
		for _, k := range c.mu.all {
			if k.asked.Before(running) {
				continue
			}
			if seen[k.n] = true; len(seen) == 2 && output.IsZero() {
				output = k.at
			}
			if enough(k) && !output.IsZero() {
				caughtUp = k.at
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		err = fmt.Errorf("%w: it counts %d rows", err, c.last().n)
	}
	return output, caughtUp, err
}

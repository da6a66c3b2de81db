package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/op"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/exec/worker"
	"weir/planner/plan"
	"weir/transport"
)

// runWorker is a worker process with the bench's tables. Asked for by a line on its
// standard input, it prints what it has seen; it ends with its input.
func runWorker(ctx context.Context, args []string) error {
	var id, url, storage, profile string
	var slots int
	f := flag.NewFlagSet("bench worker", flag.ContinueOnError)
	f.StringVar(&id, "id", "", "its name")
	f.StringVar(&url, "nats", "", "of the NATS server")
	f.StringVar(&storage, "storage", "", "of the cluster")
	f.IntVar(&slots, "slots", 1, "slots")
	f.StringVar(&profile, "profile", "", "write where its time went to this file")
	if err := f.Parse(args); err != nil {
		return err
	}
	if profile != "" {
		end, err := startProfile(profile)
		if err != nil {
			return err
		}
		defer end()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	blobs, err := blob.Open(storage)
	if err != nil {
		return err
	}
	opts := transport.Options{URL: url, Name: "weir-worker-" + id, Cluster: "default", Worker: weir.WorkerID(id), Log: log}
	control, err := transport.OpenControl(ctx, opts)
	if err != nil {
		return err
	}
	defer control.Close()
	network, err := transport.OpenNetwork(ctx, opts)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	o := &observer{}
	w := worker.New(worker.Config{
		ID: weir.WorkerID(id), Slots: slots, PID: os.Getpid(), Host: host,
		Control: control, Network: network, Blobs: blobs,
		Openers: exec.Openers{Source: o.source, Operator: op.Open, Sink: o.sink},
		Logger:  log,
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	networkCtx, closeNetwork := context.WithCancel(context.WithoutCancel(ctx))
	ranC := make(chan error, 1)
	go func() { ranC <- network.Run(networkCtx) }()
	go func() {
		o.answer()
		cancel()
	}()
	err = w.Run(ctx)
	closeNetwork()
	return errors.Join(err, <-ranC)
}

// startProfile samples where the process's time goes, until its end.
func startProfile(file string) (end func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, pprof.StartCPUProfile(f)
}

// seen is what the tables of a worker have seen since it began.
type seen struct {
	Made uint64    `json:"made"` // rows
	Out  uint64    `json:"out"`  // rows that are new, or new values of theirs
	Ages histogram `json:"ages"` // of these, or how long apart they came
	// Of the moving tables: how many subtasks have made every key, and how many keys have
	// changed by checkpoint.
	Filled  int             `json:"filled"`
	Changed map[int64]int64 `json:"changed"`
}

// plus adds what another worker has seen.
func (s seen) plus(o seen) seen {
	return seen{s.Made + o.Made, s.Out + o.Out, s.Ages.plus(o.Ages), s.Filled + o.Filled, added(s.Changed, o.Changed)}
}

// minus takes away what had been seen before.
func (s seen) minus(o seen) seen {
	return seen{s.Made - o.Made, s.Out - o.Out, s.Ages.minus(o.Ages), s.Filled - o.Filled, s.Changed}
}

// An observer opens the bench's tables and keeps what they see.
type observer struct {
	mu struct {
		sync.Mutex
		seen
		job weir.JobID // that Changed is about
	}
}

// answer prints what was seen for every line of standard input.
func (o *observer) answer() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		o.mu.Lock()
		b, err := json.Marshal(o.mu.seen)
		o.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
			return
		}
	}
}

// look asks all workers what they have seen.
func (c *cluster) look() (all seen, err error) {
	for _, p := range c.workers { // their order does not show
		if _, err := p.stdin.Write([]byte("\n")); err != nil {
			return all, err
		}
		var s seen
		if err := p.read(&s); err != nil {
			return all, err
		}
		all = all.plus(s)
	}
	return all, nil
}

func (o *observer) source(ctx context.Context, setup exec.Setup) (exec.Source, error) {
	if setup.Operator.Source != nil {
		name := setup.Operator.Source.Table.Name
		if name == "stamped" {
			return o.stamped(setup)
		}
		if space, ok := keyspaceOf(name); ok {
			return o.moving(setup, space), nil
		}
	}
	return source.Open(ctx, setup)
}

func (o *observer) sink(ctx context.Context, setup exec.Setup) (exec.Operator, error) {
	name := setup.Operator.Sink.Table.Name
	if rate, ok := strings.CutPrefix(name, "slow_"); ok {
		n, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			return nil, err
		}
		return &observed{o: o, rate: n / float64(setup.Parallelism)}, nil
	}
	switch name {
	case "observed":
		return &observed{o: o}, nil
	case "gaps":
		return &gapped{o: o}, nil
	}
	return sink.Open(ctx, setup)
}

// stampedUsers is the number of keys in the table stamped.
const stampedUsers = 1_000_000

// A stamped source makes rows by the clock: row i of a subtask is due i/rate after the
// start, which its snapshot keeps, so that a source which was stopped is behind and makes up for it as
// fast as it can. The column made is when the row was due (without a rate: when it was
// made), in microseconds; user_id goes through all users, neighbours apart.
type stamped struct {
	o       *observer
	state   stampedState
	subtask int64
	of      int64
	rate    float64 // rows per second of this subtask; 0: as fast as possible
	read    []int
	columns []plan.Column
	pool    *batch.Pool
}

// stampedState is what a snapshot keeps of a subtask.
type stampedState struct {
	Subtask int   `json:"subtask"`
	Start   int64 `json:"start"` // microseconds since 1970
	Next    int64 `json:"next"`
}

func (o *observer) stamped(setup exec.Setup) (exec.Source, error) {
	spec := setup.Operator.Source
	s := &stamped{
		o: o, subtask: int64(setup.Subtask), of: int64(setup.Parallelism), rate: spec.RowsPerSecond / float64(setup.Parallelism),
		read: spec.Read, columns: spec.Table.Columns,
	}
	s.state = stampedState{Subtask: setup.Subtask, Start: time.Now().UnixMicro()}
	for _, item := range setup.List {
		var old stampedState
		if err := json.Unmarshal(item, &old); err != nil {
			return nil, err
		}
		if old.Subtask == setup.Subtask {
			s.state = old
		}
	}
	kinds := make([]batch.Physical, len(s.read))
	for i := range kinds {
		kinds[i] = batch.Ints
	}
	s.pool = batch.NewPool(kinds, batch.Target)
	return s, nil
}

// due is when row i is.
func (s *stamped) due(i int64) int64 {
	return s.state.Start + int64(float64(i)/s.rate*1e6)
}

func (s *stamped) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	now := time.Now().UnixMicro()
	n := int64(batch.Target)
	if s.rate > 0 {
		n = min(n, int64(float64(now-s.state.Start)*s.rate/1e6)+1-s.state.Next)
	}
	if n <= 0 {
		const lot = 1000 // microseconds: rows do not come one by one
		return nil, exec.Wait, time.UnixMicro(max(s.due(s.state.Next), now+lot)), nil
	}
	b := s.pool.Get()
	for i := range s.read {
		b.Columns[i].Resize(int(n))
	}
	for row := range n {
		i := s.state.Next + row
		made := now
		if s.rate > 0 {
			made = s.due(i)
		}
		for k, column := range s.read {
			v := made
			if s.columns[column].Name == "user_id" {
				v = (i*s.of + s.subtask) * 7_919 % stampedUsers
			}
			b.Columns[k].Ints[row] = v
		}
	}
	b.Len = int(n)
	s.state.Next += n
	s.o.mu.Lock()
	s.o.mu.Made += uint64(n)
	s.o.mu.Unlock()
	return b, exec.More, time.Time{}, ctx.Err()
}

func (s *stamped) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	b, err := json.Marshal(s.state)
	return []json.RawMessage{b}, err
}

func (s *stamped) Close() error { return nil }

// An observed sink counts rows by their age: now less the column made, the last one.
// With a rate it takes no more rows per second, and blocks meanwhile, as a slow target does.
type observed struct {
	o    *observer
	rate float64
	free time.Time // when it takes the next row
	rows []int     // scratch: those that count
}

// take waits as long as n rows take.
func (s *observed) take(n int) {
	if s.rate == 0 {
		return
	}
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(time.Duration(float64(n) / s.rate * 1e9))
	<-time.After(s.free.Sub(now))
}

func (s *observed) Process(b *batch.Batch, _ exec.Collector) error {
	s.rows = s.rows[:0]
	for i := range b.Rows() {
		row := b.Row(i)
		if k := b.Kind(row); k == batch.Insert || k == batch.UpdateAfter {
			s.rows = append(s.rows, row)
		}
	}
	s.take(len(s.rows))
	now := time.Now().UnixMicro()
	made := &b.Columns[len(b.Columns)-1]
	s.o.mu.Lock()
	s.o.mu.Out += uint64(len(s.rows))
	for _, row := range s.rows {
		s.o.mu.Ages.add(time.Duration(now-made.Ints[row]) * time.Microsecond)
	}
	s.o.mu.Unlock()
	b.Release()
	return nil
}

func (s *observed) Flush(exec.Collector) error { return nil }
func (s *observed) End(exec.Collector) error   { return nil }
func (s *observed) Close() error               { return nil }

// stampedTable defines the table stamped; rate 0: as fast as possible.
func stampedTable(rate float64) string {
	pace := ""
	if rate > 0 {
		pace = fmt.Sprintf(", 'rows-per-second' = '%.0f'", rate)
	}
	return "CREATE TABLE stamped (user_id BIGINT, made BIGINT) WITH ('connector' = 'datagen'" + pace + ");\n"
}

// newest is a query that tells, for each user, the newest row, and writes the answers'
// changes into a table of the bench.
func newest(rate float64, into, interval string) string {
	return stampedTable(rate) + "CREATE TABLE " + into + ` (user_id BIGINT, made BIGINT) WITH ('connector' = 'blackhole');
SET 'checkpoint.interval' = '` + interval + `';
INSERT INTO ` + into + ` SELECT user_id, MAX(made) AS made FROM stamped GROUP BY user_id;`
}

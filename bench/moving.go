package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
)

// A keyspace is how the table moving_KEYS_WINDOW_ORDER makes keys: first each of so many
// once, then those of a window, again and again, which is another one every second.
type keyspace struct {
	keys, window int64
	// scattered: a window's keys are far apart in the order in which they came first;
	// otherwise they were neighbours.
	scattered bool
}

func (k keyspace) table() string {
	order := "dense"
	if k.scattered {
		order = "scattered"
	}
	return fmt.Sprintf("moving_%d_%d_%s", k.keys, k.window, order)
}

// keyspaceOf reads a table's name.
func keyspaceOf(table string) (k keyspace, ok bool) {
	var order string
	n, _ := fmt.Sscanf(table, "moving_%d_%d_%s", &k.keys, &k.window, &order)
	k.scattered = order == "scattered"
	return k, n == 3
}

func (k keyspace) String() string {
	order := "neighbours"
	if k.scattered {
		order = "scattered"
	}
	return fmt.Sprintf("%s of %s, %s", amount(k.window), amount(k.keys), order)
}

// amount writes 100000 as "100 k".
func amount(n int64) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

// A moving source makes keys of a keyspace; each subtask has keys of its own. The window
// moves with each barrier, so that what a checkpoint has to store is a window, and
// without barriers every second.
type moving struct {
	o        *observer
	space    keyspace
	subtask  int64
	of       int64
	rate     float64 // rows per second of this subtask once all keys are there; 0: as fast as possible
	next     int64   // rows so far
	from     int64   // rows of earlier windows
	windows  int64
	began    time.Time // of the first window
	moved    time.Time
	barriers bool
	columns  int
	pool     *batch.Pool
}

func (o *observer) moving(setup exec.Setup, space keyspace) *moving {
	spec := setup.Operator.Source
	of := int64(setup.Parallelism)
	m := &moving{
		o: o, subtask: int64(setup.Subtask), of: of, rate: spec.RowsPerSecond / float64(of), columns: len(spec.Read),
		space: keyspace{space.keys / of, space.window / of, space.scattered},
	}
	kinds := make([]batch.Physical, m.columns)
	for i := range kinds {
		kinds[i] = batch.Ints
	}
	m.pool = batch.NewPool(kinds, batch.Target)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.job != setup.Job { // checkpoints have other numbers
		o.mu.job, o.mu.Changed = setup.Job, nil
	}
	return m
}

// key is the key of the row at a place of the window; neighbours in time are apart.
func (m *moving) key(place int64) int64 {
	const step, stride = 7_919, 1_000_003 // primes that divide no number of keys
	k := (m.windows*m.space.window + place*step%m.space.window) % m.space.keys
	if m.space.scattered {
		k = k * stride % m.space.keys
	}
	return k*m.of + m.subtask
}

func (m *moving) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	n := int64(batch.Target)
	filling := m.next < m.space.keys
	if filling {
		n = min(n, m.space.keys-m.next)
	} else if wait := m.pace(&n); !wait.IsZero() {
		return nil, exec.Wait, wait, nil
	}
	b := m.pool.Get()
	for c := range m.columns {
		b.Columns[c].Resize(int(n))
	}
	for row := range n {
		k := (m.next+row)*m.of + m.subtask
		if !filling {
			k = m.key(m.next - m.from + row)
		}
		for c := range m.columns {
			b.Columns[c].Ints[row] = k
		}
	}
	b.Len = int(n)
	m.next += n
	m.o.mu.Lock()
	defer m.o.mu.Unlock()
	m.o.mu.Made += uint64(n)
	if m.next == m.space.keys {
		m.o.mu.Filled++
		m.began = time.Now()
		m.moved, m.from = m.began, m.next
	}
	return b, exec.More, time.Time{}, ctx.Err()
}

// pace moves the window where no barrier does, and lowers n to what is due; where that
// is nothing, it says when to come again.
func (m *moving) pace(n *int64) (wait time.Time) {
	now := time.Now()
	every := time.Second
	if m.barriers { // unless one is late
		every = 1500 * time.Millisecond
	}
	if now.Sub(m.moved) >= every {
		m.barriers = false
		m.move(now)
	}
	if m.rate == 0 {
		return time.Time{}
	}
	*n = min(*n, int64(now.Sub(m.began).Seconds()*m.rate)-(m.next-m.space.keys))
	if *n <= 0 {
		return now.Add(time.Millisecond)
	}
	return time.Time{}
}

func (m *moving) move(now time.Time) {
	m.windows++
	m.moved, m.from = now, m.next
}

// Snapshot notes how many keys have changed since the last barrier.
func (m *moving) Snapshot(id weir.CheckpointID) ([]json.RawMessage, error) {
	changed := min(m.next-m.from, m.space.window)
	m.barriers = true
	if m.next >= m.space.keys {
		m.move(time.Now())
	}
	m.o.mu.Lock()
	defer m.o.mu.Unlock()
	if m.o.mu.Changed == nil {
		m.o.mu.Changed = map[int64]int64{}
	}
	m.o.mu.Changed[int64(id)] += changed
	return nil, nil
}

func (m *moving) Close() error { return nil }

// added gives the sums of two that count by the same.
func added(a, b map[int64]int64) map[int64]int64 {
	sum := maps.Clone(a)
	if sum == nil {
		sum = map[int64]int64{}
	}
	for k, n := range b {
		sum[k] += n
	}
	return sum
}

// counted is a query that counts rows by key into a sink that sees how long apart its
// calls are.
func (k keyspace) counted(rate float64, interval string) string {
	pace := ""
	if rate > 0 {
		pace = fmt.Sprintf(", 'rows-per-second' = '%.0f'", rate)
	}
	return "CREATE TABLE " + k.table() + " (user_id BIGINT) WITH ('connector' = 'datagen'" + pace + `);
CREATE TABLE gaps (user_id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
SET 'checkpoint.interval' = '` + interval + `';
INSERT INTO gaps SELECT user_id, COUNT(*) AS n FROM ` + k.table() + " GROUP BY user_id;"
}

// A gapped sink counts how long apart the batches come that a busy aggregate gives it.
type gapped struct {
	o    *observer
	last time.Time
}

func (s *gapped) Process(b *batch.Batch, _ exec.Collector) error {
	now := time.Now()
	s.o.mu.Lock()
	s.o.mu.Out += uint64(b.Rows())
	if !s.last.IsZero() {
		s.o.mu.Ages.add(now.Sub(s.last))
	}
	s.o.mu.Unlock()
	s.last = now
	b.Release()
	return nil
}

func (s *gapped) Flush(exec.Collector) error { return nil }
func (s *gapped) End(exec.Collector) error   { return nil }
func (s *gapped) Close() error               { return nil }

// A windowed is a job over a keyspace that runs on one worker with two slots.
type windowed struct {
	*cluster
	name string
}

// startWindowed starts a cluster with a worker for such jobs.
func startWindowed(ctx context.Context, c common) (*cluster, error) {
	w, err := startCluster(ctx, c.weir)
	if err != nil {
		return nil, err
	}
	w.profile = c.profile
	if err := w.startWorker(ctx, "w1", 2); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// settle is how many checkpoints follow the filling of a state before a bench looks at any:
// what filled it is merged by then.
const settle = 8

// open starts a job and returns once all keys are there, and some checkpoints if it has any.
func (c *cluster) open(ctx context.Context, name string, k keyspace, rate float64, interval string) (*windowed, error) {
	before, err := c.look()
	if err != nil {
		return nil, err
	}
	if err := c.api.submit(ctx, name, k.counted(rate, interval)); err != nil {
		return nil, err
	}
	err = await(ctx, 3*time.Minute, "all keys are there", func() (bool, error) {
		s, err := c.look()
		return s.Filled >= before.Filled+2, err
	})
	if err != nil {
		return nil, err
	}
	filled := time.Now()
	w := &windowed{c, name}
	if interval == "0 s" {
		return w, pause(ctx, settle*time.Second)
	}
	return w, await(ctx, 2*time.Minute, "checkpoints after that", func() (bool, error) {
		list, err := w.completed(ctx, filled)
		return len(list) >= settle, err
	})
}

// completed lists the checkpoints that were triggered since a moment and have completed,
// oldest first.
func (w *windowed) completed(ctx context.Context, since time.Time) (out []checkpointView, err error) {
	list, err := w.api.checkpoints(ctx, w.name)
	for _, k := range list {
		if k.Status == "completed" && k.TriggeredAt.After(since) {
			out = append([]checkpointView{k}, out...)
		}
	}
	return out, err
}

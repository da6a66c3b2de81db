package exec

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"weir/exec/batch"
)

// A meter tells how a task's time at work is divided among the operators of its chain.
// To read the clock wherever a batch passes from one to the next would cost as much as a
// cheap operator. So while rounds of the loop are short only one in oneIn is timed, at
// random, and counts for as many. Long rounds, those that follow a rest, flushes, final
// rows and commits are timed all. (A long call among many short rounds counts, when it is
// timed, for those that are not.) What the task has worked by its own counters is then
// divided in these proportions, so that the parts always add up to it.
type meter struct {
	now   func() time.Time
	stats *counters

	// The loop's own. Times are of work: since Run, without waits.
	timing bool
	rested bool // since the last round
	began  int64
	last   int64 // until when all is settled
	weight int64 // of what is timed
	skip   int   // rounds that are not timed

	// The loop writes, any goroutine reads.
	who   atomic.Int32   // the operator at work, by its place in the chain
	since atomic.Int64   // last, while timing; else -1
	spent []atomic.Int64 // by operator, weighted

	mu struct {
		sync.Mutex
		seen   []int64 // of spent, by the last divide
		told   []int64 // by operator
		worked int64   // divided among them
	}
}

const (
	oneIn      = 8
	shortRound = int64(200 * time.Microsecond)
)

// start prepares for a chain of n operators.
func (m *meter) start(now func() time.Time, stats *counters, n int) {
	m.now, m.stats, m.weight = now, stats, 1
	m.since.Store(-1)
	m.spent, m.mu.seen, m.mu.told = make([]atomic.Int64, n), make([]int64, n), make([]int64, n)
}

// work is how long the task has worked. Only its loop may ask, which waits for nothing then.
func (m *meter) work() int64 {
	return int64(m.now().Sub(*m.stats.start.Load())) - m.stats.idleNS.Load() - m.stats.backNS.Load()
}

// round begins a turn of the loop.
func (m *meter) round() {
	if m.skip > 0 && !m.rested && !m.timing {
		m.skip--
		return
	}
	now, timed := m.work(), m.timing
	short := now-m.began < shortRound
	m.settle(now)
	m.timing, m.began = true, now
	switch {
	case m.rested, timed && !short:
		m.weight = 1
	case timed:
		m.weight = oneIn
		if skip := rand.IntN(2*oneIn - 1); skip > 0 { // oneIn-1 on average
			m.pause()
			m.skip = skip - 1
		}
	}
	m.rested = false
}

// rest says that the task is about to wait for input or for time.
func (m *meter) rest() { m.rested = true }

// turn has operator to work from now on; it returns who did.
func (m *meter) turn(to int) (before int) {
	before = int(m.who.Load())
	if m.timing {
		m.settle(m.work())
	}
	m.who.Store(int32(to))
	return before
}

// whole has what follows timed in any case, until resume, which takes what it returns.
func (m *meter) whole() (weight int64) {
	if m.timing {
		weight = m.weight
	}
	m.settle(m.work())
	m.timing, m.weight = true, 1
	return weight
}

// resume goes on as before whole, at the front of the chain.
func (m *meter) resume(weight int64) {
	m.settle(m.work())
	m.who.Store(0)
	if m.weight = weight; weight == 0 {
		m.weight = oneIn
		m.pause()
	}
}

// settle charges who is at work with the time since the last call.
func (m *meter) settle(now int64) {
	if m.timing {
		m.spent[m.who.Load()].Add((now - m.last) * m.weight)
	}
	m.last = now
	m.since.Store(now)
}

func (m *meter) pause() {
	m.timing = false
	m.since.Store(-1)
}

// divide tells how long each operator has worked, where the task has for so long. Any
// goroutine may ask.
func (m *meter) divide(worked time.Duration) []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	who, since := int(m.who.Load()), m.since.Load()
	parts, sum := make([]int64, len(m.spent)), int64(0)
	for i := range m.spent {
		spent := m.spent[i].Load()
		if i == who && since >= 0 { // it is under way
			spent += max(int64(worked)-since, 0)
		}
		parts[i] = max(spent-m.mu.seen[i], 0)
		m.mu.seen[i] = max(spent, m.mu.seen[i])
		sum += parts[i]
	}
	more := max(int64(worked)-m.mu.worked, 0)
	m.mu.worked += more
	if sum == 0 && who < len(parts) { // one long call that is not timed
		parts[who], sum = 1, 1
	}
	out := make([]time.Duration, len(parts))
	for i := range parts {
		m.mu.told[i] += int64(float64(more) * float64(parts[i]) / float64(max(sum, 1)))
		out[i] = time.Duration(m.mu.told[i])
	}
	return out
}

// batchWeight is about what a batch's columns weigh in a frame. Of texts it takes the mean, so
// that it costs the same for every batch.
func batchWeight(b *batch.Batch) int64 {
	n, size := b.Rows(), 0
	for i := range b.Columns {
		switch v := &b.Columns[i]; v.Physical {
		case batch.Bools:
			size += n
		case batch.Ints, batch.Floats:
			size += 8 * n
		case batch.Decimals:
			size += 16 * n
		case batch.Strings:
			if size += 4 * n; b.Len > 0 && len(v.Offsets) > b.Len {
				size += int(v.Offsets[b.Len]-v.Offsets[0]) * n / b.Len
			}
		}
	}
	return int64(size)
}

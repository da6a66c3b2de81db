package worker

import (
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"weir/exec/deploy"
	"weir/exec/state"
)

// A Memory is what a worker may take, and what it is shared out with. The zero value has no
// limit, and leaves the garbage collector alone.
type Memory struct {
	Budget int64 // of the process, in bytes
	Heap   int64 // of these, the soft limit of Go's runtime
	State  *state.Budget
	Disk   *state.Disk
	// SetGC sets how many percent the heap may grow until it is collected; nil: it stays.
	SetGC func(percent int)
	// Free collects the heap and gives back to the system what is free; nil: that is left to
	// the runtime.
	Free func()
}

// Parts of the heap's limit.
const (
	stateMost  = 2  // half of it at most is state: what a cut writes comes on top
	stateLeast = 16 // and a sixteenth at least
	spareHeap  = 8  // an eighth for what is garbage and not collected yet
	calm       = 4  // what is beside the state falls by this part of the way at a collection
)

// The heap may grow by what a collection looks at anew, which it costs, and by a part of what
// it does not look into: state is that, so that a large one does not double.
const (
	gcLeast   = 16 << 20
	gcLive    = 8
	gcFewest  = 10 // percent
	gcMost    = 100
	gcNotable = 10 // a percentage that differs by less than a tenth is not set anew
)

// A heap that nobody has collected for a while, as little is allocated, holds garbage and free
// room of busier times: it is freed once.
const (
	freeAfter = 5        // looks without a collection
	freeLeast = 16 << 20 // less is not worth it
	freeLive  = 16       // nor is less than this part of what is live
)

// heapFigures are what Go's runtime tells.
type heapFigures struct {
	cycles   uint64 // of the collector
	live     int64  // what the last collection left
	scan     int64  // what it looks through
	overhead int64  // what the runtime has beside objects and free room for these
	room     int64  // objects, garbage among them, and that room
}

// A sharing decides, once a second, what state may take and how often the heap is
// collected. It is pure.
type sharing struct {
	heap    int64 // the limit; 0: none
	cycles  uint64
	used    int64 // by state, at the last look
	beside  int64 // live and not state
	percent int   // as last set; 0: never
	quiet   int   // looks since the last collection
	freed   bool  // and what was free was given back
}

// look takes figures in, and what state takes. The limit of state is what nothing else needs:
// what is live beside it counts at once when it grows, and is forgotten slowly. percent is 0
// where it stays.
func (s *sharing) look(h heapFigures, used int64) (limit int64, percent int) {
	if h.cycles != s.cycles { // at a moment between the two looks
		least, most := max(h.live-max(used, s.used), 0), max(h.live-min(used, s.used), 0)
		s.beside = max(s.beside, least)
		s.beside -= max(s.beside-most, 0) / calm
	}
	if s.quiet++; h.cycles != s.cycles {
		s.quiet, s.freed = 0, false
	}
	s.cycles, s.used = h.cycles, used
	if s.heap > 0 {
		limit = min(s.heap-h.overhead-s.heap/spareHeap-s.beside, s.heap/stateMost)
		limit = max(limit, s.heap/stateLeast)
	}
	return limit, s.collect(h)
}

// free says whether it is time to free what was needed in busier times.
func (s *sharing) free(h heapFigures) bool {
	return !s.freed && s.quiet >= freeAfter && h.room-h.live >= max(freeLeast, h.live/freeLive)
}

// gave records that it was freed, which takes collections.
func (s *sharing) gave(h heapFigures) { s.cycles, s.freed = h.cycles, true }

func (s *sharing) collect(h heapFigures) int {
	grow := h.scan + h.live/gcLive + gcLeast
	percent := int(min(max(100*grow/max(h.live, 1), gcFewest), gcMost))
	if diff := max(percent-s.percent, s.percent-percent); diff*gcNotable < percent {
		return 0
	}
	s.percent = percent
	return percent
}

// memory shares a worker's memory out.
type memory struct {
	Memory
	relax   func()           // has all tasks look what state they may keep
	heap    atomic.Int64     // live
	samples []metrics.Sample // run's own, like sharing
	sharing sharing
}

// The runtime's names of heapFigures, in the order in which figures reads them.
func heapSamples() []metrics.Sample {
	var list []metrics.Sample
	for _, name := range []string{
		"/gc/cycles/total:gc-cycles", "/gc/heap/live:bytes", "/gc/scan/total:bytes", "/memory/classes/total:bytes",
		"/memory/classes/heap/released:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes",
	} {
		list = append(list, metrics.Sample{Name: name})
	}
	return list
}

func newMemory(c Memory, relax func()) *memory {
	return &memory{Memory: c, relax: relax, samples: heapSamples(), sharing: sharing{heap: c.Heap}}
}

// run shares the memory out until ctx ends.
func (m *memory) run(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		m.look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look shares anew what there is.
func (m *memory) look() {
	h := m.read()
	var used int64
	if m.State != nil {
		used = m.State.Used()
	}
	limit, percent := m.sharing.look(h, used)
	if m.State != nil && limit > 0 {
		m.State.SetLimit(limit)
	}
	if m.State != nil && m.State.Over() {
		m.relax() // those without rows to work off would not look
	}
	if m.SetGC != nil && percent > 0 {
		m.SetGC(percent)
	}
	if m.Free != nil && m.sharing.free(h) {
		m.Free()
		h = m.read()
		m.sharing.gave(h)
	}
	m.heap.Store(h.live)
}

func (m *memory) read() heapFigures {
	metrics.Read(m.samples)
	at := func(i int) int64 { return int64(m.samples[i].Value.Uint64()) }
	room := at(5) + at(6)
	return heapFigures{cycles: m.samples[0].Value.Uint64(), live: at(1), scan: at(2), room: room, overhead: at(3) - at(4) - room}
}

// figures are for whoever watches.
func (m *memory) figures() deploy.Memory {
	f := deploy.Memory{Budget: m.Budget, Heap: m.heap.Load()}
	if m.State != nil {
		f.State, f.StateLimit = m.State.Used(), m.State.Limit()
	}
	if m.Disk != nil {
		f.Spilled, f.Cache = m.Disk.Size()
	}
	return f
}

package transport

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// An alarm is when an end of a channel wants its next tick. It rings then or before: it is
// not put off when a deadline moves on, which deadlines do with every frame, but rings in
// vain and is set anew.
type alarm struct {
	end    ticker
	at     int64 // in nanoseconds after the network's start; 0: not set; guarded by the end's mutex
	index  int   // in the heap; guarded by alarms.mu, as is
	sorted int64 // at, as the heap knows it
}

// A ticker is an end of a channel.
type ticker interface {
	tick(now time.Time, share int)
}

// rang says that the alarm is not set any more. The caller holds the end's mutex.
func (a *alarm) rang() { a.at = 0 }

// alarms are those of all channels of a network: what Run has to do is in proportion to
// what rings, not to how many channels there are.
type alarms struct {
	wakeAt atomic.Int64 // until then Run sleeps; 0: it is awake and will look
	mu     struct {
		sync.Mutex
		heap alarmHeap
	}
}

// set puts a into the heap, or moves it there, and says whether Run sleeps for too long.
func (as *alarms) set(a *alarm) (late bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.sorted = a.at
	if a.index > 0 {
		heap.Fix(&as.mu.heap, a.index-1)
	} else {
		heap.Push(&as.mu.heap, a)
	}
	return a.at < as.wakeAt.Load()
}

// ring takes out what is due.
func (as *alarms) ring(now int64, list []*alarm) []*alarm {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.wakeAt.Store(0)
	for len(as.mu.heap) > 0 && as.mu.heap[0].sorted <= now {
		list = append(list, heap.Pop(&as.mu.heap).(*alarm))
	}
	return list
}

// sleep says until when Run sleeps: the next alarm, between soonest and latest.
func (as *alarms) sleep(soonest, latest int64) int64 {
	as.mu.Lock()
	defer as.mu.Unlock()
	next := latest
	if len(as.mu.heap) > 0 {
		next = min(next, max(as.mu.heap[0].sorted, soonest))
	}
	as.wakeAt.Store(next)
	return next
}

// An alarmHeap is ordered by time. The index of an alarm counts from 1, so that its zero
// value is in no heap.
type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].sorted < h[j].sorted }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.index = len(*h)
}

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = 0
	return a
}

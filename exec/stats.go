package exec

import (
	"fmt"
	"sync/atomic"
	"time"

	"weir"
	"weir/exec/batch"
)

// Stats is what a task has done so far. Shares of time are of the time since Run.
type Stats struct {
	Task     weir.TaskID `json:"task"`
	RowsIn   int64       `json:"rows_in"`  // a source: rows it read; others: rows received
	RowsOut  int64       `json:"rows_out"` // rows sent over all edges; without edges, kept or written
	BytesIn  int64       `json:"bytes_in"` // a source: read, or else as its rows weigh; others: received, as rows weigh in frames
	BytesOut int64       `json:"bytes_out"`
	// Busy, Idle and BackPressured add up to about 1: working, waiting for input or
	// time, waiting for a full channel.
	Busy          float64 `json:"busy"`
	Idle          float64 `json:"idle"`
	BackPressured float64 `json:"back_pressured"`
	// Age is the time since Run; Waited and Blocked are those of it that went into waiting for
	// input or time, and for a full channel.
	Age     time.Duration `json:"age_ns"`
	Waited  time.Duration `json:"waited_ns"`
	Blocked time.Duration `json:"blocked_ns"`
	Ended   bool          `json:"ended"`
	// Rejected is how many rows the task's rejects operator counts, restored ones included.
	Rejected int64 `json:"rejected,omitempty"`
	// StateBytes are those of its keyed state in memory, SpilledEntries how many entries of it
	// are on disk only, UploadBytes what is kept until a checkpoint holds it.
	StateBytes     int64 `json:"state_bytes,omitempty"`
	SpilledEntries int64 `json:"spilled_entries,omitempty"`
	UploadBytes    int64 `json:"upload_bytes,omitempty"`
	// DeltaSeconds are those of a core that went into writing what changed.
	DeltaSeconds float64 `json:"delta_seconds,omitempty"`
	// Operators are the chain's, in order.
	Operators []OperatorStats `json:"operators"`
}

// OperatorStats is what one operator of a task has done so far. What passes between two
// operators of a task travels in no frame: its bytes are about those that it would take.
type OperatorStats struct {
	Operator weir.OperatorID `json:"operator"`
	RowsIn   int64           `json:"rows_in"`
	RowsOut  int64           `json:"rows_out"`
	BytesIn  int64           `json:"bytes_in"`
	BytesOut int64           `json:"bytes_out"`
	// Busy is how long it was at work, partitioning and encoding being the last one's; those
	// of a task add up to what is neither Waited nor Blocked.
	Busy time.Duration `json:"busy_ns"`
}

// counters are written by the task's goroutine and read by any.
type counters struct {
	rowsIn, rowsOut   atomic.Int64
	bytesIn, bytesOut atomic.Int64
	idleNS, backNS    atomic.Int64
	sealNS            atomic.Int64              // in which runs were made, off the loop
	idleSince         atomic.Pointer[time.Time] // of a wait under way, not yet in idleNS; nil: none
	backSince         atomic.Pointer[time.Time]
	backTo            atomic.Pointer[weir.TaskID] // the receiver of the last frame
	start             atomic.Pointer[time.Time]   // of Run; nil: not yet
	committing        atomic.Int64                // the checkpoint that sinks commit just now; 0: none
	ended             atomic.Bool
	tight             atomic.Bool // no rows are taken in until memory is free
}

// doing says what holds the loop up, if something does.
func (c *counters) doing() string {
	switch id := c.committing.Load(); {
	case c.backSince.Load() != nil:
		return fmt.Sprintf("waiting for room in the channel to task %v", c.backTo.Load())
	case id != 0:
		return fmt.Sprintf("committing checkpoint %d", id)
	case c.tight.Load():
		return "writing down state that has changed, to make room in memory"
	}
	return ""
}

// A skipping operator counts rows that it was spared; any goroutine may ask it.
type skipping interface{ Skipped() int64 }

// taken is how many rows the node's operator took in, or was spared.
func (n *node) taken() int64 {
	rows := n.rowsIn.Load()
	if s, ok := n.op.(skipping); ok {
		rows += s.Skipped()
	}
	return rows
}

// A rejected operator counts rejected rows; any goroutine may ask it.
type rejected interface{ Rejected() int64 }

// A byteReader is a source that knows how many bytes it has read, of files say. Its task's
// loop asks it.
type byteReader interface{ BytesRead() int64 }

// A byteWriter is a sink that knows how many bytes it has written; any goroutine may ask it.
type byteWriter interface{ BytesWritten() int64 }

// countRead counts what the source has read by now, b included; nil: no rows.
func (t *Task) countRead(b *batch.Batch) {
	if b != nil {
		t.stats.rowsIn.Add(int64(b.Rows()))
	}
	if r, ok := t.source.(byteReader); ok {
		t.stats.bytesIn.Store(r.BytesRead())
	} else if b != nil {
		t.stats.bytesIn.Add(batchWeight(b))
	}
}

// Stats reads the task's counters; any goroutine may call it. What it saw is what
// Progress compares with: call it once a second or so.
func (t *Task) Stats() Stats {
	c := &t.stats
	s := Stats{
		Task: t.id, RowsIn: c.rowsIn.Load(), RowsOut: c.rowsOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), Ended: c.ended.Load(),
	}
	if start := c.start.Load(); start != nil {
		now := t.sample()
		t.tracker.remember(now)
		s.Idle, s.Busy, s.BackPressured = shares(sample{at: *start}, now)
		s.Age, s.Waited, s.Blocked = now.at.Sub(*start), now.idle, now.back
	}
	s.Operators = t.operatorStats(&s)
	if n := len(s.Operators); n > 0 && len(t.outputs.edges) == 0 {
		s.RowsOut, s.BytesOut = s.Operators[n-1].RowsOut, s.Operators[n-1].BytesOut
	}
	for _, n := range t.nodes {
		if r, ok := n.op.(rejected); ok {
			s.Rejected += r.Rejected()
		}
	}
	t.stateStats(&s)
	return s
}

func (t *Task) stateStats(s *Stats) {
	for _, n := range t.nodes {
		if n.setup.State != nil {
			bytes, cold := n.setup.State.Figures()
			s.StateBytes += bytes
			s.SpilledEntries += cold
		}
	}
	s.UploadBytes = t.uploader.held()
	s.DeltaSeconds = time.Duration(t.stats.sealNS.Load()).Seconds()
}

// operatorStats derives what an operator put out from what the next one took in.
func (t *Task) operatorStats(s *Stats) []OperatorStats {
	var list []OperatorStats
	if t.source != nil {
		list = append(list, OperatorStats{Operator: t.sourceSetup.Operator.ID})
	}
	for _, n := range t.nodes {
		list = append(list, OperatorStats{Operator: n.setup.Operator.ID, RowsIn: n.taken(), BytesIn: n.bytesIn.Load()})
	}
	busy := t.meter.divide(s.Age - s.Waited - s.Blocked)
	for i := range list {
		o := &list[i]
		o.Busy = busy[i]
		if i == 0 {
			o.RowsIn, o.BytesIn = s.RowsIn, s.BytesIn
		}
		switch {
		case i+1 < len(list):
			o.RowsOut, o.BytesOut = list[i+1].RowsIn, list[i+1].BytesIn
		case len(t.outputs.edges) > 0:
			o.RowsOut, o.BytesOut = s.RowsOut, s.BytesOut
		case len(t.nodes) > 0: // kept or written
			o.RowsOut, o.BytesOut = o.RowsIn, o.BytesIn
			if w, ok := t.nodes[len(t.nodes)-1].op.(byteWriter); ok {
				o.BytesOut = w.BytesWritten()
			}
		}
	}
	return list
}

package exec

import (
	"fmt"
	"sync/atomic"
	"time"

	"weir"
)

// Stats is what a task has done so far. Shares of time are of the time since Run.
type Stats struct {
	Task     weir.TaskID `json:"task"`
	RowsIn   int64       `json:"rows_in"`  // a source: rows it read; others: rows received
	RowsOut  int64       `json:"rows_out"` // rows sent over all edges; without edges, kept or written
	BytesIn  int64       `json:"bytes_in"` // received, as rows weigh in frames
	BytesOut int64       `json:"bytes_out"`
	// Busy, Idle and BackPressured add up to about 1: working, waiting for input or
	// time, waiting for a full channel.
	Busy          float64 `json:"busy"`
	Idle          float64 `json:"idle"`
	BackPressured float64 `json:"back_pressured"`
	Ended         bool    `json:"ended"`
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

// OperatorStats counts the rows of one operator of a task.
type OperatorStats struct {
	Operator weir.OperatorID `json:"operator"`
	RowsIn   int64           `json:"rows_in"`
	RowsOut  int64           `json:"rows_out"`
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

// A rejected operator counts rejected rows; any goroutine may ask it.
type rejected interface{ Rejected() int64 }

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
	}
	if n := len(t.nodes); n > 0 && len(t.outputs.edges) == 0 {
		s.RowsOut = t.nodes[n-1].rowsIn.Load()
	}
	for _, n := range t.nodes {
		if r, ok := n.op.(rejected); ok {
			s.Rejected += r.Rejected()
		}
	}
	t.stateStats(&s)
	s.Operators = t.operatorStats(s.RowsOut)
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
func (t *Task) operatorStats(out int64) []OperatorStats {
	var list []OperatorStats
	if t.source != nil {
		list = append(list, OperatorStats{Operator: t.sourceSetup.Operator.ID})
	}
	for _, n := range t.nodes {
		list = append(list, OperatorStats{Operator: n.setup.Operator.ID, RowsIn: n.rowsIn.Load()})
	}
	for i := range list {
		list[i].RowsOut = out
		if i+1 < len(list) {
			list[i].RowsOut = list[i+1].RowsIn
		}
	}
	return list
}

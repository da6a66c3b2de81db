package sink

import (
	"weir/exec"
	"weir/exec/batch"
)

// A Blackhole counts the rows that it takes, changes of all kinds, and forgets them.
type Blackhole struct{ rows int64 }

// Rows returns the number of rows since the start of the attempt.
func (s *Blackhole) Rows() int64 { return s.rows }

// Process counts a batch's rows.
func (s *Blackhole) Process(b *batch.Batch, _ exec.Collector) error {
	s.rows += int64(b.Rows())
	b.Release()
	return nil
}

// Flush has nothing to do.
func (s *Blackhole) Flush(exec.Collector) error { return nil }

// End has nothing to do.
func (s *Blackhole) End(exec.Collector) error { return nil }

// Close has nothing to do.
func (s *Blackhole) Close() error { return nil }

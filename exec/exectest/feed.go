package exectest

import (
	"fmt"
	"strings"

	"weir/checkpoint/blob"
	"weir/exec/batch"
	"weir/planner/plan"
)

// changes adds up a changelog, and sees that it is one.
type changes struct {
	counts map[string]int
	refuse error // of the batches after so many that are taken
	taken  int
	strict bool  // a change that changes nothing is wrong
	wrong  error // the first thing that no changelog does
}

func newChanges(c *Case) *changes {
	return &changes{counts: map[string]int{}, strict: c.Chain[len(c.Chain)-1].Kind == plan.GlobalAggregate}
}

// Emit implements exec.Collector.
func (c *changes) Emit(b *batch.Batch) error {
	if c.refuse != nil {
		if c.taken--; c.taken < 0 {
			return c.refuse
		}
	}
	before := ""
	for _, line := range strings.SplitAfter(b.String(), "\n") {
		kind, row, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if kind == "+I" || kind == "+U" {
			c.counts[row]++
		} else if c.counts[row]--; c.counts[row] < 0 && c.wrong == nil {
			c.wrong = fmt.Errorf("row taken back that is not there: %s", row)
		}
		if c.strict && kind == "+U" && before == "-U "+row && c.wrong == nil {
			c.wrong = fmt.Errorf("a change that changes nothing: %s", row)
		}
		before = line
	}
	return nil
}

// Feed gives the rows to one subtask in batches of size, their selections kept, with a
// flush after every so many (0: none), and returns the answer.
func Feed(c Case, size, every int) (string, error) {
	r := &attack{c: &c, blobs: blob.NewMemory(), answer: newChanges(&c)}
	if err := r.openAll(1); err != nil {
		return "", err
	}
	s := r.subtasks[0]
	for i, from := 0, 0; from < c.Rows.Len; i, from = i+1, from+size {
		if err := s.head().Emit(window(c.Rows, from, min(from+size, c.Rows.Len))); err != nil {
			return "", err
		}
		if every > 0 && i%every == 0 {
			if err := s.flush(); err != nil {
				return "", err
			}
		}
	}
	if err := s.end(); err != nil {
		return "", err
	}
	return r.answerLines()
}

// Changes gives the rows to one subtask in batches of these sizes and returns what it puts
// out for each, in the form of batch.String with commas for the line ends.
func Changes(c Case, sizes []int) ([]string, error) {
	r := &attack{c: &c, blobs: blob.NewMemory(), answer: newChanges(&c)}
	if err := r.openAll(1); err != nil {
		return nil, err
	}
	var list []string
	from := 0
	for _, size := range sizes {
		out := &recorder{}
		r.subtasks[0].out = out
		if err := r.subtasks[0].head().Emit(window(c.Rows, from, from+size)); err != nil {
			return nil, err
		}
		list, from = append(list, out.text.String()), from+size
	}
	return list, nil
}

// A recorder keeps what it is given as text.
type recorder struct{ text strings.Builder }

// Emit implements exec.Collector.
func (r *recorder) Emit(b *batch.Batch) error {
	r.text.WriteString(strings.ReplaceAll(b.String(), "\n", ","))
	return nil
}

// window copies the rows at from to to of b's columns, and what of its selection lies
// among them.
func window(b *batch.Batch, from, to int) *batch.Batch {
	out := batch.New(batch.KindsOf(b), to-from)
	for i := from; i < to; i++ {
		out.AppendRow(b, i)
	}
	if b.Sel != nil {
		sel := []int32{}
		for _, r := range b.Sel {
			if int(r) >= from && int(r) < to {
				sel = append(sel, r-int32(from))
			}
		}
		out.Select(sel)
	}
	return out
}

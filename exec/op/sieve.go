package op

import (
	"cmp"
	"errors"
	"slices"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
)

// A sieve takes the rows at fault out of a batch, for operators whose rejects are taken.
// It evaluates parts of the batch, halved as long as one of their rows fails, so that
// even a batch of nothing but such rows costs no more than n·log n.
type sieve struct {
	rejects  exec.Rejecter // nil: a row error fails the job
	operator string        // in whose name rows computed from many are rejected

	rows   []int32 // scratch: the rows still to be looked at
	good   []int32
	faults []eval.RowError
}

// take rejects the rows of b that fail in any of the evaluations, each once, by the first
// one, and leaves the others selected. It returns every error that is not a row's.
func (s *sieve) take(b *batch.Batch, evals ...func() error) error {
	all := b.Sel
	defer func() { b.Sel = all }()
	s.rows, s.faults = s.rows[:0], s.faults[:0]
	for i := range b.Rows() {
		s.rows = append(s.rows, int32(b.Row(i)))
	}
	for _, eval := range evals {
		s.good = s.good[:0]
		if err := s.search(b, s.rows, eval); err != nil {
			return err
		}
		s.rows, s.good = s.good, s.rows
	}
	slices.SortFunc(s.faults, func(a, b eval.RowError) int { return cmp.Compare(a.Row, b.Row) })
	for i := range s.faults {
		if err := s.reject(&s.faults[i], b); err != nil {
			return err
		}
	}
	b.Sel = all
	b.Select(append(b.SelMemory(), s.rows...))
	all = b.Sel
	return nil
}

// search appends those of the rows that do not fail to s.good, in their order. It uses
// the memory of rows.
func (s *sieve) search(b *batch.Batch, rows []int32, evaluate func() error) error {
	if len(rows) == 0 {
		return nil
	}
	b.Sel = rows
	err := evaluate()
	var fault *eval.RowError
	switch {
	case err == nil:
		s.good = append(s.good, rows...)
		return nil
	case !errors.As(err, &fault):
		return err
	}
	at, found := slices.BinarySearch(rows, int32(fault.Row))
	if !found {
		return err // the row is none of those evaluated
	}
	s.faults = append(s.faults, *fault)
	rows = slices.Delete(rows, at, at+1)
	half := len(rows) / 2
	if err := s.search(b, rows[:half], evaluate); err != nil {
		return err
	}
	return s.search(b, rows[half:], evaluate)
}

// reject hands a row on. What takes a rejected row back is dropped in silence.
func (s *sieve) reject(fault *eval.RowError, b *batch.Batch) error {
	if kind := b.Kind(fault.Row); kind != batch.Insert && kind != batch.UpdateAfter {
		return nil
	}
	at := exec.RowError{Table: s.operator, Offset: -1, Column: fault.Text, Reason: fault.Reason}
	locate(&at, fault.Row, b)
	return s.rejects.Reject(&at)
}

// locate says where a row of b comes from; false: it was computed from many.
func locate(e *exec.RowError, row int, b *batch.Batch) bool {
	if b.Origin == nil {
		return false
	}
	e.Table, e.Path = b.Origin.Table, b.Origin.Path
	if row < len(b.Origin.Offsets) {
		e.Offset = b.Origin.Offsets[row]
	}
	return true
}

// rowError says where the row comes from whose value could not be computed.
func rowError(err error, b *batch.Batch) error {
	var e *eval.RowError
	if !errors.As(err, &e) {
		return err
	}
	at := exec.RowError{Column: e.Text, Reason: e.Reason}
	if !locate(&at, e.Row, b) {
		return &exec.ValueError{Column: e.Text, Reason: e.Reason}
	}
	return &at
}

// isRowFault reports whether an evaluation failed by a row.
func isRowFault(err error) bool {
	var e *eval.RowError
	return errors.As(err, &e)
}

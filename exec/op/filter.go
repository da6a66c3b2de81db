package op

import (
	"errors"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
)

// A filter keeps the rows for which its predicate is true. It copies nothing: it
// narrows the batch's selection.
type filter struct {
	stateless
	predicate *eval.Program
}

func openFilter(s exec.Setup) (*filter, error) {
	p, err := eval.Compile(s.Operator.Filter.Predicate, eval.Env{Now: s.Now})
	if err != nil {
		return nil, err
	}
	return &filter{predicate: p}, nil
}

// Process narrows the selection and passes the batch on.
func (f *filter) Process(b *batch.Batch, out exec.Collector) error {
	sel, err := f.predicate.Select(b, b.SelMemory())
	if err != nil {
		return rowError(err, b)
	}
	b.Select(sel)
	return out.Emit(b)
}

// stateless is what operators have in common that hold nothing back.
type stateless struct{}

// Flush has nothing to emit.
func (stateless) Flush(exec.Collector) error { return nil }

// End has nothing to emit.
func (stateless) End(exec.Collector) error { return nil }

// Close has nothing to release.
func (stateless) Close() error { return nil }

// rowError says where the row comes from whose value could not be computed.
func rowError(err error, b *batch.Batch) error {
	var e *eval.RowError
	if !errors.As(err, &e) {
		return err
	}
	if b.Origin == nil {
		return &exec.ValueError{Column: e.Text, Reason: e.Reason}
	}
	at := exec.RowError{Table: b.Origin.Table, Path: b.Origin.Path, Column: e.Text, Reason: e.Reason}
	if e.Row < len(b.Origin.Offsets) {
		at.Offset = b.Origin.Offsets[e.Row]
	}
	return &at
}

package op

import (
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
)

// A filter keeps the rows for which its predicate is true. It copies nothing: it
// narrows the batch's selection.
type filter struct {
	stateless
	predicate *eval.Program
	clock     *eval.Clock
	sieve     sieve
	kept      []int32 // scratch: what parts of a batch keep
}

func openFilter(s exec.Setup) (*filter, error) {
	clock := eval.NewClock(s.Now)
	p, err := eval.Compile(s.Operator.Filter.Predicate, eval.Env{Now: clock.Now})
	if err != nil {
		return nil, err
	}
	return &filter{predicate: p, clock: clock, sieve: sieve{rejects: s.Rejects, operator: s.Operator.Name}}, nil
}

// Process narrows the selection and passes the batch on.
func (f *filter) Process(b *batch.Batch, out exec.Collector) error {
	f.clock.Tick()
	sel, err := f.predicate.Select(b, b.SelMemory())
	if err != nil && f.sieve.rejects != nil && isRowFault(err) {
		err = f.sieve.take(b, func() (err error) {
			f.kept, err = f.predicate.Select(b, f.kept)
			return err
		})
		if err != nil {
			return err
		}
		sel, err = f.predicate.Select(b, b.SelMemory())
	}
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

package op

import (
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
)

// A project computes the columns of its output. Columns that it merely passes on are
// moved, not copied, where nothing else needs them.
type project struct {
	stateless
	columns []projected
	clock   *eval.Clock
	pool    *batch.Pool
	sieve   sieve
}

type projected struct {
	program *eval.Program
	from    int  // the input column passed on; -1: computed
	move    bool // the last use of that column
}

func openProject(s exec.Setup) (*project, error) {
	p := &project{
		clock: eval.NewClock(s.Now),
		pool:  batch.NewPool(exec.Layout(s.Operator.Schema), batch.Target),
		sieve: sieve{rejects: s.Rejects, operator: s.Operator.Name},
	}
	last := map[int]int{}
	for i, e := range s.Operator.Project.Exprs {
		program, err := eval.Compile(e, eval.Env{Now: p.clock.Now})
		if err != nil {
			return nil, err
		}
		c := projected{program: program, from: -1}
		if from, ok := program.Column(); ok {
			c.from = from
			last[from] = i
		}
		p.columns = append(p.columns, c)
	}
	for _, i := range last {
		p.columns[i].move = true
	}
	return p, nil
}

// Process computes first and moves last, so that a moved column was whole while
// others were computed from it.
func (p *project) Process(b *batch.Batch, out exec.Collector) error {
	p.clock.Tick()
	to := p.pool.Get()
	err := p.compute(b, to)
	if err != nil && p.sieve.rejects != nil && isRowFault(err) {
		if err := p.sieve.take(b, p.evaluations(b, to)...); err != nil {
			return err
		}
		err = p.compute(b, to)
	}
	if err != nil {
		return rowError(err, b)
	}
	for i := range p.columns {
		if c := &p.columns[i]; c.from >= 0 && c.move {
			to.Columns[i], b.Columns[c.from] = b.Columns[c.from], to.Columns[i]
		}
	}
	to.Len, to.Origin = b.Len, b.Origin
	to.Kinds, b.Kinds = b.Kinds, nil
	if b.Sel != nil {
		to.Select(append(to.SelMemory(), b.Sel...))
	}
	b.Release()
	return out.Emit(to)
}

// compute evaluates every column that is not moved.
func (p *project) compute(b, to *batch.Batch) error {
	for i := range p.columns {
		c := &p.columns[i]
		if c.from >= 0 && c.move {
			continue
		}
		if err := c.program.Eval(b, &to.Columns[i]); err != nil {
			return err
		}
	}
	return nil
}

// evaluations lists what can fail by a row.
func (p *project) evaluations(b, to *batch.Batch) []func() error {
	var list []func() error
	for i := range p.columns {
		if c := &p.columns[i]; c.from < 0 {
			list = append(list, func() error { return c.program.Eval(b, &to.Columns[i]) })
		}
	}
	return list
}

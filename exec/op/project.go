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
	pool    *batch.Pool
}

type projected struct {
	program *eval.Program
	from    int  // the input column passed on; -1: computed
	move    bool // the last use of that column
}

func openProject(s exec.Setup) (*project, error) {
	p := &project{pool: batch.NewPool(exec.Layout(s.Operator.Schema), batch.Target)}
	last := map[int]int{}
	for i, e := range s.Operator.Project.Exprs {
		program, err := eval.Compile(e, eval.Env{Now: s.Now})
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
	to := p.pool.Get()
	for i := range p.columns {
		c := &p.columns[i]
		if c.from >= 0 && c.move {
			continue
		}
		if err := c.program.Eval(b, &to.Columns[i]); err != nil {
			return rowError(err, b)
		}
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

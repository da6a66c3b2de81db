package plan

import (
	"fmt"

	"weir"
	"weir/planner/expr"
)

// Validate sees that g keeps the package's invariants and that every index it holds
// points to something. The planner's graphs do; those read from elsewhere may not.
func (g *Graph) Validate() error {
	if g.Version != Version {
		return fmt.Errorf("%w: plan of version %d, this build reads version %d", weir.ErrInvalid, g.Version, Version)
	}
	ids := map[weir.OperatorID]bool{}
	inputs := make([][]Column, len(g.Chains))
	for i, c := range g.Chains {
		out, err := c.validate(inputs[i], ids)
		if err != nil {
			return fmt.Errorf("%w: plan, chain %d: %w", weir.ErrInvalid, i, err)
		}
		for n, e := range g.Edges {
			if e.From != i {
				continue
			}
			if e.To <= i || e.To >= len(g.Chains) {
				return fmt.Errorf("%w: plan, edge %d goes from chain %d to %d", weir.ErrInvalid, n, i, e.To)
			}
			if err := within(e.Keys, len(out)); err != nil {
				return fmt.Errorf("%w: plan, edge %d: %w", weir.ErrInvalid, n, err)
			}
			if inputs[e.To] = out; e.Rejects {
				inputs[e.To] = RejectColumns()
			}
		}
	}
	return g.validateRejects()
}

// validateRejects checks that each chain rejects to at most one other, which is single
// and takes rejects only.
func (g *Graph) validateRejects() error {
	from := map[int]bool{}
	for n, e := range g.Edges {
		takes := g.Chains[e.To].Operators[0].Kind == Rejects
		switch {
		case e.Rejects != takes:
			return fmt.Errorf("%w: plan, edge %d: a rejects operator and nothing else takes rejects", weir.ErrInvalid, n)
		case !e.Rejects:
		case from[e.From]:
			return fmt.Errorf("%w: plan, edge %d: chain %d rejects to two", weir.ErrInvalid, n, e.From)
		case !g.Chains[e.To].Single:
			return fmt.Errorf("%w: plan, edge %d: chain %d is not single", weir.ErrInvalid, n, e.To)
		}
		from[e.From] = from[e.From] || e.Rejects
	}
	return nil
}

// validate checks a chain over its input and returns what it emits.
func (c Chain) validate(input []Column, ids map[weir.OperatorID]bool) ([]Column, error) {
	if len(c.Operators) == 0 {
		return nil, fmt.Errorf("it has no operators")
	}
	for _, op := range c.Operators {
		if op.ID == "" || ids[op.ID] {
			return nil, fmt.Errorf("operator id %q is empty or used twice", op.ID)
		}
		ids[op.ID] = true
		if err := op.validate(len(input)); err != nil {
			return nil, fmt.Errorf("%s: %w", op.ID, err)
		}
		input = op.Schema
	}
	return input, nil
}

// validate checks one operator over an input of that many columns.
func (op Operator) validate(input int) error {
	set := map[OperatorKind]bool{
		Source: op.Source != nil, Filter: op.Filter != nil, Project: op.Project != nil, LocalAggregate: op.Aggregate != nil,
		GlobalAggregate: op.Aggregate != nil, Result: op.Result != nil, Sink: op.Sink != nil,
		Rejects: op.Rejects != nil,
	}
	if !set[op.Kind] {
		return fmt.Errorf("a %q without its spec", op.Kind)
	}
	switch op.Kind {
	case Source:
		if len(op.Source.Read) != len(op.Schema) {
			return fmt.Errorf("it reads %d columns and emits %d", len(op.Source.Read), len(op.Schema))
		}
		return within(op.Source.Read, len(op.Source.Table.Columns))
	case Filter:
		return columnsWithin(op.Filter.Predicate, input)
	case Project:
		return op.validateProject(input)
	case LocalAggregate, GlobalAggregate:
		return op.validateAggregate(input)
	case Result:
		if err := within(op.Result.Keys, input); err != nil {
			return err
		}
		return within(op.Result.Show, input)
	case Rejects:
		if len(op.Schema) != 0 || input != len(RejectColumns()) {
			return fmt.Errorf("it reads %d columns and emits %d", input, len(op.Schema))
		}
		return nil
	}
	if len(op.Sink.Table.Columns) != input {
		return fmt.Errorf("its table has %d columns, its input %d", len(op.Sink.Table.Columns), input)
	}
	return nil
}

func (op Operator) validateProject(input int) error {
	if len(op.Project.Exprs) != len(op.Schema) {
		return fmt.Errorf("it computes %d columns and emits %d", len(op.Project.Exprs), len(op.Schema))
	}
	for i, e := range op.Project.Exprs {
		if err := columnsWithin(e, input); err != nil {
			return err
		}
		if e.Type != op.Schema[i].Type && e.Type.Kind != expr.TimestampLTZ {
			return fmt.Errorf("column %s is %v and computed as %v", op.Schema[i].Name, op.Schema[i].Type, e.Type)
		}
	}
	return nil
}

func (op Operator) validateAggregate(input int) error {
	a := op.Aggregate
	if err := within(a.Keys, input); err != nil {
		return err
	}
	columns := len(a.Keys)
	for _, agg := range a.Aggregates {
		if agg.Arg >= input || agg.Arg < 0 && agg.Func != expr.CountStar {
			return fmt.Errorf("%s reads column %d of %d", agg.Text, agg.Arg, input)
		}
		if op.Kind == LocalAggregate {
			columns += len(agg.Partial())
		} else {
			columns++
		}
	}
	if columns != len(op.Schema) {
		return fmt.Errorf("it makes %d columns and emits %d", columns, len(op.Schema))
	}
	return nil
}

func within(columns []int, n int) error {
	for _, c := range columns {
		if c < 0 || c >= n {
			return fmt.Errorf("column %d of %d", c, n)
		}
	}
	return nil
}

func columnsWithin(e *expr.Expr, n int) error {
	if e == nil {
		return fmt.Errorf("an expression is missing")
	}
	if e.Op == expr.OpColumn && (e.Column < 0 || e.Column >= n) {
		return fmt.Errorf("column %d of %d", e.Column, n)
	}
	for _, a := range e.Args {
		if err := columnsWithin(a, n); err != nil {
			return err
		}
	}
	return nil
}

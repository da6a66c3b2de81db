package plan

import (
	"fmt"
	"slices"

	"weir"
	"weir/planner/expr"
)

// Validate sees that g keeps the package's invariants and that every index it holds
// points to something. The planner's graphs do; those read from elsewhere may not.
func (g *Graph) Validate() error {
	if g.Version != Version {
		return fmt.Errorf("%w: plan of version %d, this build reads version %d", weir.ErrInvalid, g.Version, Version)
	}
	for n, e := range g.Edges {
		if e.From < 0 || e.From >= len(g.Chains) {
			return fmt.Errorf("%w: plan, edge %d comes from chain %d of %d", weir.ErrInvalid, n, e.From, len(g.Chains))
		}
	}
	ids := map[weir.OperatorID]bool{}
	inputs, rejects := make([]input, len(g.Chains)), make([]int, len(g.Chains))
	for i, c := range g.Chains {
		out, err := c.validate(inputs[i], ids)
		if err != nil {
			return fmt.Errorf("%w: plan, chain %d: %w", weir.ErrInvalid, i, err)
		}
		for n, e := range g.Edges {
			if e.From != i {
				continue
			}
			if err := g.validateEdge(e, out, inputs); err != nil {
				return fmt.Errorf("%w: plan, edge %d: %w", weir.ErrInvalid, n, err)
			}
			if e.Rejects {
				rejects[i]++
			}
		}
		if rejects[i] > 1 {
			return fmt.Errorf("%w: plan, chain %d rejects to two", weir.ErrInvalid, i)
		}
	}
	if g.OnRowError != "" && g.OnRowError != "skip" && g.OnRowError != "keep" {
		return fmt.Errorf("%w: plan, on_row_error is %q", weir.ErrInvalid, g.OnRowError)
	}
	if _, err := CheckLatency(g.LatencyTarget); err != nil {
		return fmt.Errorf("%w: plan, latency_target %w", weir.ErrInvalid, err)
	}
	return nil
}

// An input is what the edges that lead to a chain bring.
type input struct {
	columns []Column
	edges   int
	rejects bool
}

// validateEdge checks an edge from a chain that emits out and notes what it brings.
func (g *Graph) validateEdge(e Edge, out []Column, inputs []input) error {
	if e.To <= e.From || e.To >= len(g.Chains) {
		return fmt.Errorf("it goes from chain %d to %d", e.From, e.To)
	}
	if (e.Forward || e.Rejects) && len(e.Keys) > 0 || e.Forward && e.Rejects {
		return fmt.Errorf("it is of two kinds")
	}
	if e.Forward && g.Chains[e.From].Single != g.Chains[e.To].Single {
		return fmt.Errorf("it goes forward from chain %d to %d, which has another number of subtasks", e.From, e.To)
	}
	if err := within(e.Keys, len(out)); err != nil {
		return err
	}
	in := &inputs[e.To]
	if e.Rejects {
		out = RejectColumns()
	}
	if in.edges > 0 && (in.rejects != e.Rejects || !sameTypes(in.columns, out)) {
		return fmt.Errorf("chain %d gets rows of other columns from another edge", e.To)
	}
	if in.edges++; in.edges == 1 {
		in.columns, in.rejects = out, e.Rejects
	}
	return nil
}

func sameTypes(a, b []Column) bool {
	return slices.EqualFunc(a, b, func(x, y Column) bool { return x.Type == y.Type })
}

// validate checks a chain over its input and returns what it emits.
func (c Chain) validate(in input, ids map[weir.OperatorID]bool) ([]Column, error) {
	if len(c.Operators) == 0 {
		return nil, fmt.Errorf("it has no operators")
	}
	if (c.Operators[0].Kind == Source) == (in.edges > 0) {
		return nil, fmt.Errorf("it has neither a source nor an input, or both")
	}
	if in.rejects != (c.Operators[0].Kind == Rejects) || in.rejects && (!c.Single || len(c.Operators) > 1) {
		return nil, fmt.Errorf("rejected rows go to a rejects operator, alone in a single chain")
	}
	columns := in.columns
	for i, op := range c.Operators {
		if op.ID == "" || ids[op.ID] {
			return nil, fmt.Errorf("operator id %q is empty or used twice", op.ID)
		}
		ids[op.ID] = true
		if i > 0 && (op.Kind == Source || op.Kind == Rejects) {
			return nil, fmt.Errorf("%s is not the first", op.ID)
		}
		if err := op.validate(columns); err != nil {
			return nil, fmt.Errorf("%s: %w", op.ID, err)
		}
		if op.Kind == Result && op.Result.Groups && (i == 0 || !c.Operators[i-1].keepsGroups(op.Result)) {
			return nil, fmt.Errorf("%s: its rows are to be groups, and no aggregate that keeps them is in front of it", op.ID)
		}
		columns = op.Schema
	}
	return columns, nil
}

// validate checks one operator over its input.
func (op Operator) validate(input []Column) error {
	set := map[OperatorKind]bool{
		Source: op.Source != nil, Filter: op.Filter != nil, Project: op.Project != nil, LocalAggregate: op.Aggregate != nil,
		GlobalAggregate: op.Aggregate != nil, Result: op.Result != nil, Sink: op.Sink != nil, Expand: op.Expand != nil, Rejects: op.Rejects != nil,
	}
	if !set[op.Kind] {
		return fmt.Errorf("a %q without its spec", op.Kind)
	}
	switch op.Kind {
	case Source:
		return op.validateSource()
	case Filter:
		return columnsWithin(op.Filter.Predicate, len(input))
	case Project:
		return op.validateProject(len(input))
	case LocalAggregate, GlobalAggregate:
		return op.validateAggregate(len(input))
	case Expand:
		return op.validateExpand(input)
	case Result:
		if err := within(op.Result.Keys, len(input)); err != nil {
			return err
		}
		return within(op.Result.Show, len(input))
	case Rejects:
		if len(op.Schema) > 0 {
			return fmt.Errorf("it emits %d columns", len(op.Schema))
		}
		return nil
	}
	if len(op.Sink.Table.Columns) != len(input) {
		return fmt.Errorf("its table has %d columns, its input %d", len(op.Sink.Table.Columns), len(input))
	}
	return nil
}

// keepsGroups reports whether the rows of r are op's groups.
func (op Operator) keepsGroups(r *ResultSpec) bool {
	if op.Kind != GlobalAggregate || op.Aggregate.Final || r.Multiset || len(r.Keys) != len(op.Aggregate.Keys) {
		return false
	}
	for i, k := range r.Keys {
		if i != k {
			return false
		}
	}
	return true
}

func (op Operator) validateSource() error {
	s := op.Source
	if len(s.Read) != len(op.Schema) {
		return fmt.Errorf("it reads %d columns and emits %d", len(s.Read), len(op.Schema))
	}
	for i, row := range s.Values {
		if len(row) != len(s.Table.Columns) {
			return fmt.Errorf("row %d of %d columns has %d", i, len(s.Table.Columns), len(row))
		}
		for c, e := range row {
			if err := columnsWithin(e, 0); err != nil {
				return fmt.Errorf("row %d: %w", i, err)
			}
			if e.Type != s.Table.Columns[c].Type {
				return fmt.Errorf("row %d: column %s is %v and has a value of type %v", i, s.Table.Columns[c].Name, s.Table.Columns[c].Type, e.Type)
			}
		}
	}
	return within(s.Read, len(s.Table.Columns))
}

func (op Operator) validateExpand(input []Column) error {
	if len(op.Schema) != len(input)+1 || !sameTypes(op.Schema[:len(input)], input) {
		return fmt.Errorf("it emits %d columns of %d", len(op.Schema), len(input))
	}
	if err := within(op.Expand.Keys, len(input)); err != nil {
		return err
	}
	for _, set := range op.Expand.Sets {
		for _, c := range set {
			if !slices.Contains(op.Expand.Keys, c) {
				return fmt.Errorf("a grouping set names column %d, which is no key", c)
			}
		}
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
	for _, group := range a.Always {
		if len(group) != len(a.Keys) {
			return fmt.Errorf("a group that is always there has %d keys of %d", len(group), len(a.Keys))
		}
	}
	if a.Changing && !a.Raw {
		return fmt.Errorf("it takes rows back in two phases")
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

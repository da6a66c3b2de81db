package planner

import (
	"fmt"
	"strings"

	"weir/planner/plan"
)

// Explain prints a graph for people, one operator to a line:
//
//	chain 0
//	  source user_behavior(behavior) filesystem csv, bounded
//	  filter behavior IN ('buy', 'cart')
//	  local_aggregate by behavior: count(*)
//	edge 0 ─ hash(behavior) ─▶ 1
//	chain 1
//	  global_aggregate by behavior: count(*)
//	  result by behavior: behavior STRING, n BIGINT NOT NULL
func Explain(g *plan.Graph) string {
	var b strings.Builder
	for i, c := range g.Chains {
		fmt.Fprintf(&b, "chain %d%s\n", i, when(c.Single, " (single)"))
		input := g.Input(i)
		for _, op := range c.Operators {
			b.WriteString("  " + explainOperator(op, input) + "\n")
			input = op.Schema
		}
		for _, e := range g.Edges {
			if e.From == i {
				explainEdge(&b, e, input)
			}
		}
	}
	return b.String()
}

func explainEdge(b *strings.Builder, e plan.Edge, schema []plan.Column) {
	how := "all to subtask 0"
	switch {
	case e.Forward:
		how = "forward"
	case e.Rejects:
		how = "rejects"
	case len(e.Keys) > 0:
		how = "hash(" + namesOf(schema, e.Keys) + ")"
	}
	fmt.Fprintf(b, "edge %d ─ %s ─▶ %d\n", e.From, how, e.To)
}

func explainOperator(op plan.Operator, input []plan.Column) string {
	kind := string(op.Kind)
	switch op.Kind {
	case plan.Source:
		s := op.Source
		if s.Table.Connector == "values" {
			return fmt.Sprintf("%s values(%s) %s", kind, namesOf(s.Table.Columns, s.Read), count(len(s.Values), "row"))
		}
		return fmt.Sprintf("%s %s(%s) %s%s%s", kind, s.Table.Name, namesOf(s.Table.Columns, s.Read), connectorOf(s.Table),
			when(s.Bounded, ", bounded"), when(s.RowsPerSecond > 0, fmt.Sprintf(", %v rows/s", s.RowsPerSecond)))
	case plan.Filter:
		return kind + " " + op.Filter.Predicate.SQL(columnNames(input))
	case plan.Project:
		list := make([]string, len(op.Schema))
		for i, c := range op.Schema {
			list[i] = named(op.Project.Exprs[i].SQL(columnNames(input)), c.Name)
		}
		return kind + " " + strings.Join(list, ", ")
	case plan.LocalAggregate, plan.GlobalAggregate:
		return kind + explainAggregate(op, input)
	case plan.Result:
		by := " by " + namesOf(input, op.Result.Keys)
		switch {
		case op.Result.Multiset:
			by = " by row"
		case len(op.Result.Keys) == 0:
			by = ""
		}
		return kind + by + ": " + columnsSQL(op.Schema)
	case plan.Expand:
		return kind + explainSets(op.Expand, input)
	case plan.Rejects:
		return kind + when(op.Rejects.Keep, " kept")
	}
	return fmt.Sprintf("%s %s %s", kind, op.Sink.Table.Name, connectorOf(op.Sink.Table))
}

func explainAggregate(op plan.Operator, input []plan.Column) string {
	a := op.Aggregate
	by := ""
	if len(a.Keys) > 0 {
		by = " by " + namesOf(input, a.Keys)
	}
	list := make([]string, len(a.Aggregates))
	for i, agg := range a.Aggregates {
		list[i] = agg.Text
	}
	return by + when(a.Raw, " raw") + when(a.Changing, " changing") + when(a.Final, " final") + ": " + strings.Join(list, ", ")
}

func explainSets(e *plan.ExpandSpec, input []plan.Column) string {
	sets := make([]string, len(e.Sets))
	for i, set := range e.Sets {
		sets[i] = "(" + namesOf(input, set) + ")"
	}
	return " by " + strings.Join(sets, ", ")
}

func connectorOf(t plan.Table) string {
	return t.Connector + when(t.Format != "", " "+t.Format)
}

func when(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

func named(text, name string) string {
	if text == name {
		return text
	}
	return text + " AS " + name
}

func columnNames(schema []plan.Column) []string {
	names := make([]string, len(schema))
	for i, c := range schema {
		names[i] = c.Name
	}
	return names
}

func namesOf(schema []plan.Column, columns []int) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = schema[c].Name
	}
	return strings.Join(names, ", ")
}

func columnsSQL(schema []plan.Column) string {
	list := make([]string, len(schema))
	for i, c := range schema {
		list[i] = columnSQL(c)
	}
	return strings.Join(list, ", ")
}

func columnSQL(c plan.Column) string {
	return c.Name + " " + c.Type.String() + when(c.NotNull, " NOT NULL")
}

package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
)

// describe fills in what the graph keeps, and warns of what may surprise.
func (r *Result) describe() {
	r.State = State(r.Graph)
	r.warnState()
	r.warnKeys()
	if volatileStatement(r.bound) {
		r.warn("CURRENT_TIMESTAMP and its like are the moment when a row is processed: rows that are processed again after a failure get another one")
	}
}

func (r *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

// warnState warns of groups without bound. Of rows that a result keeps without bound,
// the binding phase warns, which knows the table.
func (r *Result) warnState() {
	for _, u := range r.State {
		if u.Endless && strings.HasPrefix(string(u.Operator), string(plan.GlobalAggregate)) {
			r.warn("%s keeps %s for ever, and its input does not end: state grows with the number of different ones, about %d bytes each", u.Name, u.Entries, u.Bytes)
		}
	}
}

// warnKeys warns of aggregates with fewer keys than a job usually has subtasks.
func (r *Result) warnKeys() {
	const few = 4
	subtasks := few
	if n, ok := r.Settings.Int("parallelism"); ok {
		subtasks = n
	}
	for i, c := range r.Graph.Chains {
		a := c.Operators[0]
		if a.Kind != plan.GlobalAggregate {
			continue
		}
		keys := picked(r.Graph.Input(i), a.Aggregate.Keys)
		most := different(keys, setsBefore(r.Graph, i))
		if r.constantKeys(i, keys) {
			most = 1
		}
		rest := "; what comes before the exchange runs in all of them"
		if a.Aggregate.Raw {
			rest = ", and all rows go there"
		}
		switch {
		case most == 0 || most >= subtasks:
		case len(keys) == 0 && subtasks > 1:
			r.warn("%s has no keys: one subtask does it%s", a.Name, rest)
		case most == 1 && subtasks > 1:
			r.warn("%s has constant keys: one subtask does it%s", a.Name, rest)
		default:
			r.warn("%s has at most %d different keys: no more than %d subtasks do it%s", a.Name, most, most, rest)
		}
	}
}

// constantKeys reports whether all keys of the groups at the beginning of a chain are
// constants.
func (r *Result) constantKeys(chain int, keys []plan.Column) bool {
	for _, e := range r.Graph.Edges {
		if e.To != chain || len(e.Keys) == 0 {
			continue
		}
		ops := r.Graph.Chains[e.From].Operators
		at := slices.Clone(e.Keys)
		last := len(ops) - 1
		if ops[last].Kind == plan.LocalAggregate {
			for n, k := range at {
				at[n] = ops[last].Aggregate.Keys[k]
			}
			last--
		}
		if last < 0 || ops[last].Kind != plan.Project {
			return false
		}
		if slices.ContainsFunc(at, func(k int) bool { return ops[last].Project.Exprs[k].Op != expr.OpLiteral }) {
			return false
		}
	}
	return len(keys) > 0
}

func volatileStatement(s *statement) bool {
	return slices.ContainsFunc(s.targets, func(t target) bool { return volatile(t.rel) })
}

// Text is the whole plan for people: the logical plan, what was changed, the operators,
// their state, and warnings.
func (r *Result) Text() string {
	var b strings.Builder
	section := func(name string, lines []string) {
		if len(lines) == 0 {
			return
		}
		b.WriteString("\n" + name + "\n")
		for _, l := range lines {
			b.WriteString("  " + l + "\n")
		}
	}
	b.WriteString("logical plan\n")
	for line := range strings.Lines(r.Logical()) {
		b.WriteString("  " + line)
	}
	section("changed", r.Rewritten)
	section("operators", strings.Split(strings.TrimSuffix(Explain(r.Graph), "\n"), "\n"))
	state := make([]string, len(r.State))
	for i, u := range r.State {
		state[i] = u.String()
	}
	section("state", state)
	section("warnings", r.Warnings)
	return b.String()
}

package planner

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// fieldOptions lists the options of one generated column.
func fieldOptions() []string {
	return []string{"kind", "start", "end", "min", "max", "values", "weights"}
}

// setField keeps 'fields.<column>.<option>' under the column's declared name. How the
// options of a column go together is seen when all are known, by finishFields.
func (t *table) setField(o *sql.Option, found *problems) {
	rest := strings.TrimPrefix(o.Key.Value, "fields.")
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		found.add(o.Key, CodeOption, "as in 'fields.user_id.kind' = 'sequence'", "the option '%s' names no column or nothing of it", o.Key.Value)
		return
	}
	name, what := rest[:dot], rest[dot+1:]
	i := t.column(name)
	if i < 0 {
		found.add(o.Key, CodeName, suggestion(name, t.columnNames()), "table %s has no column %s", t.Name, name)
		return
	}
	if !slices.Contains(fieldOptions(), what) {
		found.add(o.Key, CodeOption, hints(suggestion(what, fieldOptions()), "the options are "+strings.Join(fieldOptions(), ", ")),
			"a generated column has no option '%s'", what)
		return
	}
	t.Options["fields."+t.Columns[i].Name+"."+what] = o.Value.Value
}

// finishFields checks the options of every generated column.
func (t *table) finishFields(found *problems) {
	for i := range t.Columns {
		f := field{t: t, found: found, name: t.Columns[i].Name, typ: t.Columns[i].Type}
		f.check()
	}
}

// A field is one generated column while its options are checked.
type field struct {
	t     *table
	found *problems
	name  string
	typ   expr.Type
}

func (f *field) key(what string) string { return "fields." + f.name + "." + what }

func (f *field) get(what string) (string, bool) {
	v, ok := f.t.Options[f.key(what)]
	return v, ok
}

// fail records a problem at the option as it was written.
func (f *field) fail(what, hint, format string, args ...any) {
	at := sql.Node(f.t.def.Name)
	for _, o := range f.t.def.Options {
		if sameName(o.Key.Value, f.key(what)) {
			at = o.Value
		}
	}
	f.found.add(at, CodeOption, hint, format, args...)
}

func (f *field) check() {
	kind, given := f.get("kind")
	if !given {
		kind = "random"
		if _, ok := f.get("start"); ok {
			kind = "sequence"
		} else if _, ok := f.get("end"); ok {
			kind = "sequence"
		}
		f.t.Options[f.key("kind")] = kind
	}
	allowed := map[string][]string{"sequence": {"start", "end"}, "random": {"min", "max", "values", "weights"}}[kind]
	if allowed == nil {
		f.fail("kind", "the kinds are sequence and random", "the kind '%s' is not supported", kind)
		return
	}
	for _, what := range fieldOptions()[1:] {
		if _, ok := f.get(what); ok && !slices.Contains(allowed, what) {
			f.fail(what, "a "+kind+" column takes "+strings.Join(allowed, ", "), "the option '%s' does not go with the kind '%s'", f.key(what), kind)
			return
		}
	}
	if kind == "sequence" {
		f.checkRange("start", "end", f.typ.Kind == expr.Int || f.typ.Kind == expr.BigInt)
		return
	}
	if _, ok := f.get("values"); ok {
		f.checkValues()
		return
	}
	if _, ok := f.get("weights"); ok {
		f.fail("weights", "add '"+f.key("values")+"' = 'a,b,c'", "'%s' needs '%s'", f.key("weights"), f.key("values"))
	}
	f.checkRange("min", "max", f.typ.Kind == expr.Int || f.typ.Kind == expr.BigInt || f.typ.Kind == expr.Double)
}

// checkRange checks two bounds. They are whole numbers except for DOUBLE; applies
// tells whether the column's type takes them at all.
func (f *field) checkRange(low, high string, applies bool) {
	bounds := map[string]float64{low: math.Inf(-1), high: math.Inf(1)}
	for _, what := range []string{low, high} {
		text, ok := f.get(what)
		if !ok {
			continue
		}
		if !applies {
			f.fail(what, "", "the option '%s' does not go with the type %s", f.key(what), f.typ)
			return
		}
		if problem := f.numberProblem(text); problem != "" {
			f.fail(what, "", "the option '%s': '%s' %s", f.key(what), text, problem)
			return
		}
		bounds[what], _ = strconv.ParseFloat(text, 64) // checked above; near enough to compare
	}
	if cmp.Compare(bounds[low], bounds[high]) > 0 {
		f.fail(high, "", "'%s' is below '%s'", f.key(high), f.key(low))
	}
}

// numberProblem says why text is no value of the column's type, or "".
func (f *field) numberProblem(text string) string {
	switch f.typ.Kind {
	case expr.Int:
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			return "is not an INT"
		}
	case expr.BigInt:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return "is not a BIGINT"
		}
	case expr.Double:
		if v, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return "is not a number"
		}
	case expr.Boolean:
		if _, err := readBoolean(text); err != nil {
			return "is neither true nor false"
		}
	}
	return ""
}

func (f *field) checkValues() {
	text, _ := f.get("values")
	values := strings.Split(text, ",")
	for _, v := range values {
		if problem := f.numberProblem(v); problem != "" {
			f.fail("values", "", "the option '%s': '%s' %s", f.key("values"), v, problem)
			return
		}
	}
	if f.typ.Kind == expr.TimestampLTZ || f.typ.Kind == expr.Decimal {
		f.fail("values", "", "the option '%s' does not go with the type %s", f.key("values"), f.typ)
		return
	}
	for _, what := range []string{"min", "max"} {
		if _, ok := f.get(what); ok {
			f.fail(what, "", "'%s' and '%s' exclude each other", f.key(what), f.key("values"))
			return
		}
	}
	f.checkWeights(len(values))
}

func (f *field) checkWeights(values int) {
	text, ok := f.get("weights")
	if !ok {
		return
	}
	list, sum := strings.Split(text, ","), 0.0
	for _, w := range list {
		v, err := strconv.ParseFloat(strings.TrimSpace(w), 64)
		if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			f.fail("weights", "", "the option '%s': '%s' is not a number from 0", f.key("weights"), w)
			return
		}
		sum += v
	}
	switch {
	case len(list) != values:
		f.fail("weights", "", "'%s' has %d numbers for %d values", f.key("weights"), len(list), values)
	case sum <= 0:
		f.fail("weights", "", "the option '%s': all weights are 0", f.key("weights"))
	}
}

package planner

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/planner/civil"
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
		_, start := f.get("start")
		_, end := f.get("end")
		if start || end {
			kind = "sequence"
			f.t.Options[f.key("kind")] = kind
		}
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
	switch _, values := f.get("values"); {
	case kind == "sequence":
		f.checkRange("start", "end", f.integer())
	case values:
		f.checkValues()
	default:
		if _, ok := f.get("weights"); ok {
			f.fail("weights", "add '"+f.key("values")+"' = 'a,b,c'", "'%s' needs '%s'", f.key("weights"), f.key("values"))
		}
		f.checkRange("min", "max", f.bound())
	}
}

// A reader reads an option's value as a number that can be compared and as the text to
// keep; what says why it cannot.
type reader func(text string) (number float64, keep, what string)

// integer reads the bounds of a sequence: whole numbers, also where the column's type
// has others.
func (f *field) integer() reader {
	switch f.typ.Kind {
	case expr.Double, expr.String, expr.Bytes:
		return readBigInt
	case expr.Decimal:
		whole := f.typ
		whole.Precision, whole.Scale = min(f.typ.Precision-f.typ.Scale, 18), 0
		return f.literal(whole)
	}
	return f.bound()
}

// bound reads a value of the column's type; nil where the type has no bounds.
func (f *field) bound() reader {
	switch f.typ.Kind {
	case expr.Int:
		return readInt
	case expr.BigInt:
		return readBigInt
	case expr.Double:
		return readDouble
	case expr.TimestampLTZ:
		return readTime
	case expr.Decimal:
		short := f.typ
		short.Precision = min(short.Precision, 18)
		return f.literal(short)
	case expr.Date, expr.Timestamp, expr.Interval, expr.MonthInterval:
		return f.literal(f.typ)
	}
	return nil
}

// literal reads a value as a literal of a type, and keeps it as the generator reads it:
// times in milliseconds.
func (f *field) literal(t expr.Type) reader {
	return func(text string) (float64, string, string) {
		e, problem := castText(text, t, "")
		if problem != "" {
			return 0, "", "is no " + f.typ.String() + ": " + problem
		}
		n := e.Literal.Int
		var keep string
		switch t.Kind {
		case expr.Date:
			keep = string(civil.AppendDate(nil, n))
		case expr.Timestamp:
			keep = string(civil.AppendISO(nil, n))
		case expr.Interval:
			keep = string(civil.AppendInterval(nil, n))
		case expr.MonthInterval:
			keep = string(civil.AppendMonths(nil, n))
		default: // near enough to compare
			number, _ := strconv.ParseFloat(e.Literal.Decimal, 64)
			return number, e.Literal.Decimal, ""
		}
		if (t.Kind == expr.Timestamp || t.Kind == expr.Interval) && n%civil.Millisecond != 0 {
			return 0, "", "has more than milliseconds, in which times are generated"
		}
		return float64(n), keep, ""
	}
}

func readInt(text string) (float64, string, string) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, "", "is not an INT"
	}
	return float64(n), text, ""
}

func readBigInt(text string) (float64, string, string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, "", "is not a BIGINT"
	}
	return float64(n), text, "" // near enough to compare
}

func readDouble(text string) (float64, string, string) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, "", "is not a number"
	}
	return v, text, ""
}

// readTime keeps a time in milliseconds, the unit in which times are generated.
func readTime(text string) (float64, string, string) {
	micros, problem := civil.ParseTimestampLTZ([]byte(text), 6, nil)
	if problem != "" || micros%1000 != 0 {
		return 0, "", "is not a time such as 2017-11-25T00:00:00Z, in milliseconds at most"
	}
	return float64(micros), time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000Z"), ""
}

// checkRange checks two bounds; read is nil where the column's type takes none.
func (f *field) checkRange(low, high string, read reader) {
	bounds := map[string]float64{low: math.Inf(-1), high: math.Inf(1)}
	for _, what := range []string{low, high} {
		text, ok := f.get(what)
		switch {
		case !ok:
			continue
		case read == nil:
			f.fail(what, "", "the option '%s' does not go with the type %s", f.key(what), f.typ)
			return
		}
		number, keep, problem := read(text)
		if problem != "" {
			f.fail(what, "", "the option '%s': '%s' %s", f.key(what), text, problem)
			return
		}
		bounds[what] = number
		f.t.Options[f.key(what)] = keep
	}
	if bounds[low] > bounds[high] {
		f.fail(high, "", "'%s' is below '%s'", f.key(high), f.key(low))
	}
}

// checkValues checks a list of values; a comma always divides.
func (f *field) checkValues() {
	text, _ := f.get("values")
	values := strings.Split(text, ",")
	read := f.bound()
	for i, v := range values {
		keep, problem := v, ""
		switch {
		case f.typ.Kind == expr.Boolean:
			if _, err := readBoolean(v); err != nil {
				problem = "is neither true nor false"
			}
		case f.typ.Kind == expr.Bytes:
			if _, err := base64.StdEncoding.DecodeString(v); err != nil {
				problem = "is not base64, as in 'aGVsbG8='"
			}
		case read != nil:
			_, keep, problem = read(v)
		}
		if problem != "" {
			f.fail("values", "", "the option '%s': '%s' %s", f.key("values"), v, problem)
			return
		}
		values[i] = keep
	}
	f.t.Options[f.key("values")] = strings.Join(values, ",")
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
		f.fail("weights", "", "'%s' gives %d weights for %d values", f.key("weights"), len(list), values)
	case sum <= 0:
		f.fail("weights", "", "the option '%s': all weights are 0", f.key("weights"))
	}
}

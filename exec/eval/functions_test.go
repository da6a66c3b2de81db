package eval

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	_ "time/tzdata" // the same everywhere

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

//go:embed testdata/functions.txt
var postgresFunctions string

// differences are where our answer is another one than PostgreSQL's, with the reason.
var differences = map[string]string{
	"log10|DOUBLE:1.5": "0.17609125905568124", // the nearest double; theirs is one digit off
}

// TestFunctionsAgainstPostgres evaluates what testdata/functions.sql gave to PostgreSQL.
func TestFunctionsAgainstPostgres(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(postgresFunctions) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		got, want := evaluate(t, f[0], f[1], f[2], strings.Split(f[3], ";")), f[4]
		if strings.HasPrefix(want, "error") || beyondYears(f[2], want) {
			want = "error"
		}
		if strings.HasPrefix(got, "error") {
			got = "error"
		}
		if f[2] == "DOUBLE" && want != "error" {
			x, err := strconv.ParseFloat(want, 64)
			if err != nil {
				t.Fatal(err)
			}
			want = fmt.Sprint(x)
		}
		if got != want && differences[f[1]+"|"+f[3]] != got {
			t.Errorf("%s: got %s", line[:len(line)-1], got)
		}
	}
}

// beyondYears reports whether a date or time is outside the years 1 to 9999, in UTC.
func beyondYears(typ, text string) bool {
	return (strings.HasPrefix(typ, "TIMESTAMP") || typ == "DATE") && (strings.HasSuffix(text, "BC") || regexp.MustCompile(`^\d{5}`).MatchString(text))
}

// evaluate computes a function or operation over a batch of one row, whose columns are
// the arguments; those that begin with = are constants.
func evaluate(t *testing.T, zone, name, result string, args []string) string {
	t.Helper()
	e := &expr.Expr{Op: expr.OpCall, Func: name, Type: typeOf(t, result), Zone: zone, Text: name}
	switch name {
	case "+", "-", "*", "/", "neg":
		e.Op, e.Func = expr.Op(name), ""
	}
	b := &batch.Batch{Len: 1}
	for _, a := range args {
		text, value, _ := strings.Cut(a, ":")
		literal := strings.HasPrefix(text, "=")
		typ := typeOf(t, strings.TrimPrefix(text, "="))
		if literal {
			l := &expr.Literal{String: value}
			if typ.Kind == expr.Int {
				l.Int, _ = strconv.ParseInt(value, 10, 64)
			}
			e.Args = append(e.Args, &expr.Expr{Op: expr.OpLiteral, Type: typ, Literal: l})
			continue
		}
		v := batch.Vector{Physical: Physical(typ)}
		appendValue(t, &v, typ, value)
		e.Args = append(e.Args, &expr.Expr{Op: expr.OpColumn, Type: typ, Column: len(b.Columns)})
		b.Columns = append(b.Columns, v)
	}
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err != nil {
		return "error: " + err.Error()
	}
	return textOf(t, zone, e.Type, &out)
}

func typeOf(t *testing.T, text string) (typ expr.Type) {
	t.Helper()
	if err := typ.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return typ
}

func appendValue(t *testing.T, v *batch.Vector, typ expr.Type, text string) {
	t.Helper()
	var problem civil.Problem
	var n int64
	switch typ.Kind {
	case expr.Date:
		n, problem = civil.ParseDate([]byte(text))
	case expr.Timestamp, expr.TimestampLTZ:
		n, problem = civil.ParseTimestampLTZ([]byte(text), 6, nil)
	case expr.Interval:
		_, n, problem = civil.ParseInterval([]byte(text))
	case expr.MonthInterval:
		n, _, problem = civil.ParseInterval([]byte(text))
	default:
		l := &expr.Literal{Bool: text == "true", Double: text, Decimal: text, String: text}
		l.Int, _ = strconv.ParseInt(text, 10, 64)
		if err := appendLiteral(v, &expr.Expr{Type: typ, Literal: l}); err != nil {
			t.Fatal(err)
		}
		return
	}
	if problem != "" {
		t.Fatalf("%v %s: %s", typ, text, problem)
	}
	v.AppendInt(n)
}

func textOf(t *testing.T, zone string, typ expr.Type, v *batch.Vector) string {
	t.Helper()
	if v.Null(0) {
		return "NULL"
	}
	z, err := civil.NewZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	switch typ.Kind {
	case expr.Date:
		return string(civil.AppendDate(nil, v.Ints[0]))
	case expr.Timestamp:
		return string(civil.AppendTimestamp(nil, v.Ints[0]))
	case expr.TimestampLTZ:
		return string(civil.AppendTimestampLTZ(nil, v.Ints[0], z))
	case expr.Interval:
		return string(civil.AppendInterval(nil, v.Ints[0]))
	case expr.MonthInterval:
		return string(civil.AppendMonths(nil, v.Ints[0]))
	case expr.Decimal:
		return v.Decimals[0].Decimal(typ.Scale)
	case expr.Double:
		if v.Floats[0] == 0 && math.Signbit(v.Floats[0]) {
			return "-0"
		}
		return fmt.Sprint(v.Floats[0])
	case expr.String:
		return string(v.Str(0))
	case expr.Boolean:
		return fmt.Sprint(v.Bools[0])
	}
	return fmt.Sprint(v.Ints[0])
}

package eval

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// A goldenCase is a call or a cast with constant arguments, and its value as text.
type goldenCase struct {
	text string
	e    *expr.Expr
	want string // quoted; NULL; ERROR
}

// goldenCases reads lines such as lpad('a', 3, 'b') = 'bba'.
func goldenCases(t testing.TB) []goldenCase {
	data, err := os.ReadFile("testdata/postgres.txt")
	if err != nil {
		t.Fatal(err)
	}
	data = []byte(strings.NewReplacer("␊", "\n", "␉", "\t").Replace(strings.ReplaceAll(string(data), "\n", "\x00")))
	var list []goldenCase
	for line := range strings.SplitSeq(string(data), "\x00") {
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndex(line, " = ")
		list = append(list, goldenCase{text: line[:i], e: parseCase(t, line[:i]), want: line[i+3:]})
	}
	return list
}

var (
	castForm    = regexp.MustCompile(`(?s)^CAST\((.*) AS ([A-Z_ ]+(?:\(.*\))?)\)$`)
	callForm    = regexp.MustCompile(`(?s)^(\w+)\((.*)\)$`)
	literalForm = regexp.MustCompile(`(?s)\s*(?:NULL|-?\d+|(?:[A-Z][A-Z_ ]*(?:\([0-9, ]+\))? )?'(?:[^']|'')*')\s*(?:,|$)`)
)

func parseCase(t testing.TB, text string) *expr.Expr {
	if m := castForm.FindStringSubmatch(text); m != nil {
		return &expr.Expr{Op: expr.OpCast, Type: typeNamed(t, m[2]), Args: []*expr.Expr{parseLiteral(t, m[1])}, Text: text}
	}
	m := callForm.FindStringSubmatch(text)
	e := &expr.Expr{Op: expr.OpCall, Func: m[1], Type: expr.Type{Kind: expr.String}, Text: text}
	for _, a := range literalForm.FindAllString(m[2], -1) {
		e.Args = append(e.Args, parseLiteral(t, strings.TrimSpace(strings.TrimSuffix(a, ","))))
	}
	for i, a := range e.Args {
		if a.Literal == nil && i > 0 && (m[1] == "substring" || m[1] == "lpad") {
			a.Type.Kind = expr.Int
		}
	}
	switch m[1] {
	case "char_length", "octet_length", "position":
		e.Type.Kind = expr.Int
	case "like", "ilike", "starts_with":
		e.Type.Kind = expr.Boolean
	case "substring", "concat_op":
		e.Type = e.Args[0].Type
	}
	return e
}

func typeNamed(t testing.TB, name string) (typ expr.Type) {
	if err := typ.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	return typ
}

func parseLiteral(t testing.TB, text string) *expr.Expr {
	e := &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}}
	if text == "NULL" {
		return e
	}
	e.Literal = &expr.Literal{}
	if !strings.HasSuffix(text, "'") {
		e.Type.Kind = expr.Int
		e.Literal.Int, _ = strconv.ParseInt(text, 10, 64)
		return e
	}
	name, value, _ := strings.Cut(strings.TrimSuffix(text, "'"), "'")
	value = strings.ReplaceAll(value, "''", "'")
	if name != "" {
		e.Type = typeNamed(t, strings.TrimSpace(name))
	}
	if err := setLiteral(e, value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// setLiteral reads the value of a literal.
func setLiteral(e *expr.Expr, value string) error {
	l, problem := e.Literal, civil.Problem("")
	switch e.Type.Kind {
	case expr.Boolean:
		l.Bool = value == "true"
	case expr.Int, expr.BigInt:
		l.Int, _ = strconv.ParseInt(value, 10, 64)
	case expr.Double:
		l.Double = value
	case expr.Decimal:
		l.Decimal = value
	case expr.Date:
		l.Int, problem = civil.ParseDate([]byte(value))
	case expr.Timestamp:
		l.Int, problem = civil.ParseTimestamp([]byte(value), 6)
	case expr.TimestampLTZ:
		l.Int, problem = civil.ParseTimestampLTZ([]byte(value), 6, nil)
	case expr.Interval:
		_, l.Int, problem = civil.ParseInterval([]byte(value))
	case expr.MonthInterval:
		l.Int, _, problem = civil.ParseInterval([]byte(value))
	default:
		l.String = value
	}
	if problem != "" {
		return errors.New(string(problem))
	}
	return nil
}

// overColumns makes columns of the arguments, in a batch of four rows: NULLs, the
// arguments, and again; the third row is not selected.
func overColumns(t testing.TB, e *expr.Expr) (*expr.Expr, *batch.Batch) {
	copied := *e
	copied.Args = slices.Clone(e.Args)
	b := &batch.Batch{Len: 4, Sel: []int32{0, 1, 3}}
	for i, a := range e.Args {
		v := batch.Vector{Physical: Physical(a.Type)}
		v.AppendNull()
		for range 3 {
			if a.Literal == nil {
				v.AppendNull()
			} else if err := appendLiteral(&v, a); err != nil {
				t.Fatal(err)
			}
		}
		b.Columns = append(b.Columns, v)
		copied.Args[i] = &expr.Expr{Op: expr.OpColumn, Type: a.Type, Column: i}
	}
	return &copied, b
}

// valueText gives a value in the form of the golden file.
func valueText(typ expr.Type, v *batch.Vector, row int) string {
	if v.Null(row) {
		return "NULL"
	}
	return "'" + strings.ReplaceAll(string(appendAsText(nil, typ, v, row, nil)), "'", "''") + "'"
}

// The golden values are PostgreSQL 15's. They hold for constants, for columns, and for
// TRY_CAST.
func TestPostgres(t *testing.T) {
	t.Parallel()
	for _, c := range goldenCases(t) {
		checkGolden(t, c.e, intBatch(1), []int{0}, c.want)
		e, b := overColumns(t, c.e)
		out := checkGolden(t, e, b, []int{1, 3}, c.want)
		if c.want != "ERROR" && out.Len() == b.Len && e.Func != "concat" && !out.Null(0) {
			t.Errorf("%s of NULLs is %s", c.text, valueText(e.Type, out, 0))
		}
		if e.Op != expr.OpCast {
			continue
		}
		e.Op = expr.OpTryCast
		want := c.want
		if want == "ERROR" {
			want = "NULL"
		}
		checkGolden(t, e, b, []int{1, 3}, want)
	}
}

func checkGolden(t *testing.T, e *expr.Expr, b *batch.Batch, rows []int, want string) *batch.Vector {
	t.Helper()
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatalf("%s: %v", e.Text, err)
	}
	var out batch.Vector
	err = p.Eval(b, &out)
	var failed *RowError
	if want == "ERROR" || err != nil {
		if want != "ERROR" || !errors.As(err, &failed) || failed.Row != rows[0] {
			t.Errorf("%s: %v, want %s", e.Text, err, want)
		}
		return &out
	}
	for _, row := range rows {
		if got := valueText(e.Type, &out, row); got != want {
			t.Errorf("%s (%s): %s, want %s", e.Text, e.Op, got, want)
		}
	}
	if out.Len() != b.Len {
		t.Errorf("%s has %d rows of %d", e.Text, out.Len(), b.Len)
	}
	return &out
}

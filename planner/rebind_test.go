package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/planner/expr"
	"weir/planner/sql"
)

// TestPrintedIsBoundAlike: an expression that is printed and bound again is the same
// tree, so two that print alike compute the same. Only the precision of times and the
// digits of decimals, which the values do not depend on, are not compared.
func TestPrintedIsBoundAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := sqlGenerator{t}
		text := g.any(rapid.IntRange(0, 3).Draw(t, "depth"))
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin"}).Draw(t, "zone")
		first := bindText(t, text, zone)
		if first == nil {
			return
		}
		_ = fold(first).SQL(generatedNames()) // what is left of constants need not be bound again
		printed := first.SQL(generatedNames())
		again := bindText(t, printed, zone)
		if again == nil {
			t.Fatalf("%s\nprinted %s\nis refused", text, printed)
		}
		if diff := cmp.Diff(bare(first), bare(again)); diff != "" {
			t.Fatalf("%s\nprinted %s\ncomes back otherwise:\n%s", text, printed, diff)
		}
		if once := again.SQL(generatedNames()); once != printed {
			t.Fatalf("%s\nprinted %s\nand then  %s", text, printed, once)
		}
	})
}

// generatedColumns are what generated expressions read.
func generatedColumns() []column {
	types := map[string]expr.Type{
		"a": {Kind: expr.Int}, "b": {Kind: expr.BigInt}, "d": {Kind: expr.Double}, "m": {Kind: expr.Decimal, Precision: 10, Scale: 2}, "s": {Kind: expr.String}, "f": {Kind: expr.Boolean},
		"x": {Kind: expr.Bytes}, "dt": {Kind: expr.Date}, "tm": {Kind: expr.Timestamp, Precision: 3}, "ts": {Kind: expr.TimestampLTZ, Precision: 3}, "iv": {Kind: expr.Interval}, "mo": {Kind: expr.MonthInterval},
	}
	var cols []column
	for _, name := range generatedNames() {
		cols = append(cols, column{name, types[name], false})
	}
	return cols
}

func generatedNames() []string {
	return []string{"a", "b", "d", "m", "s", "f", "x", "dt", "tm", "ts", "iv", "mo"}
}

// bindText binds an expression over the generated columns; nil: it is refused.
func bindText(t *rapid.T, text, zone string) *expr.Expr {
	script, errs := sql.Parse("SELECT " + text + " FROM t")
	if len(errs) > 0 {
		t.Fatalf("%s: %v", text, errs[0])
	}
	found := &problems{src: text}
	s := &scope{found: found, fields: visibleColumns(generatedColumns(), "t"), from: "table t", clause: "WHERE", zone: zone}
	e := s.expr(script.Statements[0].(*sql.Query).Body.(*sql.Select).Items[0].Expr)
	if len(found.list) > 0 {
		return nil
	}
	return typed(e)
}

// bare leaves out what does not matter to values.
func bare(e *expr.Expr) *expr.Expr {
	c := *e
	c.Text = ""
	c.Type.Precision = 0
	c.Args = nil
	for _, a := range e.Args {
		c.Args = append(c.Args, bare(a))
	}
	return &c
}

// A sqlGenerator draws expressions of every kind; most of them bind.
type sqlGenerator struct{ t *rapid.T }

func (g sqlGenerator) pick(from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, "pick")
}

func (g sqlGenerator) any(depth int) string {
	return rapid.SampledFrom([]func(int) string{g.number, g.text, g.boolean, g.time, g.interval, g.bytes}).Draw(g.t, "kind")(depth)
}

// choice draws a value of a kind out of those of its own and out of what all kinds have.
func (g sqlGenerator) choice(depth int, of func(int) string, typ string, own ...func() string) string {
	x := func() string { return of(depth - 1) }
	common := []func() string{
		func() string { return "CASE WHEN " + g.boolean(depth-1) + " THEN " + x() + " ELSE " + x() + " END" },
		func() string { return "CASE " + x() + " WHEN " + x() + " THEN " + x() + " END" },
		func() string { return "COALESCE(" + x() + ", " + x() + ")" },
		func() string { return "NULLIF(" + x() + ", " + x() + ")" },
		func() string { return g.pick("GREATEST", "LEAST") + "(" + x() + ", " + x() + ", " + x() + ")" },
		func() string { return g.pick("CAST", "TRY_CAST") + "(" + g.any(depth-1) + " AS " + typ + ")" },
		func() string { return "(" + x() + ")" },
	}
	return rapid.SampledFrom(append(common, own...)).Draw(g.t, "form")()
}

func (g sqlGenerator) number(depth int) string {
	if depth <= 0 {
		return g.pick("a", "b", "d", "m", "0", "1", "-7", "3000000000", "9223372036854775808", "1.5", "1e300", "-0.25", "NULL", "'5'", "CAST(1 AS BIGINT)", "1::DOUBLE", "'NaN'::DOUBLE", "CAST(2 AS DECIMAL(38, 3))")
	}
	n := func() string { return g.number(depth - 1) }
	return g.choice(depth, g.number, g.pick("INT", "BIGINT", "DOUBLE", "DECIMAL(12, 2)"),
		func() string { return "(" + n() + " " + g.pick("+", "-", "*", "/", "%") + " " + n() + ")" },
		func() string { return n() + " " + g.pick("+", "-", "*", "/", "%") + " " + n() },
		func() string { return "-(" + n() + ")" },
		func() string {
			return g.pick("ABS", "SIGN", "CEIL", "FLOOR", "ROUND", "TRUNCATE", "SQRT", "EXP") + "(" + n() + ")"
		},
		func() string { return "ROUND(" + n() + ", 2)" },
		func() string { return "POWER(" + n() + ", " + n() + ")" },
		func() string { return "MOD(" + n() + ", " + n() + ")" },
		func() string { return "CHAR_LENGTH(" + g.text(depth-1) + ")" },
		func() string { return "POSITION('a' || 'b' IN " + g.text(depth-1) + ")" },
		func() string {
			return "EXTRACT(" + g.pick("YEAR", "DAY", "EPOCH", "HOUR", "MILLISECOND") + " FROM " + g.time(depth-1) + ")"
		},
		func() string { return "EXTRACT(HOUR FROM " + g.interval(depth-1) + ")" },
		func() string { return "dt - " + g.time(depth-1) },
	)
}

func (g sqlGenerator) text(depth int) string {
	if depth <= 0 {
		return g.pick("s", "'a'", "'it''s'", "''", "NULL", "'5'", "'abc'::STRING")
	}
	s := func() string { return g.text(depth - 1) }
	return g.choice(depth, g.text, "STRING",
		func() string { return s() + " || " + g.any(depth-1) },
		func() string { return g.any(depth-1) + " || (" + s() + ")" },
		func() string { return g.pick("LOWER", "UPPER", "REVERSE", "TRIM", "LTRIM") + "(" + s() + ")" },
		func() string { return "TRIM(" + g.pick("BOTH", "LEADING", "TRAILING") + " 'x' FROM " + s() + ")" },
		func() string { return "SUBSTRING(" + s() + " FROM 2 FOR 3)" },
		func() string { return g.pick("LEFT", "RIGHT") + "(" + s() + ", a)" },
		func() string { return "LPAD(" + s() + ", 5)" },
		func() string { return "CONCAT(" + g.any(depth-1) + ", " + g.any(depth-1) + ")" },
		func() string { return "CONCAT_WS(',', " + s() + ", " + g.any(depth-1) + ")" },
		func() string { return "REGEXP_EXTRACT(" + s() + ", '[0-9]+')" },
		func() string { return "JSON_VALUE(" + s() + ", '$.a')" },
		func() string { return "DATE_FORMAT(" + g.time(depth-1) + ", 'yyyy')" },
		func() string { return "REPLACE(" + s() + ", " + s() + ", '')" },
	)
}

func (g sqlGenerator) boolean(depth int) string {
	if depth <= 0 {
		return g.pick("f", "TRUE", "FALSE", "NULL", "'yes'")
	}
	f, n, s := func() string { return g.boolean(depth - 1) }, func() string { return g.number(depth - 1) }, func() string { return g.text(depth - 1) }
	kind := rapid.SampledFrom([]func(int) string{g.number, g.text, g.boolean, g.time, g.interval, g.bytes}).Draw(g.t, "kind")
	x := func() string { return kind(depth - 1) }
	compare := func() string { return g.pick("=", "<>", "<", "<=", ">", ">=") }
	return g.choice(depth, g.boolean, "BOOLEAN",
		func() string { return "(" + f() + ") " + g.pick("AND", "OR") + " (" + f() + ")" },
		func() string { return "NOT (" + f() + ")" },
		func() string { return "(" + x() + ") " + compare() + " (" + x() + ")" },
		func() string { return "(" + n() + ") " + compare() + " (" + n() + ")" },
		func() string { return "(" + x() + ") IS " + g.pick("", "NOT ") + "DISTINCT FROM (" + x() + ")" },
		func() string { return "(" + x() + ") IS " + g.pick("NULL", "NOT NULL") },
		func() string { return "(" + f() + ") IS " + g.pick("", "NOT ") + g.pick("TRUE", "FALSE", "UNKNOWN") },
		func() string { return "(" + x() + ") " + g.pick("", "NOT ") + "IN (" + x() + ", " + x() + ")" },
		func() string {
			return "(" + x() + ") " + g.pick("", "NOT ") + "BETWEEN (" + x() + ") AND (" + x() + ")"
		},
		func() string {
			return "(" + s() + ") " + g.pick("LIKE", "NOT LIKE", "ILIKE") + " (" + s() + ")" + g.pick("", " ESCAPE '!'")
		},
		func() string { return "STARTS_WITH(" + s() + ", 'a')" },
	)
}

func (g sqlGenerator) time(depth int) string {
	if depth <= 0 {
		return g.pick("dt", "tm", "ts", "DATE '2017-11-25'", "TIMESTAMP '2017-11-25 01:02:03.5'", "TIMESTAMP_LTZ '2017-11-25 01:00:00Z'", "'2017-11-25'", "NULL", "CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
	}
	t := func() string { return g.time(depth - 1) }
	return g.choice(depth, g.time, g.pick("DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ"),
		func() string { return t() + g.pick(" + ", " - ") + g.interval(depth-1) },
		func() string { return g.interval(depth-1) + " + " + t() },
		func() string { return "dt" + g.pick(" + ", " - ") + g.pick("a", "1", "(a + 1)") },
		func() string {
			return g.pick("FLOOR", "CEIL") + "((" + t() + ") TO " + g.pick("DAY", "MONTH", "HOUR") + ")"
		},
		func() string { return "DATE_TRUNC('day', " + t() + ")" },
		func() string { return "TO_TIMESTAMP(" + g.text(depth-1) + ")" },
		func() string { return "TO_TIMESTAMP_LTZ(" + g.pick("b", "a", "5", "b + 1") + ", 3)" },
	)
}

func (g sqlGenerator) interval(depth int) string {
	if depth <= 0 {
		return g.pick("iv", "mo", "INTERVAL '5' SECOND", "INTERVAL '-1 02:03:04.5' DAY TO SECOND", "INTERVAL '1-2' YEAR TO MONTH", "'1 day'", "NULL", "INTERVAL '-3' MONTH")
	}
	i := func() string { return g.interval(depth - 1) }
	return g.choice(depth, g.interval, g.pick("INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH"),
		func() string { return i() + g.pick(" + ", " - ") + i() },
		func() string { return "-(" + i() + ")" },
		func() string {
			return "(" + i() + ")" + g.pick(" * ", " / ") + g.pick("a", "2", "1.5", "d", "b", "'2'", "(m + 1)")
		},
		func() string { return g.pick("a", "2", "0.5") + " * (" + i() + ")" },
		func() string { return "(" + g.time(depth-1) + ") - (" + g.time(depth-1) + ")" },
	)
}

func (g sqlGenerator) bytes(depth int) string {
	if depth <= 0 {
		return g.pick("x", "X'00ff'", "X''", `'\x00'`, "NULL")
	}
	x := func() string { return g.bytes(depth - 1) }
	return g.choice(depth, g.bytes, "BYTES",
		func() string { return x() + " || " + x() },
		func() string { return "SUBSTRING(" + x() + " FROM 2)" },
	)
}

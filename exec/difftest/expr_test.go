package difftest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A term is an expression in both spellings.
type term struct {
	w, p  string // Weir's and PostgreSQL's
	k     kind
	scale int  // of a decimal, in Weir
	loose bool // a double that may differ in its last digits
}

func (t *term) both(s string) { t.w, t.p = s, s }

// form makes a term from a pattern with {} for each operand, in order.
func form(k kind, w, p string, args ...term) term {
	t := term{k: k}
	for _, a := range args {
		w = strings.Replace(w, "{}", a.w, 1)
		p = strings.Replace(p, "{}", a.p, 1)
		t.loose = t.loose || a.loose
	}
	t.w, t.p = w, p
	return t
}

func same(k kind, pattern string, args ...term) term { return form(k, pattern, pattern, args...) }

// A gen makes expressions over the columns in scope.
type gen struct {
	*rand.Rand
	columns []term // what a column reference can be
	tame    map[string]bool
	risky   bool // expressions may fail
}

func (g *gen) chance(n int) bool { return g.IntN(n) == 0 }

// column gives a column of the kind; ok is false if there is none.
func (g *gen) column(k kind) (term, bool) {
	var list []term
	for _, c := range g.columns {
		if c.k == k {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return term{}, false
	}
	return pick(g.Rand, list), true
}

func (g *gen) leaf(k kind) term {
	// What fails always reads a row: PostgreSQL computes constants before it knows whether
	// there is one, and leaves them out beside a constant NULL.
	if c, ok := g.column(k); ok && (g.risky || !g.chance(5)) {
		return c
	}
	if k == interval {
		return g.intervalLiteral()
	}
	if !g.risky && g.chance(12) {
		return form(k, "CAST(NULL AS "+k.weirType()+")", "NULL::"+k.postgresType()).scaled(k)
	}
	return k.literal(pick(g.Rand, k.tame()))
}

func (t term) scaled(k kind) term {
	if k == decimal {
		t.scale = 2
	}
	return t
}

func (g *gen) intervalLiteral() term {
	return pick(g.Rand, []term{
		same(interval, "INTERVAL '1' DAY"), same(interval, "INTERVAL '90' MINUTE"), same(interval, "INTERVAL '1.5' SECOND"),
		same(interval, "INTERVAL '-3' HOUR"), same(interval, "INTERVAL '2 03:04:05' DAY TO SECOND"),
	})
}

// expr makes an expression of a kind, at most depth operators deep.
func (g *gen) expr(k kind, depth int) term {
	if depth <= 0 || !g.risky && g.chance(4) {
		return g.leaf(k)
	}
	if g.chance(6) {
		return g.conditional(k, depth)
	}
	switch k {
	case boolean:
		return g.condition(depth)
	case integer:
		return g.integer(depth)
	case bigint:
		return g.bigint(depth)
	case double:
		return g.double(depth)
	case decimal:
		return g.decimal(depth)
	case text:
		return g.text(depth)
	case date, timestamp, timestamptz, interval:
		return g.time(k, depth)
	}
	return g.leaf(k)
}

// conditional makes CASE, COALESCE, NULLIF, GREATEST or LEAST.
func (g *gen) conditional(k kind, depth int) term {
	a, b := g.expr(k, depth-1), g.expr(k, depth-1)
	if k == decimal { // one scale, or the digits behind the point differ
		a, b = g.leaf(k), g.leaf(k)
	}
	var t term
	switch n := g.IntN(6); {
	case n < 2:
		t = same(k, "CASE WHEN {} THEN {} ELSE {} END", g.expr(boolean, depth-1), a, b)
	case n == 2:
		t = same(k, "CASE {} WHEN {} THEN {} END", g.leaf(integer), g.leaf(integer), a)
	case n == 3:
		t = same(k, "COALESCE({}, {})", a, b)
	case n == 4 && k != boolean && k != bytea:
		t = same(k, pick(g.Rand, []string{"GREATEST", "LEAST"})+"({}, {})", a, b)
	default:
		t = same(k, "NULLIF({}, {})", a, b)
	}
	t.scale = a.scale
	return t
}

func (g *gen) comparable() kind { return kind(g.IntN(columnKinds)) }

func (g *gen) condition(depth int) term {
	k := g.comparable()
	d := depth - 1
	switch g.IntN(15) {
	case 10:
		return same(boolean, "STARTS_WITH({}, {})", g.expr(text, d), g.leaf(text))
	case 11:
		return same(boolean, "({} LIKE {} ESCAPE '!')", g.expr(text, d), form(text, "REPLACE({}, '!', '')", "REPLACE({}, '!', '')", g.leaf(text)))
	case 0:
		return same(boolean, "({} AND {})", g.expr(boolean, d), g.expr(boolean, d))
	case 1:
		return same(boolean, "({} OR {})", g.expr(boolean, d), g.expr(boolean, d))
	case 2:
		return same(boolean, "(NOT {})", g.expr(boolean, d))
	case 3:
		return same(boolean, "({} IS "+pick(g.Rand, []string{"", "NOT "})+"NULL)", g.expr(k, d))
	case 4:
		return same(boolean, "({} IS "+pick(g.Rand, []string{"", "NOT "})+"DISTINCT FROM {})", g.expr(k, d), g.expr(k, d))
	case 5:
		return same(boolean, "({} "+pick(g.Rand, []string{"", "NOT "})+"BETWEEN {} AND {})", g.expr(k, d), g.leaf(k), g.leaf(k))
	case 6:
		return same(boolean, "({} "+pick(g.Rand, []string{"", "NOT "})+"IN ({}, {}, {}))", g.expr(k, d), g.leaf(k), g.leaf(k), g.leaf(k))
	case 7:
		pattern := pick(g.Rand, []string{"a%", "%b", "%a%", "_", "__", "abc", "%", "", "A%", "%é%", `50\%`, "x_y", "%_%"})
		return same(boolean, "({} "+pick(g.Rand, []string{"LIKE", "NOT LIKE", "ILIKE"})+" '"+pattern+"')", g.expr(text, d))
	case 8:
		return same(boolean, "({} IS "+pick(g.Rand, []string{"TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"})+")", g.expr(boolean, d))
	case 9:
		a, b := pick(g.Rand, []kind{integer, bigint, decimal, double}), pick(g.Rand, []kind{integer, bigint, decimal, double})
		return same(boolean, "({} "+g.comparison()+" {})", g.expr(a, d), g.expr(b, d))
	}
	return same(boolean, "({} "+g.comparison()+" {})", g.expr(k, d), g.expr(k, d))
}

func (g *gen) comparison() string {
	return pick(g.Rand, []string{"=", "<>", "<", "<=", ">", ">="})
}

func (g *gen) integer(depth int) term {
	d := depth - 1
	switch g.IntN(9) {
	case 0, 1:
		if !g.risky {
			return same(integer, "({} % 7)", g.leaf(integer))
		}
		return same(integer, "({} "+pick(g.Rand, []string{"+", "-", "*"})+" {})", g.expr(integer, d), g.leaf(integer))
	case 2:
		if g.risky && g.chance(2) {
			return same(integer, "({} "+pick(g.Rand, []string{"/", "%"})+" {})", g.leaf(integer), g.expr(integer, d))
		}
		return same(integer, "({} "+pick(g.Rand, []string{"/", "%"})+" "+strconv.Itoa(2+g.IntN(5))+")", g.expr(integer, d))
	case 3:
		return same(integer, pick(g.Rand, []string{"CHAR_LENGTH({})", "OCTET_LENGTH({})"}), g.expr(text, d))
	case 4:
		return same(integer, "POSITION({} IN {})", g.leaf(text), g.expr(text, d))
	case 5:
		return form(integer, "CAST({} AS INT)", "CAST({} AS integer)", g.expr(boolean, d))
	case 6:
		if g.risky {
			return form(integer, "CAST({} AS INT)", "CAST({} AS integer)", g.expr(pick(g.Rand, []kind{bigint, decimal, double, text}), d))
		}
		return same(integer, "({} - {})", g.leaf(date), g.leaf(date))
	case 7:
		if g.risky {
			return same(integer, "ABS({})", g.expr(integer, d))
		}
	}
	return g.leaf(integer)
}

func (g *gen) bigint(depth int) term {
	d := depth - 1
	switch g.IntN(6) {
	case 0:
		return form(bigint, "CAST({} AS BIGINT)", "CAST({} AS bigint)", g.expr(integer, d))
	case 1:
		unit := pick(g.Rand, []string{"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER", "WEEK", "DOW", "DOY", "ISODOW", "ISOYEAR"})
		k := pick(g.Rand, []kind{timestamp, timestamptz})
		return form(bigint, "EXTRACT("+unit+" FROM {})", "EXTRACT("+unit+" FROM {})::bigint", g.expr(k, d))
	case 2:
		unit := pick(g.Rand, []string{"YEAR", "MONTH", "DAY", "DOW", "DOY"})
		return form(bigint, "EXTRACT("+unit+" FROM {})", "EXTRACT("+unit+" FROM {})::bigint", g.expr(date, d))
	case 3:
		if g.risky {
			return same(bigint, "({} "+pick(g.Rand, []string{"+", "-", "*", "/", "%"})+" {})", g.expr(bigint, d), g.expr(pick(g.Rand, []kind{integer, bigint}), d))
		}
		return same(bigint, "({} / 3)", g.expr(bigint, d))
	}
	return g.leaf(bigint)
}

func (g *gen) double(depth int) term {
	d := depth - 1
	switch g.IntN(7) {
	case 0:
		return form(double, "CAST({} AS DOUBLE)", "CAST({} AS double precision)", g.expr(pick(g.Rand, []kind{integer, bigint, decimal}), d))
	case 1:
		return same(double, "({} "+pick(g.Rand, []string{"+", "-"})+" {})", g.expr(double, d), g.leaf(double))
	case 2:
		return same(double, "(- {})", g.leaf(double))
	case 3:
		return same(double, pick(g.Rand, []string{"ABS", "CEIL", "FLOOR", "ROUND", "SIGN"})+"({})", g.expr(double, d))
	case 4:
		return same(double, "({} * {})", g.leaf(double), g.leaf(integer))
	case 5:
		return same(double, "({} / 4e0)", g.expr(double, d))
	}
	return g.leaf(double)
}

func (g *gen) decimal(depth int) term {
	a, b := g.leaf(decimal), g.leaf(decimal)
	var t term
	switch g.IntN(10) {
	case 0, 1:
		t = same(decimal, "({} "+pick(g.Rand, []string{"+", "-"})+" {})", a, b)
		t.scale = max(a.scale, b.scale)
	case 2:
		t = same(decimal, "({} * {})", a, g.leaf(integer))
		t.scale = a.scale
	case 3:
		t = same(decimal, "ABS({})", a)
		t.scale = a.scale
	case 4:
		n := g.IntN(3)
		t = same(decimal, fmt.Sprintf("ROUND({}, %d)", n), a)
		t.scale = n
	case 5:
		t = same(decimal, pick(g.Rand, []string{"CEIL({})", "FLOOR({})", "SIGN({})"}), a)
		if strings.HasPrefix(t.w, "SIGN") {
			t.scale = a.scale
		}
	case 6:
		unit := pick(g.Rand, []string{"SECOND", "EPOCH", "MILLISECOND"})
		t = same(decimal, "EXTRACT("+unit+" FROM {})", g.leaf(pick(g.Rand, []kind{timestamp, timestamptz, interval})))
		t.scale = 6
	case 7:
		t = form(decimal, "TRUNCATE({}, 1)", "TRUNC({}, 1)", a)
		t.scale = 1
	case 8:
		t = form(decimal, "CAST({} AS DECIMAL(20, 1))", "CAST({} AS numeric(20, 1))", g.leaf(pick(g.Rand, []kind{integer, bigint, decimal})))
		t.scale = 1
	default:
		t = form(decimal, "({} / 7)", "ROUND({}::numeric(60, 20) / 7, 6)", a)
		t.scale = 6
	}
	return t
}

func (g *gen) text(depth int) term {
	d := depth - 1
	switch g.IntN(18) {
	case 13:
		return same(text, fmt.Sprintf("SPLIT_PART({}, {}, %d)", pick(g.Rand, []int{-1, 1, 2, 3})), g.expr(text, d), g.leaf(text))
	case 14:
		return same(text, fmt.Sprintf("REPEAT({}, %d)", g.IntN(4)-1), g.leaf(text))
	case 15:
		return form(text, "REGEXP_REPLACE({}, '"+"[a-c]+', '<\\&>')", "REGEXP_REPLACE({}, '"+"[a-c]+', '<\\&>', 'g')", g.expr(text, d))
	case 16:
		return form(text, "REGEXP_EXTRACT({}, '(.)b', 1)", "(REGEXP_MATCH({}, '(.)b'))[1]", g.expr(text, d))
	case 17:
		return form(text, "CAST({} AS STRING)", "CAST({} AS text)", g.expr(pick(g.Rand, []kind{timestamptz, timestamp, date, double}), d))
	case 0, 1:
		return same(text, "({} || {})", g.expr(text, d), g.expr(text, d))
	case 2:
		return same(text, pick(g.Rand, []string{"UPPER", "LOWER"})+"({})", g.expr(text, d))
	case 3:
		return same(text, "TRIM("+pick(g.Rand, []string{"", "LEADING FROM ", "TRAILING 'b' FROM ", "BOTH 'ab' FROM "})+"{})", g.expr(text, d))
	case 4:
		return same(text, fmt.Sprintf("SUBSTRING({} FROM %d)", g.IntN(5)-1), g.expr(text, d))
	case 5:
		return same(text, fmt.Sprintf("SUBSTRING({} FROM %d FOR %d)", g.IntN(5)-1, g.IntN(4)), g.expr(text, d))
	case 6:
		return same(text, "REPLACE({}, {}, {})", g.expr(text, d), g.leaf(text), g.leaf(text))
	case 7:
		k := pick(g.Rand, []kind{boolean, integer, bigint, double, decimal, date, timestamp, bytea})
		return form(text, "CAST({} AS STRING)", "CAST({} AS text)", g.leaf(k))
	case 8:
		return same(text, "CONCAT({}, {}, {})", g.leaf(text), g.leaf(integer), g.expr(text, d))
	case 9:
		return same(text, fmt.Sprintf(pick(g.Rand, []string{"LEFT({}, %d)", "RIGHT({}, %d)"}), g.IntN(5)-2), g.expr(text, d))
	case 10:
		return same(text, fmt.Sprintf(pick(g.Rand, []string{"LPAD({}, %d, 'xy')", "RPAD({}, %d, 'xy')"}), g.IntN(5)), g.expr(text, d))
	case 11:
		return same(text, "REVERSE({})", g.expr(text, d))
	case 12:
		return same(text, "CONCAT_WS('-', {}, {})", g.leaf(text), g.leaf(text))
	}
	return g.leaf(text)
}

func (g *gen) time(k kind, depth int) term {
	d := depth - 1
	unit := pick(g.Rand, []string{"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
	switch {
	case k == interval && g.chance(2):
		if g.chance(2) {
			return same(interval, pick(g.Rand, []string{"(- {})", "({} * 2)", "(3 * {})", "({} / 2)"}), g.expr(interval, d))
		}
		return same(interval, "({} "+pick(g.Rand, []string{"+", "-"})+" {})", g.expr(interval, d), g.intervalLiteral())
	case k == timestamp && g.chance(6):
		return form(timestamp, "CAST({} AS TIMESTAMP(6))", "CAST({} AS timestamp)", g.leaf(timestamptz))
	case k == timestamptz && g.chance(6):
		return form(timestamptz, "CAST({} AS TIMESTAMP_LTZ(6))", "CAST({} AS timestamptz)", g.leaf(pick(g.Rand, []kind{timestamp, date})))
	case k == timestamp && g.chance(8):
		return form(timestamp, "CAST({} AS TIMESTAMP(0))", "CAST({} AS timestamp(0))", g.leaf(timestamp))
	case k == date && g.chance(2):
		return same(date, "CAST({} AS DATE)", g.leaf(timestamp))
	case k == date && g.risky:
		return same(date, "({} + {})", g.leaf(date), g.leaf(integer))
	case k == interval:
		if t := pick(g.Rand, []kind{timestamp, timestamptz}); g.chance(2) {
			return same(interval, "({} - {})", g.expr(t, d), g.leaf(t))
		}
		return g.intervalLiteral()
	case k == timestamp && g.chance(4):
		return same(timestamp, "CAST({} AS TIMESTAMP)", g.leaf(date))
	case k == timestamp && g.risky && g.chance(3):
		return same(timestamp, "({} + INTERVAL '1' MONTH)", g.leaf(timestamp))
	case (k == timestamp || k == timestamptz) && g.risky && g.chance(2):
		return same(k, "({} "+pick(g.Rand, []string{"+", "-"})+" {})", g.expr(k, d), g.intervalLiteral())
	case k == timestamp || k == timestamptz:
		if g.chance(3) && unit != "QUARTER" && unit != "WEEK" {
			return form(k, "FLOOR({} TO "+unit+")", "DATE_TRUNC('"+unit+"', {})", g.expr(k, d))
		}
		return same(k, "DATE_TRUNC('"+unit+"', {})", g.expr(k, d))
	}
	return g.leaf(k)
}

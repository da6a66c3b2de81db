package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A grouping is the keys and aggregates of a query while its select list is bound.
// Its columns are the keys, then the set's number where there are sets, then the aggregates.
type grouping struct {
	rows  *scope // in which keys and arguments are bound
	nodes []sql.Expr
	keys  []*expr.Expr
	sets  [][]int // keys of each grouping set; nil: there is one, of all keys
	aggs  []call
	wrong bool // a key could not be bound: whether a column is one is not known
}

// key returns the index of the key that e is, or -1. Expressions are compared by
// their structure.
func (g *grouping) key(s *scope, e sql.Expr) int {
	return slices.IndexFunc(g.nodes, func(k sql.Expr) bool { return sameExpr(k, e) && s.qualifiersFit(e) })
}

// column gives the expression that reads column i of the grouping.
func (g *grouping) column(i int) *expr.Expr {
	if i < len(g.keys) {
		return &expr.Expr{Op: expr.OpColumn, Type: g.keys[i].Type, Column: i}
	}
	return &expr.Expr{Op: expr.OpColumn, Type: g.aggs[i-g.before()].typ, Column: i}
}

// add registers an aggregate, once for all that are equal, and returns its column.
func (g *grouping) add(a call) *expr.Expr {
	i := slices.IndexFunc(g.aggs, func(b call) bool {
		return a.fn == b.fn && a.text == b.text && a.typ == b.typ && (a.arg == nil || a.arg.Type == b.arg.Type)
	})
	if i < 0 {
		i = len(g.aggs)
		g.aggs = append(g.aggs, a)
	}
	return g.column(g.before() + i)
}

// before counts the columns before the aggregates.
func (g *grouping) before() int {
	if g.sets != nil {
		return len(g.keys) + 1
	}
	return len(g.keys)
}

func (s *scope) call(e *sql.Call) *expr.Expr {
	name := strings.ToUpper(e.Name.Name)
	switch {
	case name == "GROUPING" || name == "GROUPING_ID":
		return s.grouping(e)
	case name != "COUNT" && name != "SUM":
		s.refuseFunction(e, name)
		return nil
	case s.groups == nil:
		s.found.add(e, CodeQuery, "", "an aggregate (%s) cannot stand in %s", name, s.clause)
		return nil
	case e.Filter != nil:
		s.found.add(e.Filter, CodeUnsupported, "", "FILTER (WHERE …) is not supported")
		return nil
	case e.Distinct:
		s.found.add(e, CodeUnsupported, "", "%s(DISTINCT …) is not supported", name)
		return nil
	case e.Star && name == "COUNT":
		return s.groups.add(call{fn: expr.CountStar, typ: expr.Type{Kind: expr.BigInt}, text: "count(*)"})
	case e.Star || len(e.Args) != 1:
		s.found.add(e, CodeType, "", "%s takes one argument", name)
		return nil
	}
	arg := s.groups.rows.expr(e.Args[0])
	if arg == nil {
		return nil
	}
	arg = typed(arg)
	a := call{arg: arg, fn: expr.Count, typ: expr.Type{Kind: expr.BigInt}}
	if name == "SUM" {
		if rank(arg.Type) == 0 {
			s.found.add(e.Args[0], CodeType, "", "SUM needs a number, and this is %s", article(arg))
			return nil
		}
		a.fn, a.typ = expr.Sum, sumType(arg.Type)
	}
	a.text = string(a.fn) + "(" + arg.SQL(s.names()) + ")"
	return s.groups.add(a)
}

func sumType(t expr.Type) expr.Type {
	switch t.Kind {
	case expr.Int:
		return expr.Type{Kind: expr.BigInt}
	case expr.BigInt:
		return expr.DecimalType(0)
	case expr.Decimal:
		return expr.DecimalType(t.Scale)
	}
	return expr.Type{Kind: expr.Double}
}

// refuseFunction tells a function that Weir will have from one that nobody knows.
func (s *scope) refuseFunction(e *sql.Call, name string) {
	switch name {
	case "TUMBLE", "HOP", "CUMULATE", "SESSION", "TUMBLE_START", "TUMBLE_END", "HOP_START", "HOP_END", "SESSION_START", "SESSION_END":
		s.found.add(e, CodeUnsupported, "", "the window function %s is not supported", name)
	case "MIN", "MAX", "AVG", "APPROX_COUNT_DISTINCT", "BOOL_AND", "BOOL_OR", "STDDEV", "VARIANCE", "ARRAY_AGG", "STRING_AGG",
		"FIRST_VALUE", "LAST_VALUE", "ROW_NUMBER", "RANK", "LAG", "LEAD":
		hint := "the aggregates are COUNT and SUM"
		if name == "AVG" {
			hint = "SUM(x) / COUNT(x) is the mean of BIGINT, DECIMAL and DOUBLE"
		}
		s.found.add(e, CodeUnsupported, hint, "the function %s is not supported", name)
	case "COALESCE", "NULLIF", "IF", "LOWER", "UPPER", "CHAR_LENGTH", "LENGTH", "REPLACE", "SPLIT_INDEX", "CONCAT", "REGEXP_EXTRACT", "SUBSTR",
		"ABS", "ROUND", "MOD", "POWER", "SQRT", "EXP", "LN", "DATE_FORMAT", "DATE_TRUNC", "TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "FROM_UNIXTIME",
		"UNIX_TIMESTAMP", "NOW", "PROCTIME", "GREATEST", "LEAST", "MD5", "UUID", "DESCRIPTOR", "GROUPING",
		"EXTRACT", "FLOOR", "CEIL", "CEILING", "TRIM", "POSITION", "SUBSTRING", "CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP":
		hint := ""
		if name == "MOD" {
			hint = "write a % b"
		}
		s.found.add(e, CodeUnsupported, hint, "the function %s is not supported", name)
	default:
		s.found.add(e.Name, CodeName, hints(suggestion(name, []string{"COUNT", "SUM"}), "the functions are COUNT and SUM"), "unknown function %s", e.Name.Name)
	}
}

// hasAggregate reports whether an aggregate stands in e, supported or not.
func hasAggregate(e sql.Expr) bool {
	if c, ok := e.(*sql.Call); ok {
		switch strings.ToUpper(c.Name.Name) {
		case "COUNT", "SUM":
			return true
		}
	}
	return slices.ContainsFunc(operands(e), hasAggregate)
}

func operands(e sql.Expr) []sql.Expr {
	switch e := e.(type) {
	case *sql.Unary:
		return []sql.Expr{e.X}
	case *sql.Binary:
		return []sql.Expr{e.X, e.Y}
	case *sql.IsNull:
		return []sql.Expr{e.X}
	case *sql.In:
		return append([]sql.Expr{e.X}, e.List...)
	case *sql.Call:
		return e.Args
	}
	return nil
}

// sameExpr reports whether two expressions over one table have the same structure:
// names are compared as names are, the table's name before a column does not count.
func sameExpr(a, b sql.Expr) bool {
	if !sameHead(a, b) {
		return false
	}
	return slices.EqualFunc(operands(a), operands(b), sameExpr)
}

// sameHead compares two nodes without their operands.
func sameHead(a, b sql.Expr) bool {
	switch a := a.(type) {
	case *sql.ColumnRef:
		b, ok := b.(*sql.ColumnRef)
		return ok && sameName(a.Name.Name, b.Name.Name)
	case *sql.NumberLit:
		b, ok := b.(*sql.NumberLit)
		return ok && a.Text == b.Text
	case *sql.StringLit:
		b, ok := b.(*sql.StringLit)
		return ok && a.Value == b.Value
	case *sql.BoolLit:
		b, ok := b.(*sql.BoolLit)
		return ok && a.Value == b.Value
	case *sql.NullLit:
		_, ok := b.(*sql.NullLit)
		return ok
	case *sql.Unary:
		b, ok := b.(*sql.Unary)
		return ok && a.Op == b.Op
	case *sql.Binary:
		b, ok := b.(*sql.Binary)
		return ok && a.Op == b.Op
	case *sql.IsNull:
		b, ok := b.(*sql.IsNull)
		return ok && a.Not == b.Not
	case *sql.In:
		b, ok := b.(*sql.In)
		return ok && a.Not == b.Not
	case *sql.Call:
		b, ok := b.(*sql.Call)
		return ok && sameName(a.Name.Name, b.Name.Name) && a.Star == b.Star && a.Distinct == b.Distinct
	}
	return false
}

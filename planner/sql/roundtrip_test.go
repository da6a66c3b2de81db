package sql

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestRoundTrip: what Format prints of any tree is read back as that tree, so that it
// puts parentheses and quotes wherever they matter.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := &Script{Statements: []Statement{makeStatement(t)}}
		text := Format(want)
		got, errs := Parse(text)
		if len(errs) > 0 {
			t.Fatalf("%q does not parse: %v", text, errs[0])
		}
		if !cmp.Equal(want.Statements, got.Statements, sameMeaning()...) {
			t.Fatalf("%q means something else:\n%s", text, cmp.Diff(want.Statements, got.Statements, sameMeaning()...))
		}
	})
}

func sameMeaning() []cmp.Option {
	return []cmp.Option{cmpopts.IgnoreTypes(Span{}), cmpopts.IgnoreFields(Binary{}, "OpPos"), cmpopts.EquateEmpty()}
}

func pick[T any](t *rapid.T, of ...T) T { return rapid.SampledFrom(of).Draw(t, "pick") }
func yes(t *rapid.T) bool               { return rapid.Bool().Draw(t, "yes") }

// oneIn tells, once in n times, yes.
func oneIn(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "one in") == n }

func makeName(t *rapid.T) Ident {
	return Ident{Name: pick(t, "a", "b", "Col", "x y", `q"q`, "select", "values", "both", "symmetric", "current_date", "date", "interval",
		"if", "filter", "only", "rollup", "grouping", "é", "end", "extract", "cast", "position", "trim", "array", "any", "recursive", "x", "e", "no thing", "unnest", "escape")}
}

func makeNames(t *rapid.T) []Ident {
	if !oneIn(t, 4) {
		return nil
	}
	return []Ident{makeName(t), makeName(t)}
}

func maybeName(t *rapid.T) *Ident {
	if yes(t) {
		return nil
	}
	n := makeName(t)
	return &n
}

func makeStatement(t *rapid.T) Statement {
	insert := func() *Insert { return &Insert{Table: makeName(t), Columns: makeNames(t), Query: makeQuery(t, 2)} }
	set := func() *StatementSet { return &StatementSet{Inserts: []*Insert{insert(), insert()}} }
	switch rapid.IntRange(0, 9).Draw(t, "statement") {
	case 0:
		return insert()
	case 1:
		return set()
	case 2:
		return &Explain{Statement: insert()}
	case 3:
		return &CreateView{Name: makeName(t), Columns: makeNames(t), IfNotExists: yes(t), Query: makeQuery(t, 2)}
	case 4:
		return &Drop{View: yes(t), IfExists: yes(t), Name: makeName(t)}
	case 5:
		return makeTable(t)
	}
	return makeQuery(t, 2)
}

func makeTable(t *rapid.T) *CreateTable {
	c := &CreateTable{Name: makeName(t), IfNotExists: yes(t)}
	for range rapid.IntRange(1, 4).Draw(t, "columns") {
		col := &Column{Name: makeName(t)}
		if yes(t) {
			col.As = makeExpr(t, 2)
		} else {
			col.Type, col.NotNull = makeType(t), yes(t)
		}
		c.Columns = append(c.Columns, col)
	}
	if yes(t) {
		c.Watermark = &Watermark{Column: makeName(t), As: makeExpr(t, 2)}
	}
	if yes(t) {
		c.PrimaryKey = &PrimaryKey{Columns: []Ident{makeName(t)}}
	}
	if yes(t) {
		c.Options = []*Option{{Key: &StringLit{Value: "a'b"}, Value: &StringLit{Value: ""}}}
	}
	return c
}

func makeType(t *rapid.T) *TypeName {
	return pick(t, &TypeName{Name: "INT"}, &TypeName{Name: "DECIMAL", Args: []int{10, 2}}, &TypeName{Name: "STRING"}, &TypeName{Name: "VARCHAR", Args: []int{5}},
		&TypeName{Name: "TIMESTAMP", Args: []int{3}}, &TypeName{Name: "TIMESTAMP_LTZ"}, &TypeName{Name: "DOUBLE"}, &TypeName{Name: "INTERVAL DAY TO SECOND"},
		&TypeName{Name: "INTERVAL"}, &TypeName{Name: "INTERVAL YEAR"}, &TypeName{Name: "TIMETZ", Args: []int{3}}, &TypeName{Name: "TIME_LTZ"})
}

func makeQuery(t *rapid.T, depth int) *Query {
	q := &Query{}
	if depth > 0 && oneIn(t, 3) {
		q.With = []*CTE{makeCTE(t, depth-1), makeCTE(t, depth-1)}
	}
	if q.Body = makeInput(t, depth, len(q.With) > 0); depth > 0 && oneIn(t, 4) {
		q.Body = &Union{Inputs: []Body{makeInput(t, depth-1, true), makeInput(t, depth-1, true)}}
	}
	return q
}

func makeCTE(t *rapid.T, depth int) *CTE {
	return &CTE{Name: makeName(t), Columns: makeNames(t), Query: makeQuery(t, depth)}
}

// makeInput makes an input of a union: nested tells that a query with WITH may be one.
func makeInput(t *rapid.T, depth int, nested bool) Body {
	if nested && depth > 0 && oneIn(t, 5) {
		return &Query{With: []*CTE{makeCTE(t, depth-1)}, Body: makeInput(t, depth-1, false)}
	}
	if oneIn(t, 5) {
		return &Values{Rows: [][]Expr{{makeExpr(t, 1), makeExpr(t, 1)}, {makeExpr(t, 1), makeExpr(t, 1)}}}
	}
	s := &Select{Distinct: yes(t), Items: []*Item{{Expr: makeExpr(t, 2), Alias: maybeName(t)}, {Expr: &Star{Table: maybeName(t)}}}}
	switch from := rapid.IntRange(0, 2).Draw(t, "from"); {
	case from == 1:
		ref := &TableRef{Name: makeName(t), Alias: maybeName(t)}
		if ref.Alias != nil {
			ref.Columns = makeNames(t)
		}
		s.From = ref
	case from == 2 && depth > 0:
		s.From = &Subquery{Query: makeQuery(t, depth-1), Alias: maybeName(t)}
	}
	if yes(t) {
		s.Where = makeExpr(t, 2)
	}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		s.GroupBy = append(s.GroupBy, makeKey(t, 2))
	}
	if yes(t) {
		s.Having = makeExpr(t, 2)
	}
	return s
}

func makeKey(t *rapid.T, depth int) Expr {
	switch rapid.IntRange(0, 4).Draw(t, "key") {
	case 0:
		return &Row{}
	case 1:
		return &Row{List: []Expr{makeExpr(t, 1), makeExpr(t, 1)}}
	case 2:
		if depth > 0 {
			return &GroupingSets{Kind: "GROUPING SETS", List: []Expr{makeKey(t, depth-1), makeKey(t, depth-1)}}
		}
	case 3:
		return &GroupingSets{Kind: pick(t, "ROLLUP", "CUBE"), List: []Expr{makeExpr(t, 1), &Row{List: []Expr{makeExpr(t, 1), makeExpr(t, 1)}}}}
	}
	return makeExpr(t, 2)
}

func makeExpr(t *rapid.T, depth int) Expr {
	if depth == 0 {
		return makeLeaf(t)
	}
	x := func() Expr { return makeExpr(t, depth-1) }
	switch rapid.IntRange(0, 15).Draw(t, "expression") {
	case 0, 1:
		return &Unary{Op: pick(t, "-", "+", "NOT"), X: x()}
	case 2, 3, 4:
		return &Binary{Op: pick(t, "OR", "AND", "=", "<>", "<", "<=", ">", ">=", "||", "+", "-", "*", "/", "%"), X: x(), Y: x()}
	case 5:
		return &IsNull{X: x(), Not: yes(t)}
	case 6:
		return &In{X: x(), List: []Expr{x(), x()}, Not: yes(t)}
	case 7, 8:
		return &Between{X: x(), Low: x(), High: x(), Not: yes(t)}
	case 9:
		l := &Like{X: x(), Pattern: x(), Fold: yes(t), Not: yes(t)}
		if yes(t) {
			l.Escape = x()
		}
		return l
	case 10:
		return &IsDistinct{X: x(), Y: x(), Not: yes(t)}
	case 11:
		return &IsTruth{X: x(), Value: pick(t, "TRUE", "FALSE", "UNKNOWN"), Not: yes(t)}
	case 12:
		c := &Case{Whens: []*When{{If: x(), Then: x()}}}
		if yes(t) {
			c.Operand, c.Else = x(), x()
		}
		return c
	case 13:
		return &Cast{X: x(), Type: makeType(t), Try: yes(t)}
	}
	return makeCall(t, x)
}

func makeCall(t *rapid.T, x func() Expr) Expr {
	c := &Call{}
	switch rapid.IntRange(0, 7).Draw(t, "call") {
	case 0:
		c.Name.Name, c.Args = "EXTRACT", []Expr{&Word{Name: "YEAR"}, x()}
	case 1:
		c.Name.Name, c.Args = pick(t, "FLOOR", "ceil"), []Expr{x(), &Word{Name: "HOUR"}}
	case 2:
		c.Name.Name, c.Args = "TRIM", []Expr{&Word{Name: pick(t, "BOTH", "LEADING", "TRAILING")}, x(), x()}
	case 3:
		c.Name.Name, c.Args = "POSITION", []Expr{x(), x()}
	case 4:
		c.Name.Name, c.Args = pick(t, "SUBSTRING", "TRIM", "FLOOR"), []Expr{x(), x()}
	case 5:
		c.Name.Name, c.Star = "COUNT", true
	default:
		c.Name.Name, c.Distinct, c.Args = pick(t, "sum", "if", "coalesce", "Grouping"), yes(t), []Expr{x()}
	}
	if oneIn(t, 4) {
		c.Filter = x()
	}
	return c
}

func makeLeaf(t *rapid.T) Expr {
	switch rapid.IntRange(0, 9).Draw(t, "leaf") {
	case 0:
		return &NumberLit{Text: pick(t, "0", "1.5", ".5", "1e10", "2.")}
	case 1:
		return &StringLit{Value: pick(t, "", "a'b", "x\ny", "é")}
	case 2:
		return &BoolLit{Value: yes(t)}
	case 3:
		return &NullLit{}
	case 4:
		return pick(t, &IntervalLit{Value: "1", Unit: "DAY"}, &IntervalLit{Value: "1 2", Unit: "DAY", To: "HOUR"})
	case 5:
		return &TypedLit{Type: pick(t, &TypeName{Name: "DATE"}, &TypeName{Name: "TIMESTAMP", Args: []int{3}}, &TypeName{Name: "TIMESTAMP_LTZ"}), Value: "2020-01-01"}
	case 6:
		return &BytesLit{Value: pick(t, "", "00fF")}
	case 7:
		return &Call{Name: Ident{Name: "CURRENT_TIMESTAMP"}}
	}
	return &ColumnRef{Table: maybeName(t), Name: makeName(t)}
}

package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/expr"
)

// The columns of the random batches: two of each type.
var testTypes = []expr.Type{
	{Kind: expr.Boolean},
	{Kind: expr.Int},
	{Kind: expr.BigInt},
	{Kind: expr.Double},
	{Kind: expr.Decimal, Precision: 38, Scale: 2},
	{Kind: expr.String},
	{Kind: expr.Bytes},
	{Kind: expr.Date},
	{Kind: expr.Timestamp, Precision: 6},
	{Kind: expr.Interval},
}

var (
	testInts    = []int64{0, 1, -1, 2, 7, math.MaxInt32, math.MinInt32}
	testBigInts = []int64{0, 1, -1, 3, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64}
	testDoubles = []float64{0, math.Copysign(0, -1), 1, -2.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}
	testDigits  = []string{"0", "1", "-1.25", "0.01", "3.33", "999999999999999999999999999999999999.99", "-999999999999999999999999999999999999.99"}
	testStrings = []string{
		"", "a", "ab", "buy", "cart", "exactly8", "ninechars", "a longer string", "é", "Éa b", " 7 ", "-1.5", "1e3", "tRue",
		"a%_", "%a", "!", "(a)|b", "[", "2017-11-25", `{"a": [{"b": "é"}, 7]}`, "$.a[0].b", "$.a[1]",
	}
	testBytes = []string{"", "00", "61", "ff00", "deadbeefdeadbeefde"} // hexadecimal
	testTimes = []int64{0, -1, 86_400_000_000, 1_511_571_600_000_000, -62_135_596_800_000_000}
	testDays  = []int64{0, -1, 17_495, -719_162, 2_932_896}
)

// drawLiteral returns a constant; 1 in 6 is NULL.
func drawLiteral(t *rapid.T, typ expr.Type) *expr.Expr {
	e := &expr.Expr{Op: expr.OpLiteral, Type: typ, Text: "literal"}
	if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
		return e
	}
	l := &expr.Literal{}
	switch typ.Kind {
	case expr.Boolean:
		l.Bool = rapid.Bool().Draw(t, "bool")
	case expr.Int:
		l.Int = rapid.SampledFrom(testInts).Draw(t, "int")
	case expr.BigInt:
		l.Int = rapid.SampledFrom(testBigInts).Draw(t, "bigint")
	case expr.Double:
		l.Double = strconv.FormatFloat(rapid.SampledFrom(testDoubles).Draw(t, "double"), 'g', -1, 64)
	case expr.Decimal:
		l.Decimal = rapid.SampledFrom(testDigits).Draw(t, "decimal")
	case expr.String:
		l.String = rapid.SampledFrom(testStrings).Draw(t, "string")
	case expr.Bytes:
		l.String = rapid.SampledFrom(testBytes).Draw(t, "bytes")
	case expr.Date:
		l.Int = rapid.SampledFrom(testDays).Draw(t, "date")
	case expr.Timestamp, expr.Interval:
		l.Int = rapid.SampledFrom(testTimes).Draw(t, "time")
	}
	e.Literal = l
	return e
}

func drawTestBatch(t *rapid.T) *batch.Batch {
	b := &batch.Batch{Len: rapid.IntRange(0, 70).Draw(t, "rows")}
	for range 2 {
		for _, typ := range testTypes {
			v := batch.Vector{Physical: Physical(typ)}
			nulls := rapid.Bool().Draw(t, "nulls")
			for range b.Len {
				e := drawLiteral(t, typ)
				switch {
				case e.Literal != nil:
					if err := appendLiteral(&v, e); err != nil {
						t.Fatal(err)
					}
				case nulls:
					v.AppendNull()
				default:
					e.Literal = &expr.Literal{Double: "0", Decimal: "0"}
					if err := appendLiteral(&v, e); err != nil {
						t.Fatal(err)
					}
				}
			}
			b.Columns = append(b.Columns, v)
		}
	}
	if rapid.Bool().Draw(t, "select") {
		b.Sel = []int32{}
		for i := range b.Len {
			if rapid.Bool().Draw(t, "selected") {
				b.Sel = append(b.Sel, int32(i))
			}
		}
	}
	return b
}

// An exprSource draws random trees; every node has a text of its own.
type exprSource struct {
	t     *rapid.T
	nodes int
}

func (s *exprSource) make(op expr.Op, typ expr.Type, args ...*expr.Expr) *expr.Expr {
	s.nodes++
	return &expr.Expr{Op: op, Type: typ, Args: args, Text: fmt.Sprintf("%s #%d", op, s.nodes)}
}

func (s *exprSource) draw(typ expr.Type, depth int) *expr.Expr {
	choice := rapid.IntRange(0, 9).Draw(s.t, "node")
	if depth == 0 || choice < 2 {
		if rapid.IntRange(0, 2).Draw(s.t, "leaf") == 0 {
			return drawLiteral(s.t, typ)
		}
		column := rapid.IntRange(0, 1).Draw(s.t, "column") * len(testTypes)
		for i, c := range testTypes {
			if c == typ {
				column += i
			}
		}
		return &expr.Expr{Op: expr.OpColumn, Type: typ, Column: column, Text: "column"}
	}
	switch {
	case choice == 4:
		return s.caseOf(typ, depth-1)
	case choice == 6 || choice == 7:
		if e := s.call(typ, depth-1); e != nil {
			return e
		}
		return s.cast(typ, depth-1)
	case choice == 5:
		args := []*expr.Expr{s.draw(typ, depth-1), s.draw(typ, depth-1)}
		if rapid.Bool().Draw(s.t, "third") {
			args = append(args, s.draw(typ, depth-1))
		}
		return s.make(expr.OpCoalesce, typ, args...)
	case typ.Kind == expr.Boolean:
		return s.condition(depth - 1)
	case !typ.Numeric():
		return s.make(expr.OpConvert, typ, s.draw(typ, 0))
	case choice == 2:
		return s.make(expr.OpNeg, typ, s.draw(typ, depth-1))
	case choice == 3:
		return s.make(expr.OpConvert, typ, s.draw(s.narrower(typ), depth-1))
	}
	op := rapid.SampledFrom([]expr.Op{expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod}).Draw(s.t, "op")
	return s.make(op, typ, s.draw(typ, depth-1), s.draw(typ, depth-1))
}

func (s *exprSource) caseOf(typ expr.Type, depth int) *expr.Expr {
	var args []*expr.Expr
	for range rapid.IntRange(1, 3).Draw(s.t, "branches") {
		args = append(args, s.condition(depth), s.draw(typ, depth))
	}
	return s.make(expr.OpCase, typ, append(args, s.draw(typ, depth))...)
}

// call draws a call of a function that gives typ, or nil where there is none.
func (s *exprSource) call(typ expr.Type, depth int) *expr.Expr {
	var fit []testFunction
	for _, f := range testFunctions() {
		if f.result == typ.Kind {
			fit = append(fit, f)
		}
	}
	if len(fit) == 0 || rapid.IntRange(0, 2).Draw(s.t, "no call") == 0 {
		return nil
	}
	f := rapid.SampledFrom(fit).Draw(s.t, "function")
	var args []*expr.Expr
	for i, k := range f.args {
		arg := s.draw(expr.Type{Kind: k}, depth)
		if i > 0 && rapid.Bool().Draw(s.t, "constant") {
			arg = drawLiteral(s.t, expr.Type{Kind: k})
		}
		args = append(args, arg)
	}
	e := s.make(expr.OpCall, typ, args...)
	e.Func = f.name
	return e
}

// cast draws a cast to typ.
func (s *exprSource) cast(typ expr.Type, depth int) *expr.Expr {
	from := []expr.Type{typ}
	for _, t := range testTypes {
		if t.Kind == expr.String || slices.Contains(castable(typ.Kind), t.Kind) {
			from = append(from, t)
		}
	}
	op := rapid.SampledFrom([]expr.Op{expr.OpCast, expr.OpTryCast}).Draw(s.t, "op")
	return s.make(op, typ, s.draw(rapid.SampledFrom(from).Draw(s.t, "from"), depth))
}

// narrower draws a type that converts to typ.
func (s *exprSource) narrower(typ expr.Type) expr.Type {
	options := []expr.Type{typ}
	for _, t := range testTypes {
		if t.Numeric() && t.Kind != expr.Double && (t.Kind < typ.Kind && t.Kind != typ.Kind || typ.Kind == expr.Double) {
			if !(typ.Kind == expr.Int) {
				options = append(options, t)
			}
		}
	}
	return rapid.SampledFrom(options).Draw(s.t, "from")
}

func (s *exprSource) condition(depth int) *expr.Expr {
	boolean := expr.Type{Kind: expr.Boolean}
	switch rapid.IntRange(0, 9).Draw(s.t, "condition") {
	case 8:
		return s.caseOf(boolean, max(depth-1, 0))
	case 9:
		typ := s.anyType()
		op := rapid.SampledFrom([]expr.Op{expr.OpDistinct, expr.OpNotDistinct}).Draw(s.t, "op")
		return s.make(op, boolean, s.draw(typ, depth), s.draw(typ, 0))
	case 0, 1:
		op := rapid.SampledFrom([]expr.Op{expr.OpAnd, expr.OpOr}).Draw(s.t, "op")
		return s.make(op, boolean, s.draw(boolean, depth), s.draw(boolean, depth))
	case 2:
		return s.make(expr.OpNot, boolean, s.draw(boolean, depth))
	case 3:
		op := rapid.SampledFrom([]expr.Op{expr.OpIsNull, expr.OpIsNotNull}).Draw(s.t, "op")
		return s.make(op, boolean, s.draw(s.anyType(), depth))
	case 4:
		typ := s.anyType()
		args := []*expr.Expr{s.draw(typ, depth)}
		for range rapid.IntRange(1, 10).Draw(s.t, "list") {
			args = append(args, drawLiteral(s.t, typ))
		}
		if rapid.IntRange(0, 3).Draw(s.t, "computed") == 0 {
			args = append(args, s.draw(typ, depth))
		}
		return s.make(expr.OpIn, boolean, args...)
	}
	typ := s.anyType()
	op := rapid.SampledFrom([]expr.Op{expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe}).Draw(s.t, "op")
	l, r := s.draw(typ, depth), s.draw(typ, depth)
	switch rapid.IntRange(0, 3).Draw(s.t, "constant") {
	case 0:
		l = drawLiteral(s.t, typ)
	case 1:
		r = drawLiteral(s.t, typ)
	}
	return s.make(op, boolean, l, r)
}

func (s *exprSource) anyType() expr.Type { return rapid.SampledFrom(testTypes).Draw(s.t, "type") }

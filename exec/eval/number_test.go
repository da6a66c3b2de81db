package eval

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/expr"
)

// TestExtremes compares GREATEST and LEAST, of columns of every layout, with the
// reference's order.
func TestExtremes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawTestBatch(t)
		i := rapid.IntRange(0, len(testTypes)-1).Draw(t, "type")
		name := rapid.SampledFrom([]string{"greatest", "least"}).Draw(t, "name")
		e := &expr.Expr{Op: expr.OpCall, Func: name, Type: testTypes[i], Text: name}
		for _, c := range []int{i, i + len(testTypes)} {
			e.Args = append(e.Args, &expr.Expr{Op: expr.OpColumn, Type: testTypes[i], Column: c})
		}
		e.Args = append(e.Args, drawLiteral(t, testTypes[i]))
		if rapid.Bool().Draw(t, "a bare NULL") {
			e.Args = append(e.Args, &expr.Expr{Op: expr.OpLiteral})
		}
		p := compileFor(t, e)
		var out batch.Vector
		for range 2 {
			if err := p.Eval(b, &out); err != nil {
				t.Fatal(err)
			}
		}
		for k := range b.Rows() {
			row := b.Row(k)
			best := value{null: true}
			for _, a := range e.Args {
				v, _ := reference(a, b, row, false)
				if v.null {
					continue
				}
				if best.null {
					best = v
					continue
				}
				c := order(e.Type.Kind, v, best)
				if name == "least" {
					c = -c
				}
				if c > 0 {
					best = v
				}
			}
			got := columnValue(&out, row)
			if got.null != best.null || !got.null && order(e.Type.Kind, got, best) != 0 {
				t.Fatalf("row %d of %s: got %+v, want %+v", row, show(e), got, best)
			}
		}
		checkZeroes(t, b, &out)
	})
}

// TestDecimalRounding compares with unbounded numbers.
func TestDecimalRounding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.IntRange(0, 38).Draw(t, "scale")
		name := rapid.SampledFrom([]string{"round", "truncate", "ceil", "floor"}).Draw(t, "name")
		digits := int64(0)
		e := typed(expr.OpCall, name, expr.DecimalType(0), expr.DecimalType(scale))
		if name == "round" || name == "truncate" {
			digits = rapid.Int64Range(-42, 38).Draw(t, "digits")
			e.Args, e.Type = append(e.Args, constantInt(digits)), expr.DecimalType(int(max(digits, 0)))
		}
		v := batch.Vector{Physical: batch.Decimals}
		for range 8 {
			_, d, _ := batch.Int128{Lo: rapid.Uint64().Draw(t, "low"), Hi: rapid.Int64().Draw(t, "high")}.QuoRem(batch.Pow10(rapid.IntRange(1, 38).Draw(t, "size")))
			v.AppendDecimal(d)
		}
		p := compileFor(t, e)
		var out batch.Vector
		for row := range 8 {
			x := new(big.Rat).SetFrac(bigOf(v.Decimals[row]), pow10(scale))
			unit := new(big.Rat).SetFrac(pow10(int(max(digits, 0))), pow10(int(max(-digits, 0)))) // times it, digits is a whole number
			x.Mul(x, unit)
			n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
			switch {
			case name == "round":
				n = round(x.Num(), x.Denom())
			case name == "ceil" && rest.Sign() > 0:
				n.Add(n, big.NewInt(1))
			case name == "floor" && rest.Sign() < 0:
				n.Sub(n, big.NewInt(1))
			}
			want := new(big.Rat).Quo(new(big.Rat).SetInt(n), unit)
			b := &batch.Batch{Len: 8, Columns: []batch.Vector{v}, Sel: []int32{int32(row)}}
			err := p.Eval(b, &out)
			fits := new(big.Rat).Mul(new(big.Rat).Abs(want), new(big.Rat).SetInt(pow10(e.Type.Scale))).Cmp(new(big.Rat).SetInt(pow10(38))) < 0
			if (err == nil) != fits {
				t.Fatalf("%s of %s: %v, want %s", show(e), v.Decimals[row].Decimal(scale), err, want.FloatString(40))
			}
			if got := out; err == nil && new(big.Rat).SetFrac(bigOf(got.Decimals[row]), pow10(e.Type.Scale)).Cmp(want) != 0 {
				t.Fatalf("%s of %s: %s, want %s", show(e), v.Decimals[row].Decimal(scale), got.Decimals[row].Decimal(e.Type.Scale), want.FloatString(40))
			}
		}
	})
}

// TestElementary: what functions of DOUBLE are must not depend on the machine, and they
// are inverse to each other as far as doubles go.
func TestElementary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "mantissa"), rapid.IntRange(-1000, 1000).Draw(t, "exponent"))
		near := func(name string, got, want float64, ulps float64) {
			if math.Abs(got-want) > ulps*math.Abs(math.Nextafter(want, math.Inf(1))-want) {
				t.Fatalf("%s(%v): got %v, want %v", name, x, got, want)
			}
		}
		near("ln", ln(x), math.Log(x), 1)
		near("log10", log10(x), math.Log10(x), 2)
		if y := ln(x); math.Abs(y) < 700 {
			near("exp", exp(y), math.Exp(y), 1)
		}
		near("pow", pow(x, 0.5), math.Sqrt(x), 0)
	})
	for x, want := range map[float64]float64{1e3: 3, 1e-5: -5, 1e22: 22, 1: 0} {
		if got := log10(x); got != want {
			t.Errorf("log10(%v) = %v", x, got)
		}
	}
	for _, c := range [][3]float64{{2, 10, 1024}, {10, 22, 1e22}, {-2, 3, -8}, {-2, -2, 0.25}, {9, 0.5, 3}, {27, 1. / 3, 3}, {5e-324, 1, 5e-324}, {3, 40, 12157665459056928801}} {
		if got := pow(c[0], c[1]); got != c[2] {
			t.Errorf("%v to the power of %v is %v", c[0], c[1], got)
		}
	}
}

// TestNumbersAtFault: reasons, as users see them.
func TestNumbersAtFault(t *testing.T) {
	t.Parallel()
	double, whole := expr.Type{Kind: expr.Double}, expr.Type{Kind: expr.Int}
	for _, c := range []struct {
		name string
		typ  expr.Type
		x    string
		want string
	}{
		{"abs", whole, "-2147483648", "INT overflow in abs"},
		{"abs", expr.Type{Kind: expr.BigInt}, "-9223372036854775808", "BIGINT overflow in abs"},
		{"sqrt", double, "-1", "square root of a negative number in sqrt"},
		{"ln", double, "0", "logarithm of zero in ln"},
		{"log10", double, "-1", "logarithm of a negative number in log10"},
		{"exp", double, "1000", "DOUBLE overflow in exp"},
		{"exp", double, "-1000", "DOUBLE underflow in exp"},
		{"ceil", expr.DecimalType(0), strings.Repeat("9", 38), ""},
	} {
		e := typed(expr.OpCall, c.name, c.typ, c.typ)
		e.Text = c.name
		p, err := Compile(e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		b := &batch.Batch{Len: 1, Columns: []batch.Vector{{Physical: Physical(c.typ)}}}
		appendValue(t, &b.Columns[0], c.typ, c.x)
		var out batch.Vector
		got := ""
		if err := p.Eval(b, &out); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s(%s): %q, want %q", c.name, c.x, got, c.want)
		}
	}
	e := typed(expr.OpCall, "round", expr.DecimalType(38), expr.DecimalType(0))
	e.Args = append(e.Args, constantInt(38))
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	b := &batch.Batch{Len: 1, Columns: []batch.Vector{{Physical: batch.Decimals, Decimals: []batch.Int128{batch.Int128Of(1)}}}}
	if err := p.Eval(b, new(batch.Vector)); err == nil || !strings.HasPrefix(err.Error(), "DECIMAL(38, 38) overflow") {
		t.Error(err)
	}
}

// Benchmarks: one batch of 1024 rows; nothing is allocated.
func BenchmarkFunctions(b *testing.B) {
	ints, moments, floats, decimals := batch.Vector{Physical: batch.Ints}, batch.Vector{Physical: batch.Ints}, batch.Vector{Physical: batch.Floats}, batch.Vector{Physical: batch.Decimals}
	spans, texts, counts := batch.Vector{Physical: batch.Ints}, batch.Vector{Physical: batch.Strings}, batch.Vector{Physical: batch.Ints}
	for i := range int64(batch.Target) {
		ints.AppendInt(i - 500)
		moments.AppendInt(1_511_571_600_000_000 + i*1_234_567)
		floats.AppendFloat(float64(i)/7 + 0.1)
		decimals.AppendDecimal(batch.Int128Of(i*12345 - 500))
		spans.AppendInt(i * 1_000_000)
		texts.AppendString("2017-11-25 01:02:03.456")
		counts.AppendInt(i % 24)
	}
	rows := &batch.Batch{Len: batch.Target, Columns: []batch.Vector{ints, moments, floats, decimals, spans, texts, counts}}
	col := func(i int, t expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpColumn, Type: t, Column: i} }
	double, bigint, dec := expr.Type{Kind: expr.Double}, expr.Type{Kind: expr.BigInt}, expr.DecimalType(2)
	call := func(name string, result expr.Type, args ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: expr.OpCall, Func: name, Type: result, Args: args, Text: name, Zone: "Europe/Berlin"}
	}
	sum := func(t expr.Type, l, r *expr.Expr) *expr.Expr {
		return &expr.Expr{Op: expr.OpAdd, Type: t, Args: []*expr.Expr{l, r}, Zone: "Europe/Berlin"}
	}
	for i, e := range []*expr.Expr{
		call("abs", bigint, col(0, bigint)), call("round", double, col(2, double)), call("round", expr.DecimalType(1), col(3, dec), constantInt(1)), call("floor", expr.DecimalType(0), col(3, dec)),
		call("sqrt", double, col(2, double)), call("power", double, col(2, double), &expr.Expr{Op: expr.OpLiteral, Type: double, Literal: &expr.Literal{Double: "1.5"}}), call("ln", double, col(2, double)), call("greatest", bigint, col(0, bigint), col(1, bigint)),
		call("extract", bigint, constantOf("HOUR"), col(1, ltz)), call("extract", bigint, constantOf("MONTH"), col(1, clock)), call("date_trunc", ltz, constantOf("HOUR"), col(1, ltz)),
		call("date_trunc", ltz, constantOf("MONTH"), col(1, ltz)), call("date_format", textType, col(1, ltz), constantOf("yyyy-MM-dd HH:mm")), call("to_timestamp", clock, col(5, textType)),
		call("to_timestamp", clock, col(5, textType), constantOf("yyyy-MM-dd HH:mm:ss.SSS")), call("to_timestamp_ltz", ltz, col(0, bigint), constantInt(0)), call("current_timestamp", ltz),
		sum(ltz, col(1, ltz), col(4, interval)), sum(ltz, col(1, ltz), col(6, months)), sum(clock, col(1, clock), col(6, months)),
	} {
		b.Run(fmt.Sprintf("%02d %s%s", i, e.Func, strings.TrimPrefix(string(e.Op), "call")), func(b *testing.B) {
			p, err := Compile(e, Env{})
			if err != nil {
				b.Fatal(err)
			}
			var out batch.Vector
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Eval(rows, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
		})
	}
}

package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// literal prints a constant; in a CAST where its type would not follow from its text
// nor, which is bare, from what it stands with.
func (p *printer) literal(e *Expr, bare bool) {
	text := literalSQL(e)
	switch {
	case e.Type.Kind == Double && e.Literal != nil && strings.ContainsAny(text, "NI"):
		text = "'" + text + "'"
	case bare || alike(written(e), e.Type):
		p.add(text)
		return
	}
	p.add("CAST(", text, " AS ", e.Type.String(), ")")
}

// LiteralSQL prints a literal by itself, whatever type would follow from its text.
func (e *Expr) LiteralSQL() string { return literalSQL(e) }

func literalSQL(e *Expr) string {
	l := e.Literal
	if l == nil {
		return "NULL"
	}
	switch e.Type.Kind {
	case Boolean:
		return strings.ToUpper(strconv.FormatBool(l.Bool))
	case Int, BigInt:
		return strconv.FormatInt(l.Int, 10)
	case Double:
		return l.Double
	case Decimal:
		return l.Decimal
	case Bytes:
		return "X'" + l.String + "'"
	case Date:
		return "DATE '" + time.Unix(l.Int*86400, 0).UTC().Format("2006-01-02") + "'"
	case Timestamp:
		return "TIMESTAMP" + precise(e.Type) + " '" + time.UnixMicro(l.Int).UTC().Format("2006-01-02 15:04:05.999999") + "'"
	case TimestampLTZ:
		return "TIMESTAMP_LTZ" + precise(e.Type) + " '" + time.UnixMicro(l.Int).UTC().Format("2006-01-02 15:04:05.999999Z") + "'"
	case Interval:
		return "INTERVAL '" + intervalText(l.Int) + "' DAY TO SECOND"
	case MonthInterval:
		sign, n := signed(l.Int)
		return fmt.Sprintf("INTERVAL '%s%d-%d' YEAR TO MONTH", sign, n/12, n%12)
	}
	return "'" + strings.ReplaceAll(l.String, "'", "''") + "'"
}

// precise gives the precision of a time where it is not 6, which goes without saying.
func precise(t Type) string {
	if t.Precision == 6 {
		return ""
	}
	return fmt.Sprintf("(%d)", t.Precision)
}

// intervalText gives days, hours, minutes and seconds; the days and the time have a sign
// each.
func intervalText(micros int64) string {
	const day, second = 86400 * 1e6, 1e6
	sign, n := signed(micros)
	days, rest := n/day, n%day
	text := fmt.Sprintf("%s%d %s%02d:%02d:%02d", sign, days, sign, rest/(3600*second), rest/(60*second)%60, rest/second%60)
	if fraction := rest % second; fraction > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", fraction), "0")
	}
	return text
}

func signed(n int64) (sign string, magnitude uint64) {
	if n < 0 {
		return "-", -uint64(n)
	}
	return "", uint64(n)
}

// written gives the type that the text of an expression has by itself.
func written(e *Expr) Type {
	if e.Op == OpConvert {
		return written(e.Args[0])
	}
	if e.Op != OpLiteral {
		return e.Type
	}
	if e.Literal == nil {
		return Type{}
	}
	switch e.Type.Kind {
	case Int, BigInt:
		return wholeType(e.Literal.Int)
	case Decimal:
		if _, fraction, ok := strings.Cut(e.Literal.Decimal, "."); ok {
			return DecimalType(len(fraction))
		}
		if n, err := strconv.ParseInt(e.Literal.Decimal, 10, 64); err == nil {
			return wholeType(n)
		}
	case Double: // DOUBLE only where a DECIMAL has no room for it; when in doubt it is cast
		if _, exponent, ok := strings.Cut(e.Literal.Double, "e"); ok {
			if n, err := strconv.Atoi(exponent); err == nil && (n > 38 || n < -38) {
				return e.Type
			}
		}
		return DecimalType(0)
	}
	return e.Type
}

func wholeType(n int64) Type {
	if n == int64(int32(n)) {
		return Type{Kind: Int}
	}
	return Type{Kind: BigInt}
}

// alike reports whether two types are one but for the precision of times and the number
// of digits of a DECIMAL.
func alike(a, b Type) bool { return a.Kind == b.Kind && a.Scale == b.Scale }

// follows reports whether the type of operand i of e, if it is a literal, follows from
// the other operands, or from the operation.
func follows(e *Expr, i int) bool {
	if e.Args[i].Op != OpLiteral {
		return true
	}
	switch e.Op {
	case OpAnd, OpOr, OpNot:
		return true
	case OpIsNull, OpIsNotNull:
		return e.Args[i].Type.Kind == String
	case OpCast, OpTryCast:
		return alike(written(e.Args[i]), e.Args[i].Type)
	case OpCase:
		if i%2 == 0 && i < len(e.Args)-1 {
			return true
		}
	case OpAdd, OpSub, OpMul, OpDiv:
		if e.Op == OpMul && e.Type.Kind == Decimal { // each side has a scale of its own
			return meeting(e).Kind == Decimal && written(e.Args[i]).Scale == e.Args[i].Type.Scale
		}
		if !e.Type.Numeric() || !e.Args[1-i%2].Type.Numeric() { // of times
			l := e.Args[i].Literal
			return l != nil && (e.Args[i].Type.Kind != Double || strings.ContainsAny(l.Double, ".e"))
		}
	case OpCall:
		return parameterFollows(e, i)
	}
	return alike(meeting(e), e.Args[i].Type)
}

// parameterFollows reports whether the type of an argument follows from the function.
func parameterFollows(e *Expr, i int) bool {
	f := FunctionOf(e.Func)
	if f == nil {
		return false
	}
	first := f.Signatures[0].Params
	if first[min(i, len(first)-1)].Kind == Null {
		return alike(meeting(e), e.Args[i].Type)
	}
	for _, s := range f.Signatures[1:] {
		if i < len(s.Params) && s.Params[i].Kind != first[min(i, len(first)-1)].Kind {
			return alike(written(e.Args[i]), e.Args[i].Type)
		}
	}
	return true
}

// meeting gives the type in which the operands of e that are brought to one type meet,
// by their texts; STRING where all are NULL.
func meeting(e *Expr) Type {
	t := Type{}
	for i, a := range e.Args {
		if e.Op == OpCase && i%2 == 0 && i < len(e.Args)-1 {
			continue
		}
		switch w := written(a); {
		case t.Kind == Null, t.Numeric() && w.Numeric() && numericRank(w) > numericRank(t):
			t = w
		case t.Kind == Decimal && w.Kind == Decimal:
			t.Scale = max(t.Scale, w.Scale)
		}
	}
	if t.Kind == Null {
		return Type{Kind: String}
	}
	return t
}

func numericRank(t Type) int {
	return map[Kind]int{Int: 1, BigInt: 2, Decimal: 3, Double: 4}[t.Kind]
}

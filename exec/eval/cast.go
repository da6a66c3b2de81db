package eval

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// A caster changes values of one type into another, as CAST or TRY_CAST.
type caster struct {
	from, to     expr.Type
	try          bool
	zone         *civil.Zone
	above, below batch.Int128 // the bounds, exclusive, of a DECIMAL that is made
}

// The problems of values, beside those of civil's texts.
const (
	malformed  civil.Problem = civil.Malformed
	outOfRange civil.Problem = "out of range"
)

// compileCast makes CAST and TRY_CAST.
func compileCast(e *expr.Expr, arg node) (node, error) {
	from, to := e.Args[0].Type, e.Type
	if from.Kind == expr.Null {
		return &constant{physical: Physical(to), null: true}, nil
	}
	c := &caster{from: from, to: to, try: e.Op == expr.OpTryCast}
	c.above, c.below = limits(to)
	var err error
	if c.zone, err = civil.NewZone(e.Zone); err != nil {
		return nil, err
	}
	if c.keeps() {
		return arg, nil
	}
	k := c.kernel()
	if k == nil {
		return nil, fmt.Errorf("cast %v to %v", from, to)
	}
	return newCall(e, []node{arg}, k), nil
}

// keeps reports whether every value stays as it is.
func (c *caster) keeps() bool {
	from, to := c.from, c.to
	switch {
	case from.Kind == expr.Int && to.Kind == expr.BigInt:
		return true
	case from.Kind != to.Kind:
		return false
	case to.Kind == expr.Decimal:
		return from.Scale == to.Scale && from.Precision <= to.Precision && from.Precision > 0
	case to.Kind == expr.Timestamp, to.Kind == expr.TimestampLTZ:
		return from.Precision <= to.Precision
	}
	return true
}

// kernel returns the kernel of the cast, or nil where there is none between the types.
func (c *caster) kernel() kernel {
	switch {
	case c.to.Kind == expr.String:
		return c.toText()
	case c.from.Kind == expr.String:
		return c.fromText()
	case c.from.Numeric() && c.to.Numeric():
		return c.betweenNumbers()
	case c.from.Kind == expr.Boolean && (c.to.Kind == expr.Int || c.to.Kind == expr.BigInt):
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) { return int64(one(v.Bools[row])), "" })
	case c.to.Kind == expr.Boolean && (c.from.Kind == expr.Int || c.from.Kind == expr.BigInt):
		return castFill(c, bools, func(v *batch.Vector, row int) (bool, civil.Problem) { return v.Ints[row] != 0, "" })
	}
	return c.betweenTimes()
}

// betweenTimes casts DATE, TIMESTAMP and TIMESTAMP_LTZ into each other.
func (c *caster) betweenTimes() kernel {
	var local, result func(x int64) int64 // to microseconds on the clock, and from there
	same := func(x int64) int64 { return x }
	switch c.from.Kind {
	case expr.Date:
		local = func(days int64) int64 { return days * civil.Day }
	case expr.Timestamp:
		local = same
	case expr.TimestampLTZ:
		local = c.zone.Local
	}
	switch c.to.Kind {
	case expr.Date:
		result = func(micros int64) int64 { return civil.FloorDiv(micros, civil.Day) }
	case expr.Timestamp:
		result = same
	case expr.TimestampLTZ:
		result = c.zone.UTC
	}
	if c.from.Kind == c.to.Kind {
		local, result = same, same // only the precision changes
	}
	if local == nil || result == nil {
		return nil
	}
	precision := c.to.Precision
	if c.to.Kind == expr.Date {
		precision = 6
	}
	return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
		x := result(local(v.Ints[row]))
		if c.to.Kind == expr.Date {
			return x, ""
		}
		if x = civil.Round(x, precision); x < civil.MinMicros || x > civil.MaxMicros {
			return x, civil.OutOfRange
		}
		return x, ""
	})
}

// castFill makes a kernel of a cast to a type of fixed width, whose values slot finds.
func castFill[T any](c *caster, slot func(*batch.Vector) []T, f func(v *batch.Vector, row int) (T, civil.Problem)) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		v := args[0]
		return fill(out, slot(out), rows, func(row int) (T, verdict) {
			x, problem := f(v, row)
			if problem == "" {
				return x, ""
			}
			return x, c.verdict(v, row, problem)
		})
	}
}

func bools(v *batch.Vector) []bool            { return v.Bools }
func ints(v *batch.Vector) []int64            { return v.Ints }
func doubles(v *batch.Vector) []float64       { return v.Floats }
func decimals(v *batch.Vector) []batch.Int128 { return v.Decimals }

// verdict says what a value that has no like means: NULL for TRY_CAST.
func (c *caster) verdict(v *batch.Vector, row int, problem civil.Problem) verdict {
	if c.try {
		return absent
	}
	shown := string(appendAsText(nil, c.from, v, row, c.zone))
	if c.from.Kind == expr.String {
		shown = quoted(v.Str(row))
	}
	if problem == outOfRange {
		return verdict(fmt.Sprintf("%s is out of range for %v", shown, c.to))
	}
	article := "a"
	switch c.to.Kind {
	case expr.Int, expr.Interval, expr.MonthInterval:
		article = "an"
	}
	reason := fmt.Sprintf("%s is not %s %v", shown, article, c.to)
	if c.to.Kind == expr.Bytes {
		reason = shown + " is not BYTES"
	}
	if problem != malformed {
		reason += ": " + string(problem)
	}
	return verdict(reason)
}

// quoted shows a string in an error, the beginning of a long one.
func quoted(s []byte) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(string(s))
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(string(s[:n])) + "…"
}

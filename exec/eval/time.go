package eval

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// timeFunction lists the functions of dates, times and intervals.
func timeFunction(name string) compileFunc {
	switch name {
	case "extract":
		return compileField
	case "date_trunc", "floor_to", "ceil_to":
		return compileTrunc
	case "date_format":
		return compileFormat
	case "to_timestamp":
		return compileToTimestamp
	case "to_timestamp_ltz":
		return compileToTimestampLTZ
	case "current_timestamp", "local_timestamp", "current_date":
		return compileNow
	}
	return nil
}

// outsideYears is what is wrong with results that are no dates and times.
const outsideYears verdict = "a result outside the years 1 to 9999"

// moment checks a TIMESTAMP or TIMESTAMP_LTZ.
func moment(micros int64) (int64, verdict) {
	if micros < civil.MinMicros || micros > civil.MaxMicros {
		return 0, outsideYears
	}
	return micros, ""
}

// day checks a DATE.
func day(days int64) (int64, verdict) {
	if days < civil.MinDays || days > civil.MaxDays {
		return 0, outsideYears
	}
	return days, ""
}

// zoneOf loads the zone by whose clock a node works; nil, UTC, for all types that have
// no zone.
func zoneOf(e *expr.Expr, t expr.Type) (*civil.Zone, error) {
	if t.Kind != expr.TimestampLTZ {
		return nil, nil
	}
	return civil.NewZone(e.Zone)
}

// constantUnit returns the value of an argument that has to be a constant STRING.
func constantUnit(e *expr.Expr) (string, error) {
	if e.Op != expr.OpLiteral || e.Type.Kind != expr.String || e.Literal == nil {
		return "", fmt.Errorf("%s is no constant text", describe(e))
	}
	return e.Literal.String, nil
}

// A Clock gives all programs that have it one moment per batch.
type Clock struct {
	now  func() time.Time
	last time.Time
}

// NewClock returns a clock that goes by now; nil: time.Now.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// Now returns the moment at which it was first asked since the last Tick. It is made for
// Env.
func (c *Clock) Now() time.Time {
	if c.last.IsZero() {
		c.last = c.now()
	}
	return c.last
}

// Tick begins another batch.
func (c *Clock) Tick() { c.last = time.Time{} }

// A now node is the clock's reading, the same for all rows.
type now struct {
	clock func() time.Time
	zone  *civil.Zone
	kind  expr.Kind
	out   batch.Vector
}

func compileNow(e *expr.Expr, args []node, env Env) (node, error) {
	want := map[string]expr.Kind{"current_timestamp": expr.TimestampLTZ, "local_timestamp": expr.Timestamp, "current_date": expr.Date}[e.Func]
	if len(args) > 0 || e.Type.Kind != want {
		return nil, fmt.Errorf("%s of %d operands giving %v", e.Func, len(args), e.Type)
	}
	n := &now{clock: env.Now, kind: e.Type.Kind, out: batch.Vector{Physical: batch.Ints}}
	if n.clock == nil {
		n.clock = time.Now
	}
	var err error
	if n.kind != expr.TimestampLTZ {
		n.zone, err = civil.NewZone(e.Zone)
	}
	return n, err
}

func (n *now) eval(b *batch.Batch, _ []int32) (*batch.Vector, error) {
	n.out.Resize(b.Len)
	x := n.zone.Local(n.clock().UnixMicro())
	if n.kind == expr.Date {
		x, _ = civil.Split(x)
	}
	for i := range n.out.Ints {
		n.out.Ints[i] = x
	}
	return &n.out, nil
}

func compileToTimestampLTZ(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, expr.BigInt, expr.Int); err != nil {
		return nil, err
	}
	p := e.Args[1]
	if p.Op != expr.OpLiteral {
		return nil, fmt.Errorf("%s with a precision that is not constant", e.Func)
	}
	if p.Literal == nil {
		return &constant{physical: batch.Ints, null: true}, nil
	}
	unit := map[int64]int64{0: civil.Second, 3: civil.Millisecond, 6: 1}[p.Literal.Int]
	if unit == 0 {
		return nil, fmt.Errorf("%s with the precision %d: it is 0, 3 or 6", e.Func, p.Literal.Int)
	}
	low, high := civil.MinMicros/unit, civil.MaxMicros/unit
	return newCall(e, args[:1], ofIntegers(func(x int64) (int64, verdict) {
		if x < low || x > high {
			return 0, outsideYears
		}
		return x * unit, ""
	})), nil
}

// A patterned is the pattern of a call: a constant one is read when the call is
// compiled, one from data when it differs from that of the row before.
type patterned struct {
	arg    int // of the patterns; -1: it is constant
	parses bool
	text   []byte
	last   *civil.Pattern
	wrong  verdict // what is wrong with the last one
}

func patternOf(e *expr.Expr, arg int, parses bool) (*patterned, error) {
	p := &patterned{arg: arg, parses: parses}
	if e.Args[arg].Op != expr.OpLiteral || e.Args[arg].Literal == nil {
		p.read(nil)
		return p, nil
	}
	if p.read([]byte(e.Args[arg].Literal.String)); p.wrong != "" {
		return nil, fmt.Errorf("%s: %s", e.Func, p.wrong)
	}
	p.arg = -1
	return p, nil
}

// read makes text the last pattern.
func (p *patterned) read(text []byte) {
	p.text, p.wrong = append(p.text[:0], text...), ""
	last, err := civil.NewPattern(string(text))
	if err == nil && p.parses {
		err = last.CanParse()
	}
	if err != nil {
		p.wrong = verdict(err.Error())
	}
	p.last = last
}

func (p *patterned) at(args []*batch.Vector, row int) (*civil.Pattern, verdict) {
	if p.arg >= 0 {
		if text := args[p.arg].Str(row); !bytes.Equal(text, p.text) {
			p.read(text)
		}
	}
	return p.last, p.wrong
}

func compileFormat(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(args) != 2 || e.Args[0].Type.Kind != expr.Timestamp && e.Args[0].Type.Kind != expr.TimestampLTZ || e.Args[1].Type.Kind != expr.String {
		return nil, fmt.Errorf("%s of other types than a time and a pattern", e.Func)
	}
	zone, err := zoneOf(e, e.Args[0].Type)
	if err != nil {
		return nil, err
	}
	pattern, err := patternOf(e, 1, false)
	if err != nil {
		return nil, err
	}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			p, wrong := pattern.at(args, row)
			if wrong != "" {
				return dst, wrong
			}
			return p.Append(dst, zone.Local(args[0].Ints[row])), ""
		})
	}), nil
}

func compileToTimestamp(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(args) == 1 {
		return strictly(plainTimestamps, expr.String)(e, args, Env{})
	}
	if err := checkKinds(e, expr.String, expr.String); err != nil {
		return nil, err
	}
	pattern, err := patternOf(e, 1, true)
	if err != nil {
		return nil, err
	}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
			p, wrong := pattern.at(args, row)
			if wrong != "" {
				return 0, wrong
			}
			text := args[0].Str(row)
			micros, problem := p.Parse(text)
			if problem != "" {
				return 0, noTime(text, problem)
			}
			return micros, ""
		})
	}), nil
}

// plainTimestamps is TO_TIMESTAMP without a pattern.
func plainTimestamps(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
		text := args[0].Str(row)
		t, problem := civil.Parse(text)
		switch {
		case problem != "":
			return 0, noTime(text, problem)
		case t.Has(civil.Zoned):
			return 0, noTime(text, "it has an offset from UTC; write CAST(… AS TIMESTAMP_LTZ(6))")
		}
		return moment(t.Micros)
	})
}

// noTime says that a text is no time of a pattern.
func noTime(text []byte, problem civil.Problem) verdict {
	if problem == civil.Malformed {
		problem = "it does not have the pattern's form"
	}
	return verdict(fmt.Sprintf("%.64q is no time: %s", text, problem))
}

// multiply returns a × b, if it has 64 bits.
func multiply(a, b int64) (int64, bool) {
	hi, lo := mul(a, b)
	return lo, hi == lo>>63
}

// plus returns a + b, if it has 64 bits.
func plus(a, b int64) (int64, bool) {
	s := a + b
	return s, (a^s)&(b^s) >= 0
}

// withinInt reports whether x has 32 bits.
func withinInt(x int64) bool { return x >= math.MinInt32 && x <= math.MaxInt32 }

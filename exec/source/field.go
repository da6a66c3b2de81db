package source

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// A field generates one column. The draw of row i is a number: the i-th of a sequence,
// or 64 random bits, which are
//
//	mix(key + (i+1)·γ),  key = mix(mix(seed) xor fnv1a(name))
//
// with the constants of SplitMix64. A column's values depend on the seed, its name
// and the row's number alone. A bounded draw of n is the high half of draw × n.
type field struct {
	sequence bool
	key      uint64
	start    int64
	span     uint64 // values of a sequence or a range; 0: 2^64
	typ      expr.Type
	unit     int64        // of a whole number, in units of the type
	scale    batch.Int128 // DECIMAL: the same
	low      float64      // DOUBLE: the range
	width    float64
	values   []string // to choose from; parsed forms are beside
	ints     []int64
	floats   []float64
	limits   []uint64 // draws from limits[k] on choose a value above k; nil: all alike
}

const gamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fnv1a is the 64-bit hash of that name.
func fnv1a(text string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return h
}

// newField reads a column's options.
func newField(o *options, c *column, seed uint64) field {
	f := field{typ: c.typ, key: mix(mix(seed) ^ fnv1a(c.name)), unit: unitOf(c.typ), scale: batch.Int128Of(1)}
	prefix := "fields." + c.name + "."
	switch kind := o.text(prefix+"kind", "random"); kind {
	case "sequence":
		f.sequence = true
		f.bounds(o, c, prefix+"start", prefix+"end")
	case "random":
		if text, ok := o.values[prefix+"values"]; ok {
			f.choose(o, prefix, strings.Split(text, ","))
		} else {
			f.bounds(o, c, prefix+"min", prefix+"max")
		}
	default:
		o.fail(prefix+"kind", "%q is not sequence or random", kind)
	}
	return f
}

// unitOf returns the unit in which values of a type are drawn: times are drawn in
// milliseconds.
func unitOf(t expr.Type) int64 {
	switch t.Kind {
	case expr.Timestamp, expr.TimestampLTZ, expr.Interval:
		return civil.Millisecond
	}
	return 1
}

// bounds reads the first and the last value.
func (f *field) bounds(o *options, c *column, low, high string) {
	var last int64
	switch f.typ.Kind {
	case expr.Boolean:
		f.start, last = 0, 1
	case expr.Date, expr.Timestamp, expr.TimestampLTZ, expr.Interval, expr.MonthInterval:
		first, end := defaultTimes(f.typ.Kind)
		f.start, last = o.time(low, f.typ, first)/f.unit, o.time(high, f.typ, end)/f.unit
		if _, ok := o.values[high]; f.sequence && !ok {
			last = lastOf(f.typ.Kind) / f.unit
		}
	case expr.Decimal:
		f.start, last = f.decimalBounds(o, low, high)
	case expr.Double:
		if f.sequence {
			f.start, last = o.int64(low, 0), o.int64(high, 1<<53)
		} else {
			f.low = o.float(low, 0)
			f.width = o.float(high, f.low+1) - f.low
		}
	case expr.String, expr.Bytes:
		f.start, last = o.int64(low, 0), o.int64(high, math.MaxInt64)
	default:
		f.start, last = o.int64(low, 0), o.int64(high, c.high)
		if f.start < c.low || last > c.high {
			o.fail(high, "it is out of range of %v", f.typ)
		}
	}
	if last < f.start || f.width < 0 {
		o.fail(high, "it is below '%s'", low)
	}
	f.span = uint64(last) - uint64(f.start) + 1
}

// defaultTimes gives the first and the last value of random dates, times and intervals.
func defaultTimes(k expr.Kind) (first, last string) {
	switch k {
	case expr.Date:
		return "2020-01-01", "2020-12-31"
	case expr.Timestamp:
		return "2020-01-01T00:00:00", "2020-12-31T23:59:59.999"
	case expr.Interval:
		return "00:00:00", "1 day"
	case expr.MonthInterval:
		return "0 mons", "1 year"
	}
	return "2020-01-01T00:00:00Z", "2020-12-31T23:59:59.999Z"
}

// lastOf is the greatest value of a type, where a sequence without an end begins again.
func lastOf(k expr.Kind) int64 {
	switch k {
	case expr.Date:
		return civil.MaxDays
	case expr.Interval:
		return math.MaxInt64
	case expr.MonthInterval:
		return math.MaxInt32
	}
	return civil.MaxMicros
}

// decimalBounds reads the bounds of a DECIMAL: a sequence is of whole numbers, others are
// drawn in units of the last digit. Eighteen digits are enough for a generator.
func (f *field) decimalBounds(o *options, low, high string) (first, last int64) {
	digits := f.typ.Precision
	if f.sequence {
		f.scale = batch.Pow10(f.typ.Scale)
		most, _ := batch.Pow10(min(digits-f.typ.Scale, 18)).Int64()
		first, last = o.int64(low, 0), o.int64(high, most-1)
		if first <= -most || last >= most {
			o.fail(high, "it is out of range of %v", f.typ)
		}
		return first, last
	}
	most, _ := batch.Pow10(min(digits, f.typ.Scale+3, 18)).Int64() // up to 999.99
	return o.decimal(low, f.typ, 0), o.decimal(high, f.typ, most-1)
}

// choose reads the values to choose from, and their weights.
func (f *field) choose(o *options, prefix string, values []string) {
	f.values, f.unit = values, 1
	for k, v := range values {
		i, x, err := int64(0), 0.0, error(nil)
		switch f.typ.Kind {
		case expr.Int, expr.BigInt:
			i, err = strconv.ParseInt(v, 10, 64)
		case expr.Double:
			x, err = strconv.ParseFloat(v, 64)
		case expr.Boolean:
			var b bool
			if b, err = strconv.ParseBool(strings.ToLower(v)); b {
				i = 1
			}
		case expr.Date, expr.Timestamp, expr.TimestampLTZ, expr.Interval, expr.MonthInterval:
			var why string
			if i, why = readTime(f.typ, []byte(v)); why != "" {
				err = errors.New(why)
			}
		case expr.Decimal:
			i, err = unscaled(v, f.typ)
		case expr.Bytes:
			var b []byte
			b, err = base64.StdEncoding.DecodeString(v)
			f.values[k] = string(b)
		}
		if err != nil {
			o.fail(prefix+"values", "%q is not %s", v, article(f.typ))
		}
		f.ints, f.floats = append(f.ints, i), append(f.floats, x)
	}
	if text, ok := o.values[prefix+"weights"]; ok {
		f.weigh(o, prefix+"weights", strings.Split(text, ","))
	}
}

// weigh turns weights into limits for the draw.
func (f *field) weigh(o *options, name string, weights []string) {
	total := 0.0
	var sums []float64
	for _, w := range weights {
		x, err := strconv.ParseFloat(strings.TrimSpace(w), 64)
		if err != nil || x < 0 || x-x != 0 {
			o.fail(name, "%q is not a number from 0 on", w)
			return
		}
		total += x
		sums = append(sums, total)
	}
	if len(weights) != len(f.values) || total <= 0 || total-total != 0 {
		o.fail(name, "it needs one number per value, not all of them 0")
		return
	}
	f.limits = make([]uint64, len(sums)-1)
	for k := range f.limits {
		// A quotient is below 2^53 after scaling by a power of two, which is exact.
		f.limits[k] = limit(uint64(sums[k] / total * (1 << 53)))
	}
}

// limit scales 53 bits to 64; all of the draws stay below the limit of a certainty.
func limit(x uint64) uint64 {
	if x >= 1<<53 {
		return math.MaxUint64
	}
	return x << 11
}

// draw sets out[k] to the draw of row first+k.
func (f *field) draw(out []uint64, first uint64) {
	if !f.sequence {
		z := f.key + first*gamma
		for k := range out {
			z += gamma
			out[k] = mix(z)
		}
		return
	}
	at := first
	if f.span != 0 {
		at %= f.span
	}
	for k := range out {
		out[k] = uint64(f.start) + at
		if at++; at == f.span {
			at = 0
		}
	}
}

// index turns a random draw into the index of a value.
func (f *field) index(draw uint64) int {
	if f.limits == nil {
		hi, _ := bits.Mul64(draw, uint64(len(f.values)))
		return int(hi)
	}
	if len(f.limits) > 16 {
		return sort.Search(len(f.limits), func(k int) bool { return draw < f.limits[k] })
	}
	index := uint64(0)
	for _, limit := range f.limits {
		_, below := bits.Sub64(draw, limit, 0)
		index += 1 - below
	}
	return int(index)
}

// whole turns random draws into whole numbers, in place.
func (f *field) whole(draws []uint64) {
	switch {
	case f.sequence:
	case f.values != nil:
		for k, d := range draws {
			draws[k] = uint64(f.ints[f.index(d)])
		}
	case f.span != 0:
		for k, d := range draws {
			hi, _ := bits.Mul64(d, f.span)
			draws[k] = uint64(f.start) + hi
		}
	}
}

// fill turns the draws into a column's values.
func (f *field) fill(c *column, draws []uint64) {
	switch f.typ.Kind {
	case expr.Boolean:
		f.whole(draws)
		for k, d := range draws {
			c.bools[k] = d&1 == 1
		}
	case expr.Int, expr.BigInt:
		f.whole(draws)
		ints := c.ints[:len(draws)]
		for k, d := range draws {
			ints[k] = int64(d)
		}
	case expr.Date, expr.Timestamp, expr.TimestampLTZ, expr.Interval, expr.MonthInterval:
		f.whole(draws)
		for k, d := range draws {
			c.ints[k] = int64(d) * f.unit
			if f.typ.Precision < 3 && f.unit > 1 && f.typ.Kind != expr.Interval {
				c.ints[k] = civil.Round(c.ints[k], f.typ.Precision)
			}
		}
	case expr.Decimal:
		f.whole(draws)
		for k, d := range draws {
			c.decimals[k], _ = f.scale.MulInt64(int64(d))
		}
	case expr.Double:
		f.fillDoubles(c.floats, draws)
	case expr.String, expr.Bytes:
		f.fillTexts(c, draws)
	}
}

func (f *field) fillDoubles(out []float64, draws []uint64) {
	for k, d := range draws {
		switch {
		case f.sequence:
			out[k] = float64(int64(d))
		case f.values != nil:
			out[k] = f.floats[f.index(d)]
		default:
			out[k] = f.low + float64(f.width*(float64(d>>11)*0x1p-53))
		}
	}
}

const hexDigits = "0123456789abcdef"

// fillTexts writes values, numbers of a sequence, or the draw's 16 hexadecimal digits; as
// BYTES those are eight bytes.
func (f *field) fillTexts(c *column, draws []uint64) {
	text := c.bytes[:0]
	for k, d := range draws {
		switch {
		case f.typ.Kind == expr.Bytes && f.values == nil:
			text = binary.BigEndian.AppendUint64(text, d)
		case f.sequence:
			text = strconv.AppendInt(text, int64(d), 10)
		case f.values != nil:
			text = append(text, f.values[f.index(d)]...)
		default:
			for shift := 60; shift >= 0; shift -= 4 {
				text = append(text, hexDigits[d>>shift&15])
			}
		}
		c.offsets[k+1] = int32(len(text))
	}
	c.bytes = text
}

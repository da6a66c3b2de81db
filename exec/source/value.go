package source

import (
	"encoding/base64"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// What errors say about texts that do not have the form of their type.
const (
	dateForm      = `it is not like "2017-11-25"`
	timestampForm = `it is not like "2017-11-25T01:00:00" (a blank for the T and a fraction of a second are fine)`
	ltzForm       = `it is not like "2017-11-25T01:00:00Z" (a blank for the T, a fraction of a second and an offset such as +01:00 are fine; without an offset it is UTC)`
	base64Form    = `it is not base64, as in "aGVsbG8="`
)

// setTime makes a text row n of a column of dates, times or intervals; quoted is how
// errors show it.
func (r *rows) setTime(c *column, text []byte, quoted func([]byte) string) *fault {
	n, why := readTime(c.typ, text)
	if why != "" {
		return c.notA(quoted(text), why)
	}
	c.ints[r.n] = n
	return nil
}

// readTime reads a date, time or interval; why says why it is none.
func readTime(t expr.Type, text []byte) (n int64, why string) {
	if t.Kind == expr.Interval || t.Kind == expr.MonthInterval {
		return readInterval(t.Kind, text)
	}
	v, problem := civil.Parse(text)
	if problem == "" && padded(text) {
		problem = civil.Malformed
	}
	form := ltzForm
	switch t.Kind {
	case expr.Date:
		n, form = v.Days, dateForm
		if problem == "" && v.Has(civil.Timed|civil.Zoned) {
			return 0, "it has a time of day; declare the column TIMESTAMP or TIMESTAMP_LTZ"
		}
	case expr.Timestamp:
		n, form = civil.Round(v.Micros, t.Precision), timestampForm
		if problem == "" && v.Has(civil.Zoned) {
			return 0, "it has an offset from UTC; declare the column TIMESTAMP_LTZ"
		}
	default:
		n = civil.Round(v.Micros-v.Offset, t.Precision)
	}
	if problem == "" && t.Kind != expr.Date && (n < civil.MinMicros || n > civil.MaxMicros) {
		problem = civil.OutOfRange
	}
	if problem == civil.Malformed {
		return 0, form
	}
	return n, string(problem)
}

// padded reports whether a text that was read has blanks around it: nothing is trimmed.
func padded(text []byte) bool {
	return text[0] <= ' ' || text[len(text)-1] <= ' '
}

func readInterval(k expr.Kind, text []byte) (n int64, why string) {
	months, micros, problem := civil.ParseInterval(text)
	switch {
	case problem != "":
		return 0, string(problem)
	case padded(text):
		return 0, string(civil.NoInterval)
	case k == expr.MonthInterval && micros != 0:
		return 0, "it holds days or hours; INTERVAL DAY TO SECOND is a type of its own"
	case k == expr.MonthInterval:
		return months, ""
	case months != 0:
		return 0, "it holds months; INTERVAL YEAR TO MONTH is a type of its own"
	}
	return micros, ""
}

// setBase64 makes the bytes that a text stands for row n of a BYTES column.
func (r *rows) setBase64(c *column, text []byte, quoted func([]byte) string) *fault {
	at := int(c.offsets[r.n])
	if need := base64.StdEncoding.DecodedLen(len(text)); at+need > len(c.bytes) {
		c.grow(at, need)
	}
	n, err := base64.StdEncoding.Strict().Decode(c.bytes[at:], text)
	if err != nil {
		return c.notA(quoted(text), base64Form)
	}
	c.offsets[r.n+1] = int32(at + n)
	r.bytes += n
	return nil
}

// isTime reports whether values of t are written as the texts of dates, times or intervals.
func isTime(t expr.Type) bool {
	switch t.Kind {
	case expr.Date, expr.Timestamp, expr.TimestampLTZ, expr.Interval, expr.MonthInterval:
		return true
	}
	return false
}

// setZero makes row n of a column zero.
func (c *column) setZero(n int) {
	switch c.physical {
	case batch.Bools:
		c.bools[n] = false
	case batch.Ints:
		c.ints[n] = 0
	case batch.Floats:
		c.floats[n] = 0
	case batch.Decimals:
		c.decimals[n] = batch.Int128{}
	case batch.Strings:
		c.offsets[n+1] = c.offsets[n]
	}
}

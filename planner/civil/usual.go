package civil

import (
	"encoding/binary"
	"math/bits"
)

// What stands in eight bytes of a text, and how a byte shows that something else does: once what
// stands there is taken away, a digit is 0 to 9, and another byte, or that and 6, has a bit in the
// high half; a sign is 0.
const (
	dateSigns, dateNines, dateBad    = 0x2d30302d30303030, 0x0006060006060606, 0xfff0f0fff0f0f0f0 // 2017-11-
	clockSigns, clockNines, clockBad = 0x30303a30303a3030, 0x0606000606000606, 0xf0f0fff0f0fff0f0 // 01:00:00
	digitSigns, digitNines, digitBad = 0x3030303030303030, 0x0606060606060606, 0xf0f0f0f0f0f0f0f0
)

// A month is what the short way knows of one. Years are taken to begin in March.
type month struct {
	last   int32 // its last day; 28 for every February
	before int32 // days from 1970-01-01 to the day before the month, had each year 365 days and the first one been the year 0
	early  int32 // 1: it belongs to the year before
}

var months = [13]month{
	1: {31, 306 - 719469, 1}, 2: {28, 337 - 719469, 1}, 3: {31, 0 - 719469, 0}, 4: {30, 31 - 719469, 0},
	5: {31, 61 - 719469, 0}, 6: {30, 92 - 719469, 0}, 7: {31, 122 - 719469, 0}, 8: {31, 153 - 719469, 0},
	9: {30, 184 - 719469, 0}, 10: {31, 214 - 719469, 0}, 11: {30, 245 - 719469, 0}, 12: {31, 275 - 719469, 0},
}

// usual reads the forms that most texts have:
//
//	2017-11-25   2017-11-25T01:00:00   2017-11-25 01:00:00.5   … Z   …+01:00
//
// ok is false where the text is of another one, or of no day or time: careful finds out.
func usual(b []byte) (t Text, ok bool) {
	if len(b) < len("2017-11-25") {
		return t, false
	}
	date := binary.LittleEndian.Uint64(b) ^ dateSigns
	tens, units := b[8]-'0', b[9]-'0'
	if (date+dateNines|date)&dateBad != 0 || tens > 3 || units > 9 {
		return t, false
	}
	pairs := date*10 + date>>8 // byte i is what digit i and the next one spell
	m, day := uint(pairs>>40&0xff), int32(tens*10+units)
	y := int32(pairs&0xff)*100 + int32(pairs>>16&0xff)
	if m-1 >= 12 || y == 0 || day == 0 || day > months[m].last && int(day) > DaysIn(int(y), int(m)) {
		return t, false
	}
	y -= months[m].early
	century := y * 5243 >> 19 // y / 100
	t.Days = int64(y*365 + y>>2 - century + century>>2 + months[m].before + day)
	t.Micros = t.Days * Day
	if len(b) == len("2017-11-25") {
		return t, true
	}
	if len(b) < len("2017-11-25T01:00:00") || b[10] != 'T' && b[10] != ' ' {
		return t, false
	}
	clock := binary.LittleEndian.Uint64(b[11:]) ^ clockSigns
	if (clock+clockNines|clock)&clockBad != 0 {
		return t, false
	}
	pairs = clock*10 + clock>>8
	hour, minute, second := int64(pairs&0xff), int64(pairs>>24&0xff), int64(pairs>>48&0xff)
	if hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t.Parts = Timed
	t.Micros += hour*Hour + minute*Minute + second*Second
	if len(b) == len("2017-11-25T01:00:00") {
		return t, true
	}
	return usualTail(t, b)
}

// usualTail adds what stands behind the seconds: a fraction, an offset.
func usualTail(t Text, b []byte) (Text, bool) {
	at := len("2017-11-25T01:00:00")
	if b[at] == '.' {
		at++
		var w uint64
		if behind := len(b) - at; behind >= 8 {
			w = binary.LittleEndian.Uint64(b[at:])
		} else {
			w = binary.LittleEndian.Uint64(b[len(b)-8:]) >> uint(64-8*behind)
		}
		w ^= digitSigns
		switch n := bits.TrailingZeros64((w+digitNines|w)&digitBad) >> 3; {
		case n == 0:
			return t, false
		case n <= 6:
			w <<= uint(64 - 8*n) // as many zeros before the digits
			w = w*10 + w>>8
			w = ((w&0x000000ff000000ff)*(100+1000000<<32) + (w>>16&0x000000ff000000ff)*(1+10000<<32)) >> 32
			t.Micros += int64(w) * fractions[n]
			at += n
		default:
			s := scanner{text: b, at: at}
			t.Micros += s.fraction()
			at = s.at
		}
	}
	switch rest := b[at:]; {
	case len(rest) == 0:
		return t, t.Micros <= MaxMicros
	case len(rest) == 1 && rest[0] == 'Z':
	case len(rest) == len("+01:00") && rest[3] == ':':
		h1, h2, m1, m2 := rest[1]-'0', rest[2]-'0', rest[4]-'0', rest[5]-'0'
		if h1 > 1 || h2 > 9 || m1 > 5 || m2 > 9 || h1*10+h2 > 15 {
			return t, false
		}
		t.Offset = int64(h1*10+h2)*Hour + int64(m1*10+m2)*Minute
		switch rest[0] {
		case '+':
		case '-':
			t.Offset = -t.Offset
		default:
			return t, false
		}
	default:
		return t, false
	}
	t.Parts |= Zoned
	return t, t.Micros <= MaxMicros
}

// fractions are the microseconds of a unit of so many digits.
var fractions = [7]int64{Second, 100_000, 10_000, 1_000, 100, 10, 1}

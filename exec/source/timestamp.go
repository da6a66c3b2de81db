package source

import "time"

// timestampForm is what errors say about texts that are no timestamps.
const timestampForm = `it is not like "2017-11-25T01:00:00Z" (a blank for the T, a fraction of up to 6 digits and an offset such as +01:00 are fine; without an offset it is UTC)`

// parseTimestamp reads an ISO 8601 date and time as microseconds since 1970, rounded
// to precision fractional digits, halves away from zero. Seconds and the fraction
// may be missing; a text without an offset is UTC.
func parseTimestamp(b []byte, precision int) (micros int64, ok bool) {
	if len(b) < len("2017-11-25T01:00") || b[4] != '-' || b[7] != '-' || b[10] != 'T' && b[10] != ' ' || b[13] != ':' {
		return 0, false
	}
	year, ok1 := number(b[0:4])
	month, ok2 := number(b[5:7])
	day, ok3 := number(b[8:10])
	hour, ok4 := number(b[11:13])
	minute, ok5 := number(b[14:16])
	wellFormed := ok1 && ok2 && ok3 && ok4 && ok5
	if !wellFormed || year < 1 || hour > 23 || minute > 59 || !validDate(year, month, day) {
		return 0, false
	}
	second, fraction, rest, ok := seconds(b[16:])
	if !ok {
		return 0, false
	}
	offset, ok := zone(rest)
	if !ok {
		return 0, false
	}
	s := daysFromCivil(year, month, day)*86400 + int64(hour)*3600 + int64(minute)*60 + int64(second) - offset
	return round(s*1e6+fraction, precision), true
}

// seconds reads ":05" or ":05.123456" or nothing.
func seconds(b []byte) (second int, fraction int64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != ':' {
		return 0, 0, b, true
	}
	if len(b) < 3 {
		return 0, 0, nil, false
	}
	second, ok = number(b[1:3])
	if rest = b[3:]; !ok || second > 59 {
		return 0, 0, nil, false
	}
	if len(rest) == 0 || rest[0] != '.' {
		return second, 0, rest, true
	}
	digits, rest := splitDigits(rest[1:])
	if len(digits) == 0 || len(digits) > 6 {
		return 0, 0, nil, false
	}
	n, _ := number(digits)
	return second, int64(n) * int64(pow10[6-len(digits)]), rest, true
}

// zone reads Z, +01, +0100, +01:00 or nothing, as seconds east of UTC.
func zone(b []byte) (offset int64, ok bool) {
	if len(b) == 0 || len(b) == 1 && b[0] == 'Z' {
		return 0, true
	}
	sign := int64(1)
	switch b[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	b = b[1:]
	minutes := 0
	switch {
	case len(b) == 5 && b[2] == ':':
		minutes, ok = number(b[3:])
	case len(b) == 4:
		minutes, ok = number(b[2:])
	case len(b) == 2:
		ok = true
	}
	if !ok || minutes > 59 {
		return 0, false
	}
	hours, ok := number(b[:2])
	return sign * (int64(hours)*3600 + int64(minutes)*60), ok && hours <= 18
}

func number(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func validDate(year, month, day int) bool {
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	if day <= 28 {
		return true
	}
	return day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// daysFromCivil counts the days from 1970-01-01 in the proleptic Gregorian calendar.
// Years are taken to begin in March, so that a leap day ends one.
func daysFromCivil(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	leaps := year/4 - year/100 + year/400
	return int64(year)*365 + int64(leaps) + int64((153*(month-3)+2)/5+day-1) - 719468
}

// round keeps precision of the six fractional digits.
func round(micros int64, precision int) int64 {
	unit := int64(pow10[6-min(max(precision, 0), 6)])
	rest := micros % unit
	if rest < 0 {
		rest += unit
	}
	micros -= rest
	if rest*2 > unit || rest*2 == unit && micros >= 0 {
		micros += unit
	}
	return micros
}

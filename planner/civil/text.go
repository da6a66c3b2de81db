package civil

import "strconv"

// AppendDate appends "2017-11-25".
func AppendDate(dst []byte, days int64) []byte { return era(appendDate(dst, days), days) }

// appendDate appends a date without the era that years before 1 are of: there is no year
// 0, so that it is the first one before.
func appendDate(dst []byte, days int64) []byte {
	year, month, day := Date(days)
	if year < 1 {
		year = 1 - year
	}
	dst = digits(dst, year, 4)
	dst = digits(append(dst, '-'), month, 2)
	return digits(append(dst, '-'), day, 2)
}

// era ends a date or time before the year 1, such as a zone's clock may show.
func era(dst []byte, days int64) []byte {
	if days < MinDays {
		dst = append(dst, " BC"...)
	}
	return dst
}

// AppendTimestamp appends a time of no zone as PostgreSQL does: "2017-11-25 01:00:00.5",
// the fraction without trailing zeros.
func AppendTimestamp(dst []byte, micros int64) []byte {
	return era(appendTimestamp(dst, micros, ' '), FloorDiv(micros, Day))
}

// AppendISO appends a time of no zone in ISO 8601: "2017-11-25T01:00:00.5". A time in
// UTC takes a Z behind it.
func AppendISO(dst []byte, micros int64) []byte { return appendTimestamp(dst, micros, 'T') }

func appendTimestamp(dst []byte, micros int64, between byte) []byte {
	days, inDay := Split(micros)
	dst = append(appendDate(dst, days), between)
	return appendClock(dst, inDay)
}

// AppendTimestampLTZ appends a time as the zone's clock shows it, with the zone's
// offset, as PostgreSQL does: "2017-11-25 01:00:00.5+00", "2017-11-25 06:30:00+05:30".
func AppendTimestampLTZ(dst []byte, micros int64, zone *Zone) []byte {
	local := zone.Local(micros)
	dst = appendTimestamp(dst, local, ' ')
	offset := (local - micros) / Second
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = digits(append(dst, sign), int(offset/3600), 2)
	if offset%3600 != 0 {
		dst = digits(append(dst, ':'), int(offset/60%60), 2)
	}
	if offset%60 != 0 {
		dst = digits(append(dst, ':'), int(offset%60), 2)
	}
	return era(dst, FloorDiv(local, Day))
}

// appendClock appends microseconds ≥ 0 as hours, minutes, seconds and a fraction.
func appendClock(dst []byte, micros int64) []byte {
	dst = digits(dst, int(micros/Hour), 2)
	dst = digits(append(dst, ':'), int(micros/Minute%60), 2)
	dst = digits(append(dst, ':'), int(micros/Second%60), 2)
	if fraction := micros % Second; fraction != 0 {
		dst = digits(append(dst, '.'), int(fraction), 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// AppendInterval appends microseconds as PostgreSQL prints an interval of days and a
// time of one sign: "1 day 02:03:04.5", "-2 days -00:00:01", "00:00:00".
func AppendInterval(dst []byte, micros int64) []byte {
	days, rest := micros/Day, micros%Day
	if days != 0 {
		dst = append(strconv.AppendInt(dst, days, 10), " day"...)
		if days != 1 {
			dst = append(dst, 's')
		}
		if rest == 0 {
			return dst
		}
		dst = append(dst, ' ')
	}
	if rest < 0 {
		dst, rest = append(dst, '-'), -rest
	}
	return appendClock(dst, rest)
}

// AppendMonths appends months as PostgreSQL prints an interval of them: "1 year 2
// mons", "-1 mons", and "00:00:00" for none.
func AppendMonths(dst []byte, months int64) []byte {
	if months == 0 {
		return append(dst, "00:00:00"...)
	}
	if years := months / 12; years != 0 {
		dst = append(strconv.AppendInt(dst, years, 10), " year"...)
		if years != 1 {
			dst = append(dst, 's')
		}
		if months %= 12; months == 0 {
			return dst
		}
		dst = append(dst, ' ')
	}
	dst = append(strconv.AppendInt(dst, months, 10), " mon"...)
	if months != 1 {
		dst = append(dst, 's')
	}
	return dst
}

// digits appends n ≥ 0 with leading zeros up to a width.
func digits(dst []byte, n, width int) []byte {
	if width == 2 && n < 100 {
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	limit := 10
	for w := 1; w < width; w++ {
		if n < limit {
			dst = append(dst, '0')
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

package civil

// Units, in microseconds.
const (
	Millisecond = 1_000
	Second      = 1_000_000
	Minute      = 60 * Second
	Hour        = 60 * Minute
	Day         = 24 * Hour
)

// The range of dates and times, both ends included.
const (
	MinDays   = -719162                 // 0001-01-01
	MaxDays   = 2932896                 // 9999-12-31
	MinMicros = MinDays * Day           // 0001-01-01 00:00:00
	MaxMicros = MaxDays*Day + (Day - 1) // 9999-12-31 23:59:59.999999
	from2000  = 10957 * Day             // 2000-01-01, PostgreSQL's zero
)

// FloorDiv divides by a positive number, rounding down.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Split takes microseconds since 1970 apart: days, and the time within the last one.
func Split(micros int64) (days, inDay int64) {
	days = FloorDiv(micros, Day)
	return days, micros - days*Day
}

// Days counts the days from 1970-01-01 to a date; months from 1 to 12, any day.
// Years are taken to begin in March, so that a leap day ends one.
func Days(year, month, day int) int64 {
	y, m := int64(year), int64(month)
	if m <= 2 {
		y--
		m += 12
	}
	leaps := FloorDiv(y, 4) - FloorDiv(y, 100) + FloorDiv(y, 400)
	return y*365 + leaps + (153*(m-3)+2)/5 + int64(day) - 1 - 719468
}

// Date gives the date of a day counted from 1970-01-01. In it 400 years, from March
// on, have 146097 days.
func Date(days int64) (year, month, day int) {
	days += 719468
	era := FloorDiv(days, 146097)
	inEra := days - era*146097
	y := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	inYear := inEra - (365*y + y/4 - y/100)
	m := (5*inYear + 2) / 153
	year, month, day = int(era*400+y), int(m+3), int(inYear-(153*m+2)/5+1)
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// Leap reports whether a year has 366 days.
func Leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// DaysIn returns the number of days of a month.
func DaysIn(year, month int) int {
	switch month {
	case 2:
		if Leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// AddMonths moves a day by months; where the month reached is too short, to its last
// day. ok is false beyond the years 1 to 9999.
func AddMonths(days, months int64) (moved int64, ok bool) {
	year, month, day := Date(days)
	if months < -12*10000 || months > 12*10000 {
		return 0, false
	}
	total := int64(year)*12 + int64(month) - 1 + months
	y := FloorDiv(total, 12)
	if y < 1 || y > 9999 {
		return 0, false
	}
	m := int(total-12*y) + 1
	return Days(int(y), m, min(day, DaysIn(int(y), m))), true
}

// Weekday returns the day of the week: 0 is Sunday.
func Weekday(days int64) int { return int(days + 4 - 7*FloorDiv(days+4, 7)) }

// Week returns a day's week of ISO 8601 and the year that the week belongs to: it is
// the year of its Thursday.
func Week(days int64) (year, week int) {
	thursday := Monday(days) + 3
	year, _, _ = Date(thursday)
	return year, int(thursday-Days(year, 1, 1))/7 + 1
}

// Monday returns the Monday on or before a day.
func Monday(days int64) int64 { return days - int64((Weekday(days)+6)%7) }

// Round keeps precision (0 to 6) fractional digits of a second. Halves go away from
// 2000-01-01, as in PostgreSQL.
func Round(micros int64, precision int) int64 {
	if precision >= 6 {
		return micros
	}
	switch precision { // a division by what the compiler knows costs a tenth of another one
	case 5:
		return nearest(micros, 10)
	case 4:
		return nearest(micros, 100)
	case 3:
		return nearest(micros, 1_000)
	case 2:
		return nearest(micros, 10_000)
	case 1:
		return nearest(micros, 100_000)
	}
	return nearest(micros, Second)
}

// nearest rounds to a multiple of unit. It is short enough to be compiled where it is called.
func nearest(micros, unit int64) int64 {
	if micros >= from2000 {
		return from2000 + (micros-from2000+unit/2)/unit*unit
	}
	return from2000 - (from2000-micros+unit/2)/unit*unit
}

package expr

const outsideYears = "a result outside the years 1 to 9999"

// times are the functions of dates, times and intervals. Units are constants in upper
// case: one of the names in Units.
func times() []Function {
	unit := constant("unit", String)
	moment := []Kind{Date, Timestamp, TimestampLTZ}
	pattern := param("pattern", String)
	zoned := Type{Kind: TimestampLTZ, Precision: 6}
	local := Type{Kind: Timestamp, Precision: 6}
	return []Function{
		{
			Name: "extract", SQL: "EXTRACT", Aliases: []string{"DATE_PART"}, Group: "times", Syntax: "EXTRACT(unit FROM time)", Zoned: true,
			Signatures: each(Extracted, []Param{unit}, "time", append(moment, Interval)...),
			Doc:        "A field of a date, a time or an INTERVAL DAY TO SECOND: CENTURY, DAY, DECADE, DOW (0: Sunday), DOY, EPOCH, HOUR, ISODOW (1: Monday), ISOYEAR, MICROSECOND, MILLENNIUM, MILLISECOND, MINUTE, MONTH, QUARTER, SECOND, WEEK, YEAR. BIGINT, but EPOCH, SECOND and MILLISECOND are DECIMAL with their fraction.",
			Examples:   []Example{{"EXTRACT(HOUR FROM TIMESTAMP '2017-11-25 09:30:05.5')", "9"}, {"EXTRACT(SECOND FROM TIMESTAMP '2017-11-25 09:30:05.5')", "5.500000"}, {"EXTRACT(DOW FROM DATE '2017-11-25')", "6"}},
		},
		{
			Name: "date_trunc", SQL: "DATE_TRUNC", Group: "times", Syntax: "DATE_TRUNC('unit', time)", Zoned: true,
			Signatures: each(Same, []Param{unit}, "time", Timestamp, TimestampLTZ), Errors: outsideYears,
			Doc:      "The time cut to a unit: MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK (from Monday), MONTH, QUARTER, YEAR, DECADE, CENTURY, MILLENNIUM. A DATE is taken as a TIMESTAMP.",
			Examples: []Example{{"DATE_TRUNC('hour', TIMESTAMP '2017-11-25 09:30:05')", "2017-11-25 09:00:00"}, {"DATE_TRUNC('week', DATE '2017-11-25')", "2017-11-20 00:00:00"}},
		},
		{
			Name: "floor_to", SQL: "FLOOR", Group: "times", Syntax: "FLOOR(time TO unit)", Zoned: true,
			Signatures: each(Same, []Param{unit}, "time", moment...), Errors: outsideYears,
			Doc: "The time cut to a unit, of the same type: the units of DATE_TRUNC, of a DATE those from DAY on.", Examples: []Example{{"FLOOR(TIMESTAMP '2017-11-25 09:30:05' TO HOUR)", "2017-11-25 09:00:00"}, {"FLOOR(DATE '2017-11-25' TO MONTH)", "2017-11-01"}},
		},
		{
			Name: "ceil_to", SQL: "CEIL", Aliases: []string{"CEILING"}, Group: "times", Syntax: "CEIL(time TO unit)", Zoned: true,
			Signatures: each(Same, []Param{unit}, "time", moment...), Errors: outsideYears,
			Doc: "The time itself where it is a whole unit, else the beginning of the next.", Examples: []Example{{"CEIL(TIMESTAMP '2017-11-25 09:30:05' TO HOUR)", "2017-11-25 10:00:00"}, {"CEIL(DATE '2017-11-01' TO MONTH)", "2017-11-01"}},
		},
		{
			Name: "date_format", SQL: "DATE_FORMAT", Group: "times", Zoned: true, Errors: "a pattern from data that is none (a constant one is refused when the query is planned)",
			Signatures: []Signature{gives(String, param("time", Timestamp), pattern), gives(String, param("time", TimestampLTZ), pattern)},
			Doc:        "The time as text: in the pattern yyyy stands for the year, MM for the month, dd for the day, HH for the hour, mm for the minute, ss for the second, SSS for milliseconds (S to SSSSSS), 'text' in single quotes for itself. A DATE is taken as a TIMESTAMP.",
			Examples:   []Example{{"DATE_FORMAT(TIMESTAMP '2017-11-25 09:30:05', 'yyyy-MM-dd HH:mm')", "2017-11-25 09:30"}},
		},
		{
			Name: "to_timestamp", SQL: "TO_TIMESTAMP", Group: "times", Errors: "a text that the pattern does not fit; a date that there is not; a pattern from data that is none",
			Signatures: []Signature{
				{Params: []Param{param("text", String)}, Result: local},
				{Params: []Param{param("text", String), pattern}, Result: local},
			},
			Doc:      "The time that a text holds, by a pattern as in DATE_FORMAT; without one as yyyy-MM-dd HH:mm:ss with up to six digits of a second behind a point.",
			Examples: []Example{{"TO_TIMESTAMP('2017-11-25 09:30:05')", "2017-11-25 09:30:05"}, {"TO_TIMESTAMP('25.11.2017 09:30', 'dd.MM.yyyy HH:mm')", "2017-11-25 09:30:00"}},
		},
		{
			Name: "to_timestamp_ltz", SQL: "TO_TIMESTAMP_LTZ", Group: "times", Errors: outsideYears,
			Signatures: []Signature{{Params: []Param{param("number", BigInt), constant("precision", Int)}, Rule: Precise, Result: zoned}},
			Doc:        "The moment that many seconds (precision 0), milliseconds (3) or microseconds (6) after 1970-01-01 00:00:00 UTC.",
			Examples:   []Example{{"TO_TIMESTAMP_LTZ(1511602205, 0)", "2017-11-25 09:30:05+00"}, {"TO_TIMESTAMP_LTZ(-1, 3)", "1969-12-31 23:59:59.999+00"}},
		},
		{
			Name: "current_timestamp", SQL: "CURRENT_TIMESTAMP", Aliases: []string{"NOW", "PROCTIME"}, Group: "times", Syntax: "CURRENT_TIMESTAMP, NOW(), PROCTIME()", Volatile: true,
			Signatures: []Signature{{Result: zoned}}, Doc: "The moment when the row is processed; the rows of one batch share it.",
		},
		{
			Name: "local_timestamp", SQL: "LOCALTIMESTAMP", Group: "times", Syntax: "LOCALTIMESTAMP", Volatile: true, Zoned: true,
			Signatures: []Signature{{Result: local}}, Doc: "The moment when the row is processed, on the clock of the time zone.",
		},
		{
			Name: "current_date", SQL: "CURRENT_DATE", Group: "times", Syntax: "CURRENT_DATE", Volatile: true, Zoned: true,
			Signatures: []Signature{gives(Date)}, Doc: "The day on which the row is processed, on the calendar of the time zone.",
		},
	}
}

// Units lists the names of units, as EXTRACT and the like have them, singular and in
// upper case.
func Units() []string {
	return []string{
		"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE", "CENTURY", "MILLENNIUM",
		"EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR",
	}
}

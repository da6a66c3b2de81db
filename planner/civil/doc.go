// Package civil is the calendar and the clock of SQL's DATE, TIMESTAMP, TIMESTAMP_LTZ and
// INTERVAL: days and microseconds counted from 1970, the proleptic Gregorian calendar in
// which they are dates, the texts in which PostgreSQL reads and writes them, and time
// zones. It is a leaf: the planner (literals), the kernels (casts, functions) and the
// connectors (files) all have these from here.
//
//	DATE           days since 1970-01-01                          2017-11-25
//	TIMESTAMP      microseconds since 1970-01-01 00:00:00         2017-11-25 01:00:00.5
//	TIMESTAMP_LTZ  the same, in UTC                               2017-11-25 01:00:00.5+00
//	INTERVAL       microseconds, a day being 24 hours             1 day 02:03:04.5
//	               or months                                      1 year 2 mons
//
// Invariants
//
//	C1  Years are 1 to 9999; parsing refuses what is beyond. The functions that count
//	    and print take any value, so that a computed one can be shown.
//	C2  Values before 1970 are negative; all division is by the floor.
//	C3  Nothing is allocated but by NewZone.
//
// # Goroutines
//
// None. A Zone remembers the last offset: it belongs to one goroutine.
//
// # Failures
//
// Parsing says what is wrong as a Problem, a text for the user.
//
// # Testing
//
// Properties compare the calendar and the zones with package time; what PostgreSQL says
// to texts is kept in testdata.
package civil

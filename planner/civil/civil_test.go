package civil

import (
	_ "embed"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var allMicros = rapid.Int64Range(MinMicros, MaxMicros)

// TestCalendar compares the calendar with package time's, which is the same one.
func TestCalendar(t *testing.T) {
	t.Parallel()
	for days := int64(MinDays); days <= MaxDays; days++ {
		want := time.Unix(days*86400, 0).UTC()
		year, month, day := Date(days)
		if year != want.Year() || month != int(want.Month()) || day != want.Day() {
			t.Fatalf("day %d: %d-%d-%d, want %v", days, year, month, day, want)
		}
		if back := Days(year, month, day); back != days {
			t.Fatalf("%v: day %d, want %d", want, back, days)
		}
		isoYear, week := want.ISOWeek()
		if y, w := Week(days); y != isoYear || w != week || Weekday(days) != int(want.Weekday()) {
			t.Fatalf("%v: week %d of %d, weekday %d", want, w, y, Weekday(days))
		}
		if want.Day() == 1 && DaysIn(year, month) != want.AddDate(0, 1, -1).Day() {
			t.Fatalf("%v: %d days", want, DaysIn(year, month))
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := allMicros.Draw(t, "micros")
		want := time.UnixMicro(micros).UTC()
		if got := string(AppendISO(nil, micros)) + "Z"; got != want.Format("2006-01-02T15:04:05.999999Z") {
			t.Fatalf("%s, want %v", got, want)
		}
		text := AppendTimestamp(nil, micros)
		if back, problem := ParseTimestamp(text, 6); back != micros || problem != "" {
			t.Fatalf("%s: %d, want %d (%s)", text, back, micros, problem)
		}
		days, _ := Split(micros)
		date := AppendDate(nil, days)
		if back, problem := ParseDate(date); back != days || problem != "" {
			t.Fatalf("%s: %d, want %d (%s)", date, back, days, problem)
		}
		interval := rapid.Int64().Draw(t, "interval")
		text = AppendInterval(nil, interval)
		if months, back, problem := ParseInterval(text); months != 0 || back != interval || problem != "" {
			t.Fatalf("%s: %d months %d, want %d (%s)", text, months, back, interval, problem)
		}
		want32 := int64(rapid.Int32().Draw(t, "months"))
		text = AppendMonths(nil, want32)
		if months, back, problem := ParseInterval(text); months != want32 || back != 0 || problem != "" {
			t.Fatalf("%s: %d months %d, want %d (%s)", text, months, back, want32, problem)
		}
	})
}

//go:embed testdata/postgres.txt
var postgres string

// differences lists where our answer is another one.
var differences = map[string]string{
	"PT36H":     "1 day 12:00:00", // a day of an interval is 24 hours
	"2 3 hours": "error",          // a number without a unit is of days only in front of a time
}

// TestPostgres: texts mean what they mean to PostgreSQL. Intervals that mix months
// and days are two of our types, and are compared by what they sum up to.
func TestPostgres(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(postgres) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if got := read(f[0], f[1]); got != f[2] && differences[f[1]] != got {
			t.Errorf("%s %q: %s, want %s", f[0], f[1], got, f[2])
		}
	}
}

func read(kind, input string) string {
	text := []byte(input)
	var out []byte
	var problem Problem
	var n int64
	switch kind {
	case "date":
		n, problem = ParseDate(text)
		out = AppendDate(nil, n)
	case "timestamp", "timestamp(0)", "timestamp(3)":
		n, problem = ParseTimestamp(text, map[string]int{"timestamp": 6, "timestamp(0)": 0, "timestamp(3)": 3}[kind])
		out = AppendTimestamp(nil, n)
	case "timestamptz", "timestamptz(1)":
		n, problem = ParseTimestampLTZ(text, map[string]int{"timestamptz": 6, "timestamptz(1)": 1}[kind], nil)
		out = AppendTimestampLTZ(nil, n, nil)
	case "interval":
		var months int64
		months, n, problem = ParseInterval(text)
		if out = AppendInterval(nil, n); months != 0 {
			out = AppendMonths(nil, months)
		}
	}
	if problem != "" {
		return "error"
	}
	return string(out)
}

// TestBeyond: years are 1 to 9999, whatever PostgreSQL's reach.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"10000-01-01", "9999-12-31 23:59:59.9999995", "9999-12-31 24:00:00", "0000-12-31", "123456789-01-01"} {
		if _, problem := ParseTimestamp([]byte(text), 6); problem != OutOfRange {
			t.Errorf("%s: %q", text, problem)
		}
	}
	for _, text := range []string{"0001-01-01 00:00:00+01", "9999-12-31 23:59:59-01"} {
		if _, problem := ParseTimestampLTZ([]byte(text), 6, nil); problem != OutOfRange {
			t.Errorf("%s: %q", text, problem)
		}
	}
	if got := string(AppendTimestamp(nil, MinMicros-1)); got != "0001-12-31 23:59:59.999999 BC" {
		t.Error(got)
	}
	for _, text := range []string{"100000000000 days", "9999999999999 hours", "200000000 years"} {
		if _, _, problem := ParseInterval([]byte(text)); problem == "" {
			t.Error(text)
		}
	}
}

func TestAddMonths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from   string
		months int64
		want   string
	}{
		{"2017-01-31", 1, "2017-02-28"},
		{"2016-01-31", 1, "2016-02-29"},
		{"2016-02-29", 12, "2017-02-28"},
		{"2016-02-29", -48, "2012-02-29"},
		{"2017-03-31", -1, "2017-02-28"},
		{"2017-12-15", 1, "2018-01-15"},
		{"2017-01-15", -1, "2016-12-15"},
		{"0001-01-01", 119987, "9999-12-01"},
		{"0001-01-01", -1, ""},
		{"9999-12-01", 1, ""},
		{"2000-01-01", math.MinInt64, ""},
		{"2000-01-01", math.MaxInt64, ""},
	} {
		days, _ := ParseDate([]byte(c.from))
		got := ""
		if moved, ok := AddMonths(days, c.months); ok {
			got = string(AppendDate(nil, moved))
		}
		if got != c.want {
			t.Errorf("%s %+d months: %s, want %s", c.from, c.months, got, c.want)
		}
	}
}

// FuzzParse: no text is a panic, and what is read is in range.
func FuzzParse(f *testing.F) {
	for line := range strings.Lines(postgres) {
		f.Add([]byte(strings.Split(line, "|")[1]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, problem := ParseTimestampLTZ(text, 6, nil); problem == "" && (n < MinMicros || n > MaxMicros) {
			t.Fatal(n)
		}
		if n, problem := ParseDate(text); problem == "" && (n < MinDays || n > MaxDays) {
			t.Fatal(n)
		}
		if months, n, problem := ParseInterval(text); problem == "" && months == 0 {
			if _, back, problem := ParseInterval(AppendInterval(nil, n)); back != n || problem != "" {
				t.Fatal(n, back, problem)
			}
		}
	})
}

func BenchmarkTexts(b *testing.B) {
	text := []byte("2017-11-25T01:00:00.123456Z")
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, problem := ParseTimestampLTZ(text, 6, nil); problem != "" {
				b.Fatal(problem)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			dst = AppendISO(dst[:0], 1511571600123456)
		}
	})
}

package civil

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rare is what the usual forms leave out: the begin of the next day or minute.
var rare = regexp.MustCompile(`[T ]24:|:60`)

// alike checks that the short way says of a text what the careful one does, or nothing; and that
// it reads what it must.
func alike(t interface{ Fatalf(string, ...any) }, text []byte, must bool) {
	want, problem := careful(text)
	got, ok := usual(text)
	if ok && (problem != "" || got != want) {
		t.Fatalf("%q: the short way reads %+v, the careful one %+v, %q", text, got, want, problem)
	}
	if must && problem == "" && !ok && !rare.Match(text) {
		t.Fatalf("%q: the short way does not read %+v", text, want)
	}
}

// TestUsualDates: every day, and every day that there is not, of two centuries and of each February.
func TestUsualDates(t *testing.T) {
	t.Parallel()
	for year := range 10_000 {
		months, first := 14, 0
		if year < 1899 || year > 2101 {
			months, first = 3, 27
		}
		for m := range months {
			for day := first; day <= 32; day++ {
				alike(t, fmt.Appendf(nil, "%04d-%02d-%02d", year, m, day), true)
			}
		}
	}
}

// TestUsualClocks: every hour, minute, second and offset of two digits.
func TestUsualClocks(t *testing.T) {
	t.Parallel()
	for n := range 100 {
		for _, form := range []string{
			"2017-11-25 %02d:59:59", "2017-11-25T23:%02d:00", "2017-11-25 00:00:%02d", "2017-11-25 00:00:00.%02d", "0001-01-01 00:00:00.0000%02d",
			"2017-11-25 00:00:00+%02d:00", "2017-11-25 00:00:00.5-%02d:59", "2017-11-25 00:00:00-15:%02d",
			"9999-12-31 23:59:59.99999%02d", "9999-12-31 23:59:59.9999994%02d", "9999-12-31 23:59:59.9999995%02d",
		} {
			alike(t, fmt.Appendf(nil, form, n), true)
		}
	}
}

// TestUsual: texts of the usual forms, and such texts damaged, say to the short way what they say
// to the careful one.
func TestUsual(t *testing.T) {
	t.Parallel()
	form := rapid.StringMatching(`(000[01]|1[0-9]{3}|20[0-9]{2}|9999)-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])([T ]([01][0-9]|2[0-4]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]{1,9})?(Z|[+-](0[0-9]|1[0-6]):[0-5][0-9])?)?`)
	other := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("0129 -+:.TZtz/;\xb0\x00")))
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(form.Draw(t, "text"))
		alike(t, text, true)
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "damage") {
			case 0:
				text = text[:max(at, 1)]
			case 1:
				text = append(text[:at:at], append([]byte{other.Draw(t, "more")}, text[at:]...)...)
			default:
				text[at] = other.Draw(t, "byte")
			}
		}
		alike(t, text, false)
	})
}

// FuzzUsual: no text says one thing to the short way and another to the careful one.
func FuzzUsual(f *testing.F) {
	for line := range strings.Lines(postgres) {
		f.Add([]byte(strings.Split(line, "|")[1]))
	}
	for _, text := range []string{"2017-11-25T01:00:00.123456789+05:30", "2016-02-29", "1900-02-29", "9999-12-31 23:59:59.9999999Z", "2017-11-25 01:00:00."} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { alike(t, text, false) })
}

// TestFractions: seven to nine digits of a second are rounded as they were by way of their text.
func TestFractions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`\.[0-9]{5,6}[0-9]?(0|5|49|50|51|[0-9]{2})`).Draw(t, "fraction")
		short, long := scanner{text: []byte(text), at: 1}, scanner{text: []byte(text + strings.Repeat("0", 10)), at: 1}
		if got, want := short.fraction(), long.fraction(); got != want {
			t.Fatalf("%s: %d, want %d", text, got, want)
		}
	})
}

// TestRound: halves go away from 2000-01-01, whatever the unit.
func TestRound(t *testing.T) {
	t.Parallel()
	units := []int64{1_000_000, 100_000, 10_000, 1_000, 100, 10, 1}
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(0, 6).Draw(t, "precision")
		unit, micros := units[precision], allMicros.Draw(t, "micros")
		if rapid.Bool().Draw(t, "half") {
			micros += unit/2 - (micros%unit+unit)%unit
		}
		got := Round(micros, precision)
		off := got - micros
		away := off == unit/2 && micros >= from2000 || off == -unit/2 && micros < from2000
		if got%unit != 0 || 2*off > unit || 2*off < -unit || unit > 1 && (2*off == unit || 2*off == -unit) && !away {
			t.Fatalf("%d to %d digits: %d", micros, precision, got)
		}
	})
}

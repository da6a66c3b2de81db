package civil

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPatterns pins what patterns write.
func TestPatterns(t *testing.T) {
	t.Parallel()
	moment, _ := ParseTimestamp([]byte("2017-11-05 09:08:07.012345"), 6)
	evening, _ := ParseTimestamp([]byte("0987-01-02 21:00:00"), 6)
	midnight, _ := ParseTimestamp([]byte("2000-01-01"), 6)
	for _, c := range []struct {
		micros        int64
		pattern, want string
	}{
		{moment, "yyyy-MM-dd HH:mm:ss.SSS", "2017-11-05 09:08:07.012"},
		{moment, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'", "2017-11-05T09:08:07.012345Z"},
		{moment, "y/M/d H:m:s S", "2017/11/5 9:8:7 0"},
		{moment, "yy MMM MMMM E EEE EEEE", "17 Nov November Sun Sun Sunday"},
		{moment, "hh:mm a", "09:08 AM"},
		{evening, "yyyy y yy h a H", "0987 987 87 9 PM 21"},
		{midnight, "h hh a HH", "12 12 AM 00"},
		{moment, "'o''clock' '' é", "o'clock ' é"},
		{moment, "", ""},
	} {
		p, err := NewPattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Append(nil, c.micros)); got != c.want {
			t.Errorf("%s: %s, want %s", c.pattern, got, c.want)
		}
	}
}

func TestPatternsParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, text, want string }{
		{"yyyy-MM-dd HH:mm:ss", "2017-11-25 01:02:03", "2017-11-25 01:02:03"},
		{"yyyyMMddHHmmssSSS", "20171125010203004", "2017-11-25 01:02:03.004"},
		{"dd.MM.yyyy", "25.11.2017", "2017-11-25 00:00:00"},
		{"d.M.y", "5.1.2017", "2017-01-05 00:00:00"},
		{"MMMM d, yyyy h:mm a", "november 5, 2017 12:30 am", "2017-11-05 00:30:00"},
		{"EEE, dd MMM yyyy hh a", "Sun, 05 Nov 2017 12 PM", "2017-11-05 12:00:00"},
		{"EEE dd MMM yyyy", "Mon 05 Nov 2017", string(NoSuchTime)},
		{"HH:mm", "01:02", "1970-01-01 01:02:00"},
		{"yy", "17", "2017-01-01 00:00:00"},
		{"yyyy-MM-dd", "2017-11-25 ", string(Malformed)},
		{"yyyy-MM-dd", "2017-1-25", string(Malformed)},
		{"yyyy-MM-dd", "2017-02-29", string(NoSuchTime)},
		{"yyyy-MM-dd", "0000-02-01", string(OutOfRange)},
		{"HH", "24", string(NoSuchTime)},
		{"hh a", "13 AM", string(NoSuchTime)},
		{"'at' HH", "in 01", string(Malformed)},
	} {
		p, err := NewPattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CanParse(); err != nil {
			t.Error(err)
		}
		micros, problem := p.Parse([]byte(c.text))
		got := string(problem)
		if problem == "" {
			got = string(AppendTimestamp(nil, micros))
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

func TestPatternsRefused(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"YYYY": "write yyyy", "DD": "write dd", "yyyyy": "too long", "yyy": "write yyyy", "HH[:mm]": "optional sections", "'x": "not closed", "z": "the letters are",
		"kk": "write HH", "SSSSSSS": "write SSSSSS", "nn": "SSSSSS", "{": "not supported",
	} {
		if _, err := NewPattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	for pattern, want := range map[string]string{"hh": "needs an a", "HH a": "hh", "HH hh a": "exclude", "yyyyMd": "not clear", "MM MMM": "twice"} {
		p, err := NewPattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CanParse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestPatternsAgree compares with package time's layouts, and reads back.
func TestPatternsAgree(t *testing.T) {
	t.Parallel()
	layouts := map[string]string{
		"yyyy-MM-dd HH:mm:ss.SSSSSS": "2006-01-02 15:04:05.000000", "EEEE, d MMMM yyyy h:m:s.SSSSSS a": "Monday, 2 January 2006 3:4:5.000000 PM",
		"EEE ddMMMyyyyHHmmss'.'SSSSSS": "Mon 02Jan2006150405.000000",
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := allMicros.Draw(t, "micros")
		for pattern, layout := range layouts {
			p, err := NewPattern(pattern)
			if err != nil {
				t.Fatal(err)
			}
			text := p.Append(nil, micros)
			if want := time.UnixMicro(micros).UTC().Format(layout); string(text) != want {
				t.Fatalf("%s: %s, want %s", pattern, text, want)
			}
			if back, problem := p.Parse(text); back != micros || problem != "" {
				t.Fatalf("%s: %s is read as %d, not %d (%s)", pattern, text, back, micros, problem)
			}
		}
	})
}

package civil

import (
	"testing"
	"time"
	_ "time/tzdata" // the same everywhere

	"pgregory.net/rapid"
)

var zoneNames = []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin", "Africa/Casablanca", "America/St_Johns", "UTC"}

// TestZones compares offsets with package time's, whatever was asked before.
func TestZones(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		zone, err := NewZone(name)
		if err != nil {
			t.Fatal(err)
		}
		location, _ := time.LoadLocation(name)
		at := allMicros.Draw(t, "first")
		for range 20 {
			moment := time.UnixMicro(at).In(location)
			_, offset := moment.Zone()
			local := zone.Local(at)
			if local != at+int64(offset)*Second {
				t.Fatalf("%v: the clock shows %s", moment, AppendTimestamp(nil, local))
			}
			// Back: the moment itself, or another one at which the clock shows the same.
			fresh, _ := NewZone(name)
			back, cold := zone.UTC(local), fresh.UTC(local)
			if back != cold || zone.Local(back) != local || back < at {
				t.Fatalf("%v: back comes %d or %d, want %d", moment, back, cold, at)
			}
			at = min(max(at+rapid.Int64Range(-400*Day, 400*Day).Draw(t, "step"), MinMicros), MaxMicros)
		}
	})
}

// TestGapsAndOverlaps: PostgreSQL 15's answers where clocks are put forward or back.
func TestGapsAndOverlaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, local, want string }{
		{"Europe/Berlin", "2017-03-26 01:59:59", "2017-03-26 00:59:59+00"},
		{"Europe/Berlin", "2017-03-26 02:00:00", "2017-03-26 01:00:00+00"},
		{"Europe/Berlin", "2017-03-26 02:30:00", "2017-03-26 01:30:00+00"},
		{"Europe/Berlin", "2017-03-26 03:00:00", "2017-03-26 01:00:00+00"},
		{"Europe/Berlin", "2017-10-29 01:59:59", "2017-10-28 23:59:59+00"},
		{"Europe/Berlin", "2017-10-29 02:00:00", "2017-10-29 01:00:00+00"},
		{"Europe/Berlin", "2017-10-29 02:30:00", "2017-10-29 01:30:00+00"},
		{"Europe/Berlin", "2017-10-29 03:00:00", "2017-10-29 02:00:00+00"},
		{"America/New_York", "2017-03-12 02:30:00", "2017-03-12 07:30:00+00"},
		{"America/New_York", "2017-11-05 01:30:00", "2017-11-05 06:30:00+00"},
		{"Australia/Lord_Howe", "2017-10-01 02:15:00", "2017-09-30 15:45:00+00"},
		{"Australia/Lord_Howe", "2017-04-02 01:45:00", "2017-04-01 15:15:00+00"},
		{"Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30 22:00:00+00"},
		{"Europe/Moscow", "2014-10-26 01:30:00", "2014-10-25 22:30:00+00"},
		{"Europe/Dublin", "1971-10-31 02:30:00", "1971-10-31 02:30:00+00"},
		{"Europe/Berlin", "1800-01-01 00:00:00", "1799-12-31 23:06:32+00"},
		{"Europe/Berlin", "2500-07-01 12:00:00", "2500-07-01 10:00:00+00"},
		{"", "2017-10-29 02:30:00", "2017-10-29 02:30:00+00"},
	} {
		zone, err := NewZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, problem := ParseTimestampLTZ([]byte(c.local), 6, zone)
		if text := string(AppendTimestampLTZ(nil, got, nil)); text != c.want || problem != "" {
			t.Errorf("%s %s: %s, want %s", c.zone, c.local, text, c.want)
		}
	}
	for _, name := range []string{"Europe/Nowhere", "Local", "../x"} {
		if _, err := NewZone(name); err == nil {
			t.Errorf("zone %s", name)
		}
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Asia/Kolkata": "2017-11-25 06:30:00+05:30", "America/St_Johns": "2017-11-24 21:30:00-03:30", "Europe/Berlin": "2017-11-25 02:00:00+01", "UTC": "2017-11-25 01:00:00+00",
	} {
		zone, err := NewZone(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendTimestampLTZ(nil, 1511571600*Second, zone)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	zone, _ := NewZone("America/New_York")
	if got := string(AppendTimestampLTZ(nil, MinMicros, zone)); got != "0001-12-31 19:03:58-04:56:02 BC" {
		t.Error(got)
	}
}

func BenchmarkZone(b *testing.B) {
	zone, err := NewZone("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	at := int64(1511571600 * Second)
	for b.Loop() {
		at = zone.UTC(zone.Local(at)) + Second
	}
}

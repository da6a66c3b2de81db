package civil

import (
	"fmt"
	"math"
	"time"
)

// A Zone is a time zone by its IANA name. It remembers the offset that it gave last
// and from when until when that offset holds, so that times near each other cost a
// comparison. A nil Zone is UTC.
type Zone struct {
	location *time.Location
	from, to int64                            // the offset holds from from up to to, in microseconds since 1970 UTC
	offset   int64                            // microseconds ahead of UTC
	locals   struct{ from, to, offset int64 } // likewise, by the zone's clock
}

// NewZone loads a time zone; "" and "UTC" give nil.
func NewZone(name string) (*Zone, error) {
	if name == "" || name == "UTC" {
		return nil, nil
	}
	location, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %q: write a name such as Europe/Berlin", name)
	}
	return &Zone{location: location}, nil
}

// Local returns what the zone's clock shows at a moment, as if it were UTC.
func (z *Zone) Local(micros int64) int64 {
	if z == nil {
		return micros
	}
	if micros < z.from || micros >= z.to {
		z.from, z.to, z.offset = z.bounds(micros)
	}
	return micros + z.offset
}

// bounds looks up an offset and from when until when it holds.
func (z *Zone) bounds(micros int64) (from, to, offset int64) {
	t := time.Unix(FloorDiv(micros, Second), 0).In(z.location)
	start, end := t.ZoneBounds()
	_, seconds := t.Zone()
	from, to = math.MinInt64, math.MaxInt64
	if !start.IsZero() {
		from = start.Unix() * Second
	}
	if !end.IsZero() {
		to = end.Unix() * Second
	}
	return from, to, int64(seconds) * Second
}

// UTC returns the moment at which the zone's clock shows local. Where clocks are put
// forward over it, the time is taken on the clock as it was before; where they are put
// back over it, the later of the two moments is given. (PostgreSQL does so.)
func (z *Zone) UTC(local int64) int64 {
	if z == nil {
		return local
	}
	if c := &z.locals; local >= c.from && local < c.to {
		return local - c.offset
	}
	from, to, offset := z.bounds(local - Day) // a clock is never a day off
	if local < to-Day {
		z.locals.from, z.locals.to, z.locals.offset = max(from, math.MinInt64+Day)+Day, to-Day, offset
		return local - offset
	}
	_, _, next := z.bounds(to)
	before, after := local-offset, local-next
	switch {
	case before < to && after < to:
		return before
	case before > to && after >= to:
		return after
	}
	return max(before, after)
}

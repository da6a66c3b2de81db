package eval

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// typed makes a node over columns 0, 1, … of the given types.
func typed(op expr.Op, name string, result expr.Type, args ...expr.Type) *expr.Expr {
	e := &expr.Expr{Op: op, Func: name, Type: result, Text: name + string(op)}
	for i, t := range args {
		e.Args = append(e.Args, &expr.Expr{Op: expr.OpColumn, Type: t, Column: i})
	}
	return e
}

func constantOf(text string) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}, Literal: &expr.Literal{String: text}, Text: "'" + text + "'"}
}

func constantInt(n int64) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Int}, Literal: &expr.Literal{Int: n}}
}

var (
	date     = expr.Type{Kind: expr.Date}
	clock    = expr.Type{Kind: expr.Timestamp, Precision: 6}
	ltz      = expr.Type{Kind: expr.TimestampLTZ, Precision: 6}
	interval = expr.Type{Kind: expr.Interval}
	months   = expr.Type{Kind: expr.MonthInterval}
	textType = expr.Type{Kind: expr.String}
)

// instants are near the ends, near 1970 and anywhere.
func instants() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(civil.MinMicros, civil.MaxMicros), rapid.Int64Range(-2*civil.Day, 2*civil.Day),
		rapid.SampledFrom([]int64{civil.MinMicros, civil.MaxMicros, 0, -1, 1_511_571_600_000_000}))
}

// drawInts returns a batch of columns with NULLs, and a selection.
func drawInts(t *rapid.T, columns ...*rapid.Generator[int64]) *batch.Batch {
	b := &batch.Batch{Len: rapid.IntRange(0, 70).Draw(t, "rows")}
	for _, g := range columns {
		v := batch.Vector{Physical: batch.Ints}
		nulls := rapid.Bool().Draw(t, "nulls")
		for range b.Len {
			if nulls && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
				v.AppendNull()
			} else {
				v.AppendInt(g.Draw(t, "value"))
			}
		}
		b.Columns = append(b.Columns, v)
	}
	if rapid.Bool().Draw(t, "select") {
		b.Sel = []int32{}
		for i := range b.Len {
			if rapid.Bool().Draw(t, "selected") {
				b.Sel = append(b.Sel, int32(i))
			}
		}
	}
	return b
}

// checkInts compares a program with a reference that works row by row; ok is false
// where a row is at fault.
func checkInts(t *rapid.T, e *expr.Expr, b *batch.Batch, want func(x ...int64) (y int64, ok bool)) {
	p := compileFor(t, e)
	var out batch.Vector
	err := p.Eval(b, &out)
	fails := false
	for i := range b.Rows() {
		row := b.Row(i)
		var x []int64
		for c := range b.Columns {
			if !b.Columns[c].Null(row) {
				x = append(x, b.Columns[c].Ints[row])
			}
		}
		if len(x) < len(b.Columns) {
			if err == nil && !out.Null(row) {
				t.Fatalf("%s: row %d is not NULL", show(e), row)
			}
			continue
		}
		y, ok := want(x...)
		fails = fails || !ok
		if err == nil && (!ok || out.Null(row) || out.Ints[row] != y) {
			t.Fatalf("%s of %v: got %d (NULL: %v), want %d, %v", show(e), x, out.Ints[row], out.Null(row), y, ok)
		}
	}
	if fails != (err != nil) {
		t.Fatalf("%s: %v", show(e), err)
	}
	if err == nil {
		checkZeroes(t, b, &out)
	}
}

func inYears(t time.Time) (int64, bool) {
	return t.UnixMicro(), t.UTC().Year() >= 1 && t.UTC().Year() <= 9999
}

var zoneNames = []string{"", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"}

// TestTimeArithmetic compares sums with package time.
func TestTimeArithmetic(t *testing.T) {
	t.Parallel()
	spans := rapid.OneOf(rapid.Int64Range(-1000*civil.Day, 1000*civil.Day), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		sign := rapid.SampledFrom([]int64{1, -1}).Draw(t, "sign")
		op := map[int64]expr.Op{1: expr.OpAdd, -1: expr.OpSub}[sign]
		typ := rapid.SampledFrom([]expr.Type{clock, ltz}).Draw(t, "type")
		checkInts(t, typed(op, "", typ, typ, interval), drawInts(t, instants(), spans), func(x ...int64) (int64, bool) {
			sum := time.UnixMicro(x[0]).Add(time.Duration(0))
			if x[1] > math.MaxInt64/2000 || x[1] < math.MinInt64/2000 { // beyond a Duration
				days, rest := x[1]/civil.Day, x[1]%civil.Day
				if days > 4e6 || days < -4e6 {
					return 0, false
				}
				sum = time.Unix(sum.Unix()+sign*days*86400, int64(sum.Nanosecond())).Add(time.Duration(sign*rest) * time.Microsecond)
				return inYears(sum)
			}
			return inYears(sum.Add(time.Duration(sign*x[1]) * time.Microsecond))
		})
		checkInts(t, typed(op, "", interval, interval, interval), drawInts(t, spans, spans), func(x ...int64) (int64, bool) {
			y := x[0] + sign*x[1]
			return y, math.Abs(float64(x[0])+float64(sign)*float64(x[1])-float64(y)) < 1e10
		})
		checkInts(t, typed(expr.OpSub, "", interval, typ, typ), drawInts(t, instants(), instants()), func(x ...int64) (int64, bool) {
			return x[0] - x[1], true
		})
	})
}

// TestMonths compares with time.Date, on a zone's clock.
func TestMonths(t *testing.T) {
	t.Parallel()
	counts := rapid.OneOf(rapid.Int64Range(-40, 40), rapid.Int64Range(-130000, 130000))
	rapid.Check(t, func(t *rapid.T) {
		e := typed(expr.OpAdd, "", ltz, ltz, months)
		e.Zone = rapid.SampledFrom(zoneNames).Draw(t, "zone")
		location, err := time.LoadLocation(e.Zone)
		if err != nil {
			t.Fatal(err)
		}
		zone, _ := civil.NewZone(e.Zone)
		checkInts(t, e, drawInts(t, instants(), counts), func(x ...int64) (int64, bool) {
			at := time.UnixMicro(x[0]).In(location)
			if x[1] == 0 {
				return x[0], true
			}
			first := time.Date(at.Year(), at.Month()+time.Month(x[1]), 1, 0, 0, 0, 0, time.UTC)
			day := min(at.Day(), first.AddDate(0, 1, -1).Day())
			wall := time.Date(first.Year(), first.Month(), day, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
			if first.Year() < 1 || first.Year() > 9999 {
				return 0, false
			}
			return inYears(time.UnixMicro(zone.UTC(wall.UnixMicro())))
		})
	})
}

// TestUnits compares FLOOR and CEIL to units with each other and with package time.
func TestUnits(t *testing.T) {
	t.Parallel()
	units := []string{"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE", "CENTURY", "MILLENNIUM"}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		call := func(name string) *expr.Expr {
			e := &expr.Expr{Op: expr.OpCall, Func: name, Type: clock, Text: name}
			e.Args = []*expr.Expr{constantOf(unit), {Op: expr.OpColumn, Type: clock}}
			return e
		}
		floor := func(x int64) int64 {
			at := time.UnixMicro(x).UTC()
			y, m, d := at.Date()
			switch unit {
			case "DAY":
			case "WEEK":
				d -= (int(at.Weekday()) + 6) % 7
			case "MONTH":
				d = 1
			case "QUARTER":
				m, d = (m-1)/3*3+1, 1
			case "YEAR":
				m, d = 1, 1
			case "DECADE":
				y, m, d = y/10*10, 1, 1
			case "CENTURY":
				y, m, d = (y-1)/100*100+1, 1, 1
			case "MILLENNIUM":
				y, m, d = (y-1)/1000*1000+1, 1, 1
			default:
				length := map[string]time.Duration{"MICROSECOND": time.Microsecond, "MILLISECOND": time.Millisecond, "SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour}[unit]
				return at.Truncate(length).UnixMicro()
			}
			return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro()
		}
		b := drawInts(t, instants())
		checkInts(t, call("floor_to"), b, func(x ...int64) (int64, bool) { return floor(x[0]), floor(x[0]) >= civil.MinMicros })
		checkInts(t, call("ceil_to"), b, func(x ...int64) (int64, bool) {
			if floor(x[0]) == x[0] {
				return x[0], true
			}
			// The least whole unit above is the floor of what is less than two units behind the one before.
			y := floor(x[0])
			for _, step := range []int64{1, 1000, civil.Second, civil.Minute, civil.Hour, civil.Day, 31 * civil.Day, 366 * civil.Day, 3653 * civil.Day, 36525 * civil.Day, 365243 * civil.Day} {
				for range 11 {
					if y += step; floor(y) > x[0] {
						y = floor(y)
						return y, y <= civil.MaxMicros
					}
				}
			}
			return 0, false
		})
	})
}

// TestFields compares EXTRACT, on a zone's clock, with package time.
func TestFields(t *testing.T) {
	t.Parallel()
	fields := map[string]func(at time.Time) int64{
		"YEAR": func(at time.Time) int64 { return int64(at.Year()) }, "QUARTER": func(at time.Time) int64 { return int64(at.Month()+2) / 3 },
		"MONTH": func(at time.Time) int64 { return int64(at.Month()) }, "DAY": func(at time.Time) int64 { return int64(at.Day()) },
		"HOUR": func(at time.Time) int64 { return int64(at.Hour()) }, "MINUTE": func(at time.Time) int64 { return int64(at.Minute()) },
		"MICROSECOND": func(at time.Time) int64 { return int64(at.Second())*1e6 + int64(at.Nanosecond()/1000) },
		"DOW":         func(at time.Time) int64 { return int64(at.Weekday()) }, "ISODOW": func(at time.Time) int64 { return int64(at.Weekday()+6)%7 + 1 },
		"DOY":     func(at time.Time) int64 { return int64(at.YearDay()) },
		"WEEK":    func(at time.Time) int64 { _, week := at.ISOWeek(); return int64(week) },
		"ISOYEAR": func(at time.Time) int64 { year, _ := at.ISOWeek(); return int64(year) },
		"CENTURY": func(at time.Time) int64 { return int64(math.Ceil(float64(at.Year()) / 100)) }, "DECADE": func(at time.Time) int64 { return int64(at.Year() / 10) },
		"MILLENNIUM": func(at time.Time) int64 { return int64(math.Ceil(float64(at.Year()) / 1000)) },
	}
	units := slices.Sorted(maps.Keys(fields))
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		zone := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		e := &expr.Expr{Op: expr.OpCall, Func: "extract", Type: expr.Type{Kind: expr.BigInt}, Zone: zone, Text: "extract", Args: []*expr.Expr{constantOf(unit), {Op: expr.OpColumn, Type: ltz}}}
		later := rapid.Int64Range(civil.MinMicros+civil.Day, civil.MaxMicros) // the year before 1 is not package time's
		checkInts(t, e, drawInts(t, rapid.OneOf(later, rapid.Int64Range(-civil.Day, civil.Day))), func(x ...int64) (int64, bool) {
			return fields[unit](time.UnixMicro(x[0]).In(location)), true
		})
	})
}

// TestCeilToOnAZonesClock pins what happens where the clock is put forward or back.
func TestCeilToOnAZonesClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ unit, from, floor, ceil string }{
		{"DAY", "2017-03-26 00:30:00+00", "2017-03-25 23:00:00+00", "2017-03-26 22:00:00+00"},
		{"DAY", "2017-10-29 01:30:00+00", "2017-10-28 22:00:00+00", "2017-10-29 23:00:00+00"},
		{"HOUR", "2017-10-29 00:30:00+00", "2017-10-29 00:00:00+00", "2017-10-29 01:00:00+00"},
		{"HOUR", "2017-10-29 01:30:00+00", "2017-10-29 01:00:00+00", "2017-10-29 02:00:00+00"},
		{"MONTH", "2017-10-29 01:30:00+00", "2017-09-30 22:00:00+00", "2017-10-31 23:00:00+00"},
		{"MONTH", "2017-10-31 23:00:00+00", "2017-10-31 23:00:00+00", "2017-10-31 23:00:00+00"},
		{"WEEK", "2017-03-26 12:00:00+00", "2017-03-19 23:00:00+00", "2017-03-26 22:00:00+00"},
	} {
		from, _ := civil.ParseTimestampLTZ([]byte(c.from), 6, nil)
		for name, want := range map[string]string{"floor_to": c.floor, "ceil_to": c.ceil} {
			e := &expr.Expr{Op: expr.OpCall, Func: name, Type: ltz, Zone: "Europe/Berlin", Args: []*expr.Expr{constantOf(c.unit), {Op: expr.OpColumn, Type: ltz}}}
			p, err := Compile(e, Env{})
			if err != nil {
				t.Fatal(err)
			}
			var out batch.Vector
			if err := p.Eval(intBatch(from), &out); err != nil {
				t.Fatal(err)
			}
			if got := string(civil.AppendTimestampLTZ(nil, out.Ints[0], nil)); got != want {
				t.Errorf("%s %s to %s: %s, want %s", name, c.from, c.unit, got, want)
			}
		}
	}
}

// TestPatternFunctions: constant patterns and patterns from data, on a zone's clock.
func TestPatternFunctions(t *testing.T) {
	t.Parallel()
	b := batch.New([]batch.Physical{batch.Ints, batch.Strings, batch.Strings}, 4)
	row := func(pattern, read string) {
		b.Columns[0].AppendInt(1_511_571_600_000_000)
		b.Columns[1].AppendString(pattern)
		b.Columns[2].AppendString(read)
		b.EndRow(batch.Insert)
	}
	row("yyyy-MM-dd HH", "2017-11-25 02")
	row("yyyy-MM-dd HH", "2017-11-26 02")
	row("dd.MM.", "25.11.")
	format := typed(expr.OpCall, "date_format", textType, ltz, textType)
	format.Zone = "Europe/Berlin"
	p, err := Compile(format, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2017-11-25 02", "2017-11-25 02", "25.11."} {
		if got := string(out.Str(i)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	read := typed(expr.OpCall, "to_timestamp", clock, textType, textType)
	read.Args[0].Column, read.Args[1].Column = 2, 1
	if p, err = Compile(read, Env{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Eval(b, &out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2017-11-25 02:00:00", "2017-11-26 02:00:00", "1970-11-25 00:00:00"} {
		if got := string(civil.AppendTimestamp(nil, out.Ints[i])); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	row("yyyy", "x")
	if err := p.Eval(b, &out); err == nil || err.Error() != `"x" is no time: it does not have the pattern's form in to_timestampcall` {
		t.Error(err)
	}
	b.Sel = []int32{0}
	row("hh", "01")
	b.Sel = []int32{4}
	if err := p.Eval(b, &out); err == nil || !strings.Contains(err.Error(), "hh needs an a") {
		t.Error(err)
	}
	plain := typed(expr.OpCall, "to_timestamp", clock, textType)
	plain.Args[0].Column = 2
	if p, err = Compile(plain, Env{}); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	row("", "2017-11-25 01:02:03.5")
	if err := p.Eval(b, &out); err != nil || out.Ints[0] != 1_511_571_723_500_000 {
		t.Error(out, err)
	}
	row("", "2017-11-25 01:02:03Z")
	if err := p.Eval(b, &out); err == nil || !strings.Contains(err.Error(), "has an offset") {
		t.Error(err)
	}
}

// TestNow: one moment per batch, for all that share a clock.
func TestNow(t *testing.T) {
	t.Parallel()
	ticks := time.Date(2017, 11, 25, 23, 30, 0, 0, time.UTC)
	shared := NewClock(func() time.Time { ticks = ticks.Add(time.Second); return ticks })
	var got []int64
	for _, f := range []struct {
		name string
		typ  expr.Type
		zone string
	}{{"current_timestamp", ltz, ""}, {"local_timestamp", clock, "Europe/Berlin"}, {"current_date", date, "Europe/Berlin"}, {"current_date", date, ""}} {
		p, err := Compile(&expr.Expr{Op: expr.OpCall, Func: f.name, Type: f.typ, Zone: f.zone}, Env{Now: shared.Now})
		if err != nil {
			t.Fatal(err)
		}
		var out batch.Vector
		if err := p.Eval(intBatch(1, 2), &out); err != nil || len(out.Ints) != 2 || out.Ints[0] != out.Ints[1] {
			t.Fatal(out, err)
		}
		got = append(got, out.Ints[0])
	}
	at := time.Date(2017, 11, 25, 23, 30, 1, 0, time.UTC).UnixMicro()
	if want := []int64{at, at + civil.Hour, 17496, 17495}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	shared.Tick()
	if shared.Now().Sub(time.UnixMicro(at)) != time.Second {
		t.Error(shared.Now())
	}
}

func TestTimesRefused(t *testing.T) {
	t.Parallel()
	call := func(name string, result expr.Type, args ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: expr.OpCall, Func: name, Type: result, Args: args}
	}
	column := func(t expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpColumn, Type: t} }
	bigint := expr.Type{Kind: expr.BigInt}
	zoned := call("extract", bigint, constantOf("HOUR"), column(ltz))
	zoned.Zone = "Europe/Nowhere"
	for want, e := range map[string]*expr.Expr{
		"HOUR from a DATE":         call("extract", bigint, constantOf("HOUR"), column(date)),
		"WEEK from a INTERVAL":     call("extract", bigint, constantOf("WEEK"), column(interval)),
		"SECOND giving BIGINT":     call("extract", bigint, constantOf("SECOND"), column(clock)),
		"unknown time zone":        zoned,
		"DATE to HOUR":             call("floor_to", date, constantOf("HOUR"), column(date)),
		"to EPOCH":                 call("floor_to", clock, constantOf("EPOCH"), column(clock)),
		"the precision 1":          call("to_timestamp_ltz", ltz, column(bigint), constantInt(1)),
		"the letter Q":             call("date_format", textType, column(clock), constantOf("Q")),
		"hh needs an a":            call("to_timestamp", clock, column(textType), constantOf("hh")),
		"giving TIMESTAMP(6)":      typed(expr.OpAdd, "", clock, clock, clock),
		"DATE and TIMESTAMP":       typed(expr.OpSub, "", interval, date, clock),
		"\"*\" of":                 typed(expr.OpMul, "", months, months, expr.Type{Kind: expr.Double}),
		"is no constant text":      call("date_trunc", clock, column(textType), column(clock)),
		"current_date of 0 operan": call("current_date", clock),
	} {
		if _, err := Compile(e, Env{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

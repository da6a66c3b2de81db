package source

import (
	"strings"
	"testing"

	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	bytesType   = expr.Type{Kind: expr.Bytes}
	dateType    = expr.Type{Kind: expr.Date}
	clockType   = expr.Type{Kind: expr.Timestamp, Precision: 6}
	intervals   = expr.Type{Kind: expr.Interval}
	monthsType  = expr.Type{Kind: expr.MonthInterval}
	clockMillis = expr.Type{Kind: expr.Timestamp, Precision: 3}
)

// TestTypes: what BYTES, dates, times and intervals take from JSON texts and CSV fields,
// which is the same.
func TestTypes(t *testing.T) {
	t.Parallel()
	const (
		zoned  = ": it has an offset from UTC; declare the column TIMESTAMP_LTZ"
		timed  = ": it has a time of day; declare the column TIMESTAMP or TIMESTAMP_LTZ"
		noTime = ": there is no such day or time"
		years  = ": years are 1 to 9999"
	)
	for _, c := range []struct {
		typ        expr.Type
		text, want string // a row, or what is wrong, behind the text
	}{
		{bytesType, "aGVsbG8=", `"hello"`},
		{bytesType, "AP/+", `"\x00\xff\xfe"`},
		{bytesType, "aGVsbG8", ": " + base64Form},
		{bytesType, "aGVsbG9=", ": " + base64Form},
		{bytesType, "_w==", ": " + base64Form},
		{dateType, "2017-11-25", "2017-11-25"},
		{dateType, "0001-01-01", "0001-01-01"},
		{dateType, "9999-12-31", "9999-12-31"},
		{dateType, "20171125", "2017-11-25"},
		{dateType, "2017-02-29", noTime},
		{dateType, "2017-13-01", noTime},
		{dateType, "10000-01-01", years},
		{dateType, "0000-12-31", years},
		{dateType, "2017-11-25T00:00:00", timed},
		{dateType, "2017-11-25Z", timed},
		{dateType, "25.11.2017", ": " + dateForm},
		{dateType, " 2017-11-25", ": " + dateForm},
		{dateType, "x", ": " + dateForm},
		{clockType, "2017-11-25T01:00:00.5", "2017-11-25T01:00:00.5"},
		{clockType, "2017-11-25 01:00", "2017-11-25T01:00:00"},
		{clockType, "2017-11-25", "2017-11-25T00:00:00"},
		{clockType, "0001-01-01T00:00:00", "0001-01-01T00:00:00"},
		{clockType, "9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"},
		{clockType, "9999-12-31T23:59:59.9999996", years},
		{clockType, "2017-11-25T01:00:00Z", zoned},
		{clockType, "2017-11-25T01:00:00+01:00", zoned},
		{clockType, "2017-11-25T24:00:01", noTime},
		{clockType, "yesterday", ": " + timestampForm},
		{clockMillis, "2017-11-25T01:00:00.0005", "2017-11-25T01:00:00.001"},
		{clockMillis, "1969-12-31T23:59:59.9994", "1969-12-31T23:59:59.999"},
		{timestamp, "0001-01-01T00:00:00+01:00", years},
		{timestamp, "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
		{timestamp, "2017-11-25T01:00:00+16:00", noTime},
		{timestamp, "2017-11-25T01:00:00 Europe/Berlin", ": " + ltzForm},
		{intervals, "1 day 02:03:04.5", "1 day 02:03:04.5"},
		{intervals, "-1 days -02:03:04.5", "-1 days -02:03:04.5"},
		{intervals, "P1DT2H", "1 day 02:00:00"},
		{intervals, "90 seconds", "00:01:30"},
		{intervals, "1 month", ": it holds months; INTERVAL YEAR TO MONTH is a type of its own"},
		{intervals, "soon", ": " + `it is not like "1 day 02:03:04.5" or "1 year 2 mons"`},
		{intervals, "9999999999 days", ": " + `it is not like "1 day 02:03:04.5" or "1 year 2 mons"`},
		{intervals, "200000000 days", ": it is out of range"},
		{monthsType, "1 year 2 mons", "1 year 2 mons"},
		{monthsType, "P1Y2M", "1 year 2 mons"},
		{monthsType, "1 day", ": it holds days or hours; INTERVAL DAY TO SECOND is a type of its own"},
	} {
		want := c.want
		if strings.HasPrefix(want, ":") {
			want = `"` + c.text + `" is not ` + article(c.typ) + want
		}
		for format, body := range map[string]string{"json": `{"k":"` + c.text + `"}`, "csv": c.text} {
			got, f := decodeAll(t, reading(one(format, c.typ)), body)
			if f != nil {
				got = f.reason
			}
			if strings.TrimSuffix(got, "\n") != want {
				t.Errorf("%s, %v %s:\n got %s\nwant %s", format, c.typ, c.text, got, want)
			}
		}
	}
}

// TestTypesInJSON: what is of JSON alone.
func TestTypesInJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ         expr.Type
		value, want string
	}{
		{bytesType, `"AP\/+"`, `"\x00\xff\xfe"`},
		{bytesType, `""`, `""`},
		{bytesType, `7`, `"7" is not a BYTES: it is a number`},
		{bytesType, `"\ud800"`, `"\ud800" has an escape of half a UTF-16 pair`},
		{timestamp, `"2017-11-25T01:00:00\u002b01:00"`, "2017-11-25T00:00:00Z"},
		{dateType, `17495`, `"17495" is not a DATE: it is a number; declare the column BIGINT, or write a text such as "2017-11-25"`},
		{clockType, `0`, `"0" is not a TIMESTAMP(6): it is a number; declare the column BIGINT, or write a text such as "2017-11-25T01:00:00"`},
		{intervals, `5`, `"5" is not an INTERVAL DAY TO SECOND: it is a number`},
		{dateType, `true`, `"true" is not a DATE: it is a truth value`},
		{dateType, `["2017-11-25"]`, `"[\"2017-11-25\"]" is not a DATE: it is an object or an array`},
		{dateType, `null`, "NULL"},
		{bytesType, `null`, "NULL"},
		{clockType, `""`, `"" is not a TIMESTAMP(6): ` + timestampForm},
	} {
		got, f := decodeAll(t, reading(one("json", c.typ)), `{"k":`+c.value+`}`)
		if f != nil {
			got = f.reason
		}
		if strings.TrimSuffix(got, "\n") != c.want {
			t.Errorf("%v %s:\n got %s\nwant %s", c.typ, c.value, got, c.want)
		}
	}
	table := plan.Table{Name: "t", Format: "json", Columns: []plan.Column{col("b", bytesType), col("d", dateType)}}
	got, f := decodeAll(t, reading(table), `{"b":"aGk=","b":"aGVsbG8=","d":"2017-11-25","d":null}`+"\n{}\n"+`{"b":"aA=="}`)
	if want := "\"hello\"|NULL\nNULL|NULL\n\"h\"|NULL\n"; f != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, f, want)
	}
}

// TestDatagenTypes pins the generated values of the types that are no numbers or texts.
func TestDatagenTypes(t *testing.T) {
	t.Parallel()
	dec := expr.Type{Kind: expr.Decimal, Precision: 10, Scale: 2}
	table := plan.Table{
		Name: "g", Connector: "datagen",
		Columns: []plan.Column{
			col("b", bytesType), col("d", dateType), col("t", clockMillis), col("i", intervals), col("m", monthsType), col("n", dec),
			col("sb", bytesType), col("sd", dateType), col("st", clockType), col("si", intervals), col("sm", monthsType), col("sn", dec),
			col("vb", bytesType), col("vd", dateType), col("vi", intervals), col("vn", dec),
		},
		Options: map[string]string{"number-of-rows": "10", "seed": "7"},
	}
	for name, first := range map[string]string{"sb": "7", "sd": "2017-12-30", "st": "2017-12-31T23:59:59.999", "si": "-00:00:01", "sm": "-1 mons", "sn": "-1"} {
		table.Options["fields."+name+".kind"], table.Options["fields."+name+".start"] = "sequence", first
	}
	for name, values := range map[string]string{"vb": "aGk=,aGVsbG8=", "vd": "0001-01-01,9999-12-31", "vi": "1 day,00:00:00.000001", "vn": "-1.5,99999999.99"} {
		table.Options["fields."+name+".values"] = values
	}
	spec := reading(table)
	d, err := newDatagen(spec)
	if err != nil {
		t.Fatal(err)
	}
	got := show(d.make(0, 4), spec)
	if got != datagenTypes {
		t.Errorf("got\n%s", got)
	}
	for option, value := range map[string]string{
		"fields.d.min": "2017-02-29", "fields.t.max": "x", "fields.n.max": "99999999999", "fields.sn.end": "100000000", "fields.vb.values": "?", "fields.vi.values": "1 mon", "fields.vn.values": "1.234",
	} {
		bad := table
		bad.Options = map[string]string{option: value}
		if strings.HasPrefix(option, "fields.s") {
			bad.Options["fields.sn.kind"] = "sequence"
		}
		if _, err := newDatagen(reading(bad)); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s = %s: %v", option, value, err)
		}
	}
}

const datagenTypes = `"\xf4;\xabB\x02{\xac\x04"|2020-09-20|2020-12-10T17:09:25.11|20:51:50.41|00:00:00|713.46|"\x00\x00\x00\x00\x00\x00\x00\a"|2017-12-30|2017-12-31T23:59:59.999|-00:00:01|-1 mons|-1.00|"hello"|0001-01-01|00:00:00.000001|99999999.99
"L\xe4o\f\xb6[\xd0\xd3"|2020-05-22|2020-07-10T04:00:02.564|20:02:40.838|2 mons|137.90|"\x00\x00\x00\x00\x00\x00\x00\b"|2017-12-31|2018-01-01T00:00:00|-00:00:00.999|00:00:00|0.00|"hello"|0001-01-01|00:00:00.000001|-1.50
"\t\xe6\x1eD}\x84E\x85"|2020-06-23|2020-12-18T07:03:18.457|10:20:26.201|00:00:00|698.82|"\x00\x00\x00\x00\x00\x00\x00\t"|2018-01-01|2018-01-01T00:00:00.001|-00:00:00.998|1 mon|1.00|"hello"|9999-12-31|00:00:00.000001|-1.50
"\t\xd3\xc0d \xe2N~"|2020-11-17|2020-05-31T15:29:42.114|03:10:42.181|1 year|997.96|"\x00\x00\x00\x00\x00\x00\x00\n"|2018-01-02|2018-01-01T00:00:00.002|-00:00:00.997|2 mons|2.00|"hi"|9999-12-31|00:00:00.000001|99999999.99
`

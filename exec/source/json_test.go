package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/planner/expr"
	"weir/planner/plan"
)

// one is a table with a single column k.
func one(format string, t expr.Type) plan.Table {
	return plan.Table{Name: "t", Connector: "filesystem", Format: format, Columns: []plan.Column{col("k", t)}}
}

func TestJSONValues(t *testing.T) {
	t.Parallel()
	dec := expr.Type{Kind: expr.Decimal, Precision: 5, Scale: 2}
	seconds := expr.Type{Kind: expr.TimestampLTZ, Precision: 0}
	for _, c := range []struct {
		typ   expr.Type
		value string
		want  string // a row, or the fault's reason
	}{
		{bigint, "9007199254740992", "9007199254740992"},
		{bigint, "9007199254740993", "9007199254740993"},
		{bigint, "9223372036854775807", "9223372036854775807"},
		{bigint, "-9223372036854775808", "-9223372036854775808"},
		{bigint, "9223372036854775808", `"9223372036854775808" is not a BIGINT: it is out of range`},
		{bigint, "-9223372036854775809", `"-9223372036854775809" is not a BIGINT: it is out of range`},
		{bigint, "99999999999999999999999", `"99999999999999999999999" is not a BIGINT: it is out of range`},
		{bigint, "0", "0"},
		{bigint, "-0", "0"},
		{bigint, "1e3", "1000"},
		{bigint, "1E+3", "1000"},
		{bigint, "12.0", "12"},
		{bigint, "-12.50e1", "-125"},
		{bigint, "1200e-2", "12"},
		{bigint, "0.00e999999999", "0"},
		{bigint, "9.223372036854775807e18", "9223372036854775807"},
		{bigint, "12.5", `"12.5" is not a BIGINT: it has a fraction`},
		{bigint, "1e-400", `"1e-400" is not a BIGINT: it has a fraction`},
		{bigint, "1e400", `"1e400" is not a BIGINT: it is out of range`},
		{bigint, `"7"`, `"7" is not a BIGINT: it is a text`},
		{bigint, `"007"`, `"007" is not a BIGINT: it is a text`},
		{bigint, `""`, `"" is not a BIGINT: it is a text`},
		{bigint, "true", `"true" is not a BIGINT: it is a truth value`},
		{bigint, "[7]", `"[7]" is not a BIGINT: it is an object or an array`},
		{bigint, "{}", `"{}" is not a BIGINT: it is an object or an array`},
		{bigint, "null", "NULL"},
		{bigint, "007", `not a JSON object: expected a number without leading zeros at byte 6, found "007}"`},
		{bigint, "-", `not a JSON object: expected a number without leading zeros at byte 7, found "}"`},
		{bigint, "1.", `not a JSON object: expected a digit at byte 8, found "}"`},
		{bigint, "1e", `not a JSON object: expected a digit at byte 8, found "}"`},
		{bigint, "NaN", `not a JSON object: expected a value at byte 6, found "NaN}"`},
		{bigint, "12x", `not a JSON object: expected ',' or '}' at byte 8, found "x}"`},
		{bigint, "", `not a JSON object: expected a value at byte 6, found "}"`},
		{integer, "2147483647", "2147483647"},
		{integer, "2147483648", `"2147483648" is not an INT: it is out of range`},
		{integer, "-2147483649", `"-2147483649" is not an INT: it is out of range`},
		{double, "1e400", `"1e400" is not a DOUBLE: it is out of range`},
		{double, "-1e400", `"-1e400" is not a DOUBLE: it is out of range`},
		{double, "1e-400", "0"},
		{double, "0.1", "0.1"},
		{double, "7", "7"},
		{double, `"NaN"`, "NaN"},
		{dec, "12.5", "12.50"},
		{dec, "-999.99", "-999.99"},
		{dec, "1000", `"1000" is not a DECIMAL(5, 2): it has more than 3 digits before the point`},
		{dec, "0.001", `"0.001" is not a DECIMAL(5, 2): it has more than 2 digits behind the point`},
		{text, `"7"`, `"7"`},
		{text, `""`, `""`},
		{text, "7", `"7" is not a STRING: it is a number`},
		{text, "true", `"true" is not a STRING: it is a truth value`},
		{text, `"a\"b\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"a\"b\\/\b\f\n\r\té😀"`},
		{text, `"é and more than eight bytes"`, `"é and more than eight bytes"`},
		{text, `"\ud83d"`, `"\ud83d" has an escape of half a UTF-16 pair`},
		{text, `"\udc00\ud83d"`, `"\udc00\ud83d" has an escape of half a UTF-16 pair`},
		{text, `"\ud83dab\u0041"`, `"\ud83dab\u0041" has an escape of half a UTF-16 pair`},
		{text, `"\u12g4"`, `not a JSON object: expected an escape that JSON knows at byte 7, found "\\u12g4\"}"`},
		{text, `"\x"`, `not a JSON object: expected an escape that JSON knows at byte 7, found "\\x\"}"`},
		{text, "\"a\xffb\"", `"a\xffb" is not valid UTF-8`},
		{text, "\"a\tb\"", `not a JSON object: expected the text's closing quote at byte 8, found "\tb\"}"`},
		{text, `"abc`, `not a JSON object: expected the text's closing quote at byte 11, found the end of the line`},
		{boolean, "true", "true"},
		{boolean, "false", "false"},
		{boolean, "1", `"1" is not a BOOLEAN: it is a number`},
		{boolean, `"true"`, `"true" is not a BOOLEAN: it is a text`},
		{boolean, "tru", `not a JSON object: expected a value at byte 6, found "tru}"`},
		{timestamp, `"2017-11-25T01:00:00Z"`, "2017-11-25T01:00:00Z"},
		{timestamp, `"2017-11-25 01:00:00"`, "2017-11-25T01:00:00Z"},
		{timestamp, `"2017-11-25T01:00:00.123456+01:30"`, "2017-11-24T23:30:00.123456Z"},
		{timestamp, `"1969-12-31T23:59:59.999999Z"`, "1969-12-31T23:59:59.999999Z"},
		{timestamp, `"2024-02-29T12:00-08"`, "2024-02-29T20:00:00Z"},
		{seconds, `"2017-11-25T01:00:00.5Z"`, "2017-11-25T01:00:01Z"},
		{seconds, `"2017-11-25T01:00:00.499999Z"`, "2017-11-25T01:00:00Z"},
		{timestamp, `"2023-02-29T12:00:00Z"`, `"2023-02-29T12:00:00Z" is not a TIMESTAMP_LTZ(6): there is no such day or time`},
		{timestamp, `"2017-11-25T01:00:00.1234567Z"`, "2017-11-25T01:00:00.123457Z"},
		{timestamp, "1511571600", `"1511571600" is not a TIMESTAMP_LTZ(6): it is a number; declare the column BIGINT, or write a text such as "2017-11-25T01:00:00Z"`},
	} {
		got, f := decodeAll(t, reading(one("json", c.typ)), `{"k":`+c.value+`}`)
		if f != nil {
			got = f.reason
		}
		if strings.TrimSuffix(got, "\n") != c.want {
			t.Errorf("%v %s:\n got %s\nwant %s", c.typ, c.value, got, c.want)
		}
	}
}

func TestJSONRecords(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "json", Columns: []plan.Column{
		col("k", text), {Name: "n", Type: bigint, NotNull: true}, col(`a"b`, double), col("unread", bigint),
	}}
	spec := reading(table, 1, 0, 2)
	for _, c := range []struct{ name, body, want string }{
		{
			"any order and spacing", "{\"k\":\"a\",\"n\":1}\n { \"n\" : 2 , \"k\" : \"b\" } \r\n\t{\"n\":3}\n{\"n\": 4, \"k\": \"d\"}\n{\"n\": 5, \"k\": \"e\"}",
			"1|\"a\"|NULL\n2|\"b\"|NULL\n3|NULL|NULL\n4|\"d\"|NULL\n5|\"e\"|NULL\n",
		},
		{"blank lines", "\n{\"n\":1}\n   \n\r\n\t\r\n{\"n\":2}\n\n", "1|NULL|NULL\n2|NULL|NULL\n"},
		{"an escaped key", `{"n":1,"a\"b":2.5,"\u006b":"x"}`, "1|\"x\"|2.5\n"},
		{"the last of two", `{"n":1,"n":2,"k":"long enough to count","k":"b","a\"b":null,"a\"b":1}` + "\n" + `{"n":3,"k":"c","k":null}`, "2|\"b\"|1\n3|NULL|NULL\n"},
		{"unread fields of all forms", `{"x":[1,{"y":[]},"z\n",true],"n":1,"unread":"no number","o":{"p":{"q":null}},"é":-1.5e-3,"f":false}`, "1|NULL|NULL\n"},
		{"invalid UTF-8 that is not read", "{\"x\":\"\xff\",\"n\":1}", "1|NULL|NULL\n"},
		{"a missing NOT NULL", `{"k":"a"}`, "n: the field is missing, and the column is NOT NULL"},
		{"a null NOT NULL", `{"n":null}`, "n: the field is null, and the column is NOT NULL"},
		{"null", "null", `: not a JSON object: expected a JSON object at byte 1, found "null"`},
		{"an array", " []", `: not a JSON object: expected a JSON object at byte 2, found "[]"`},
		{"a text", `"x"`, `: not a JSON object: expected a JSON object at byte 1, found "\"x\""`},
		{"text behind", `{"n":1}zzz`, `: not a JSON object: expected the end of the line at byte 8, found "zzz"`},
		{"two objects", `{"n":1}{"n":1}`, `: not a JSON object: expected the end of the line at byte 8, found "{\"n\":1}"`},
		{"a part", `{"n":`, `: not a JSON object: expected a value at byte 6, found the end of the line`},
		{"no colon", `{"n" 1}`, `: not a JSON object: expected ':' at byte 6, found "1}"`},
		{"no name", `{"n":1,}`, `: not a JSON object: expected a field's name in double quotes at byte 8, found "}"`},
		{"no comma", `{"n":1 "k":2}`, `: not a JSON object: expected ',' or '}' at byte 8, found "\"k\":2}"`},
		{"a bad nested comma", `{"x":[1,],"n":1}`, `: not a JSON object: expected a value at byte 9, found "],\"n\":1}"`},
		{"over two lines", "{\"n\":\n1}", `: not a JSON object: expected a value at byte 6, found the end of the line`},
	} {
		got, f := decodeAll(t, spec, c.body)
		if f != nil {
			got = f.column + ": " + f.reason
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestJSONDepth(t *testing.T) {
	t.Parallel()
	for depth, fine := range map[int]bool{100: true, maxDepth: true, maxDepth + 1: false, 1_000_000: false} {
		body := `{"k":1,"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
		_, f := decodeAll(t, reading(one("json", bigint)), body)
		if (f == nil) != fine {
			t.Errorf("depth %d: %v", depth, f)
		}
	}
}

func TestCountReadsNoColumns(t *testing.T) {
	t.Parallel()
	spec := reading(one("json", bigint), []int{}...)
	spec.Read = []int{}
	got, f := decodeAll(t, spec, "{}\n{\"k\":\"x\"}\n\n{ }")
	if f != nil || got != "\n\n\n" {
		t.Errorf("got %q, %v", got, f)
	}
	if _, f = decodeAll(t, spec, "{\"k\":}"); f == nil {
		t.Error("a broken record was counted")
	}
}

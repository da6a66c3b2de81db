package source

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"weir/exec"
	"weir/planner/expr"
	"weir/planner/plan"
)

// Cases of other systems' faults with malformed input; each test carries its case's id.

// readFile reads a table of one file, to its end or to the first fault.
func readFile(t *testing.T, table plan.Table, body string) (rows, reason string) {
	t.Helper()
	dir := folder(t, map[string]string{"f": body})
	table.Connector = "filesystem"
	options := map[string]string{"path": filepath.Join(dir, "f")}
	for k, v := range table.Options {
		options[k] = v
	}
	table.Options = options
	spec := reading(table)
	s, err := Open(context.Background(), setupOf(spec, dir, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err = drain(t, s, spec)
	var fault *exec.RowError
	if errors.As(err, &fault) {
		return rows, fault.Reason
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows, ""
}

// taken checks what values of one type are read as; a want that begins with ! is a part
// of the fault's reason.
func taken(t *testing.T, format string, typ expr.Type, values map[string]string) {
	t.Helper()
	for value, want := range values {
		body := value
		if format == "json" {
			body = `{"k":` + value + "}"
		}
		rows, reason := readFile(t, one(format, typ), body+"\n")
		if part, bad := strings.CutPrefix(want, "!"); bad {
			if rows != "" || !strings.Contains(reason, part) {
				t.Errorf("%s %v %s: got %q, %q, want the fault %q", format, typ, value, rows, reason, part)
			}
		} else if rows != want+"\n" || reason != "" {
			t.Errorf("%s %v %s: got %q, %q, want %q", format, typ, value, rows, reason, want)
		}
	}
}

// M01: BIGINT is exact.
func TestM01ExactIntegers(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "csv"} {
		taken(t, format, bigint, map[string]string{
			"9007199254740992": "9007199254740992", "9007199254740993": "9007199254740993", "9223372036854775807": "9223372036854775807",
			"-9223372036854775808": "-9223372036854775808", "9223372036854775808": "!out of range", "1e3": "1000", "12.0": "12", "12.5": "!has a fraction",
		})
	}
}

// M04: a byte order mark at a file's start is no part of it; elsewhere it is.
func TestM04ByteOrderMark(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{col("k", text), col("v", bigint)}, Options: map[string]string{"csv.header": "true"}}
	for _, header := range []string{"k,v\n", "\"k\",\"v\"\n"} {
		if rows, reason := readFile(t, table, "\ufeff"+header+"a,1\na,2\n"); rows != "\"a\"|1\n\"a\"|2\n" || reason != "" {
			t.Errorf("%q: %q, %q", header, rows, reason)
		}
	}
	table.Options = nil
	if rows, reason := readFile(t, table, "a,1\n\ufeffa,2\n"); rows != "\"a\"|1\n\"\\ufeffa\"|2\n" || reason != "" {
		t.Errorf("a mark within: %q, %q", rows, reason)
	}
	table.Format = "json"
	if rows, reason := readFile(t, table, "\ufeff{\"k\":\"a\",\"v\":1}\n{\"k\":\"\ufeffa\",\"v\":2}\n"); rows != "\"a\"|1\n\"\\ufeffa\"|2\n" || reason != "" {
		t.Errorf("JSON: %q, %q", rows, reason)
	}
}

// M05: CR LF and LF both end a record; a line end within quotes stays as it is.
func TestM05LineEnds(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{col("v", bigint), col("k", text)}}
	if rows, reason := readFile(t, table, "1,a\r\n2,a\n3,a"); rows != "1|\"a\"\n2|\"a\"\n3|\"a\"\n" || reason != "" {
		t.Errorf("%q, %q", rows, reason)
	}
	if rows, reason := readFile(t, table, "1,\"a\r\nb\"\r\n2,\"a\nb\"\n"); rows != "1|\"a\\r\\nb\"\n2|\"a\\nb\"\n" || reason != "" {
		t.Errorf("within quotes: %q, %q", rows, reason)
	}
	table.Format = "json"
	if rows, reason := readFile(t, table, "{\"v\":1,\"k\":\"a\"}\r\n{\"v\":2,\"k\":\"a\"}\n{\"v\":3,\"k\":\"a\"}"); rows != "1|\"a\"\n2|\"a\"\n3|\"a\"\n" || reason != "" {
		t.Errorf("JSON: %q, %q", rows, reason)
	}
}

// M07: deep nesting in a field that is not read is a fault of the record, not of the process.
func TestM07Depth(t *testing.T) {
	t.Parallel()
	for depth, fine := range map[int]bool{100: true, 10_000: false, 10_001: false, 1_000_000: false} {
		for _, open := range []string{"[", `{"x":`} {
			body := `{"k":1,"x":` + strings.Repeat(open, depth) + "1" + strings.Repeat(map[string]string{"[": "]", `{"x":`: "}"}[open], depth) + "}\n{\"k\":2}\n"
			rows, reason := readFile(t, one("json", bigint), body)
			if fine && (rows != "1\n2\n" || reason != "") || !fine && !strings.Contains(reason, "nest no deeper than 512") {
				t.Errorf("depth %d: %q, %.200q", depth, rows, reason)
			}
		}
	}
}

// M11: no type is made of another: JSON's "7" is no number, true is none, and "" is
// neither 0 nor NULL. CSV has no types: what spells a number is one.
func TestM11NoCoercion(t *testing.T) {
	t.Parallel()
	taken(t, "json", bigint, map[string]string{
		"7": "7", `"7"`: "!it is a text", `"007"`: "!it is a text", `""`: "!it is a text", "true": "!it is a truth value", "7.5": "!it has a fraction", "[7]": "!an object or an array", "{}": "!an object or an array",
	})
	taken(t, "json", text, map[string]string{`"7"`: `"7"`, `"007"`: `"007"`, "7": "!it is a number", "true": "!it is a truth value", `""`: `""`})
	taken(t, "json", boolean, map[string]string{"true": "true", "1": "!it is a number", `"true"`: "!it is a text", "0": "!it is a number"})
	taken(t, "json", double, map[string]string{"7": "7", `"7"`: "!it is a text", "true": "!it is a truth value"})
	taken(t, "json", expr.Type{Kind: expr.Decimal, Precision: 5, Scale: 2}, map[string]string{"7": "7.00", `"7"`: "!it is a text", "7.005": "!it has more than 2 digits behind the point"})
	taken(t, "csv", bigint, map[string]string{"7": "7", "007": "7", `"7"`: "7", `""`: "!it is not a number", "true": "!it is not a number", "7.5": "!it has a fraction"})
	taken(t, "csv", text, map[string]string{"7": `"7"`, "007": `"007"`, `""`: `""`})
}

// M12: numbers that are not finite. The texts in which results have them are read back;
// others, and bare ones, are faults.
func TestM12NotFinite(t *testing.T) {
	t.Parallel()
	taken(t, "json", double, map[string]string{
		"1e400": "!it is out of range", "-1e400": "!it is out of range", "1e-400": "0", "NaN": "!expected a value", "Infinity": "!expected a value", "-Infinity": "!expected",
		`"NaN"`: "NaN", `"Infinity"`: "+Inf", `"-Infinity"`: "-Inf", `"nan"`: "!it is a text other than", `"inf"`: "!it is a text other than", `"+Infinity"`: "!it is a text other than",
	})
	taken(t, "json", bigint, map[string]string{`"NaN"`: "!it is a text"})
	taken(t, "json", expr.DecimalType(2), map[string]string{`"NaN"`: "!it is a text"})
	taken(t, "csv", double, map[string]string{"1e400": "!it is out of range", "1e-400": "0", "NaN": "NaN", "Infinity": "+Inf", "-Infinity": "-Inf"})
}

// M13: a line is one JSON object; blank lines are none.
func TestM13OneObjectPerLine(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"null", "[]", `"x"`, `{"k":"a"}zzz`, `{"k":"a"}{"k":"a"}`} {
		rows, reason := readFile(t, one("json", text), "{\"k\":\"a\"}\n\n   \n"+bad+"\n{\"k\":\"a\"}\n")
		if !strings.HasPrefix(reason, "not a JSON object: ") {
			t.Errorf("%s: %q, %q", bad, rows, reason)
		}
	}
	if rows, reason := readFile(t, one("json", text), "{\"k\":\"a\"}\n\n   \n\t\r\n{\"k\":\"a\"}\n"); rows != "\"a\"\n\"a\"\n" || reason != "" {
		t.Errorf("%q, %q", rows, reason)
	}
}

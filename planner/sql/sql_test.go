package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs testdata: "parse" prints the canonical text and every error with
// its place; "tree" prints the expression's nodes with their byte ranges.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "parse":
				script, errs := Parse(d.Input)
				return Format(script) + showErrors(d.Input, errs)
			case "tree":
				script, errs := Parse("SELECT " + d.Input + " FROM t")
				if len(errs) > 0 {
					return showErrors("SELECT "+d.Input, errs)
				}
				return showTree(script.Statements[0].(*Query).Body.(*Select).Items[0].Expr, "SELECT "+d.Input, "")
			case "suggest":
				return Suggest(d.Input, strings.Fields("SELECT FROM user_id behavior category_id checkpoint.interval")) + "\n"
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func showErrors(src string, errs []*Error) string {
	var b strings.Builder
	for _, e := range errs {
		line, column := Locate(src, e.Pos)
		fmt.Fprintf(&b, "%d:%d %s: %s\n", line, column, e.Code, e.Message)
		if e.Hint != "" {
			fmt.Fprintf(&b, "    hint: %s\n", e.Hint)
		}
	}
	return b.String()
}

func showTree(e Expr, src, indent string) string {
	head := indent + strings.TrimPrefix(fmt.Sprintf("%T", e), "*sql.") + " " + src[e.Pos():e.End()] + "\n"
	for _, child := range children(e) {
		head += showTree(child, src, indent+"  ")
	}
	return head
}

func children(e Expr) []Expr {
	var list []Expr
	switch e := e.(type) {
	case *Unary:
		list = []Expr{e.X}
	case *Binary:
		list = []Expr{e.X, e.Y}
	case *IsNull:
		list = []Expr{e.X}
	case *IsTruth:
		list = []Expr{e.X}
	case *IsDistinct:
		list = []Expr{e.X, e.Y}
	case *In:
		list = append([]Expr{e.X}, e.List...)
	case *Between:
		list = []Expr{e.X, e.Low, e.High}
	case *Like:
		list = []Expr{e.X, e.Pattern, e.Escape}
	case *Case:
		list = []Expr{e.Operand}
		for _, w := range e.Whens {
			list = append(list, w.If, w.Then)
		}
		list = append(list, e.Else)
	case *Cast:
		list = []Expr{e.X}
	case *Call:
		list = append(slices.Clone(e.Args), e.Filter)
	case *GroupingSets:
		list = e.List
	case *Row:
		list = e.List
	}
	return slices.DeleteFunc(list, func(x Expr) bool { return x == nil })
}

// TestDepth: neither parentheses nor a chain of operators makes a tree of any depth.
func TestDepth(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"parentheses": strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"minus":       strings.Repeat("- ", 100_000) + "1",
		"not":         strings.Repeat("NOT ", 100_000) + "TRUE",
		"sum":         "1" + strings.Repeat(" + 1", 100_000),
		"calls":       strings.Repeat("f(", 100_000) + strings.Repeat(")", 100_000),
		"in":          strings.Repeat("1 IN (", 100_000) + "1" + strings.Repeat(")", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := Parse("SELECT " + text + " FROM t")
			if len(errs) != 1 || errs[0].Code != CodeUnsupported {
				t.Fatalf("got %v, want one refusal", errs)
			}
		})
	}
}

// FuzzParse: Parse does not panic, errors lie within the text, and Format is a fixed point.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"SELECT behavior, COUNT(*) AS n FROM user_behavior WHERE behavior IN ('buy','cart') GROUP BY behavior;",
		"CREATE TABLE t (a BIGINT NOT NULL, b AS a + 1, WATERMARK FOR b AS b - INTERVAL '5' SECOND, PRIMARY KEY (a) NOT ENFORCED) WITH ('k' = 'v')",
		"INSERT INTO s (a, `b c`) SELECT - -1, t.* FROM t x -- comment\n GROUP BY 1, x+1",
		"SET 'a''b' = ''; /* /* nested */ */ SELECT NOT a IS NULL OR (b = c) IS NOT NULL AND NOT d NOT IN (1.5e3, NULL) FROM \"T\"\"x\"",
		"SELECT x'", "SELECT \xff", "CREATE TABLE t (a TIMESTAMP(3) WITH LOCAL TIME ZONE, b DECIMAL(38, 2))",
		"SELECT a COLLATE b, ((SELECT 1)) FROM TABLE(TUMBLE(TABLE t)) ORDER BY 1",
		"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1 FROM t; END;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		script, errs := Parse(src)
		for _, e := range errs {
			if e.Pos < 0 || e.End < e.Pos || e.End > len(src) || e.Message == "" {
				t.Fatalf("error out of the text: %+v", e)
			}
		}
		once := Format(script)
		again, errs := Parse(once)
		if len(errs) > 0 {
			t.Fatalf("Format printed %q, which does not parse: %v", once, errs[0])
		}
		if twice := Format(again); twice != once {
			t.Fatalf("no fixed point:\n%q\n%q", once, twice)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	src := "SELECT behavior, COUNT(*) AS n FROM user_behavior WHERE behavior IN ('buy','cart') AND user_id > 5 GROUP BY behavior;"
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, errs := Parse(src); len(errs) > 0 {
			b.Fatal(errs[0])
		}
	}
}

package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
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
		"parentheses": strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000),
		"minus":       strings.Repeat("- ", 20_000) + "1",
		"not":         strings.Repeat("NOT ", 20_000) + "TRUE",
		"sum":         "1" + strings.Repeat(" + 1", 20_000),
		"calls":       strings.Repeat("f(", 20_000) + strings.Repeat(")", 20_000),
		"in":          strings.Repeat("1 IN (", 20_000) + "1" + strings.Repeat(")", 20_000),
		"case":        strings.Repeat("CASE WHEN ", 20_000) + "1",
		"else":        strings.Repeat("CASE WHEN a THEN b ELSE ", 20_000) + "1",
		"operand":     strings.Repeat("CASE ", 20_000) + "1",
		"cast":        strings.Repeat("CAST(", 20_000) + "1",
		"colons":      "1" + strings.Repeat("::INT", 20_000),
		"between":     strings.Repeat("a BETWEEN ", 20_000) + "1",
		"like":        strings.Repeat("a LIKE (", 20_000) + "1",
		"distinct":    strings.Repeat("(a IS DISTINCT FROM ", 20_000) + "1",
		"true":        "a" + strings.Repeat(" IS TRUE", 20_000),
		"extract":     strings.Repeat("EXTRACT(DAY FROM ", 20_000) + "1",
		"trim":        strings.Repeat("TRIM(", 20_000) + "1",
		"position":    strings.Repeat("POSITION(", 20_000) + "1",
		"substring":   strings.Repeat("SUBSTRING(", 20_000) + "1",
		"floor":       strings.Repeat("FLOOR(", 20_000) + "1",
		"filter":      strings.Repeat("COUNT(*) FILTER (WHERE ", 20_000) + "1",
		"from":        "1" + strings.Repeat(" FROM (SELECT 1", 20_000),
		"with":        "1 FROM (" + strings.Repeat("WITH a AS (", 20_000) + "SELECT 1",
		"queries":     "1 UNION ALL " + strings.Repeat("(", 20_000) + "SELECT 1",
		"sets":        "1 FROM t GROUP BY " + strings.Repeat("GROUPING SETS (", 20_000) + "a",
		"rows":        "1 FROM t GROUP BY " + strings.Repeat("(", 20_000) + "a",
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

// seeds gives every input of the scripts under testdata.
func seeds(f *testing.F) []string {
	f.Helper()
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	var list []string
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			if _, after, ok := strings.Cut(block, "parse\n"); ok {
				input, _, _ := strings.Cut(after, "\n----")
				list = append(list, input)
			}
		}
	}
	return list
}

// FuzzParse: Parse does not panic, errors lie within the text and in its order, what
// Format prints means the same, and Format is a fixed point.
func FuzzParse(f *testing.F) {
	for _, seed := range append(seeds(f), fiftyLines, "SELECT x'", "SELECT \xff", "SELECT \"T\"\"x\", `b c`") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		script, errs := Parse(src)
		for i, e := range errs {
			if i > 0 && e.Pos < errs[i-1].Pos {
				t.Fatalf("errors out of order: %v, %v", errs[i-1], e)
			}
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
		if diff := cmp.Diff(script.Statements, again.Statements, sameMeaning()...); diff != "" {
			t.Fatalf("Format printed %q, which means something else:\n%s", once, diff)
		}
	})
}

// fiftyLines is a script of 50 lines, as a job's.
const fiftyLines = `-- Sales per hour and shop, late ones apart.
SET 'parallelism' = '2';
SET 'checkpoint.interval' = '10 s';

CREATE TABLE sales (
  sale_id   BIGINT NOT NULL,
  shop      STRING,
  item      STRING,
  price     DECIMAL(10, 2),
  pieces    INT,
  paid      BOOLEAN,
  ts        TIMESTAMP_LTZ(3),
  day       AS CAST(ts AS DATE),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/sales.csv',
  'format' = 'csv'
);

CREATE TABLE per_hour (
  shop STRING,
  hour TIMESTAMP_LTZ(3),
  n    BIGINT,
  total DECIMAL(38, 2),
  PRIMARY KEY (shop, hour) NOT ENFORCED
) WITH ('connector' = 'blackhole');

CREATE VIEW paid AS
SELECT sale_id, TRIM(BOTH ' ' FROM shop) AS shop, UPPER(item) AS item, price * pieces AS amount, ts,
  CASE WHEN price > 100 THEN 'high' WHEN price BETWEEN 10 AND 100 THEN 'middle' ELSE 'low' END AS class
FROM sales
WHERE paid IS TRUE AND item NOT LIKE '%test%' AND shop IS DISTINCT FROM 'none' AND pieces IN (1, 2, 3, 4, 5);

CREATE VIEW both_kinds AS
SELECT shop, ts, amount FROM paid WHERE class <> 'low'
UNION ALL
SELECT shop, ts, -amount FROM (SELECT * FROM paid WHERE class = 'low') AS low;

EXECUTE STATEMENT SET BEGIN
INSERT INTO per_hour
WITH hours AS (SELECT shop, FLOOR(ts TO HOUR) AS hour, amount FROM both_kinds)
SELECT shop, hour, COUNT(*) AS n, SUM(amount) AS total
FROM hours
GROUP BY shop, hour
HAVING COUNT(*) FILTER (WHERE amount > 0) > 10 OR SUM(amount) >= 1000.50;
INSERT INTO per_day (shop, day, n)
SELECT COALESCE(shop, '?') || '/' || CAST(EXTRACT(DOW FROM ts) AS STRING), DATE '2020-01-01', COUNT(DISTINCT amount)
FROM paid GROUP BY ROLLUP (shop, EXTRACT(DOW FROM ts));
END;
`

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(fiftyLines)))
	for b.Loop() {
		if _, errs := Parse(fiftyLines); len(errs) > 0 {
			b.Fatal(errs[0])
		}
	}
}

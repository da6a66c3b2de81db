// Command gen writes the tables that follow from the code into the pages, between the
// marks that name them: functions and aggregates, of planner/expr, into docs/sql.md;
// options and reasons, of checkpoint, into docs/checkpoints.md.
//
//	go run ./docs/gen            writes the pages
//	go run ./docs/gen -print     prints them, one after the other
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"weir/checkpoint"
	"weir/planner/expr"
)

// A section is what stands between two marks of a page.
type section struct{ mark, body string }

func main() {
	show := flag.Bool("print", false, "print the page and leave the file alone")
	flag.Parse()
	if err := run(*show); err != nil {
		fmt.Fprintln(os.Stderr, "docs/gen:", err)
		os.Exit(1)
	}
}

func run(show bool) error {
	err := write("docs/sql.md", show, section{"functions", functions()}, section{"aggregates", aggregates()})
	if err != nil {
		return err
	}
	return write("docs/checkpoints.md", show, section{"options", options()}, section{"reasons", reasons()})
}

// write brings a page up to date, or prints what it would be.
func write(path string, show bool, sections ...section) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(page)
	for _, s := range sections {
		if text, err = replace(text, s.mark, s.body); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if show {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replace puts body between <!-- mark --> and <!-- /mark -->.
func replace(text, mark, body string) (string, error) {
	open, shut := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
	before, rest, ok := strings.Cut(text, open)
	_, after, closed := strings.Cut(rest, shut)
	if !ok || !closed {
		return "", fmt.Errorf("no section %s", mark)
	}
	return before + open + body + shut + after, nil
}

func options() string {
	var b strings.Builder
	b.WriteString("\n| option | in Flink | default | range | |\n|---|---|---|---|---|\n")
	for _, o := range checkpoint.OptionDocs() {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s | %s Change it: %s |\n", o.Name, o.Flink, o.Default, o.Range, o.Meaning, lower(o.Change))
	}
	b.WriteString("\n")
	return b.String()
}

func reasons() string {
	var b strings.Builder
	b.WriteString("\n| reason | counts | means | what to do |\n|---|---|---|---|\n")
	for _, r := range checkpoint.ReasonDocs() {
		counts := "no"
		if r.Counts {
			counts = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Reason, counts, r.Meaning, r.WhatToDo)
	}
	b.WriteString("\n")
	return b.String()
}

// lower makes the first letter small, but for names of values.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func functions() string {
	var b strings.Builder
	group := ""
	for _, f := range expr.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n### %s%s\n\n| call | gives | |\n|---|---|---|\n", strings.ToUpper(group[:1]), group[1:])
		}
		calls, results := signatures(f)
		row(&b, calls, results, description(f.Doc, others(f), f.Nulls == expr.SkipNulls && !f.Special, f.Errors, f.Examples))
	}
	b.WriteString("\n")
	return b.String()
}

// signatures gives each way to call a function and what it gives.
func signatures(f expr.Function) (calls, results []string) {
	if f.Syntax != "" {
		calls = append(calls, "`"+f.Syntax+"`")
	}
	for _, s := range f.Signatures {
		if f.Syntax == "" {
			calls = append(calls, "`"+call(f, s)+"`")
		}
		results = append(results, s.Gives())
	}
	return unique(calls), unique(results)
}

// call prints a signature. Functions of any number are shown once.
func call(f expr.Function, s expr.Signature) string {
	ofNumbers := 0
	for _, other := range f.Signatures {
		if len(other.Params) > 0 && (expr.Type{Kind: other.Params[0].Kind}).Numeric() {
			ofNumbers++
		}
	}
	var list []string
	for i, p := range s.Params {
		name := kind(p.Kind)
		if (expr.Type{Kind: p.Kind}).Numeric() && ofNumbers > 2 && !p.Constant && (i == 0 || len(s.Params) == 2) {
			name = "number"
		}
		list = append(list, p.Name+" "+name)
	}
	if s.Variadic {
		list = append(list, "…")
	}
	return f.SQL + "(" + strings.Join(list, ", ") + ")"
}

func kind(k expr.Kind) string {
	switch k {
	case expr.Null:
		return "any"
	case expr.Decimal, expr.Timestamp, expr.TimestampLTZ:
		name, _, _ := strings.Cut(expr.Type{Kind: k}.String(), "(")
		return name
	}
	return expr.Type{Kind: k}.String()
}

func aggregates() string {
	var b strings.Builder
	b.WriteString("\n| call | gives | |\n|---|---|---|\n")
	for _, a := range expr.AggregateFunctions() {
		call := a.Syntax
		if call == "" {
			call = a.SQL + "(x)"
		}
		row(&b, []string{"`" + call + "`"}, []string{a.Result}, description(a.Doc, a.Aliases, false, a.Errors, a.Examples))
	}
	b.WriteString("\n")
	return b.String()
}

func description(doc string, aliases []string, skipsNulls bool, errors string, examples []expr.Example) string {
	parts := []string{doc}
	if len(aliases) > 0 {
		parts = append(parts, "Also "+strings.Join(aliases, ", ")+".")
	}
	if skipsNulls {
		parts = append(parts, "NULL arguments are skipped.")
	}
	if errors != "" {
		parts = append(parts, "Row error: "+strings.TrimSuffix(errors, ".")+".")
	}
	for _, e := range examples {
		parts = append(parts, "`"+e.SQL+"` is `"+e.Value+"`.")
	}
	return strings.Join(parts, " ")
}

func row(b *strings.Builder, calls, results []string, text string) {
	cells := []string{strings.Join(calls, "<br>"), strings.Join(results, "<br>"), text}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// others lists the aliases that the syntax does not show.
func others(f expr.Function) []string {
	return slices.DeleteFunc(slices.Clone(f.Aliases), func(name string) bool { return strings.Contains(f.Syntax, name) })
}

func unique(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

package checkpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
)

func TestCriticalPath(t *testing.T) {
	t.Parallel()
	tasks := []Task{
		{ID: weir.TaskID{Subtask: 0}, Name: "source", Source: true},
		{ID: weir.TaskID{Subtask: 1}, Name: "source", Source: true},
		{ID: weir.TaskID{Chain: 1, Subtask: 3}, Name: "global_count"},
		{ID: weir.TaskID{Chain: 2}, Name: "sink"},
	}
	ack := func(i int, after time.Duration, from int, timing Timing) Ack {
		if from >= 0 {
			timing.LastInput = &tasks[from].ID
		}
		return Ack{Task: tasks[i].ID, AckedAt: scriptStart.Add(after), Timing: timing}
	}
	source := ack(1, 300*time.Millisecond, -1, Timing{StartDelayMS: 200, CutMS: 1, UploadMS: 90})
	count := ack(2, 3220*time.Millisecond, 1, Timing{StartDelayMS: 200, AlignmentMS: 2700, CutMS: 20, UploadMS: 300, NewBytes: 12 << 20})
	sink := ack(3, 4*time.Second, 2, Timing{StartDelayMS: 2950, CutMS: 0.5, UploadMS: 400, NewBytes: 900})
	for _, c := range []struct {
		name string
		acks []Ack
		took time.Duration
		want string
	}{
		{"none", nil, time.Second, ""},
		{"unknown", []Ack{{Task: tasks[0].ID}}, time.Second, ""},
		{
			"source",
			[]Ack{source},
			300 * time.Millisecond,
			"300 ms: source subtask 1 was last: 200 ms until it took the trigger, 1.0 ms cut, 90 ms storing 0 B",
		},
		{
			"aligned",
			[]Ack{source, count},
			3225 * time.Millisecond,
			"3.2 s: global_count subtask 3 was last: 2.9 s until the barrier from source subtask 1 came (aligning 2.7 s), which took the trigger after 200 ms, 20 ms cut, 300 ms storing 12 MiB",
		},
		{
			"without the sender",
			[]Ack{count},
			5 * time.Second,
			"5.0 s: global_count subtask 3 was last: 2.9 s until the barrier from source subtask 1 came (aligning 2.7 s), 20 ms cut, 300 ms storing 12 MiB, 1.8 s writing the manifest",
		},
		{
			"two steps",
			[]Ack{source, count, sink},
			4010 * time.Millisecond,
			"4.0 s: sink subtask 0 was last: 3.0 s until the barrier from global_count subtask 3 came, which had that from source subtask 1 after 2.9 s, " +
				"which took the trigger after 200 ms, 0.5 ms cut, 400 ms storing 900 B, 650 ms until its ack came",
		},
	} {
		r := Record{TriggeredAt: scriptStart, CompletedAt: scriptStart.Add(c.took), Acks: c.acks}
		if got := CriticalPath(r, tasks); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestReasons: the closed list has exactly the reasons that the code gives. The failures
// of all scripts have them, and the script of reasons has each of them with where and why.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, d := range ReasonDocs() {
		if d.Meaning == "" || d.WhatToDo == "" {
			t.Errorf("%s is not explained", d.Reason)
		}
	}
	list := slices.Sorted(slices.Values(Reasons()))
	if diff := cmp.Diff(list, reasonsInCode(t)); diff != "" {
		t.Errorf("the list -, the code +:\n%s", diff)
	}
	whole, err := os.ReadFile("testdata/coordinator/reasons")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ReasonDocs() {
		where := "  at no task"
		if slices.Contains([]string{ReasonTimeout, ReasonDeclined, ReasonTrigger}, d.Reason) {
			where = `  at operator \w+, subtask \d, worker w\d`
		}
		said := `(?m)^(abort cp=\d+ (failed|aborted)|fail attempt:) ` + d.Reason + `: .{10,}\n` + where + `$`
		if !regexp.MustCompile(said).Match(whole) {
			t.Errorf("no script says where and why of %s", d.Reason)
		}
	}
	scripts, err := filepath.Glob("testdata/coordinator/*")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	given := regexp.MustCompile(`(?m)^(?:abort cp=\d+ (?:failed|aborted)|fail attempt:) (\w+): `)
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range given.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(Reasons(), m[1]) {
				t.Errorf("%s: reason %q is not in the list", path, m[1])
			}
		}
	}
}

// reasonsInCode lists the reasons that failures are made with, sorted. One that is no
// constant of this package would escape the list: it is an error, in what the job's driver and
// the metastore write too.
func reasonsInCode(t *testing.T) []string {
	t.Helper()
	values, used := map[string]string{}, map[string]bool{}
	for _, pattern := range []string{"*.go", "../metastore/*.go", "../metastore/*/*.go", "../server/job/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || path == "reason.go" {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			r := reasons{t: t, path: path, values: values, used: used}
			ast.Inspect(file, r.visit)
		}
	}
	var list []string
	for name := range used {
		if values[name] == "" {
			t.Errorf("%s has no value", name)
		}
		list = append(list, values[name])
	}
	slices.Sort(list)
	return list
}

// reasons gathers the reasons in a file: constants declared, and used.
type reasons struct {
	t      *testing.T
	path   string
	values map[string]string // by constant
	used   map[string]bool
}

func (r reasons) visit(n ast.Node) bool {
	here := !strings.HasPrefix(r.path, "..")
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if lit, ok := value(n.Values, i).(*ast.BasicLit); ok && here && isReason(name.Name) {
				r.values[name.Name] = strings.Trim(lit.Value, `"`)
			}
		}
		return false
	case *ast.Ident:
		if here && isReason(n.Name) {
			r.used[n.Name] = true
		}
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "checkpoint" && isReason(n.Sel.Name) {
			r.used[n.Sel.Name] = true
		}
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		if _, literal := n.Value.(*ast.BasicLit); here && ok && literal && key.Name == "Reason" {
			r.t.Errorf("%s: a failure with a reason of its own", r.path)
		}
	}
	return true
}

func value(values []ast.Expr, i int) ast.Expr {
	if i < len(values) {
		return values[i]
	}
	return nil
}

func isReason(name string) bool {
	return strings.HasPrefix(name, "Reason") && !slices.Contains([]string{"Reason", "Reasons", "ReasonDoc", "ReasonDocs"}, name)
}

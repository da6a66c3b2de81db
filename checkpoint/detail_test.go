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
			"source", []Ack{source}, 300 * time.Millisecond,
			"0.3 s: source subtask 1 was last: 0.2 s until it took the trigger, 0.001 s cut, 0.09 s storing 0 B",
		},
		{
			"aligned", []Ack{source, count}, 3225 * time.Millisecond,
			"3.2 s: global_count subtask 3 was last: 2.9 s until the barrier from source subtask 1 came (aligning 2.7 s), which took the trigger after 0.2 s, 0.02 s cut, 0.3 s storing 12 MiB",
		},
		{
			"without the sender", []Ack{count}, 5 * time.Second,
			"5.0 s: global_count subtask 3 was last: 2.9 s until the barrier from source subtask 1 came (aligning 2.7 s), 0.02 s cut, 0.3 s storing 12 MiB, 1.8 s writing the manifest",
		},
		{
			"two steps", []Ack{source, count, sink}, 4010 * time.Millisecond,
			"4.0 s: sink subtask 0 was last: 3.0 s until the barrier from global_count subtask 3 came, which had that from source subtask 1 after 2.9 s, " +
				"which took the trigger after 0.2 s, 0.001 s cut, 0.4 s storing 900 B, 0.6 s until its ack came",
		},
	} {
		r := Record{TriggeredAt: scriptStart, CompletedAt: scriptStart.Add(c.took), Acks: c.acks}
		if got := CriticalPath(r, tasks); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestReasons: every reason that the code can give is in the closed list, and every one
// of the list is given somewhere. The failures of all scripts have them.
func TestReasons(t *testing.T) {
	t.Parallel()
	used := reasonsInCode(t)
	docs := ReasonDocs()
	for _, d := range docs {
		if d.Meaning == "" || d.WhatToDo == "" {
			t.Errorf("%s is not explained", d.Reason)
		}
	}
	if len(used) != len(docs) {
		t.Errorf("the code gives %v, the list has %v", used, Reasons())
	}
	scripts, err := filepath.Glob("testdata/coordinator/*")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	given := regexp.MustCompile(`(?m)^(?:abort cp=\d+ (?:failed|aborted)|fail attempt:) (\w+): `)
	seen := map[string]bool{}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range given.FindAllStringSubmatch(string(text), -1) {
			seen[m[1]] = true
			if !slices.Contains(Reasons(), m[1]) {
				t.Errorf("%s: reason %q is not in the list", path, m[1])
			}
		}
	}
	for _, reason := range Reasons() {
		if !seen[reason] {
			t.Errorf("no script ends with %s", reason)
		}
	}
}

// reasonsInCode lists the constants that failures are made with; a Failure whose reason is
// no constant would escape the list.
func reasonsInCode(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || path == "reason.go" || path == "checkpoint.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if name := n.Name; strings.HasPrefix(name, "Reason") && name != "Reason" && name != "ReasonDoc" && name != "ReasonDocs" && !slices.Contains(used, name) {
					used = append(used, name)
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
					if _, literal := n.Value.(*ast.BasicLit); literal {
						t.Errorf("%s: a failure with a reason of its own", path)
					}
				}
			}
			return true
		})
	}
	return used
}

package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"weir"
	"weir/planner/plan"
)

// A script of restores: "graph" gives the query, one line per chain ("single" first
// where it has one subtask) of id:kind; "snapshot" gives what tasks hold; "restore" deals
// it out.
func TestRestoreScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/restore", func(t *testing.T, path string) {
		var g plan.Graph
		var m *Manifest
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "graph":
				g = readGraph(t, d)
				return ""
			case "snapshot":
				m = readSnapshot(t, d, g)
				return ""
			case "restore":
				p, err := Restore(m, g, num(t, arg(d, "parallelism")))
				if err != nil {
					return strings.ReplaceAll(err.Error(), "; ", ";\n  ") + "\n"
				}
				return showPlan(p)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func readGraph(t *testing.T, d *datadriven.TestData) plan.Graph {
	g := plan.Graph{Version: 1, MaxParallelism: num(t, arg(d, "max"))}
	for line := range strings.Lines(d.Input) {
		var c plan.Chain
		for _, word := range strings.Fields(line) {
			if word == "single" {
				c.Single = true
				continue
			}
			id, kind, _ := strings.Cut(word, ":")
			c.Operators = append(c.Operators, plan.Operator{ID: weir.OperatorID(id), Name: kind + "(" + id + ")", Kind: plan.OperatorKind(kind)})
		}
		g.Chains = append(g.Chains, c)
	}
	return g
}

// readSnapshot reads lines "0/1 [ended] op keyed OBJECT[0,4) list ITEM …".
func readSnapshot(t *testing.T, d *datadriven.TestData, g plan.Graph) *Manifest {
	m := &Manifest{
		Version: ManifestVersion, Job: testJob, Checkpoint: 7, Attempt: testAttempt, Type: TypeCheckpoint,
		Parallelism: num(t, arg(d, "parallelism")), MaxParallelism: g.MaxParallelism, Operators: operatorsOf(g),
	}
	for i, op := range m.Operators { // another=OPERATOR: its state was computed by another query
		if string(op.ID) == arg(d, "another") {
			m.Operators[i].Meaning = "another"
		}
	}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		var snap TaskSnapshot
		if _, err := fmt.Sscanf(words[0], "%d/%d", &snap.Task.Chain, &snap.Task.Subtask); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(words); i++ {
			last := len(snap.Operators) - 1
			switch words[i] {
			case "ended":
				snap.Ended = true
			case "keyed":
				i++
				name, groups, _ := strings.Cut(words[i], "[")
				h := Handle{Object: name}
				if _, err := fmt.Sscanf(groups, "%d,%d)", &h.KeyGroups.Start, &h.KeyGroups.End); err != nil {
					t.Fatal(err)
				}
				snap.Operators[last].Keyed = append(snap.Operators[last].Keyed, h)
			case "list":
				i++
				snap.Operators[last].List = append(snap.Operators[last].List, json.RawMessage(words[i]))
			default:
				snap.Operators = append(snap.Operators, OperatorSnapshot{Operator: weir.OperatorID(words[i])})
			}
		}
		m.Tasks = append(m.Tasks, snap)
	}
	return m
}

func showPlan(p *RestorePlan) string {
	var b strings.Builder
	for _, task := range p.Tasks {
		fmt.Fprintf(&b, "%v", task.Task)
		if task.Ended {
			b.WriteString(" ended")
		}
		for _, op := range task.Keyed {
			fmt.Fprintf(&b, " %s", op.Operator)
			for _, h := range op.Handles {
				fmt.Fprintf(&b, " %s%v", h.Object, h.KeyGroups)
			}
		}
		b.WriteByte('\n')
	}
	for _, id := range slices.Sorted(maps.Keys(p.Lists)) {
		fmt.Fprintf(&b, "list %s: %s\n", id, p.Lists[id])
	}
	return b.String()
}

// TestRestoreCoversAll: whatever the parallelisms, every key group of the old state goes
// to exactly one new subtask, the one that owns it (C13).
func TestRestoreCoversAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 64).Draw(t, "max")
		from := rapid.IntRange(1, groups).Draw(t, "from")
		to := rapid.IntRange(1, groups).Draw(t, "to")
		g := plan.Graph{MaxParallelism: groups, Chains: []plan.Chain{{Operators: []plan.Operator{{ID: "agg", Kind: plan.GlobalAggregate}}}}}
		m := &Manifest{MaxParallelism: groups, Operators: operatorsOf(g)}
		for i := range from {
			m.Tasks = append(m.Tasks, TaskSnapshot{Task: weir.TaskID{Subtask: i}, Operators: []OperatorSnapshot{{
				Operator: "agg",
				Keyed:    []Handle{{Object: fmt.Sprint(i), KeyGroups: weir.KeyGroupsOf(i, from, groups)}},
			}}})
		}
		p, err := Restore(m, g, to)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]int, groups)
		for _, task := range p.Tasks {
			for _, h := range task.Keyed[0].Handles {
				for group := h.KeyGroups.Start; group < h.KeyGroups.End; group++ {
					seen[group]++
					if weir.SubtaskOf(group, to, groups) != task.Task.Subtask || fmt.Sprint(weir.SubtaskOf(group, from, groups)) != h.Object {
						t.Fatalf("group %d: from %s to %v", group, h.Object, task.Task)
					}
				}
			}
		}
		for group, n := range seen {
			if n != 1 {
				t.Fatalf("group %d was given to %d subtasks", group, n)
			}
		}
	})
}

// TestRestoreMeaning: C15: state that another query computed is refused, though its operators
// have the same ids; a manifest that does not say what was computed is taken.
func TestRestoreMeaning(t *testing.T) {
	t.Parallel()
	g := testGraph(true)
	m := &Manifest{MaxParallelism: g.MaxParallelism, Operators: operatorsOf(g)}
	if problems := mismatches(m, g, 1); len(problems) > 0 {
		t.Fatalf("refused without meanings: %v", problems)
	}
	m.Operators[1].Meaning = "another"
	problems := mismatches(m, g, 1)
	if len(problems) != 1 || !strings.Contains(problems[0], "keeps what another query computed") {
		t.Errorf("problems %q", problems)
	}
}

// TestRestoreOfGroups: a result whose rows are an aggregate's groups has none itself. One that
// kept its own, and the projection that made them, are not missed; but whoever keeps its own
// does not find them in a snapshot of groups.
func TestRestoreOfGroups(t *testing.T) {
	t.Parallel()
	aggregate := plan.Operator{ID: "agg", Kind: plan.GlobalAggregate, Aggregate: &plan.AggregateSpec{}}
	graph := func(groups bool, between ...plan.Operator) plan.Graph {
		ops := append([]plan.Operator{aggregate}, between...)
		ops = append(ops, plan.Operator{ID: "res", Kind: plan.Result, Result: &plan.ResultSpec{Groups: groups}})
		return plan.Graph{MaxParallelism: 4, Chains: []plan.Chain{{Operators: ops}}}
	}
	project := plan.Operator{ID: "made", Kind: plan.Project, Project: &plan.ProjectSpec{}}
	filter := plan.Operator{ID: "having", Kind: plan.Filter}
	for name, c := range map[string]struct {
		from, to plan.Graph
		want     []string // what is said
	}{
		"groups as groups":         {graph(true), graph(true), nil},
		"rows as groups":           {graph(false), graph(true), nil},
		"projected rows as groups": {graph(false, project), graph(true), nil},
		"groups as rows":           {graph(true), graph(false), []string{"operator res () has no rows of its own"}},
		"groups as projected rows": {graph(true), graph(false, project), []string{"has no rows of its own", "made () of the query is not in it"}},
		"filtered rows as groups":  {graph(false, filter), graph(true), []string{"having () is not in the query"}},
		"projected rows as rows":   {graph(false, project), graph(false), []string{"made () is not in the query"}},
	} {
		problems := mismatches(&Manifest{MaxParallelism: 4, Operators: operatorsOf(c.from)}, c.to, 1)
		if !slices.EqualFunc(problems, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, problems, c.want)
		}
	}
}

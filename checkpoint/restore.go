package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/plan"
)

// A RestorePlan says what each task of a new attempt starts from.
type RestorePlan struct {
	// Tasks has one entry for each task, in order.
	Tasks []TaskRestore
	// Lists is the list state of each operator that had some: the items of all old
	// subtasks in their order. Every new subtask gets all of it and takes its share.
	Lists map[weir.OperatorID][]json.RawMessage
}

// A TaskRestore is what one task starts from.
type TaskRestore struct {
	Task weir.TaskID
	// Ended: every task of its operators had ended. Where only some had, none counts as
	// ended: source splits are dealt out anew, and those worked off say so themselves.
	Ended bool
	Keyed []OperatorRestore // operators without keyed state are left out
}

// An OperatorRestore is the keyed state of one operator's subtask: every handle
// overlaps the subtask's key groups and is trimmed to them.
type OperatorRestore struct {
	Operator weir.OperatorID
	Handles  []Handle
}

// Restore deals out a snapshot to the tasks of a graph at a parallelism. State is
// matched by operator id and never dropped in silence: an operator that only one side
// knows, and another max parallelism, are refused, all of them by name, as
// weir.ErrInvalid. The rows that a result kept are no loss where they are an aggregate's
// groups now (plan.ResultSpec.Groups), nor is the projection that made them.
func Restore(m *Manifest, g plan.Graph, parallelism int) (*RestorePlan, error) {
	if problems := mismatches(m, g, parallelism); len(problems) > 0 {
		return nil, fmt.Errorf("%w: checkpoint %d of %s does not fit: %s", weir.ErrInvalid, m.Checkpoint, m.Job, strings.Join(problems, "; "))
	}
	old := bySubtask(m)
	p := &RestorePlan{Lists: map[weir.OperatorID][]json.RawMessage{}}
	for _, op := range m.Operators {
		for _, s := range old[op.ID] {
			p.Lists[op.ID] = append(p.Lists[op.ID], s.op.List...)
		}
		if len(p.Lists[op.ID]) == 0 {
			delete(p.Lists, op.ID)
		}
	}
	ended := endedOperators(m)
	for chain, c := range g.Chains {
		all := !slices.ContainsFunc(c.Operators, func(op plan.Operator) bool { return !ended[op.ID] })
		subtasks := c.Subtasks(parallelism)
		for subtask := range subtasks {
			groups := weir.KeyGroupsOf(subtask, subtasks, g.MaxParallelism)
			t := TaskRestore{Task: weir.TaskID{Chain: chain, Subtask: subtask}, Ended: all}
			for _, op := range c.Operators {
				if handles := overlapping(old[op.ID], groups); len(handles) > 0 {
					t.Keyed = append(t.Keyed, OperatorRestore{Operator: op.ID, Handles: handles})
				}
			}
			p.Tasks = append(p.Tasks, t)
		}
	}
	return p, nil
}

// An oldSubtask is what an operator's subtask had put into the snapshot.
type oldSubtask struct {
	subtask int
	op      OperatorSnapshot
}

// bySubtask gives each operator's snapshots in the order of their subtasks.
func bySubtask(m *Manifest) map[weir.OperatorID][]oldSubtask {
	old := map[weir.OperatorID][]oldSubtask{}
	for _, t := range m.Tasks {
		for _, op := range t.Operators {
			old[op.Operator] = append(old[op.Operator], oldSubtask{t.Task.Subtask, op})
		}
	}
	for _, list := range old {
		slices.SortStableFunc(list, func(a, b oldSubtask) int { return a.subtask - b.subtask })
	}
	return old
}

// endedOperators are those whose chain had ended in all its subtasks.
func endedOperators(m *Manifest) map[weir.OperatorID]bool {
	tasks, ended := map[int]int{}, map[int]int{}
	for _, t := range m.Tasks {
		tasks[t.Task.Chain]++
		if t.Ended {
			ended[t.Task.Chain]++
		}
	}
	ops := map[weir.OperatorID]bool{}
	for _, op := range m.Operators {
		ops[op.ID] = tasks[op.Chain] > 0 && tasks[op.Chain] == ended[op.Chain]
	}
	return ops
}

func overlapping(old []oldSubtask, groups weir.KeyGroupRange) []Handle {
	var handles []Handle
	for _, s := range old {
		for _, h := range s.op.Keyed {
			if h, ok := h.Trim(groups); ok {
				handles = append(handles, h)
			}
		}
	}
	return handles
}

// mismatches lists why the snapshot cannot be dealt out to the graph.
func mismatches(m *Manifest, g plan.Graph, parallelism int) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if m.MaxParallelism != g.MaxParallelism {
		add("it was taken at max_parallelism %d, the job has %d", m.MaxParallelism, g.MaxParallelism)
	}
	if parallelism < 1 || parallelism > g.MaxParallelism {
		add("parallelism %d is not within 1 and max_parallelism %d", parallelism, g.MaxParallelism)
	}
	now := operatorsOf(g)
	ofGroups := func(i int) bool { return i >= 0 && now[i].Meaning == plan.OfGroups }
	for k, op := range m.Operators {
		i := indexOf(now, op.ID)
		was := op.Meaning
		switch {
		case i < 0 && op.Kind == plan.Project && k+1 < len(m.Operators) && ofGroups(indexOf(now, m.Operators[k+1].ID)):
			// It made the rows of a result that kept them: now they are the groups as they lie.
		case i < 0:
			add("its operator %s (%s) is not in the query", op.ID, op.Name)
		case now[i].Kind != op.Kind:
			add("its operator %s is a %s, in the query a %s", op.ID, op.Kind, now[i].Kind)
		case was == "", was == now[i].Meaning, ofGroups(i): // of groups: the aggregate in front is what must be the same
		case was == plan.OfGroups:
			add("its operator %s (%s) has no rows of its own, they are the groups of the aggregate in front of it, and in the plan of this job it keeps its own: submit the snapshot's query as a new job, which is planned like it, or let this one begin from nothing", op.ID, op.Name)
		default:
			add("its operator %s (%s) keeps what another query computed: from there on, other filters, expressions and aggregates are not supported; submit the query as it was, or let it begin from nothing", op.ID, op.Name)
		}
	}
	for _, op := range now {
		if indexOf(m.Operators, op.ID) < 0 {
			add("operator %s (%s) of the query is not in it", op.ID, op.Name)
		}
	}
	return append(problems, inconsistencies(m)...)
}

// inconsistencies lists what is wrong with the snapshot itself.
func inconsistencies(m *Manifest) []string {
	var problems []string
	for _, t := range m.Tasks {
		for _, op := range t.Operators {
			if indexOf(m.Operators, op.Operator) < 0 {
				problems = append(problems, fmt.Sprintf("task %v holds state of operator %s, which it does not list", t.Task, op.Operator))
			}
			for _, h := range op.Keyed {
				if h.KeyGroups.Start < 0 || h.KeyGroups.End > m.MaxParallelism {
					problems = append(problems, fmt.Sprintf("task %v holds key groups %v of %d", t.Task, h.KeyGroups, m.MaxParallelism))
				}
			}
		}
	}
	return problems
}

func indexOf(ops []ManifestOperator, id weir.OperatorID) int {
	return slices.IndexFunc(ops, func(op ManifestOperator) bool { return op.ID == id })
}

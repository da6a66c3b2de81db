package checkpoint

import (
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/planner/plan"
)

// A Task is a task of the attempt as the coordinator sees it.
type Task struct {
	ID       weir.TaskID
	Operator weir.OperatorID // the first of its chain
	Name     string          // that operator's, for people
	Source   bool            // triggered
	Sink     bool            // commits
}

// TasksOf lists the tasks of a graph at a parallelism, in order.
func TasksOf(g plan.Graph, parallelism int) []Task {
	var tasks []Task
	for i, c := range g.Chains {
		first := c.Operators[0]
		sink := slices.ContainsFunc(c.Operators, func(op plan.Operator) bool { return op.Kind == plan.Sink })
		for subtask := range c.Subtasks(parallelism) {
			tasks = append(tasks, Task{
				ID: weir.TaskID{Chain: i, Subtask: subtask}, Operator: first.ID, Name: first.Name,
				Source: first.Kind == plan.Source, Sink: sink,
			})
		}
	}
	return tasks
}

// String gives "global_aggregate subtask 3".
func (t Task) String() string { return fmt.Sprintf("%s subtask %d", t.Name, t.ID.Subtask) }

// nameOf gives a task's name, or its id where it is none of tasks.
func nameOf(tasks []Task, id weir.TaskID) string {
	for _, t := range tasks {
		if t.ID == id {
			return t.String()
		}
	}
	return id.String()
}

func tasksWhere(tasks []Task, keep func(Task) bool) []weir.TaskID {
	var ids []weir.TaskID
	for _, t := range tasks {
		if keep(t) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// A phase is how far a pending checkpoint has come.
type phase uint8

const (
	beginning  phase = iota // its row is being inserted
	collecting              // acks are awaited, until the deadline
	asking                  // it has expired, and the tasks are asked why, until another deadline
	writing                 // the manifest
	ready                   // the decision is its turn's
	deciding                // the decision, or reading back its unknown outcome
	aborting                // its end is being recorded
)

// An AckAnswer is what became of an ack.
type AckAnswer string

// The answers to an ack.
const (
	AckAccepted  AckAnswer = "accepted"
	AckDuplicate AckAnswer = "duplicate" // counted already (I7)
	AckUnknown   AckAnswer = "unknown"   // no such task, or no such checkpoint pending
	AckStale     AckAnswer = "stale"     // of another attempt or job
	AckLate      AckAnswer = "late"      // of a checkpoint given up: its objects go
)

// A pending is a checkpoint under way.
type pending struct {
	record      Record
	base        weir.CheckpointID // whose objects its snapshots may name; 0: none
	stop        bool              // a stop with savepoint
	requests    []Answer          // given once it has an id
	phase       phase
	deadline    time.Time
	acks        map[weir.TaskID]Ack // a set (I7)
	undelivered error               // of the trigger; nil once every source has it
	undecided   error               // of the last decision
	burnt       bool                // its id may have been given out before
	late        []string            // objects of acks that came while it was being given up

	tries   int    // of the action in hand
	retry   Action // to be repeated at retryAt; nil: none
	retryAt time.Time
}

// add takes an ack of this checkpoint and attempt into the set.
func (p *pending) add(a Ack, tasks []Task) AckAnswer {
	known := slices.ContainsFunc(tasks, func(t Task) bool { return t.ID == a.Task })
	if !known || (a.Snapshot == nil) == (a.Failure == nil) || a.Snapshot != nil && a.Snapshot.Task != a.Task {
		return AckUnknown
	}
	if _, ok := p.acks[a.Task]; ok || p.phase > asking {
		return AckDuplicate
	}
	p.acks[a.Task] = a
	return AckAccepted
}

// missing lists the tasks that have not acknowledged.
func (p *pending) missing(tasks []Task) []Task {
	var list []Task
	for _, t := range tasks {
		if _, ok := p.acks[t.ID]; !ok {
			list = append(list, t)
		}
	}
	return list
}

// sum fills in what the record says of the acks.
func (p *pending) sum(tasks []Task) {
	r := &p.record
	r.StateBytes, r.NewBytes, r.Acks, r.CommitsOpen = 0, 0, nil, false
	for _, t := range tasks {
		a, ok := p.acks[t.ID]
		if !ok {
			continue
		}
		r.StateBytes += a.Timing.TotalBytes
		r.NewBytes += a.Timing.NewBytes
		r.CommitsOpen = r.CommitsOpen || p.commits() && a.Snapshot != nil && a.Snapshot.Commits
		a.Snapshot = nil
		r.Acks = append(r.Acks, a)
	}
}

// commits reports whether sinks commit after it: a savepoint's only when it stops
// the job.
func (p *pending) commits() bool { return p.record.Type == TypeCheckpoint || p.stop }

// name gives "checkpoint 7" or "savepoint mine (checkpoint 7)".
func (p *pending) name() string {
	if p.record.Type == TypeSavepoint {
		return fmt.Sprintf("savepoint %s (checkpoint %d)", p.record.Savepoint, p.record.ID)
	}
	return fmt.Sprintf("checkpoint %d", p.record.ID)
}

// declined is the failure of a checkpoint that a task could not take.
func declined(a Ack, tasks []Task) *weir.Failure {
	i := slices.IndexFunc(tasks, func(t Task) bool { return t.ID == a.Task })
	f := *a.Failure
	f.Reason, f.Subtask, f.Worker = ReasonDeclined, &tasks[i].ID.Subtask, a.Worker
	if f.Operator == "" {
		f.Operator = tasks[i].Operator
	}
	f.Message = fmt.Sprintf("declined by %v on worker %s: %s", tasks[i], a.Worker, a.Failure.Message)
	return &f
}

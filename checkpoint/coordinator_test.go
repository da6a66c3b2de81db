package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir"
	"weir/planner/plan"
)

const testJob = weir.JobID("job_00000000000000000000000000000001")

var (
	scriptStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	testAttempt = weir.AttemptID{Number: 1, Tag: "aaaaaaaa"}
)

// testGraph is source ▸ local_aggregate → global_aggregate ▸ result or sink.
func testGraph(sink bool) plan.Graph {
	last := plan.Operator{ID: "result_1", Name: "result", Kind: plan.Result}
	if sink {
		last = plan.Operator{ID: "sink_out", Name: "sink(out)", Kind: plan.Sink}
	}
	return plan.Graph{Version: plan.Version, MaxParallelism: 8, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source_in", Name: "source(in)", Kind: plan.Source}, {ID: "local_k", Name: "local_aggregate(k)", Kind: plan.LocalAggregate}}},
		{Operators: []plan.Operator{{ID: "global_k", Name: "global_aggregate(k)", Kind: plan.GlobalAggregate}, last}},
	}, Edges: []plan.Edge{{From: 0, To: 1, Keys: []int{0}}}}
}

func TestCoordinatorScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/coordinator", func(t *testing.T, path string) {
		s := &script{now: scriptStart}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

// A script drives one coordinator: each command is an event, at=DURATION moves the
// clock first.
type script struct {
	c     *Coordinator
	now   time.Time
	whole bool // positions in manifests, and where failures were, are shown too
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	if at := arg(d, "at"); at != "" {
		s.now = scriptStart.Add(dur(t, at))
	}
	if d.Cmd == "job" {
		return s.job(t, d)
	}
	var out strings.Builder
	for _, e := range s.events(t, d) {
		if a, ok := e.(Acked); ok && !s.c.stopped {
			answer, acts := s.c.ack(s.now, a.Ack)
			fmt.Fprintf(&out, "%v: %s\n", a.Ack.Task, answer)
			out.WriteString(s.show(s.c.withhold(append(acts, s.c.follow(s.now)...))))
			continue
		}
		out.WriteString(s.show(s.c.Step(s.now, e)))
	}
	return out.String() + s.clock()
}

func (s *script) clock() string {
	if next := s.c.Next(); !next.IsZero() {
		return fmt.Sprintf("tick at %v\n", next.Sub(scriptStart))
	}
	return "no tick\n"
}

func (s *script) job(t *testing.T, d *datadriven.TestData) string {
	o := Options{
		Interval: dur(t, arg(d, "interval")), Timeout: dur(t, arg(d, "timeout")), MinPause: dur(t, arg(d, "min_pause")),
		TolerableFailures: num(t, arg(d, "tolerable")), MaxConcurrent: num(t, arg(d, "concurrent")),
	}
	c, acts := NewCoordinator(s.now, Start{
		Fence: weir.Fence{Job: testJob, Attempt: testAttempt, Term: 1}, Graph: testGraph(d.HasArg("sink")),
		Parallelism: max(1, num(t, arg(d, "parallelism"))), Options: o, Base: weir.CheckpointID(num(t, arg(d, "base"))),
		LastID: weir.CheckpointID(num(t, arg(d, "last"))), OpenCommits: ids(t, d, "open"), Pending: ids(t, d, "pending"),
	})
	s.c, s.whole = c, d.HasArg("whole")
	if !d.HasArg("unsurveyed") { // storage answers at once, and knows nothing new
		acts = append(acts[1:], c.Step(s.now, Surveyed{})...)
	}
	return s.show(acts) + s.clock()
}

func (s *script) events(t *testing.T, d *datadriven.TestData) []Event {
	id := weir.CheckpointID(num(t, arg(d, "cp")))
	request := RequestID(num(t, arg(d, "r")))
	err := scriptError(arg(d, "err"))
	switch d.Cmd {
	case "tick":
		return []Event{Tick{}}
	case "ask-checkpoint":
		return []Event{AskCheckpoint{Request: request}}
	case "ask-savepoint":
		return []Event{AskSavepoint{Request: request, Name: arg(d, "name"), Stop: d.HasArg("stop")}}
	case "withdraw":
		return []Event{Withdraw{Request: request}}
	case "cancel":
		return []Event{AskCancel{Request: request, ID: id}}
	case "begun":
		return []Event{Begun{ID: id, Err: err}}
	case "triggered":
		if missed := taskArgs(t, d); len(missed) > 0 {
			why := Undelivered{}
			for _, task := range missed {
				why[task] = err
			}
			err = fmt.Errorf("trigger: %w", why)
		}
		return []Event{Triggered{ID: id, Err: err}}
	case "manifest":
		return []Event{ManifestWritten{ID: id, Err: err}}
	case "decided":
		return []Event{Decided{ID: id, Err: err}}
	case "read":
		return []Event{Read{ID: id, Err: err, Record: Record{Status: Status(arg(d, "status"))}}}
	case "aborted":
		return []Event{Aborted{ID: id, Err: err, Status: Status(arg(d, "status"))}}
	case "notified":
		return []Event{Notified{ID: id, Err: err}}
	case "closed":
		return []Event{CommitsClosed{ID: id, Err: err}}
	case "survey":
		e := Surveyed{Newest: id, Err: err}
		if n := num(t, arg(d, "attempt")); n > 0 {
			e.Attempt = weir.AttemptID{Number: int64(n), Tag: "bbbbbbbb"}
		}
		return []Event{e}
	case "progress":
		return []Event{Progressed{ID: id, Err: err, Tasks: progress(t, d.Input)}}
	}
	return s.taskEvents(t, d, id, err)
}

// progress reads lines such as "1/3 aligning since 12s missing 0/1,0/2 bp 0.98 busy 0.1" and
// "1/3 uploading since 12s doing storing 3 of 7 objects".
func progress(t *testing.T, input string) []Progress {
	var list []Progress
	for line := range strings.Lines(input) {
		line, doing, _ := strings.Cut(strings.TrimSpace(line), " doing ")
		words := strings.Fields(line)
		p := Progress{Task: taskID(t, words[0]), Stage: Stage(words[1]), Doing: doing}
		for i := 2; i+1 < len(words); i += 2 {
			var err error
			switch value := words[i+1]; words[i] {
			case "since":
				p.SinceMS = millis(dur(t, value))
			case "on":
				p.Worker = weir.WorkerID(value)
			case "missing":
				for id := range strings.SplitSeq(value, ",") {
					p.Missing = append(p.Missing, taskID(t, id))
				}
			case "bp":
				p.BackPressured, err = strconv.ParseFloat(value, 64)
			case "busy":
				p.Busy, err = strconv.ParseFloat(value, 64)
			default:
				t.Fatalf("progress %q", line)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, p)
	}
	return list
}

func taskID(t *testing.T, s string) weir.TaskID {
	var id weir.TaskID
	if _, err := fmt.Sscanf(s, "%d/%d", &id.Chain, &id.Subtask); err != nil {
		t.Fatal(err)
	}
	return id
}

// taskEvents are those that come from tasks; task=(…) names several.
func (s *script) taskEvents(t *testing.T, d *datadriven.TestData, id weir.CheckpointID, err error) []Event {
	var events []Event
	if d.Cmd == "complete" { // all that a checkpoint without trouble consists of
		events = append(events, Triggered{ID: id})
	}
	tasks := taskArgs(t, d)
	if len(tasks) == 0 {
		tasks = tasksWhere(s.c.tasks, func(Task) bool { return true })
	}
	for _, task := range tasks {
		switch d.Cmd {
		case "end":
			events = append(events, SourceEnded{Task: task})
		case "committed":
			events = append(events, Committed{Task: task, ID: id, Err: err})
		case "ack", "complete":
			events = append(events, Acked{Ack: s.ack(d, id, task)})
		default:
			d.Fatalf(t, "unknown command")
		}
	}
	if d.Cmd == "complete" {
		events = append(events, ManifestWritten{ID: id}, Decided{ID: id})
	}
	return events
}

func (s *script) ack(d *datadriven.TestData, id weir.CheckpointID, task weir.TaskID) Ack {
	a := Ack{
		Version: 1, Job: testJob, Attempt: testAttempt, Task: task, Checkpoint: id, Worker: "w1",
		Snapshot: &TaskSnapshot{Task: task, Commits: d.HasArg("commits") && s.sink(task)}, Timing: Timing{NewBytes: 10, TotalBytes: 100},
	}
	if attempt := arg(d, "attempt"); attempt != "" {
		a.Attempt.Tag = attempt
	}
	if object := arg(d, "object"); object != "" {
		a.Snapshot.Operators = []OperatorSnapshot{{Operator: "global_k", Keyed: []Handle{{Object: object}}}}
	}
	if position := arg(d, "position"); position != "" {
		item, _ := json.Marshal(position)
		a.Snapshot.Operators = []OperatorSnapshot{{Operator: "source_in", List: []json.RawMessage{item}}}
	}
	if worker := arg(d, "worker"); worker != "" {
		a.Worker = weir.WorkerID(worker)
	}
	if message := arg(d, "fail"); message != "" {
		a.Snapshot, a.Failure = nil, &weir.Failure{Message: message}
	}
	return a
}

func (s *script) sink(id weir.TaskID) bool {
	return slices.ContainsFunc(s.c.tasks, func(t Task) bool { return t.ID == id && t.Sink })
}

func scriptError(s string) error {
	switch s {
	case "":
		return nil
	case "stale":
		return weir.ErrStale
	case "conflict":
		return weir.ErrConflict
	case "missing":
		return weir.ErrNotFound
	case "foreign":
		return errForeign
	}
	return errors.New(strings.ReplaceAll(s, "_", " "))
}

func (s *script) show(acts []Action) string {
	var b strings.Builder
	for _, a := range acts {
		b.WriteString(showAction(a))
		b.WriteByte('\n')
		if s.whole {
			b.WriteString(showWhole(a))
		}
	}
	return b.String()
}

// showWhole shows what showAction leaves out.
func showWhole(a Action) string {
	switch a := a.(type) {
	case WriteManifest:
		var b strings.Builder
		for _, t := range a.Manifest.Tasks {
			for _, op := range t.Operators {
				fmt.Fprintf(&b, "  %v %s: positions %s, %d handles\n", t.Task, op.Operator, op.List, len(op.Keyed))
			}
		}
		return b.String()
	case WriteAbort:
		return showWhere(a.Record.Failure)
	case FailAttempt:
		return showWhere(&a.Failure.Failure)
	}
	return ""
}

func showWhere(f *weir.Failure) string {
	if f.Subtask == nil {
		return "  at no task\n"
	}
	return fmt.Sprintf("  at operator %s, subtask %d, worker %s\n", f.Operator, *f.Subtask, f.Worker)
}

func showAction(a Action) string {
	switch a := a.(type) {
	case Begin:
		if a.After > 0 {
			return fmt.Sprintf("begin %s above %d", showKind(a.Record), a.After)
		}
		return "begin " + showKind(a.Record)
	case SendTrigger:
		return fmt.Sprintf("trigger cp=%d base=%d to %v", a.Trigger.Checkpoint, a.Trigger.Base, a.Targets) + others(a.Trigger)
	case Survey:
		return "survey"
	case AskProgress:
		return fmt.Sprintf("ask progress cp=%d", a.ID)
	case WriteManifest:
		return fmt.Sprintf("write manifest cp=%d of %d tasks", a.Manifest.Checkpoint, len(a.Manifest.Tasks))
	case Decide:
		return fmt.Sprintf("decide cp=%d base=%v commits=%v bytes=%d/%d acks=%d", a.Record.ID, a.Base, a.Record.CommitsOpen, a.Record.NewBytes, a.Record.StateBytes, len(a.Record.Acks))
	case ReadBack:
		return fmt.Sprintf("read cp=%d", a.ID)
	case WriteAbort:
		return fmt.Sprintf("abort cp=%d %s %s: %s", a.Record.ID, a.Record.Status, a.Record.Failure.Reason, a.Record.Failure.Message)
	case DropObjects:
		return fmt.Sprintf("drop objects of cp=%d: %s", a.ID, strings.Join(a.Keys, " "))
	case Notify:
		return fmt.Sprintf("notify cp=%d %v", a.ID, a.Tasks)
	case CloseCommits:
		s := fmt.Sprintf("close commits %v", a.IDs)
		for _, took := range a.Took {
			s += fmt.Sprintf(" %v took %v ms", took.Task, took.MS)
		}
		return s
	case Collect:
		return "collect"
	case Answer:
		if a.Turn != "" {
			return fmt.Sprintf("answer r=%d cp=%d %s", a.Request, a.ID, a.Turn)
		}
		return fmt.Sprintf("answer r=%d cp=%d err=%v", a.Request, a.ID, a.Err)
	case Ended:
		return fmt.Sprintf("ended cp=%d %s", a.Record.ID, a.Record.Status)
	case Tell:
		return fmt.Sprintf("tell %s: %s", a.Kind, a.Message)
	case Finish:
		return fmt.Sprintf("finish cp=%d stopped=%v", a.Ending.Checkpoint, a.Ending.Stopped)
	case FailAttempt:
		return fmt.Sprintf("fail attempt: %s: %s", a.Failure.Failure.Reason, a.Failure.Error())
	case GiveUp:
		return "give up"
	}
	return fmt.Sprintf("%T", a)
}

// others lists what else is pending.
func others(t Trigger) string {
	ids := slices.DeleteFunc(slices.Clone(t.Pending), func(id weir.CheckpointID) bool { return id == t.Checkpoint })
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf(" beside %v", ids)
}

func showKind(r Record) string {
	switch {
	case r.Type == TypeSavepoint:
		return "savepoint " + r.Savepoint
	case r.Final:
		return "final checkpoint"
	case r.Periodic:
		return "periodic checkpoint"
	}
	return "checkpoint"
}

func arg(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

func num(t *testing.T, s string) int {
	n := 0
	if s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func dur(t *testing.T, s string) time.Duration {
	if s == "" {
		return 0
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ids(t *testing.T, d *datadriven.TestData, name string) []weir.CheckpointID {
	var list []weir.CheckpointID
	for _, a := range d.CmdArgs {
		if a.Key == name {
			for _, v := range a.Vals {
				list = append(list, weir.CheckpointID(num(t, v)))
			}
		}
	}
	return list
}

func taskArgs(t *testing.T, d *datadriven.TestData) []weir.TaskID {
	var list []weir.TaskID
	for _, a := range d.CmdArgs {
		if a.Key != "task" {
			continue
		}
		for _, v := range a.Vals {
			list = append(list, taskID(t, v))
		}
	}
	return list
}

package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir"
)

// errNobody: the tasks of an expired checkpoint were asked, and nothing came back.
var errNobody = errors.New("no worker answered how far its tasks are")

// slowAnswer: tasks that are asked how far they are answer within milliseconds, however
// busy they are.
const slowAnswer = 500 * time.Millisecond

// expire asks the tasks of a checkpoint that ran out of time how far they are, so that
// its failure says where and why. Where its trigger did not arrive that is known.
func (c *Coordinator) expire(now time.Time, p *pending) []Action {
	if f := c.unreached(p); f != nil {
		return c.abort(now, p, StatusFailed, f)
	}
	p.phase, p.deadline = asking, now.Add(askWithin)
	return []Action{AskProgress{ID: p.record.ID}}
}

func (c *Coordinator) progressed(now time.Time, e Progressed) []Action {
	p := c.in(e.ID, asking)
	if p == nil {
		return nil
	}
	f := c.expired(p, e.Tasks, e.Err)
	if took := now.Sub(p.deadline.Add(-askWithin)); took >= slowAnswer && len(e.Tasks) > 0 {
		f.Message += fmt.Sprintf("; how far they are the workers said after %v s only: one of them, or NATS, stood still", took.Round(100*time.Millisecond).Seconds())
	}
	return c.abort(now, p, StatusFailed, f)
}

// unreached is the failure of a checkpoint whose trigger did not get to some source; nil
// where it did, as far as is known.
func (c *Coordinator) unreached(p *pending) *weir.Failure {
	if p.undelivered == nil {
		return nil
	}
	var why Undelivered
	named := errors.As(p.undelivered, &why)
	late := slices.DeleteFunc(p.missing(c.tasks), func(t Task) bool { return !t.Source || named && why[t.ID] == nil })
	if len(late) == 0 {
		return nil
	}
	cause := p.undelivered
	if named {
		cause = why[late[0].ID]
	}
	more := ""
	if n := len(late) - 1; named && n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	f := c.failureAt(ReasonTrigger, late[0], "")
	f.Message = fmt.Sprintf("expired after %v s: the trigger could not be delivered to %s%s: %v", c.opts.Timeout.Seconds(), c.where(late[0]), more, cause)
	return f
}

func (c *Coordinator) failureAt(reason string, t Task, worker weir.WorkerID) *weir.Failure {
	if worker == "" {
		worker = c.workers[t.ID]
	}
	return &weir.Failure{Reason: reason, Operator: t.Operator, Subtask: &t.ID.Subtask, Worker: worker}
}

// where gives "source subtask 1 on worker w2".
func (c *Coordinator) where(t Task) string {
	if w := c.workers[t.ID]; w != "" {
		return fmt.Sprintf("%v on worker %s", t, w)
	}
	return t.String()
}

// expired is the failure of a checkpoint that ran out of time: said is what its tasks
// answered, silent what became of those that did not.
func (c *Coordinator) expired(p *pending, said []Progress, silent error) *weir.Failure {
	e := expiry{c: c, late: p.missing(c.tasks), said: map[weir.TaskID]Progress{}}
	for _, s := range said {
		e.said[s.Task] = s
	}
	var root Task
	var why string
	if len(said) == 0 {
		root, why = e.late[0], e.names()+" had not acknowledged"
	} else {
		root, why = e.explain()
	}
	f := c.failureAt(ReasonTimeout, root, e.said[root.ID].Worker)
	f.Message = fmt.Sprintf("expired after %v s: %s", c.opts.Timeout.Seconds(), why)
	if silent != nil && slices.ContainsFunc(e.late, func(t Task) bool { return !e.knows(t) }) {
		f.Message += "; " + strings.ReplaceAll(silent.Error(), "\n", "; ")
	}
	return f
}

// An expiry finds out why tasks are late.
type expiry struct {
	c    *Coordinator
	late []Task // have not acknowledged; upstream first
	said map[weir.TaskID]Progress
}

func (e *expiry) knows(t Task) bool { _, ok := e.said[t.ID]; return ok }

// names lists the late tasks, three of them in full.
func (e *expiry) names() string {
	var names []string
	for _, t := range e.late[:min(3, len(e.late))] {
		names = append(names, t.String())
	}
	list := strings.Join(names, ", ")
	if more := len(e.late) - len(names); more > 0 {
		list = fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}

// namedRoots of a delay are told of, each with its own where and why.
const namedRoots = 3

// explain names the roots of the delay, and why they are late. A root is a late task that
// does not wait for the barrier of another late one; the first is furthest upstream.
func (e *expiry) explain() (Task, string) {
	var roots []Task
	for _, t := range e.late {
		if !slices.ContainsFunc(e.said[t.ID].Missing, e.isLate) {
			roots = append(roots, t)
		}
	}
	if len(roots) == 0 {
		roots = e.late // they wait for each other: what they said is of different moments
	}
	var whys []string
	for i, root := range roots[:min(namedRoots, len(roots))] {
		whys = append(whys, e.why(root, i > 0))
	}
	if more := len(roots) - len(whys); more > 0 {
		whys = append(whys, fmt.Sprintf("and %d more", more))
	}
	return roots[0], strings.Join(whys, "; ")
}

// where names a task with its worker.
func (e *expiry) where(t Task) string {
	if w := e.said[t.ID].Worker; w != "" {
		return fmt.Sprintf("%v on worker %s", t, w)
	}
	return e.c.where(t)
}

func (e *expiry) isLate(id weir.TaskID) bool {
	return slices.ContainsFunc(e.late, func(t Task) bool { return t.ID == id })
}

// why says what a root was at. The failure itself says on which worker the first one
// runs; of a further one, it is said here.
func (e *expiry) why(t Task, further bool) string {
	s, ok := e.said[t.ID]
	since := seconds(s.SinceMS)
	doing := ""
	if s.Doing != "" {
		doing = ": " + s.Doing
	}
	name := t.String()
	if further {
		name = e.where(t)
	}
	switch {
	case !ok:
		return fmt.Sprintf("%s had not acknowledged, and did not say how far it was", e.where(t))
	case s.Stage == StageDone:
		return fmt.Sprintf("%s had done its part, but its ack did not arrive", e.where(t))
	case s.Stage == StageUploading:
		return fmt.Sprintf("%s was still storing its snapshot, since %s%s", name, since, doing)
	case s.Stage == StageCutting:
		return fmt.Sprintf("%s was still cutting its snapshot, since %s%s", name, since, doing)
	case len(s.Missing) > 0:
		return e.unseen(name, s, s.Missing[0])
	}
	victims := slices.DeleteFunc(slices.Clone(e.late), func(v Task) bool { return !slices.Contains(e.said[v.ID].Missing, t.ID) })
	if len(victims) == 0 {
		why := e.where(t) + " had not begun its snapshot"
		if p := pressure(s); p != "" {
			why += ": it " + p
		}
		return why + doing
	}
	who := victims[0].String()
	if len(victims) > 1 {
		who = fmt.Sprintf("%s and %d more", who, len(victims)-1)
	}
	return fmt.Sprintf("%s had not seen the barrier from %s, which %s%s", who, name, cmp.Or(pressure(s), "had not sent it"), doing)
}

// unseen: the barrier that t waits for has been sent, and is behind records.
func (e *expiry) unseen(t string, s Progress, from weir.TaskID) string {
	more := ""
	if n := len(s.Missing) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	why := fmt.Sprintf("%s had not seen the barrier from %s%s", t, e.c.name(from), more)
	sender := e.said[from]
	switch {
	case sender.BackPressured >= s.Busy && sender.BackPressured >= 0.5:
		return why + ", which " + pressure(sender)
	case s.Busy >= 0.5:
		return fmt.Sprintf("%s: it is itself busy %.0f %% with what came before", why, s.Busy*100)
	}
	return why
}

// pressure says what keeps a task from its work; empty: nothing that shows.
func pressure(s Progress) string {
	switch {
	case s.BackPressured >= 0.5 && s.BackPressured >= s.Busy:
		return fmt.Sprintf("is back-pressured %.0f %%", s.BackPressured*100)
	case s.Busy >= 0.5:
		return fmt.Sprintf("is busy %.0f %%", s.Busy*100)
	}
	return ""
}

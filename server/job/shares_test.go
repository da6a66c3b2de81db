package job

import (
	"fmt"
	"math"
	"testing"
	"time"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// A told is what a task tells of the seconds in which it works at a steady pace: per second.
type told struct {
	task          weir.TaskID
	rows          int64
	waited, block int64 // ms
	busy          []int64
}

func (d told) after(ms int64) deploy.TaskStats {
	s := deploy.TaskStats{Task: d.task, RowsIn: d.rows * ms / 1000, RowsOut: d.rows * ms / 2000, BytesIn: d.rows * ms / 100, BytesOut: d.rows * ms / 50, Age: 1000 * ms, Waited: d.waited * ms, Blocked: d.block * ms}
	for i, b := range d.busy {
		s.Operators = append(s.Operators, deploy.OperatorStats{RowsIn: d.rows * ms / 1000 / int64(1+i), BytesIn: d.rows * ms / 100, Busy: b * ms})
	}
	return s
}

func graphOf(chains ...[]plan.OperatorKind) *plan.Graph {
	g := &plan.Graph{}
	for i, kinds := range chains {
		var c plan.Chain
		for _, k := range kinds {
			c.Operators = append(c.Operators, plan.Operator{Kind: k})
		}
		g.Chains = append(g.Chains, c)
		if i > 0 {
			g.Edges = append(g.Edges, plan.Edge{From: i - 1, To: i})
		}
	}
	return g
}

func ratesFor(g *plan.Graph) Rates {
	r := Rates{Chains: make([]ChainRates, len(g.Chains))}
	for i := range r.Chains {
		r.Chains[i].Operators = make([]OperatorRates, len(g.Chains[i].Operators))
	}
	return r
}

// TestBottleneck: who is slow is named, be it a sink, a source, one subtask, or an operator
// in the middle of a chain; who has nothing to do but wait is not.
func TestBottleneck(t *testing.T) {
	t.Parallel()
	g := graphOf([]plan.OperatorKind{plan.Source, plan.Filter, plan.LocalAggregate}, []plan.OperatorKind{plan.GlobalAggregate}, []plan.OperatorKind{plan.Project, plan.Sink})
	source := func(waited, blocked int64, busy ...int64) told {
		return told{weir.TaskID{}, 1000, waited, blocked, busy}
	}
	single := func(chain, subtask int, waited, blocked int64, busy ...int64) told {
		return told{weir.TaskID{Chain: chain, Subtask: subtask}, 100, waited, blocked, busy}
	}
	for name, test := range map[string]struct {
		tasks []told
		want  string
	}{
		"a slow sink":                    {[]told{source(0, 800, 100, 50, 50), single(1, 0, 50, 850), single(2, 0, 20, 0, 30, 950)}, "2.1 of 0: 0.95"},
		"a slow source":                  {[]told{source(0, 0, 700, 100, 200), single(1, 0, 900, 0), single(2, 0, 950, 0, 20, 30)}, "0.0 of 0: 0.70"},
		"a slow aggregate in its chain":  {[]told{source(0, 20, 180, 100, 700), single(1, 0, 400, 0), single(2, 0, 950, 0, 20, 30)}, "0.2 of 0: 0.70"},
		"the one furthest downstream":    {[]told{source(0, 400, 600, 0, 0), single(1, 0, 0, 200), single(2, 0, 300, 0, 0, 700)}, "2.1 of 0: 0.70"},
		"one subtask has most of it":     {[]told{source(0, 900, 40, 30, 30), single(1, 0, 950, 0), single(1, 1, 10, 0), single(2, 0, 900, 0, 50, 50), single(2, 1, 900, 0, 50, 50)}, "1.0 of 1: 0.99"},
		"a source that waits for time":   {[]told{source(900, 0, 50, 25, 25), single(1, 0, 950, 0), single(2, 0, 950, 0, 20, 30)}, "none"},
		"busy, but nobody waits for it":  {[]told{source(900, 0, 50, 25, 25), single(1, 0, 450, 0), single(2, 0, 950, 0, 20, 30)}, "none"},
		"nothing is known of a new task": {[]told{}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ratesFor(g)
			for _, task := range test.tasks {
				r.add(task.after(4000)).rate(deploy.TaskStats{}, task.after(4000), 0)
			}
			got := "none"
			if b := r.bottleneck(g); b != nil {
				got = fmt.Sprintf("%d.%d of %d: %.2f", b.Chain, b.Operator, b.Subtask, b.Busy)
			}
			if got != test.want {
				t.Errorf("%s, want %s: %+v", got, test.want, r.Chains)
			}
			for i, c := range r.Chains {
				sum, busy := c.Busy+c.Blocked+c.Idle, 0.0
				for _, o := range c.Operators {
					busy += o.Busy
				}
				if c.Tasks > 0 && (math.Abs(sum-1) > 1e-9 || math.Abs(busy-c.Busy) > 1e-9) {
					t.Errorf("chain %d: shares are %v together, of its operators %v, want 1 and %v", i, sum, busy, c.Busy)
				}
			}
		})
	}
}

// TestFlow: rates add up to what was counted, by the workers' own clocks: it does not matter
// when a heartbeat comes. They begin with the first one, end when a job stands still or its
// worker says nothing, and know no other attempt.
func TestFlow(t *testing.T) {
	t.Parallel()
	g := graphOf([]plan.OperatorKind{plan.Source, plan.Filter}, []plan.OperatorKind{plan.Result})
	r, begun := newRegistry(), time.Now()
	tasks := []told{{weir.TaskID{}, 3000, 0, 500, []int64{400, 100}}, {weir.TaskID{Subtask: 1}, 1000, 500, 0, []int64{100, 400}}, {weir.TaskID{Chain: 1}, 2000, 250, 0, nil}}
	attempt := weir.AttemptID{Number: 1}
	ratesAt := func(at time.Duration) Rates {
		out := ratesFor(g)
		r.workers["w1"].addRates(begun.Add(at), "j", attempt, &out)
		return out
	}
	beat := func(at time.Duration, age int64) Rates {
		var stats []deploy.TaskStats
		for _, task := range tasks {
			stats = append(stats, task.after(age))
		}
		r.heard(begun.Add(at), deploy.Heartbeat{Worker: "w1", Incarnation: "a", Slots: 1, Attempts: []deploy.Running{{Job: "j", Attempt: attempt, Tasks: stats}}})
		return ratesAt(at)
	}
	check := func(what string, got Rates, factor float64) {
		t.Helper()
		c, sink := got.Chains[0], got.Chains[1]
		for name, v := range map[string][2]float64{
			"rows in": {c.RowsInPerSecond, 4000}, "rows out": {c.RowsOutPerSecond, 2000}, "bytes in": {c.BytesInPerSecond, 40000}, "bytes out": {c.BytesOutPerSecond, 80000},
			"rows in of the source": {c.Operators[0].RowsInPerSecond, 4000}, "rows out of the source": {c.Operators[0].RowsOutPerSecond, 2000},
			"rows in of the filter": {c.Operators[1].RowsInPerSecond, 2000}, "rows out of the filter": {c.Operators[1].RowsOutPerSecond, 2000},
			"bytes out of the source": {c.Operators[0].BytesOutPerSecond, 40000}, "bytes out of the filter": {c.Operators[1].BytesOutPerSecond, 80000},
			"rows in of the result": {sink.Operators[0].RowsInPerSecond, 2000}, "bytes in of the result": {sink.Operators[0].BytesInPerSecond, 20000},
			"busy": {c.Busy, 0.5}, "blocked": {c.Blocked, 0.25}, "idle": {c.Idle, 0.25}, "the most blocked": {c.MostBlocked, 0.5},
			"busy in the source": {c.Operators[0].Busy, 0.25}, "busy in the filter": {c.Operators[1].Busy, 0.25}, "the busiest source": {c.Operators[0].Busiest.Busy, 0.4},
			"busy in the result": {sink.Operators[0].Busy, 0.75},
		} {
			if math.Abs(v[0]-factor*v[1]) > 1e-6*v[1] {
				t.Errorf("%s: %s: %v, want %v", what, name, v[0], factor*v[1])
			}
		}
	}
	check("it has begun", beat(0, 700), 1)
	check("late", beat(1900*time.Millisecond, 1700), 1)
	check("early", beat(2*time.Second, 2700), 1)
	for s := int64(3); s < 20; s++ {
		check("it goes on", beat(time.Duration(s)*time.Second, 700+1000*s), 1)
	}
	check("it says nothing", ratesAt(23*time.Second), 0)
	total := ratesAt(23 * time.Second)
	if c := total.Chains[0]; c.RowsIn != 4*19700 || c.Operators[1].RowsIn != 2*19700 || math.Abs(c.BlockedSeconds-19.7/2) > 1e-6 || math.Abs(c.Operators[0].BusySeconds-19.7/2) > 1e-6 {
		t.Errorf("in all %+v", c)
	}
	r = newRegistry() // the server is started anew
	check("one heartbeat of an old attempt", beat(24*time.Second, 24700), 0)
	check("two", beat(25*time.Second, 25700), 1)
	attempt = weir.AttemptID{Number: 2}
	check("the next attempt", beat(26*time.Second, 500), 1)
	still := tasks
	tasks = nil
	for _, task := range still { // as many rows as before, all time is waited
		task.rows, task.waited, task.block, task.busy = 0, 1000, 0, make([]int64, len(task.busy))
		tasks = append(tasks, task)
	}
	for s := range int64(7) {
		beat(time.Duration(27+s)*time.Second, 1500+1000*s)
	}
	if c := ratesAt(33 * time.Second).Chains[0]; c.RowsInPerSecond != 0 || c.Busy > 1e-9 || c.Idle < 1-1e-9 {
		t.Errorf("it stands still: %+v", c)
	}
}

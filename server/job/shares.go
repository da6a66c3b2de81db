package job

import (
	"slices"

	"weir/exec/deploy"
	"weir/planner/plan"
)

// Flow is what goes through: totals since the attempt began, and rates of the last seconds.
type Flow struct {
	RowsIn, RowsOut, BytesIn, BytesOut                                     int64
	RowsInPerSecond, RowsOutPerSecond, BytesInPerSecond, BytesOutPerSecond float64
}

// A Share is how busy a subtask is, 0 to 1.
type Share struct {
	Subtask int
	Busy    float64
}

// OperatorRates are the figures of one operator, over its subtasks. Blocked and Idle are its
// chain's: who waits is the task.
type OperatorRates struct {
	Flow
	Busy        float64 // on average; those of a chain add up to the chain's
	Busiest     Share   // of the operator's shares in subtasks
	BusySeconds float64 // of all subtasks since the attempt began
}

// A Bottleneck is the operator that holds the job up: of the chains that are busy while those
// before them are blocked, or are sources, the one furthest downstream; in it what works most.
type Bottleneck struct {
	Chain    int
	Operator int // of the chain
	Share        // of its busiest subtask
}

// Who is busy for less of its time than busyLeast holds nothing up; who is blocked for less than
// blockedLeast is not held up.
const (
	busyLeast    = 0.5
	blockedLeast = 0.1
)

// operatorsOf are the figures of a task's n operators; nil: they are not told.
func operatorsOf(t deploy.TaskStats, n int) []deploy.OperatorStats {
	switch {
	case len(t.Operators) == n:
		return t.Operators
	case n == 1:
		return []deploy.OperatorStats{{RowsIn: t.RowsIn, BytesIn: t.BytesIn, Busy: max(t.Age-t.Waited-t.Blocked, 0)}}
	}
	return nil
}

// total adds what a task has done.
func (c *ChainRates) total(t deploy.TaskStats) {
	c.RowsIn += t.RowsIn
	c.RowsOut += t.RowsOut
	c.BytesIn += t.BytesIn
	c.BytesOut += t.BytesOut
	c.IdleSeconds += float64(t.Waited) / 1e6
	c.BlockedSeconds += float64(t.Blocked) / 1e6
	told := operatorsOf(t, len(c.Operators))
	for i, o := range told {
		out := &c.Operators[i]
		out.RowsIn += o.RowsIn
		out.BytesIn += o.BytesIn
		out.BusySeconds += float64(o.Busy) / 1e6
		if i > 0 {
			c.Operators[i-1].RowsOut += o.RowsIn
			c.Operators[i-1].BytesOut += o.BytesIn
		}
		if i == len(told)-1 {
			out.RowsOut += t.RowsOut
			out.BytesOut += t.BytesOut
		}
	}
}

// rate adds what a task has done in the last seconds: since before, which is zero where
// it has begun since.
func (c *ChainRates) rate(before, now deploy.TaskStats, seconds float64) {
	if now.Age > before.Age { // by its own clock, whenever the news came
		seconds = float64(now.Age-before.Age) / 1e6
	}
	if seconds <= 0 {
		return
	}
	per := func(now, before int64) float64 { return max(float64(now-before), 0) / seconds }
	c.RowsInPerSecond += per(now.RowsIn, before.RowsIn)
	c.RowsOutPerSecond += per(now.RowsOut, before.RowsOut)
	c.BytesInPerSecond += per(now.BytesIn, before.BytesIn)
	c.BytesOutPerSecond += per(now.BytesOut, before.BytesOut)
	if now.Age <= before.Age {
		return // nothing is known of its time
	}
	share := func(now, before int64) float64 { return min(per(now, before)/1e6, 1) }
	idle := share(now.Waited, before.Waited)
	blocked := min(share(now.Blocked, before.Blocked), 1-idle)
	busy := 1 - idle - blocked
	c.shares++
	mean(&c.Idle, idle, c.shares)
	mean(&c.Blocked, blocked, c.shares)
	mean(&c.Busy, busy, c.shares)
	c.Busiest.take(now, busy, c.shares)
	c.MostBlocked = max(c.MostBlocked, blocked)
	was, is := operatorsOf(before, len(c.Operators)), operatorsOf(now, len(c.Operators))
	for i := range is {
		o, then := &c.Operators[i], deploy.OperatorStats{}
		if was != nil {
			then = was[i]
		}
		rows, bytes := per(is[i].RowsIn, then.RowsIn), per(is[i].BytesIn, then.BytesIn)
		o.RowsInPerSecond += rows
		o.BytesInPerSecond += bytes
		if i > 0 {
			c.Operators[i-1].RowsOutPerSecond += rows
			c.Operators[i-1].BytesOutPerSecond += bytes
		}
		if i == len(is)-1 {
			o.RowsOutPerSecond += per(now.RowsOut, before.RowsOut)
			o.BytesOutPerSecond += per(now.BytesOut, before.BytesOut)
		}
		busy := share(is[i].Busy, then.Busy)
		mean(&o.Busy, busy, c.shares)
		o.Busiest.take(now, busy, c.shares)
	}
}

// take keeps the busiest of n subtasks, of equals the first.
func (s *Share) take(t deploy.TaskStats, busy float64, n int) {
	if n == 1 || busy > s.Busy || busy == s.Busy && t.Task.Subtask < s.Subtask {
		*s = Share{t.Task.Subtask, busy}
	}
}

// mean makes the mean of n-1 values one of n.
func mean(m *float64, value float64, n int) { *m += (value - *m) / float64(n) }

// bottleneck finds what holds the job up; nil: nothing does.
func (r *Rates) bottleneck(g *plan.Graph) *Bottleneck {
	var found *Bottleneck
	deepest := -1
	for i, c := range r.Chains {
		if c.Busiest.Busy < busyLeast || g.Chains[i].Operators[0].Kind != plan.Source && !r.holdsUp(g.Edges, i) {
			continue
		}
		at := depth(g, i, len(g.Chains))
		if found != nil && (at < deepest || at == deepest && c.Busiest.Busy <= r.Chains[found.Chain].Busiest.Busy) {
			continue
		}
		deepest, found = at, &Bottleneck{Chain: i, Share: c.Busiest}
		for k, o := range c.Operators {
			if k == 0 || o.Busiest.Busy > found.Busy {
				found.Operator, found.Share = k, o.Busiest
			}
		}
	}
	return found
}

// holdsUp reports whether a chain before this one is blocked.
func (r *Rates) holdsUp(edges []plan.Edge, chain int) bool {
	return slices.ContainsFunc(edges, func(e plan.Edge) bool {
		return e.To == chain && r.Chains[e.From].MostBlocked >= blockedLeast
	})
}

// depth is how many edges lead to a chain one after another; no more than most.
func depth(g *plan.Graph, chain, most int) int {
	deep := 0
	for _, e := range g.Edges {
		if e.To == chain && most > 0 {
			deep = max(deep, 1+depth(g, e.From, most-1))
		}
	}
	return deep
}

package job

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

func (s *Service) workers(context.Context) ([]Worker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Worker{}
	for _, w := range s.mu.workers.alive() {
		b := w.beat
		out := Worker{ID: b.Worker, Incarnation: b.Incarnation, PID: b.PID, Host: b.Host, Slots: b.Slots, FreeSlots: max(b.Slots-b.UsedSlots, 0), HeardAt: w.at, Memory: b.Memory}
		for _, a := range b.Attempts {
			out.Tasks += len(a.Tasks)
			out.Jobs = append(out.Jobs, a.Job)
		}
		list = append(list, out)
	}
	return list, nil
}

func (s *Service) rates(ctx context.Context, idOrName string) (Rates, error) {
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return Rates{}, err
	}
	return s.ratesOf(j)
}

func (s *Service) ratesOf(j weir.Job) (Rates, error) {
	g, err := decodeGraph(j)
	if err != nil {
		return Rates{}, err
	}
	r := Rates{Attempt: j.Attempt, Chains: make([]ChainRates, len(g.Chains))}
	for i := range r.Chains {
		r.Chains[i].Chain, r.Chains[i].Operators = i, make([]OperatorRates, len(g.Chains[i].Operators))
	}
	s.mu.Lock()
	if kept := s.mu.ended[j.ID]; kept.attempt == j.Attempt {
		for _, t := range kept.tasks {
			r.add(t)
		}
	} else if !j.Status.Terminal() {
		for _, w := range s.mu.workers.alive() {
			w.addRates(s.now(), j.ID, j.Attempt, &r)
		}
	}
	s.mu.Unlock()
	for i, c := range r.Chains {
		r.State.add(c.State)
		if g.Chains[i].Operators[0].Kind == plan.Rejects {
			continue
		}
		if !hasInput(g.Edges, i) {
			r.RowsIn += c.RowsIn
			r.RowsInPerSecond += c.RowsInPerSecond
			r.BytesIn += c.BytesIn
			r.BytesInPerSecond += c.BytesInPerSecond
		}
		if !hasOutput(g.Edges, i) {
			r.RowsOut += c.RowsOut
			r.RowsOutPerSecond += c.RowsOutPerSecond
		}
	}
	r.Bottleneck = r.bottleneck(&g)
	return r, nil
}

// add adds a task's totals to its chain; nil: the graph has no such chain.
func (r *Rates) add(t deploy.TaskStats) *ChainRates {
	if t.Task.Chain >= len(r.Chains) {
		return nil
	}
	c := &r.Chains[t.Task.Chain]
	c.Tasks++
	c.total(t)
	c.State.add(StateFigures{t.State, t.Spilled, t.Uploads, t.Delta})
	r.RowsRejected += t.Rejected
	if at := time.UnixMicro(t.Watermark); t.Watermark != 0 && (c.Watermark.IsZero() || at.Before(c.Watermark)) {
		c.Watermark = at
	}
	return c
}

// Last words are what the tasks of an attempt had done when they were ended.
type lastWords struct {
	mu    sync.Mutex
	tasks []deploy.TaskStats
}

// add takes in a worker's answer to Stop.
func (l *lastWords) add(body []byte) {
	var m deploy.Stopped
	if len(body) == 0 || deploy.Decode(body, &m) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, m.Tasks...)
}

// endedKept bounds the jobs whose last words are kept.
const endedKept = 1000

// An endedAttempt is the last attempt of a job as it ended.
type endedAttempt struct {
	attempt weir.AttemptID
	tasks   []deploy.TaskStats
}

// keep keeps an attempt's last words for as long as this server lives.
func (s *Service) keep(job weir.JobID, attempt weir.AttemptID, l *lastWords) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.mu.ended {
		if len(s.mu.ended) < endedKept {
			break
		}
		delete(s.mu.ended, other)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.mu.ended[job] = endedAttempt{attempt, l.tasks}
}

// addRates adds what a worker's tasks of an attempt did to their chains. Rates are of the
// last seconds: from the first heartbeat of that time on, or where the task has begun since,
// from its beginning. A worker that tells nothing any more has none.
func (w *workerState) addRates(now time.Time, job weir.JobID, attempt weir.AttemptID, r *Rates) {
	last := w.history[len(w.history)-1]
	first := last
	for _, h := range w.history {
		if last.at.Sub(h.at) <= rateOver && statsOf(h.beat, job, attempt) != nil { // the attempt had begun
			first = h
			break
		}
	}
	then := statsOf(first.beat, job, attempt)
	for task, t := range statsOf(w.beat, job, attempt) {
		c := r.add(t)
		if c == nil || now.Sub(last.at) > rateOld {
			continue
		}
		before := then[task]
		if t.Age > 0 && t.Age <= rateOver.Microseconds() {
			before = deploy.TaskStats{}
		}
		c.rate(before, t, last.at.Sub(first.at).Seconds())
	}
}

func statsOf(b deploy.Heartbeat, job weir.JobID, attempt weir.AttemptID) map[weir.TaskID]deploy.TaskStats {
	for _, a := range b.Attempts {
		if a.Job == job && a.Attempt == attempt {
			stats := make(map[weir.TaskID]deploy.TaskStats, len(a.Tasks))
			for _, t := range a.Tasks {
				stats[t.Task] = t
			}
			return stats
		}
	}
	return nil
}

func hasInput(edges []plan.Edge, chain int) bool {
	return slices.ContainsFunc(edges, func(e plan.Edge) bool { return e.To == chain })
}

// hasOutput reports whether a chain emits rows to another one.
func hasOutput(edges []plan.Edge, chain int) bool {
	return slices.ContainsFunc(edges, func(e plan.Edge) bool { return e.From == chain && !e.Rejects })
}

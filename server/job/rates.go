package job

import (
	"context"
	"slices"
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
		out := Worker{ID: b.Worker, Incarnation: b.Incarnation, PID: b.PID, Host: b.Host, Slots: b.Slots, FreeSlots: max(b.Slots-b.UsedSlots, 0), HeardAt: w.at}
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
	g, err := decodeGraph(j)
	if err != nil {
		return Rates{}, err
	}
	r := Rates{Attempt: j.Attempt, Chains: make([]ChainRates, len(g.Chains))}
	for i := range r.Chains {
		r.Chains[i].Chain = i
	}
	if j.Status.Terminal() {
		return r, nil
	}
	s.mu.Lock()
	for _, w := range s.mu.workers.alive() {
		w.addRates(j.ID, j.Attempt, r.Chains)
	}
	s.mu.Unlock()
	for i, c := range r.Chains {
		if !hasInput(g.Edges, i) {
			r.RowsIn += c.RowsIn
			r.RowsInPerSecond += c.RowsInPerSecond
		}
		if !hasOutput(g.Edges, i) {
			r.RowsOut += c.RowsOut
			r.RowsOutPerSecond += c.RowsOutPerSecond
		}
	}
	return r, nil
}

// addRates adds what a worker's tasks of an attempt did to their chains.
func (w *workerState) addRates(job weir.JobID, attempt weir.AttemptID, chains []ChainRates) {
	first := w.history[0]
	for _, h := range w.history {
		if w.at.Sub(h.at) <= rateOver {
			first = h
			break
		}
	}
	seconds := w.history[len(w.history)-1].at.Sub(first.at).Seconds()
	for task, now := range statsOf(w.beat, job, attempt) {
		if task.Chain >= len(chains) {
			continue
		}
		c := &chains[task.Chain]
		c.Tasks++
		c.RowsIn += now.RowsIn
		c.RowsOut += now.RowsOut
		c.StateBytes += now.State
		c.Busy, c.Blocked = max(c.Busy, now.Busy), max(c.Blocked, now.Blocked)
		if at := time.UnixMicro(now.Watermark); now.Watermark != 0 && (c.Watermark.IsZero() || at.Before(c.Watermark)) {
			c.Watermark = at
		}
		if seconds > 0 {
			before := statsOf(first.beat, job, attempt)[task]
			c.RowsInPerSecond += float64(now.RowsIn-before.RowsIn) / seconds
			c.RowsOutPerSecond += float64(now.RowsOut-before.RowsOut) / seconds
		}
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

func hasOutput(edges []plan.Edge, chain int) bool {
	return slices.ContainsFunc(edges, func(e plan.Edge) bool { return e.From == chain })
}

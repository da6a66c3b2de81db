package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/deploy"
	"weir/exec/op"
)

// replyBytes bounds the rows of one reply, so that it fits a message of 1 MiB, which
// any NATS server takes unless it was told otherwise.
const replyBytes = 800 << 10

// read answers the commands that read results.
func (w *Worker) read(ctx context.Context, kind string, body []byte) ([]byte, error) {
	var reply deploy.Message
	var err error
	switch kind {
	case deploy.KindResults:
		var m deploy.Results
		if err = deploy.Decode(body, &m); err == nil {
			reply, err = w.results(ctx, m)
		}
	case deploy.KindChanges:
		var m deploy.Changes
		if err = deploy.Decode(body, &m); err == nil {
			reply, err = w.changes(ctx, m)
		}
	default:
		var m deploy.Read
		if err = deploy.Decode(body, &m); err == nil {
			reply, err = w.parts(ctx, m)
		}
	}
	if err != nil {
		return nil, err
	}
	return deploy.Encode(reply), nil
}

// results gathers one page of a result.
func (w *Worker) results(ctx context.Context, m deploy.Results) (deploy.Page, error) {
	var parts []deploy.Part
	if m.Snapshot != nil {
		part, err := w.snapshot(ctx, *m.Snapshot, m.Query)
		if err != nil {
			return deploy.Page{}, err
		}
		parts = []deploy.Part{part}
	} else {
		var err error
		if parts, err = w.gather(ctx, m.Parts, deploy.Read{Job: m.Job, Attempt: m.Attempt, Query: m.Query}); err != nil {
			return deploy.Page{}, err
		}
	}
	return merge(parts, m.Query), nil
}

// gather reads parts wherever they are: here, and at other workers, all at a time. The
// answer has them in the order of their tasks; like.Since is in that order too.
func (w *Worker) gather(ctx context.Context, placed []deploy.Placed, like deploy.Read) ([]deploy.Part, error) {
	placed = slices.Clone(placed)
	slices.SortFunc(placed, func(a, b deploy.Placed) int { return a.Task.Compare(b.Task) })
	var workers []weir.WorkerID
	for _, p := range placed {
		if !slices.Contains(workers, p.Worker) {
			workers = append(workers, p.Worker)
		}
	}
	found := make([][]deploy.Part, len(workers))
	err := together(len(workers), func(i int) error {
		ask := like
		ask.Header, ask.Tasks, ask.Since = deploy.Head(), placedHere(placed, workers[i]), nil
		for j, p := range placed {
			if p.Worker == workers[i] && like.Since != nil {
				ask.Since = append(ask.Since, like.Since[j])
			}
		}
		var err error
		found[i], err = w.partsAt(ctx, workers[i], ask)
		return err
	})
	if err != nil {
		return nil, err
	}
	parts := slices.Concat(found...)
	slices.SortFunc(parts, func(a, b deploy.Part) int { return a.Task.Compare(b.Task) })
	if len(parts) != len(placed) {
		return nil, fmt.Errorf("%w: %d parts of %d answered", weir.ErrConflict, len(parts), len(placed))
	}
	return parts, nil
}

func (w *Worker) partsAt(ctx context.Context, worker weir.WorkerID, m deploy.Read) ([]deploy.Part, error) {
	if worker == w.cfg.ID {
		p, err := w.parts(ctx, m)
		return p.Parts, err
	}
	reply, err := w.cfg.Control.Request(ctx, worker, deploy.KindRead, deploy.Encode(m))
	if err != nil {
		return nil, err
	}
	body, err := deploy.DecodeReply(reply)
	if err != nil {
		return nil, err
	}
	var p deploy.Parts
	return p.Parts, decoded(deploy.Decode(body, &p), func() error { return nil })
}

// parts reads tasks of this worker.
func (w *Worker) parts(ctx context.Context, m deploy.Read) (deploy.Parts, error) {
	out := deploy.Parts{Header: deploy.Head(), Parts: make([]deploy.Part, len(m.Tasks))}
	a, err := w.find(m.Job, m.Attempt)
	if err != nil {
		return out, err
	}
	if m.Since != nil && len(m.Since) != len(m.Tasks) {
		return out, fmt.Errorf("%w: %d versions for %d tasks", weir.ErrInvalid, len(m.Since), len(m.Tasks))
	}
	return out, together(len(m.Tasks), func(i int) error {
		t := a.task(m.Tasks[i])
		if t == nil {
			return fmt.Errorf("%w: task %v does not run on worker %s yet", weir.ErrConflict, m.Tasks[i], w.cfg.ID)
		}
		q := query(m.Query, replyBytes/len(m.Tasks))
		if q.Changes = m.Changes; m.Since != nil {
			q.Since = m.Since[i]
		}
		page, err := t.Query(ctx, q)
		if err != nil {
			return err
		}
		out.Parts[i] = part(m.Tasks[i], page, q)
		return nil
	})
}

func query(q deploy.Query, most int) exec.Query {
	out := exec.Query{Limit: q.Limit, Bytes: most, After: q.After}
	for _, o := range q.OrderBy {
		out.OrderBy = append(out.OrderBy, exec.Order(o))
	}
	return out
}

// part turns the page that answers q into a part of at most q.Bytes, one row at least.
func part(task weir.TaskID, page exec.Page, q exec.Query) deploy.Part {
	p := deploy.Part{Task: task, Rows: make([]deploy.Row, 0, len(page.Rows)), Total: page.Total, Version: page.Version, Full: page.Full, More: page.More}
	for _, c := range page.Counts {
		p.Counts = append(p.Counts, deploy.Count(c))
	}
	size := 0
	for i, r := range page.Rows {
		if size += r.Size(); size > q.Bytes && i > 0 {
			p.More = true
			if !page.Full {
				p.Version = q.Since + uint64(i) // versions count changes
			}
			break
		}
		p.Rows = append(p.Rows, deploy.Row{Op: r.Op, Row: json.RawMessage(r.JSON), Sort: r.Sort})
	}
	return p
}

// snapshot reads a result from a checkpoint, as one part.
func (w *Worker) snapshot(ctx context.Context, s deploy.Snapshot, q deploy.Query) (deploy.Part, error) {
	ask := query(q, replyBytes)
	page, err := w.snapshots.read(ctx, w.cfg.Blobs, s, w.cfg.Now, ask)
	if err != nil {
		return deploy.Part{}, err
	}
	return part(weir.TaskID{}, page, ask), nil
}

// merge joins parts into one page. What a part left out comes after its last row, so
// the page ends there at the latest. A page that is the whole result, which nobody
// ordered, is in the order of its keys.
func merge(parts []deploy.Part, q deploy.Query) deploy.Page {
	page := deploy.Page{Header: deploy.Head(), Rows: []json.RawMessage{}}
	var rows []deploy.Row
	var bound []byte
	more := false
	for _, p := range parts {
		rows = append(rows, p.Rows...)
		page.Total += p.Total
		page.Counts = append(page.Counts, p.Counts...) // one part only has some
		if n := len(p.Rows); p.More && n > 0 {
			more = true
			if last := p.Rows[n-1].Sort; bound == nil || bytes.Compare(last, bound) < 0 {
				bound = last
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b deploy.Row) int { return bytes.Compare(a.Sort, b.Sort) })
	size := 0
	for i, r := range rows {
		row := exec.Row{JSON: r.Row}
		size += row.Size()
		if bound != nil && bytes.Compare(r.Sort, bound) > 0 || q.Limit > 0 && i >= q.Limit || size > replyBytes && i > 0 {
			rows, more = rows[:i], true
			break
		}
	}
	if more {
		page.Next = rows[len(rows)-1].Sort
	} else if len(q.After) == 0 && len(q.OrderBy) == 0 {
		slices.SortFunc(rows, func(a, b deploy.Row) int { return op.CompareKeys(a.Sort, b.Sort) })
	}
	for _, r := range rows {
		page.Rows = append(page.Rows, r.Row)
	}
	return page
}

// changes gathers what changed. When one part has to tell its whole table, all do: the
// reader begins anew.
func (w *Worker) changes(ctx context.Context, m deploy.Changes) (deploy.ChangesPage, error) {
	like := deploy.Read{Job: m.Job, Attempt: m.Attempt, Changes: true, Since: m.Since, Query: deploy.Query{Limit: m.Limit}}
	if len(like.Since) != len(m.Parts) {
		like.Since = make([]uint64, len(m.Parts))
	}
	parts, err := w.gather(ctx, m.Parts, like)
	if err != nil {
		return deploy.ChangesPage{}, err
	}
	full := func(p deploy.Part) bool { return p.Full }
	if slices.ContainsFunc(parts, full) && slices.ContainsFunc(parts, func(p deploy.Part) bool { return !p.Full }) {
		like.Since = make([]uint64, len(m.Parts))
		if parts, err = w.gather(ctx, m.Parts, like); err != nil {
			return deploy.ChangesPage{}, err
		}
	}
	out := deploy.ChangesPage{Header: deploy.Head(), Full: slices.ContainsFunc(parts, full), Rows: []deploy.Change{}}
	for _, p := range parts {
		for _, r := range p.Rows {
			out.Rows = append(out.Rows, deploy.Change{Op: r.Op, Row: r.Row})
		}
		out.Since = append(out.Since, p.Version)
		if p.More && p.Full {
			out.Truncated = true
		} else if p.More {
			out.More = true
		}
	}
	return out, nil
}

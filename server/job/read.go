package job

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/planner/plan"
)

const (
	defaultLimit = 1000
	maxLimit     = 10000
)

// A cursor says where a reader is; users see it as opaque text.
type cursor struct {
	Order      string            `json:"o,omitempty"`
	After      []byte            `json:"a,omitempty"` // Sort of the last row
	Checkpoint weir.CheckpointID `json:"c,omitempty"` // of a snapshot that is read
	Attempt    weir.AttemptID    `json:"t,omitzero"`  // of the tasks that are read
	Since      []uint64          `json:"s,omitempty"` // their versions
	Done       bool              `json:"d,omitempty"` // the snapshot has been read to its end
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("job: cursor: %v", err))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (cursor, error) {
	var c cursor
	if s == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, notGivenOut(s)
	}
	return c, nil
}

func notGivenOut(text string) error {
	return inField("cursor", fmt.Errorf("%w: cursor %q is none that was given out: begin without one", weir.ErrInvalid, text))
}

// A table is a job's result table, or its rejected rows: the operator that keeps it and
// where it is.
type table struct {
	job   weir.Job
	graph plan.Graph
	kind  plan.OperatorKind // of the operator
	chain int
	op    int
}

// resultTable finds the job and the operator that keeps its result.
func (s *Service) resultTable(ctx context.Context, idOrName string) (table, error) {
	t, ok, err := s.findTable(ctx, idOrName, plan.Result)
	if err == nil && !ok {
		err = fmt.Errorf("%w: job %q is %s and keeps no result: it writes to a table; a plain SELECT keeps one", weir.ErrConflict, t.job.Name, t.job.Status)
	}
	return t, err
}

// findTable finds the job and its operator of a kind that keeps rows; ok is false when it
// has none.
func (s *Service) findTable(ctx context.Context, idOrName string, kind plan.OperatorKind) (t table, ok bool, err error) {
	t.kind = kind
	if t.job, err = s.Get(ctx, idOrName); err != nil {
		return t, false, err
	}
	if t.graph, err = decodeGraph(t.job); err != nil {
		return t, false, err
	}
	for chain, c := range t.graph.Chains {
		for i, op := range c.Operators {
			if op.Kind == kind {
				t.chain, t.op = chain, i
				return t, true, nil
			}
		}
	}
	return t, false, nil
}

// live reports whether the table is read from running tasks.
func (t table) live() bool {
	return t.job.Status == weir.StatusRunning || t.job.Status == weir.StatusStopping
}

// input is the schema of what operator i of the chain reads.
func (t table) input(i int) []plan.Column {
	if i > 0 {
		return t.graph.Chains[t.chain].Operators[i-1].Schema
	}
	for _, e := range t.graph.Edges {
		if e.To == t.chain && e.Rejects {
			return plan.RejectColumns()
		}
		if e.To == t.chain {
			ops := t.graph.Chains[e.From].Operators
			return ops[len(ops)-1].Schema
		}
	}
	return nil
}

func (s *Service) results(ctx context.Context, idOrName string, q ResultQuery) (*ResultPage, error) {
	t, err := s.resultTable(ctx, idOrName)
	if err != nil {
		return nil, err
	}
	query, err := t.query(q)
	if err != nil {
		return nil, err
	}
	from, err := ParseFrom(q.At)
	if err != nil {
		return nil, inField("at", err)
	}
	page := &ResultPage{Columns: t.graph.Result, Rows: []json.RawMessage{}}
	return page, s.page(ctx, t, from, query, q.OrderBy, page)
}

// page reads a page of a table: of the running tasks, or of a snapshot.
func (s *Service) page(ctx context.Context, t table, from From, query deploy.Query, order string, page *ResultPage) (err error) {
	ask := deploy.Results{Header: deploy.Head(), Job: t.job.ID, Attempt: t.job.Attempt, Query: query}
	var worker weir.WorkerID
	if from.Latest && t.live() {
		page.AsOf = AsOf{Checkpoint: t.job.Base.Checkpoint, Live: true}
		ask.Parts, err = s.livingParts(t)
		if err == nil {
			worker = ask.Parts[0].Worker
		}
	} else {
		var chosen choice
		var letGo func()
		if chosen, letGo, err = s.readable(ctx, t, from); err != nil || chosen.Manifest == nil {
			return err
		}
		defer letGo()
		page.AsOf = AsOf{Checkpoint: chosen.Ref.Checkpoint}
		ask.Snapshot = t.snapshot(chosen.Manifest)
		worker, err = s.reader()
	}
	if err != nil {
		return err
	}
	return s.askPage(ctx, worker, ask, order, page)
}

func (s *Service) askPage(ctx context.Context, worker weir.WorkerID, ask deploy.Results, order string, page *ResultPage) error {
	body, err := s.ask(ctx, worker, deploy.KindResults, ask)
	if err != nil {
		return unreachable(err)
	}
	var got deploy.Page
	if err := deploy.Decode(body, &got); err != nil {
		return err
	}
	if page.Rows, page.Total = got.Rows, got.Total; page.Rows == nil {
		page.Rows = []json.RawMessage{}
	}
	if len(got.Next) > 0 {
		page.Next = cursor{Order: order, After: got.Next}.String()
	}
	page.Counts = got.Counts
	return nil
}

// query checks what the user asks for.
func (t table) query(q ResultQuery) (deploy.Query, error) {
	out := deploy.Query{Limit: q.Limit}
	switch {
	case q.Limit < 0:
		return out, fmt.Errorf("%w: limit %d: give 1 to %d", weir.ErrInvalid, q.Limit, maxLimit)
	case q.Limit == 0:
		out.Limit = defaultLimit
	case q.Limit > maxLimit:
		out.Limit = maxLimit
	}
	c, err := parseCursor(q.Cursor)
	if err != nil {
		return out, err
	}
	if q.Cursor != "" && len(c.After) == 0 {
		return out, notGivenOut(q.Cursor)
	}
	if q.Cursor != "" && c.Order != q.OrderBy {
		return out, inField("cursor", fmt.Errorf("%w: cursor: it belongs to order_by %q: repeat that with it", weir.ErrInvalid, c.Order))
	}
	out.After = c.After
	out.OrderBy, err = t.orderBy(q.OrderBy)
	return out, inField("order_by", err)
}

// livingParts finds the tasks that hold the table.
func (s *Service) livingParts(t table) ([]deploy.Placed, error) {
	s.mu.Lock()
	parts := s.mu.workers.parts(t.job.ID, t.job.Attempt, t.chain)
	s.mu.Unlock()
	if want := t.graph.Chains[t.chain].Subtasks(t.job.Parallelism); len(parts) != want {
		return nil, fmt.Errorf("%w: %d of the %d tasks that hold the rows of job %q can be reached just now: try again", ErrUnavailable, len(parts), want, t.job.Name)
	}
	return parts, nil
}

// reader names a worker that reads a snapshot.
func (s *Service) reader() (weir.WorkerID, error) {
	if w := s.anyWorker(); w != "" {
		return w, nil
	}
	return "", fmt.Errorf("%w: no worker lives that could read the rows: start one", ErrUnavailable)
}

// pinFor is how long a snapshot is kept for one read whose server dies.
const pinFor = time.Minute

// readable finds the snapshot that a read names, and pins it until letGo is called; one
// without a manifest is empty, and there is nothing to let go. A pin is refused for what
// was given up, and what is pinned is not: so its objects are there until it is let go. The base of a job that has
// ended needs no pin: only deleting the job gives it up.
func (s *Service) readable(ctx context.Context, t table, from From) (c choice, letGo func(), err error) {
	letGo = func() {}
	if c, err = s.resolve(ctx, t.job, from); err != nil || c.Manifest == nil {
		return choice{}, letGo, err
	}
	if c.Ref.Job != t.job.ID && !from.Latest {
		return choice{}, letGo, fmt.Errorf("%w: %s belongs to job %s, not to %s", weir.ErrInvalid, from, c.Ref.Job, t.job.ID)
	}
	if c.Ref == t.job.Base && settled(t.job) {
		return c, letGo, nil
	}
	ref, holder := c.Ref, "read-"+weir.NewIncarnation()
	if err := s.deps.Store.Pin(ctx, ref, holder, pinFor); err != nil {
		return choice{}, letGo, err
	}
	letGo = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := s.deps.Store.Unpin(ctx, ref, holder); err != nil {
			s.deps.Logger.Warn("snapshot not let go, its pin expires", "job", ref.Job, "cp", ref.Checkpoint, "err", err)
		}
	}
	return c, letGo, nil
}

// snapshot collects the handles of the table's operator.
func (t table) snapshot(m *checkpoint.Manifest) *deploy.Snapshot {
	ops, at := t.graph.Chains[t.chain].Operators, t.op
	snap := &deploy.Snapshot{Operator: ops[at], MaxParallelism: m.MaxParallelism}
	if r := ops[at].Result; r != nil && r.Groups {
		at--
		snap.Groups = &ops[at]
	}
	snap.Input = t.input(at)
	for _, task := range m.Tasks {
		for _, o := range task.Operators {
			if o.Operator == ops[at].ID {
				snap.Handles = append(snap.Handles, o.Keyed...)
			}
		}
	}
	return snap
}

// unreachable turns the silence of a worker into ErrUnavailable; its own refusals stay.
func unreachable(err error) error {
	if deploy.Refused(err) && !errors.Is(err, weir.ErrStale) {
		return err
	}
	return fmt.Errorf("%w: the rows cannot be read just now, try again: %w", ErrUnavailable, err)
}

func (s *Service) changes(ctx context.Context, idOrName, text string) (*ChangePage, error) {
	t, err := s.resultTable(ctx, idOrName)
	if err != nil {
		return nil, err
	}
	c, err := parseCursor(text)
	if err != nil {
		return nil, err
	}
	page := &ChangePage{Columns: t.graph.Result, Changes: []Change{}, Status: t.job.Status}
	if t.live() {
		return page, s.liveChanges(ctx, t, c, page)
	}
	return page, s.storedChanges(ctx, t, c, page)
}

// liveChanges asks the running tasks. A cursor of another attempt, or of a snapshot,
// begins anew.
func (s *Service) liveChanges(ctx context.Context, t table, c cursor, page *ChangePage) error {
	parts, err := s.livingParts(t)
	if err != nil {
		return err
	}
	ask := deploy.Changes{Header: deploy.Head(), Job: t.job.ID, Attempt: t.job.Attempt, Parts: parts, Limit: defaultLimit}
	if c.Attempt == t.job.Attempt && len(c.Since) == len(parts) {
		ask.Since = c.Since
	}
	body, err := s.ask(ctx, parts[0].Worker, deploy.KindChanges, ask)
	if err != nil {
		return unreachable(err)
	}
	var got deploy.ChangesPage
	if err := deploy.Decode(body, &got); err != nil {
		return err
	}
	for _, ch := range got.Rows {
		page.Changes = append(page.Changes, Change(ch))
	}
	page.Reset, page.More, page.Truncated = got.Full, got.More, got.Truncated
	page.AsOf = AsOf{Checkpoint: t.job.Base.Checkpoint, Live: true}
	page.Cursor = cursor{Attempt: t.job.Attempt, Since: got.Since}.String()
	return nil
}

// storedChanges reads the base of a job that does not run, page by page, as one reset.
func (s *Service) storedChanges(ctx context.Context, t table, c cursor, page *ChangePage) error {
	base := t.job.Base.Checkpoint
	page.AsOf = AsOf{Checkpoint: base}
	same := c.Attempt == (weir.AttemptID{}) && c.Checkpoint == base && (c.Done || len(c.After) > 0)
	next := cursor{Checkpoint: base, Done: true}
	page.Reset = !same
	if same && c.Done || base == 0 {
		page.Cursor = next.String()
		return nil
	}
	chosen, letGo, err := s.readable(ctx, t, From{Latest: true})
	if err != nil {
		return err
	}
	defer letGo()
	worker, err := s.reader()
	if err != nil {
		return err
	}
	var rows ResultPage
	ask := deploy.Results{Header: deploy.Head(), Job: t.job.ID, Attempt: t.job.Attempt, Snapshot: t.snapshot(chosen.Manifest), Query: deploy.Query{Limit: maxLimit}}
	if same {
		ask.Query.After = c.After
	}
	if err := s.askPage(ctx, worker, ask, "", &rows); err != nil {
		return err
	}
	for _, row := range rows.Rows {
		page.Changes = append(page.Changes, Change{Op: "+I", Row: row})
	}
	if rows.Next != "" {
		if next, err = parseCursor(rows.Next); err != nil {
			return err
		}
		next.Checkpoint, page.More = base, true
	}
	page.Cursor = next.String()
	return nil
}

package exectest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner/plan"
)

// A Case is a chain of operators under attack. Its answer is what remains of the
// changes it puts out, or the rows of its result operator.
type Case struct {
	Chain []plan.Operator
	Input []plan.Column
	// Rows are the input; kinds are kept.
	Rows *batch.Batch
	// Keys route rows to subtasks, as the edge before the chain does; nil: one subtask only.
	Keys []int
	// Want is the answer, one row a line in the form of batch.String, sorted; empty:
	// whatever the straight run gives.
	Want string
}

const attackGroups = 16 // max parallelism

// Attack runs the case in every way the contract allows and compares the answers.
func Attack(t *testing.T, c Case) {
	t.Helper()
	want := c.Want
	if want == "" {
		want = c.run(t, 1, c.Rows.Rows(), 0, false)
	}
	spilled := false
	check := func(name string, parallelism, size, every int) {
		t.Helper()
		if diff := cmp.Diff(want, c.run(t, parallelism, size, every, spilled)); diff != "" {
			t.Errorf("%s, spilled %v (-want +got):\n%s", name, spilled, diff)
		}
	}
	check("all at once", 1, c.Rows.Rows(), 0)
	check("one by one", 1, 1, 0)
	check("snapshot and restore after every row", 1, 1, 1)
	check("snapshot and restore after every third row", 1, 1, 3)
	if c.Keys != nil {
		check("two subtasks", 2, 1, 0)
		check("one, two, three subtasks in turn", 3, 1, 2)
	}
	spilled = true
	few := 3 // rows a batch, which takes its time to spill
	if os.Getenv("WEIR_LONG") != "" {
		few = 1
	}
	check("a few at once", 1, few, 0)
	check("snapshot and restore after every third batch of a few", 1, few, 3)
	if c.Keys != nil {
		check("one, two, three subtasks in turn", 3, few, 2)
	}
	c.refuse(t)
}

// run feeds the rows in batches of size; after every so many batches (0: never) all
// instances are snapshotted and replaced by fresh ones, restored; with parallelism 3
// at one, two, three, one … subtasks. spilled: all state goes to disk after every batch.
func (c *Case) run(t *testing.T, parallelism, size, every int, spilled bool) string {
	t.Helper()
	r := &attack{c: c, t: t, blobs: blob.NewMemory(), answer: newChanges(c)}
	if spilled {
		disk := MemoryDisk(t)
		defer r.spill(disk)()
	}
	n := parallelism
	if every > 0 && parallelism == 3 {
		n = 1
	}
	r.open(n)
	for i, from := 0, 0; from < c.Rows.Rows(); i, from = i+1, from+size {
		r.feed(from, min(from+size, c.Rows.Rows()))
		if every > 0 && i%every == every-1 {
			if parallelism == 3 {
				n = n%3 + 1
			}
			r.restore(n)
		}
	}
	for _, s := range r.subtasks {
		r.must(s.end())
	}
	if every > 0 {
		r.ended = true
		r.restore(n) // an ended chain is not ended again
	}
	return r.lines()
}

// refuse checks that the error of an output comes back as it is, whichever batch it
// refuses, and that nothing is put out after it.
func (c *Case) refuse(t *testing.T) {
	t.Helper()
	if c.Chain[len(c.Chain)-1].Result != nil {
		return
	}
	full := errors.New("the task is ending")
	for taken := range 4 {
		r := &attack{c: c, t: t, blobs: blob.NewMemory(), answer: newChanges(c)}
		r.answer.refuse, r.answer.taken = full, taken
		r.open(1)
		s := r.subtasks[0]
		var err error
		for from := 0; from < c.Rows.Rows() && err == nil; from += 2 {
			err = s.head().Emit(slice(c.Rows, from, min(from+2, c.Rows.Rows())))
		}
		if err == nil {
			err = s.end()
		}
		if refused := r.answer.taken < 0; refused != (err != nil) || err != nil && !errors.Is(err, full) {
			t.Errorf("the output's error behind %d batches came back as %v", taken, err)
		}
		if r.answer.taken < -1 {
			t.Errorf("%d batches were put out after one was refused", -r.answer.taken-1)
		}
	}
}

// An attack is one run of a case.
type attack struct {
	c        *Case
	t        *testing.T
	blobs    blob.Store
	subtasks []*instance
	answer   *changes
	disk     *state.Disk // nil: nothing is spilled
	budget   *state.Budget
	saved    [][]checkpoint.OperatorSnapshot
	round    int
	cuts     int // between snapshots
	ended    bool
}

// An instance is one subtask of the chain.
type instance struct {
	setups []exec.Setup
	ops    []exec.Operator
	bases  [][]checkpoint.Handle // what each operator's state was restored from
	out    exec.Collector
}

func (r *attack) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// open makes n subtasks, restored from what is saved.
func (r *attack) open(n int) {
	r.t.Helper()
	r.must(r.openAll(n))
}

func (r *attack) openAll(n int) error {
	r.subtasks = nil
	for sub := range n {
		s := &instance{out: r.answer}
		input := r.c.Input
		for i, o := range r.c.Chain {
			groups := weir.KeyGroupsOf(sub, n, attackGroups)
			setup := exec.Setup{
				Operator: o, Input: input, Subtask: sub, Parallelism: n, MaxParallelism: attackGroups,
				State: state.New(state.Options{MaxParallelism: attackGroups, KeyGroups: groups, Disk: r.disk, Budget: r.budget}), Logger: slog.New(slog.DiscardHandler),
			}
			var handles []checkpoint.Handle
			for _, saved := range r.saved {
				handles = append(handles, share(saved[i:i+1], groups)[0].Keyed...)
			}
			base, err := setup.State.Restore(context.Background(), r.blobs, handles)
			if err != nil {
				return err
			}
			s.bases = append(s.bases, base)
			op, err := op.Open(context.Background(), setup)
			if err != nil {
				return err
			}
			if f, ok := op.(exec.Follower); ok && i > 0 {
				if err := f.Follow(s.ops[i-1]); err != nil {
					return err
				}
			}
			s.setups, s.ops = append(s.setups, setup), append(s.ops, op)
			input = o.Schema
		}
		r.subtasks = append(r.subtasks, s)
	}
	return nil
}

// restore snapshots all subtasks and replaces them by n fresh ones.
func (r *attack) restore(n int) {
	r.t.Helper()
	r.round++
	r.saved = nil
	for sub, s := range r.subtasks {
		r.must(s.flush())
		var snap []checkpoint.OperatorSnapshot
		for i, setup := range s.setups {
			handles := r.store(s.bases[i], setup.State.Cut(), fmt.Sprintf("%d/%d/%d/", r.round, sub, i))
			snap = append(snap, checkpoint.OperatorSnapshot{Operator: setup.Operator.ID, Keyed: handles})
		}
		r.saved = append(r.saved, snap)
		for i, op := range s.ops {
			r.must(op.Close())
			r.must(s.setups[i].State.Close())
		}
	}
	r.open(n)
}

// store lays a run over the base, inline or as objects; what has become long is merged.
func (r *attack) store(base []checkpoint.Handle, cut *state.Cut, prefix string) []checkpoint.Handle {
	r.t.Helper()
	const long = 6
	run := cut.Run()
	if cut.Whole() {
		base = nil
	}
	handles := slices.Clone(base)
	put := func(p state.Piece, delta bool) error {
		name := ""
		if len(handles)%2 == 0 {
			name = fmt.Sprint(prefix, len(handles))
			if err := r.blobs.Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {
				return err
			}
		}
		handles = append(handles, p.Handle(name, delta))
		return nil
	}
	for _, p := range run {
		r.must(put(p, len(base) > 0))
	}
	if len(handles) > long {
		m := state.Merge{MaxParallelism: attackGroups, Handles: handles, Whole: true}
		handles = nil
		r.must(m.Run(context.Background(), r.blobs, func(p state.Piece) error { return put(p, false) }))
	}
	return handles
}

// feed gives rows from to to to the subtasks that own their keys.
func (r *attack) feed(from, to int) {
	r.t.Helper()
	parts := make([][]int32, len(r.subtasks))
	b := slice(r.c.Rows, from, to)
	hashes := make([]uint64, b.Len)
	batch.HashRows(b, r.c.Keys, hashes)
	for i, h := range hashes {
		p := 0
		if r.c.Keys != nil {
			p = weir.SubtaskOf(weir.KeyGroupOf(h, attackGroups), len(parts), attackGroups)
		}
		parts[p] = append(parts[p], int32(i))
	}
	for p, rows := range parts {
		if len(rows) > 0 {
			part := batch.New(batch.KindsOf(b), len(rows))
			part.AppendRows(b, rows)
			r.must(r.subtasks[p].head().Emit(part))
			r.relax(p)
		}
	}
}

// spill lets all state go to disk; the function that it returns closes that.
func (r *attack) spill(disk *state.Disk) func() {
	r.disk, r.budget = disk, state.NewBudget(1)
	return func() {
		for _, s := range r.subtasks {
			for _, setup := range s.setups {
				r.must(setup.State.Close())
			}
		}
		r.must(disk.Close())
	}
}

// relax spills what a subtask has, which is cut where that has to be.
func (r *attack) relax(sub int) {
	r.t.Helper()
	s := r.subtasks[sub]
	for i, setup := range s.setups {
		err := setup.State.Relax()
		if errors.Is(err, state.ErrDirty) {
			r.cuts++
			s.bases[i] = r.store(s.bases[i], setup.State.Cut(), fmt.Sprintf("aside/%d/", r.cuts))
			err = setup.State.Relax()
		}
		r.must(err)
	}
}

// slice copies rows from to to of b.
func slice(b *batch.Batch, from, to int) *batch.Batch {
	out := batch.New(batch.KindsOf(b), to-from)
	for i := from; i < to; i++ {
		out.AppendRow(b, b.Row(i))
	}
	return out
}

// share gives what of the operators' keyed state lies in groups.
func share(ops []checkpoint.OperatorSnapshot, groups weir.KeyGroupRange) []checkpoint.OperatorSnapshot {
	var out []checkpoint.OperatorSnapshot
	for _, o := range ops {
		o.Keyed = slices.DeleteFunc(slices.Clone(o.Keyed), func(h checkpoint.Handle) bool {
			return h.KeyGroups.Intersect(groups).Empty()
		})
		out = append(out, o)
	}
	return out
}

func (s *instance) head() exec.Collector { return &stage{s, 0} }

// A stage is the operator at index i, as the collector of the one before.
type stage struct {
	s *instance
	i int
}

// Emit implements exec.Collector.
func (g *stage) Emit(b *batch.Batch) error {
	switch {
	case b.Rows() == 0:
		return nil
	case g.i == len(g.s.ops):
		return g.s.out.Emit(b)
	}
	return g.s.ops[g.i].Process(b, &stage{g.s, g.i + 1})
}

func (s *instance) flush() error {
	for i, op := range s.ops {
		if err := op.Flush(&stage{s, i + 1}); err != nil {
			return err
		}
	}
	return nil
}

func (s *instance) end() error {
	for i, op := range s.ops {
		if err := op.End(&stage{s, i + 1}); err != nil {
			return err
		}
		if err := op.Flush(&stage{s, i + 1}); err != nil {
			return err
		}
	}
	return nil
}

// lines gives the answer: the rows of the result operator, or what remains of the
// changes.
func (r *attack) lines() string {
	r.t.Helper()
	text, err := r.answerLines()
	r.must(err)
	return text
}

func (r *attack) answerLines() (string, error) {
	var list []string
	for _, s := range r.subtasks {
		if reader, ok := s.ops[len(s.ops)-1].(exec.Reader); ok {
			page, err := reader.Read(exec.Query{})
			if err != nil {
				return "", err
			}
			for _, row := range page.Rows {
				list = append(list, string(row.JSON)+"\n")
			}
		}
	}
	if r.answer.wrong != nil {
		return "", r.answer.wrong
	}
	for row, n := range r.answer.counts {
		for range n {
			list = append(list, row)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ""), nil
}

// Answer is the answer of the straight run: all rows at once, one subtask.
func Answer(t *testing.T, c Case) string {
	t.Helper()
	return c.run(t, 1, max(c.Rows.Rows(), 1), 0, false)
}

// Failure runs the rows in batches of size and returns the first error.
func Failure(t *testing.T, c Case, size int) error {
	t.Helper()
	r := &attack{c: &c, t: t, blobs: blob.NewMemory(), answer: newChanges(&c)}
	r.open(1)
	s := r.subtasks[0]
	for from := 0; from < c.Rows.Rows(); from += size {
		part := slice(c.Rows, from, min(from+size, c.Rows.Rows()))
		part.Origin = c.Rows.Origin
		if err := errors.Join(s.head().Emit(part), s.flush()); err != nil {
			return err
		}
	}
	return s.end()
}

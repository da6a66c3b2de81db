package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/state"
	"weir/planner/plan"
)

func graph() plan.Graph {
	return plan.Graph{Version: plan.Version, MaxParallelism: maxGroups, Bounded: true, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source", Name: "source", Kind: plan.Source}}},
		{Operators: []plan.Operator{{ID: "count", Name: "count", Kind: plan.GlobalAggregate}, {ID: "sink", Name: "sink", Kind: plan.Sink}}},
	}, Edges: []plan.Edge{{From: 0, To: 1, Keys: []int{0}}}}
}

// A frame is one element of a channel: a partial count, a barrier, the end, the close.
type frame struct {
	key, n  int
	barrier weir.CheckpointID
	origin  origin // of the barrier
	end     bool
	close   bool
}

// An origin is what a trigger says of the snapshots it asks for.
type origin struct {
	base  weir.CheckpointID
	whole bool
}

// A position says how far a split is read; it is one item of the sources' list state.
type position struct{ Split, Row int }

// A row is one line of output: the n-th row of a key.
type row struct{ Key, N int }

// A segmentID is a segment's identity for ever: its writer's.
type segmentID struct {
	Job     weir.JobID
	Subtask int
	Barrier weir.CheckpointID
}

// A segment is what a sink subtask wrote between two barriers; one item of the sinks' list
// state until it is committed.
type segment struct {
	ID   segmentID
	Rows []row
}

// A task is what a source and a counter have in common: where it runs, and for whom.
type task struct {
	a       *attempt
	id      weir.TaskID
	p       *process // the worker
	stopped bool
}

func (k *task) gone() bool { return k.stopped || !k.p.alive }

// report sends the coordinator a message.
func (k *task) report(point string, e checkpoint.Event) {
	k.a.w.send(point, k.a.server, func() { k.a.feed(e) })
}

func (k *task) ack(id weir.CheckpointID, snap *checkpoint.TaskSnapshot, failure *weir.Failure) {
	k.report("ack", checkpoint.Acked{Ack: checkpoint.Ack{
		Version: 1, Job: k.a.fence.Job, Attempt: k.a.fence.Attempt, Task: k.id, Checkpoint: id, Snapshot: snap, Failure: failure,
	}})
}

// A source reads its splits row by row and counts by key before it sends.
type source struct {
	task
	splits   []position
	partial  map[int]int // not sent yet (I11)
	last     weir.CheckpointID
	ended    bool
	channels []*[]frame // to the counters
}

// A counter counts rows by key and hands each count to its sink.
type counter struct {
	task
	aligner  *checkpoint.Aligner
	channels []*[]frame // from the sources
	ends     int
	counts   *counts
	uploads  uploads
	origins  map[weir.CheckpointID]origin // of barriers that have come
	buffer   []row
	segments []segment
	barrier  weir.CheckpointID
}

// makeTasks makes the tasks of an attempt on the workers, and deals the state out.
func (a *attempt) makeTasks(p *checkpoint.RestorePlan, states []restoredCounts) {
	for i := range a.parallelism {
		place := func(chain int) task {
			return task{a: a, id: weir.TaskID{Chain: chain, Subtask: i}, p: a.w.workers[i%len(a.w.workers)]}
		}
		a.sources = append(a.sources, &source{task: place(0), partial: map[int]int{}})
		k := &counter{task: place(1), aligner: checkpoint.NewAligner(a.parallelism, a.w.options.Mode), counts: states[i].counts, origins: map[weir.CheckpointID]origin{}}
		k.uploads = uploads{k: k, chain: state.NewChain(0, states[i].base, a.w.limits)}
		for _, run := range states[i].runs {
			a.w.saw("state: spilled while it is copied")
			k.uploads.chain.Add(1, run, false)
		}
		a.counters = append(a.counters, k)
	}
	for _, s := range a.sources {
		for _, k := range a.counters {
			c := new([]frame)
			s.channels, k.channels = append(s.channels, c), append(k.channels, c)
		}
	}
	at := make([]int, len(a.w.splits)) // where each split goes on
	for _, item := range p.Lists["source"] {
		var pos position
		a.w.parse(item, &pos)
		at[pos.Split] = pos.Row
	}
	for split, row := range at {
		s := a.sources[split%a.parallelism]
		s.splits = append(s.splits, position{split, row})
	}
	for i, item := range p.Lists["sink"] {
		var seg segment
		a.w.parse(item, &seg)
		k := a.counters[i%a.parallelism]
		k.segments = append(k.segments, seg)
	}
}

func (w *world) parse(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		w.fail("state cannot be read: %v", err)
	}
}

// poll is one turn of the source's loop; it schedules the next.
func (s *source) poll() {
	w := s.a.w
	if s.gone() {
		return
	}
	s.p.after(w.upTo(time.Duration(w.tape.slowly)*100*time.Millisecond), s.poll)
	for i := range s.splits {
		p := &s.splits[i]
		for range 1 + w.rng.IntN(3) {
			if p.Row < len(w.splits[p.Split]) {
				s.partial[w.splits[p.Split][p.Row]]++
				p.Row++
			}
		}
	}
	if w.rng.IntN(3) == 0 {
		s.flush()
	}
	if !s.ended && s.readAll() {
		s.flush()
		s.ended = true
		s.broadcast(frame{end: true})
	}
	if s.ended && w.rng.IntN(10) == 0 { // the report is repeated, as one may be lost
		s.report("ended", checkpoint.SourceEnded{Task: s.id})
	}
}

func (s *source) readAll() bool {
	return !slices.ContainsFunc(s.splits, func(p position) bool { return p.Row < len(s.a.w.splits[p.Split]) })
}

// flush sends what was counted so far.
func (s *source) flush() {
	for _, key := range slices.Sorted(maps.Keys(s.partial)) {
		c := s.channels[weir.SubtaskOf(groupOf(key), s.a.parallelism, maxGroups)]
		*c = append(*c, frame{key: key, n: s.partial[key]})
	}
	clear(s.partial)
}

func (s *source) broadcast(f frame) {
	for _, c := range s.channels {
		*c = append(*c, f)
	}
}

// trigger begins a checkpoint: partial counts first (I11), then positions, then the
// barrier on every channel.
func (s *source) trigger(t checkpoint.Trigger) {
	id := t.Checkpoint
	if s.gone() || id <= s.last {
		return
	}
	s.last = id
	s.flush()
	snap := &checkpoint.TaskSnapshot{Task: s.id, Ended: s.ended}
	op := checkpoint.OperatorSnapshot{Operator: "source", List: []json.RawMessage{}}
	for _, p := range s.splits {
		op.List = append(op.List, fmt.Appendf(nil, `{"Split":%d,"Row":%d}`, p.Split, p.Row))
	}
	snap.Operators = append(snap.Operators, op)
	s.broadcast(frame{barrier: id, origin: origin{t.Base, t.Whole}})
	s.ack(id, snap, nil)
}

// poll is one turn of the counter's loop: some frames of channels that are not held.
func (k *counter) poll() {
	w := k.a.w
	if k.gone() {
		return
	}
	k.p.after(w.upTo(60*time.Millisecond), k.poll)
	k.relax()
	for range 1 + w.rng.IntN(4) {
		first := w.rng.IntN(len(k.channels))
		for i := range k.channels {
			ch := (first + i) % len(k.channels)
			if c := k.channels[ch]; len(*c) > 0 && !k.aligner.Held(ch) {
				f := (*c)[0]
				*c = (*c)[1:]
				k.take(ch, f)
				break
			}
		}
	}
}

// stop ends the counter, and gives back what its state has on disk.
func (k *counter) stop() {
	if k.stopped {
		return
	}
	k.stopped = true
	if err := k.counts.store.Close(); err != nil {
		k.a.w.fail("%v gives back its state: %v", k.id, err)
	}
}

// relax spills what may go, where there is a disk; now and then it cuts between two barriers.
func (k *counter) relax() {
	w := k.a.w
	if w.disk == nil {
		return
	}
	err := k.counts.store.Relax()
	if dirty := errors.Is(err, state.ErrDirty); dirty && w.taste.IntN(4) == 0 || w.taste.IntN(20) == 0 {
		w.saw("state: a cut between two barriers")
		k.uploads.add(&upload{id: k.barrier + 1, cut: k.counts.store.Cut()})
	} else if dirty {
		w.saw("state: what cannot be spilled yet")
		return
	}
	if err = k.counts.store.Relax(); err != nil && !errors.Is(err, state.ErrDirty) {
		w.fail("%v spills: %v", k.id, err)
	}
}

func (k *counter) take(ch int, f frame) {
	switch {
	case f.end:
		k.ends++
	case f.close:
		for _, id := range k.aligner.Close(ch) {
			k.snapshot(id)
		}
	case f.barrier != 0:
		k.origins[f.barrier] = f.origin
		if k.aligner.Barrier(ch, f.barrier) {
			k.snapshot(f.barrier)
		}
	default:
		for range f.n {
			k.buffer = append(k.buffer, row{f.key, k.counts.add(f.key)})
		}
	}
}

// snapshot closes the segment, and uploads and acknowledges the state.
func (k *counter) snapshot(id weir.CheckpointID) {
	if id <= k.barrier {
		return
	}
	k.barrier = id
	if len(k.buffer) > 0 {
		k.segments = append(k.segments, segment{segmentID{k.a.fence.Job, k.id.Subtask, id}, k.buffer})
		k.buffer = nil
	}
	snap := &checkpoint.TaskSnapshot{Task: k.id, Ended: k.ends == len(k.channels), Commits: len(k.segments) > 0}
	sink := checkpoint.OperatorSnapshot{Operator: "sink", List: []json.RawMessage{}}
	for _, seg := range k.segments {
		item, _ := json.Marshal(seg)
		sink.List = append(sink.List, item)
	}
	snap.Operators = []checkpoint.OperatorSnapshot{{Operator: "count"}, sink}
	from := k.origins[id]
	maps.DeleteFunc(k.origins, func(other weir.CheckpointID, _ origin) bool { return other <= id })
	k.uploads.add(&upload{id: id, base: from.base, whole: from.whole, cut: k.counts.store.Cut(), snap: snap})
}

// commit makes the segments up to a decided checkpoint visible, in barrier order, and
// says so.
func (k *counter) commit(id weir.CheckpointID) {
	if k.gone() {
		return
	}
	k.p.spawn(func(t *thread) {
		if k.stopped {
			return
		}
		var done []segment
		for _, s := range k.segments {
			if s.ID.Barrier <= id {
				done = append(done, s)
			}
		}
		err := t.call("commit", "sink", func() error {
			k.a.w.truth.visible(k.a, id, done)
			return nil
		})
		if err == nil {
			k.segments = slices.DeleteFunc(k.segments, func(s segment) bool {
				return slices.ContainsFunc(done, func(d segment) bool { return d.ID == s.ID })
			})
		} else {
			err = fmt.Errorf("target: %w", err)
		}
		k.report("committed", checkpoint.Committed{Task: k.id, ID: id, Err: err})
	})
}

// restoredCounts are the counts that a counter starts with, and the handles that its first
// snapshot may be laid over.
type restoredCounts struct {
	counts *counts
	base   []checkpoint.Handle
	runs   [][]state.Piece
}

// loadCounts reads what each counter starts with.
func (a *attempt) loadCounts(t *thread, p *checkpoint.RestorePlan) ([]restoredCounts, error) {
	list := make([]restoredCounts, a.parallelism)
	keyed := map[int][]checkpoint.Handle{}
	fetched := blob.NewMemory() // a restore reads from goroutines of its own, which cannot wait here
	for _, task := range p.Tasks {
		for _, op := range task.Keyed {
			keyed[task.Task.Subtask] = op.Handles
			for _, h := range op.Handles {
				if err := fetch(t, h.Object, fetched); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range list {
		o := state.Options{MaxParallelism: maxGroups, KeyGroups: weir.KeyGroupsOf(i, a.parallelism, maxGroups), Disk: a.w.disk, Budget: a.w.budget}
		anew := slices.ContainsFunc(keyed[i], a.foreign)
		if anew {
			a.w.saw("state: of another job is copied")
		}
		c, base, err := restored(context.Background(), fetched, o, keyed[i], anew)
		if err != nil {
			return nil, err
		}
		runs, err := unshelved(c.store)
		if err != nil {
			return nil, err
		}
		list[i] = restoredCounts{c, base, runs}
	}
	return list, nil
}

// unshelved are the runs that restoring a store gave, in memory.
func unshelved(s *state.Store) (runs [][]state.Piece, err error) {
	for _, run := range s.Runs() {
		var pieces []state.Piece
		for _, p := range run {
			r, err := s.Shelf().Open(p)
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				return nil, err
			}
			pieces = append(pieces, state.Piece{Data: data, Checksum: p.Checksum, KeyGroups: p.KeyGroups})
		}
		runs = append(runs, pieces)
	}
	return runs, nil
}

// fetch copies an object, unless it is there.
func fetch(t *thread, key string, to *blob.Memory) error {
	if _, err := to.Stat(context.Background(), key); err == nil || key == "" {
		return nil
	}
	r, err := blobs{t}.Get(context.Background(), key, 0, -1)
	if err != nil {
		return err
	}
	return errors.Join(to.Put(context.Background(), key, r), r.Close())
}

func (s *source) progress(id weir.CheckpointID) checkpoint.Progress {
	p := checkpoint.Progress{Task: s.id, Stage: checkpoint.StageWaiting}
	if s.last >= id {
		p.Stage = checkpoint.StageDone
	}
	return p
}

func (k *counter) progress(id weir.CheckpointID) checkpoint.Progress {
	p := checkpoint.Progress{Task: k.id, Stage: checkpoint.StageUploading}
	for _, ch := range k.aligner.Missing(id) {
		p.Stage = checkpoint.StageAligning
		p.Missing = append(p.Missing, weir.TaskID{Subtask: ch})
	}
	return p
}

package state

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// A job is the keyed state of one operator, the tasks that share it, and the job's
// checkpoints.
type job struct {
	*rapid.T
	*world
	budget  *Budget
	parts   []*part
	want    []model // table by table
	blobs   blob.Store
	objects map[string]weir.CheckpointID // who stored each; 0: a compaction

	attempt     int
	last, base  weir.CheckpointID
	checkpoints map[weir.CheckpointID]*modelCheckpoint // what is pending, or kept

	keys   int    // in use, of each table
	blob   int    // most bytes of a blob
	inline int    // most bytes of a piece that is no object
	clock  uint64 // changes so far
	limits Limits // of chains, which most are merged soon
}

// A modelCheckpoint is a checkpoint or a savepoint, and what the state was.
type modelCheckpoint struct {
	id, origin weir.CheckpointID // and the base whose objects may be named again
	savepoint  bool
	want       []model
	handles    [][]checkpoint.Handle // part by part
	left       int                   // parts that have not stored theirs
	completed  bool
}

var errStorage = errors.New("storage fails")

func newJob(t *rapid.T, w *world) *job {
	j := &job{T: t, world: w, budget: NewBudget(0), blobs: blob.NewMemory(), objects: map[string]weir.CheckpointID{}, checkpoints: map[weir.CheckpointID]*modelCheckpoint{}, blob: 300}
	if j.disk == nil || j.disk.fails.Load() > 0 {
		j.renew(t)
	}
	j.keys = []int{12, 41, 41, 41, 700, 700, 2000, modelKeys}[j.below(8)]
	j.inline = []int{InlineLimit, 200}[j.below(2)]
	j.limits = []Limits{{}, smallLimits(), smallLimits(), {Deltas: 2, Merged: 2, Bytes: 1, Runs: 2}}[j.below(4)]
	for range modelTables() {
		j.want = append(j.want, model{})
	}
	var handles []checkpoint.Handle
	if j.below(8) == 1 {
		handles = j.old()
	}
	j.restore(handles, false)
	return j
}

// dice gives numbers below 1024, each as likely as the others: those that rapid draws are
// more often small.
var dice = rapid.Custom(func(t *rapid.T) (x int) {
	for range 10 {
		x *= 2
		if rapid.Bool().Draw(t, "") {
			x++
		}
	}
	return x
})

// below draws a number below n, each about as likely as the others.
func (j *job) below(n int) int { return dice.Draw(j.T, "dice") * n >> 10 }

func (j *job) table() int { return j.below(len(modelTables())) }

// key draws a key: any, or one of those that are used most.
func (j *job) key() int {
	if j.below(2) == 0 {
		return rapid.IntRange(0, j.keys-1).Draw(j.T, "key")
	}
	return (j.below(1<<10)*11 + j.below(11)) % j.keys
}

func (j *job) part() *part { return j.parts[j.below(len(j.parts))] }

func (j *job) each(f func(*part)) {
	for _, p := range j.parts {
		f(p)
	}
}

func (j *job) count(what string) { j.seen[what]++ }

// actions are what may happen to a job, and how often each does.
var actions = []struct {
	name   string
	weight int
	do     func(*job)
}{
	{"one", 280, (*job).one},
	{"many", 60, (*job).many},
	{"rows", 40, (*job).rows},
	{"delete a range", 12, (*job).deleteRange},
	{"delete where", 12, (*job).deleteWhere},
	{"spill", 60, (*job).spill},
	{"relax", 40, (*job).relax},
	{"sift", 60, (*job).sift},
	{"barrier", 60, (*job).barrier},
	{"write", 40, func(j *job) { j.part().writeAny() }},
	{"seal", 60, func(j *job) { j.part().seal() }},
	{"seal all", 60, func(j *job) { j.each((*part).seal) }},
	{"upload", 60, func(j *job) { j.part().upload() }},
	{"upload all", 100, func(j *job) { j.each((*part).upload) }},
	{"complete", 120, (*job).complete},
	{"abort", 8, (*job).abort},
	{"compact", 60, func(j *job) { j.each((*part).compact) }},
	{"compacted", 60, func(j *job) { j.part().compacted() }},
	{"fold", 30, func(j *job) { j.each((*part).fold) }},
	{"folded", 30, func(j *job) { j.each((*part).folded) }},
	{"crash", 6, (*job).crash},
	{"fail disk", 4, (*job).failDisk},
	{"look", 20, (*job).look},
}

// step does one thing. Where the disk fails at it, the job begins again.
func (j *job) step() {
	j.count("step")
	sum := 0
	for _, a := range actions {
		sum += a.weight
	}
	at := j.below(sum)
	for _, a := range actions {
		if at -= a.weight; at < 0 {
			j.Log(a.name)
			if j.tries(func() { a.do(j) }) {
				j.count("disk failed")
				j.disk.fails.Store(0) // it may work again
				j.again(j.below(2) == 0)
			}
			return
		}
	}
}

// look compares what a part holds with what it must.
func (j *job) look() {
	from := rapid.Uint32().Draw(j.T, "rank")
	if j.below(2) == 0 {
		from = 0
	}
	check(j.T, j.part().store, j.want, from)
}

// barrier begins a checkpoint or a savepoint.
func (j *job) barrier() {
	if len(j.pending()) > 5 {
		return
	}
	c := &modelCheckpoint{id: j.last + 1, origin: j.base, savepoint: j.below(8) == 0, want: copied(j.want), handles: make([][]checkpoint.Handle, len(j.parts)), left: len(j.parts)}
	for _, p := range j.parts {
		p.cut(c)
	}
	j.last++
	j.checkpoints[c.id] = c
	j.count("barrier")
}

// pending are the checkpoints that have neither completed nor failed, oldest first.
func (j *job) pending() (list []*modelCheckpoint) {
	for _, id := range slices.Sorted(maps.Keys(j.checkpoints)) {
		if c := j.checkpoints[id]; !c.completed {
			list = append(list, c)
		}
	}
	return list
}

// put stores a piece of a part, wherever it lies, or keeps it inline.
func (j *job) put(prefix string, of weir.CheckpointID, n int, p *part, x Piece, delta bool) checkpoint.Handle {
	name := ""
	if x.Size() > j.inline || len(x.Data) == 0 {
		name = prefix + strconv.Itoa(n)
		data, err := p.store.Shelf().Open(x)
		j.may(err)
		all, err := io.ReadAll(data)
		j.may(errors.Join(err, data.Close()))
		if err := j.blobs.Put(j.Context(), name, bytes.NewReader(all)); err != nil {
			j.Fatal(err)
		}
		j.objects[name] = of
	}
	return x.Handle(name, delta)
}

// stored records that a part's snapshot was stored; with an error, the checkpoint fails.
func (j *job) stored(p *part, u *partUpload, err error) {
	if errors.Is(err, errStorage) {
		j.count("store failed")
		j.fail(u.of)
		return
	}
	j.may(err)
	handles := slices.Concat(u.Kept, u.stored)
	p.chain.Stored(u.of.id, handles)
	u.of.handles[slices.Index(j.parts, p)] = handles
	u.of.left--
}

// complete completes a checkpoint: older ones that are pending are superseded.
func (j *job) complete() {
	ready := slices.DeleteFunc(j.pending(), func(c *modelCheckpoint) bool { return c.left > 0 })
	if len(ready) == 0 {
		return
	}
	c := ready[j.below(len(ready))]
	c.completed = true
	if j.below(2) == 0 {
		j.verify(c)
	}
	if c.savepoint {
		j.count("savepoint")
		return
	}
	j.count("complete")
	j.base = c.id
	for _, other := range j.pending() {
		if other.id < c.id && !other.savepoint {
			j.count("superseded")
			delete(j.checkpoints, other.id)
		}
	}
	j.collect()
}

// verify restores a checkpoint, into some ranges.
func (j *job) verify(c *modelCheckpoint) {
	n := j.below(4) + 1
	for subtask := range n {
		check(j.T, restored(j.T, j.blobs, slices.Concat(c.handles...), weir.KeyGroupsOf(subtask, n, testGroups)), c.want, 0)
	}
}

func (j *job) abort() {
	if open := j.pending(); len(open) > 0 {
		j.count("abort")
		j.fail(open[j.below(len(open))])
	}
}

func (j *job) fail(c *modelCheckpoint) {
	delete(j.checkpoints, c.id)
	j.collect()
}

// collect deletes what nothing needs any more: kept are the base, savepoints, what is
// pending, and what that may name again.
func (j *job) collect() {
	origins := map[weir.CheckpointID]bool{j.base: true}
	for _, c := range j.pending() {
		origins[c.origin] = true
	}
	used := map[string]bool{}
	for id, c := range j.checkpoints {
		if c.completed && !c.savepoint && !origins[id] {
			delete(j.checkpoints, id)
			continue
		}
		for _, handles := range c.handles {
			for _, h := range handles {
				used[h.Object] = true
			}
		}
	}
	for name, of := range j.objects {
		if owner := j.checkpoints[of]; used[name] || of == 0 || owner != nil && !owner.completed {
			continue
		}
		j.delete(name)
	}
}

func (j *job) delete(name string) {
	delete(j.objects, name)
	if err := j.blobs.Delete(j.Context(), name); err != nil {
		j.Fatal(err)
	}
}

// crash ends all tasks, and with them what is in memory; the job begins again from its base
// or a savepoint.
func (j *job) crash() {
	var savepoints []weir.CheckpointID
	for _, id := range slices.Sorted(maps.Keys(j.checkpoints)) {
		if c := j.checkpoints[id]; c.completed && c.savepoint {
			savepoints = append(savepoints, id)
		}
	}
	if len(savepoints) > 0 && j.below(3) == 0 {
		j.base = savepoints[j.below(len(savepoints))]
		j.count("restored from a savepoint")
	}
	fresh := j.below(3) == 0
	if fresh {
		j.count("crash, fresh disk")
	} else {
		j.count("closed, same disk")
	}
	j.again(fresh)
}

// again begins again from the base; with a fresh disk, nobody has closed the stores.
func (j *job) again(fresh bool) {
	for _, p := range j.parts {
		for _, c := range p.cuts {
			if c.cut != nil {
				c.cut.Release()
			}
		}
	}
	if fresh {
		j.renew(j.T)
		j.budget = NewBudget(j.budget.Limit())
	} else {
		j.close()
		j.disk.injected.Store(0)
	}
	for _, c := range j.pending() {
		delete(j.checkpoints, c.id)
	}
	j.collect()
	j.attempt++
	var handles []checkpoint.Handle
	for k := range j.want {
		j.want[k] = model{}
	}
	if c := j.checkpoints[j.base]; c != nil {
		handles, j.want = slices.Concat(c.handles...), copied(c.want)
	}
	j.restore(handles, j.below(6) == 0)
	for _, p := range j.parts {
		check(j.T, p.store, j.want, 0)
	}
}

// close closes the stores: they leave nothing in the budget, and nothing on disk, unless it
// has failed.
func (j *job) close() {
	for _, p := range j.parts {
		err := p.store.Close()
		if err == nil && p.store.db != nil && p.store.db.broken() == nil {
			n := 0
			err = p.store.db.each(p.store.space, after(p.store.space), func([]byte, []byte) bool { n++; return true })
			if n > 0 {
				j.Fatalf("%d entries are on disk after the end of their store", n)
			}
		}
		if err != nil && j.disk.injected.Load() == 0 {
			j.Fatal(err)
		}
	}
	if n := j.budget.Used(); n != 0 {
		j.Fatalf("%d bytes are taken by stores that are closed", n)
	}
}

// restore begins an attempt of some tasks.
func (j *job) restore(handles []checkpoint.Handle, anew bool) {
	n := j.below(4) + 1
	j.count("parallelism " + strconv.Itoa(n))
	j.parts = nil
	for subtask := range n {
		p := &part{job: j, store: New(Options{MaxParallelism: testGroups, KeyGroups: weir.KeyGroupsOf(subtask, n, testGroups), Disk: j.disk.Disk, Budget: j.budget})}
		j.parts = append(j.parts, p)
		var base []checkpoint.Handle
		var err error
		if anew {
			j.count("written anew")
			err = p.store.RestoreAnew(j.Context(), j.blobs, handles)
		} else {
			base, err = p.store.Restore(j.Context(), j.blobs, handles)
		}
		j.may(err)
		p.chain = NewChain(0, base, j.limits)
		for _, run := range p.store.Runs() {
			j.count("run of a restore")
			p.chain.Add(1, run, false)
		}
		p.tidy()
		for k := range modelTables() { // as an operator does
			modelTables()[k].in(p.store)
		}
	}
}

// end compares everything once more: what tasks hold, and what checkpoints restore.
func (j *job) end() {
	if j.tries(func() {
		for _, p := range j.parts {
			for len(p.cuts) > 0 {
				p.seal()
			}
			if s := p.store; s.open.Load() != 0 || len(s.mu.cuts) != 0 {
				j.Fatalf("%d cuts open: %v", s.open.Load(), s.mu.cuts)
			}
			check(j.T, p.store, j.want, 0)
		}
	}) {
		j.count("disk failed")
		j.renew(j.T)
		j.parts, j.budget = nil, NewBudget(0)
	}
	for _, id := range slices.Sorted(maps.Keys(j.checkpoints)) {
		if c := j.checkpoints[id]; c.left == 0 {
			j.verify(c)
		}
	}
	if j.tries(j.close) {
		j.renew(j.T)
	}
}

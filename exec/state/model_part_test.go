package state

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
)

// A part is the state of one of the job's tasks.
type part struct {
	job        *job
	store      *Store
	chain      *Chain
	cuts       []*partCut // that are no runs yet, oldest first
	uploads    []*partUpload
	compacting *partCompaction
	folding    *Snapshot // runs that are being merged, since no checkpoint takes them
}

// A partCut is a cut and what it is for.
type partCut struct {
	id    weir.CheckpointID
	of    *modelCheckpoint // nil: an internal cut
	cut   *Cut
	run   []Piece // once it is written
	whole bool    // likewise
}

// A partUpload is a snapshot that is to be stored.
type partUpload struct {
	of *modelCheckpoint
	Snapshot
	stored []checkpoint.Handle
}

type partCompaction struct {
	handles []checkpoint.Handle
	whole   bool
}

// An operation is what is done to an entry.
type operation int

const (
	change operation = iota
	setBlob
	patchBlob
	remove
	look
)

// partOf is the part that a hash belongs to.
func (j *job) partOf(hash uint64) *part {
	return j.parts[slices.IndexFunc(j.parts, func(p *part) bool {
		return p.store.KeyGroups().Contains(weir.KeyGroupOf(hash, testGroups))
	})]
}

// apply does something to an entry of a table and of its model.
func (j *job) apply(op operation, k, n int) {
	of := &modelTables()[k]
	key := of.keys[n]
	table := of.in(j.partOf(key.hash).store)
	_, warm := table.lookup(key.hash, []byte(key.key))
	if op != remove && op != look {
		slot, fresh := table.Upsert(key.hash, []byte(key.key))
		j.back(of, key, !warm && !fresh)
		j.change(op, k, key, table, slot, fresh)
		return
	}
	slot, ok := table.Find(key.hash, []byte(key.key))
	if v, there := j.want[k][key.key]; ok != there || ok && (!of.same(table.Entry(slot), v) || string(table.Key(slot)) != key.key) {
		j.Fatalf("%s: find %q: %v, want %v (%v)", of.name, key.key, ok, v, there)
	}
	j.back(of, key, !warm && ok)
	if ok && op == remove {
		j.remove(k, key, table, slot)
	}
}

// back counts what came back from disk.
func (j *job) back(of *modelTable, key modelKey, ok bool) {
	if !ok {
		return
	}
	j.count("recall")
	v := j.want[slices.IndexFunc(modelTables(), func(t modelTable) bool { return t.name == of.name })][key.key]
	switch {
	case v.blob != "":
		j.count("blob back from disk")
	case of.layout.Key == IntKey && key.key == string(appendIntKey(nil, 0, true)):
		j.count("NULL back from disk")
	case len(key.key) > wideKey:
		j.count("long key back from disk")
	}
}

// change changes what Upsert gave.
func (j *job) change(op operation, k int, key modelKey, table *Table, slot int, fresh bool) {
	of := &modelTables()[k]
	v, there := j.want[k][key.key]
	v.hash = key.hash
	if fresh == there || !of.same(table.Entry(slot), v) {
		j.Fatalf("%s: upsert %q: fresh %v, %v, want %v (%v)", of.name, key.key, fresh, table.Entry(slot), v, there)
	}
	j.clock++
	before := table.chunks[slot>>chunkBits]
	w := table.Words(slot)
	for i := range w {
		w[i] += j.clock - uint64(1000*i)
		v.words[i] = w[i]
	}
	switch {
	case op == setBlob && of.layout.Blob:
		v.blob = strings.Repeat(string(rune('a'+j.clock%26)), int(j.clock%uint64(j.blob+1)))
		table.SetBlob(slot, []byte(v.blob))
	case op == patchBlob && v.blob != "":
		at := int(j.clock) % len(v.blob)
		table.PatchBlob(slot, at, []byte("!"))
		v.blob = v.blob[:at] + "!" + v.blob[at+1:]
	}
	if !fresh && table.chunks[slot>>chunkBits] != before {
		j.count("copy aside")
	}
	if _, grave := table.graves()[key.key]; grave && fresh {
		j.count("grave written over")
	}
	j.want[k][key.key] = v
}

// graves are what is buried in a table.
func (t *Table) graves() map[string]uint64 {
	if t.cold == nil {
		return nil
	}
	return t.cold.graves
}

func (j *job) remove(k int, key modelKey, table *Table, slot int) {
	n := len(table.graves())
	table.Delete(slot)
	delete(j.want[k], key.key)
	j.count("delete")
	if len(table.graves()) > n {
		j.count("grave")
	}
}

// one is an operation on one key, many on some in a row, rows on those that a batch has.
func (j *job) one() {
	op := operation(j.below(5))
	j.apply(op, j.table(), j.key())
}

func (j *job) many() {
	op, k, from, n := operation(j.below(5)), j.table(), j.key(), j.below(j.keys/2+1)+1
	if j.below(4) == 0 {
		op = change
	}
	j.blob = rapid.IntRange(0, 300).Draw(j.T, "length of blobs")
	for i := range n {
		j.apply(op, k, (from+i)%j.keys)
	}
}

func (j *job) rows() {
	k := j.table()
	of := &modelTables()[k]
	if of.rows == nil {
		return
	}
	p := j.part()
	table, from, step := of.in(p.store), j.key(), j.below(7)+1
	var numbers []int
	for i := range j.below(60) + 1 {
		n := (from + i*step) % j.keys
		if i%8 == 7 {
			n = (from + (i-1)*step) % j.keys // twice in a batch
		}
		if p.store.KeyGroups().Contains(weir.KeyGroupOf(of.keys[n].hash, testGroups)) {
			numbers = append(numbers, n)
		}
	}
	hashes, slots, fresh := make([]uint64, len(numbers)), make([]int, len(numbers)), make([]bool, len(numbers))
	for i, n := range numbers {
		hashes[i] = of.keys[n].hash
	}
	table.UpsertRows(of.rows(numbers), []int{0}, hashes, slots, fresh)
	for i, n := range numbers {
		j.change(change, k, of.keys[n], table, slots[i], fresh[i])
	}
	j.count("upsert of rows")
}

// deleteRange deletes what lies between two ranks; deleteWhere what is in memory and has
// something in common.
func (j *job) deleteRange() {
	k, p := j.table(), j.part()
	table := modelTables()[k].in(p.store)
	from := rapid.Uint32().Draw(j.T, "from rank")
	to := from + rapid.Uint32().Draw(j.T, "ranks")/8
	var keys []modelKey
	for e := range table.Ranked(from) {
		if Rank(e.Hash) >= to {
			break
		}
		keys = append(keys, modelKey{e.Hash, string(e.Key)})
	}
	for _, key := range keys {
		slot, ok := table.Find(key.hash, []byte(key.key))
		if !ok {
			j.Fatalf("%s: %q is read by rank and not found", modelTables()[k].name, key.key)
		}
		j.remove(k, key, table, slot)
	}
	j.seen["delete a range"] += min(len(keys), 1)
}

func (j *job) deleteWhere() {
	k, p, rest := j.table(), j.part(), uint64(j.below(4))
	table := modelTables()[k].in(p.store)
	table.Range(func(slot int) bool {
		if key := (modelKey{table.Hash(slot), string(table.Key(slot))}); key.hash>>8%4 == rest {
			j.remove(k, key, table, slot)
			j.count("delete where")
		}
		return true
	})
}

// spill moves entries to disk, as far as they may be.
func (j *job) spill() {
	p := j.part()
	table := modelTables()[j.table()].in(p.store)
	if table.pinned {
		return
	}
	open, before := p.store.open.Load(), table.index.n
	if j.below(2) == 0 {
		n, err := table.shrink(j.below(3)+1, 0)
		j.may(err)
		j.seen["chunk dropped"] += n
	} else {
		n, err := table.spill(j.below(max(j.keys/2, 30)) + 1)
		j.may(err)
		if n != before-table.index.n {
			j.Fatalf("%s: %d entries spilled, %d are fewer", table.name, n, before-table.index.n)
		}
	}
	j.seen["entry spilled"] += before - table.index.n
	if open > 0 && before > table.index.n {
		j.count("spilled with a cut open")
	}
}

// sift begins to make a table's filter anew, goes on with it, or halves the filter.
func (j *job) sift() {
	table := modelTables()[j.table()].in(j.part().store)
	c := table.cold
	if c == nil || c.n == 0 {
		return
	}
	switch j.below(3) {
	case 0:
		c.sieve = &sieve{}
		c.sieve.grow(c.n, 0, 0)
	case 1:
		j.may(table.sift())
		if c.sieve == nil {
			j.count("filter anew")
		}
	default:
		c.filter.halve()
		j.count("filter halved")
	}
}

// relax does as a task does between batches.
func (j *job) relax() {
	if j.below(3) == 0 {
		j.budget.limit.Store(int64(rapid.SampledFrom([]int{0, 1, 10_000, 100_000, 400_000}).Draw(j.T, "budget")))
	}
	p := j.part()
	before := p.inMemory()
	err := p.store.Relax()
	if isDirty(err) {
		j.count("all of it dirty")
		p.cut(nil)
		err = nil
	}
	j.may(err)
	j.seen["entry spilled"] += before - p.inMemory()
	j.count("relax")
}

func (p *part) inMemory() (n int) {
	for _, t := range p.store.tables {
		n += t.index.n
	}
	return n
}

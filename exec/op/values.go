package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/btree"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
)

// A values keeps the different values of one argument in every group, in keyed state:
// the group's key and the value → with rows that are taken back, how often it is there.
// It feeds the DISTINCT aggregates of the argument, which see each value once, and over
// changing rows MIN and MAX, which need the next value when theirs goes.
//
// An entry's hash has the high half of its group's, which chooses the key group, and the
// low half of that of group and value together, so that entries spread.
//
// MIN and MAX find the next value in an ordered index in memory, about
// 24 bytes per value beside the 32 and more of the entry; it is built when the state is opened.
type values struct {
	arg     int
	columns []int // the keys, then the argument
	table   *state.Table
	counted bool
	sums    []accumulator
	least   []accumulator
	order   *btree.BTreeG[valueRef] // nil: no MIN, no MAX
	groups  *state.Table

	view   batch.Batch // scratch: the rows whose argument is not NULL
	at     []int32     // which of the batch's selected rows each of them is
	sel    []int32
	hashes []uint64
	slots  []int
	fresh  []bool
	zeros  []int       // entries that reached 0 in this batch
	one    batch.Batch // scratch: a value, in the argument's column
}

// A valueRef is an entry in the ordered index: the slot of the group, which stays while it
// has values, and what tells most values apart without a look at the entry.
type valueRef struct {
	group int32
	entry int32
	head  uint64
}

func newValues(s exec.Setup, number int, keys []int, arg int, counted bool) *values {
	v := &values{arg: arg, columns: append(slices.Clone(keys), arg), counted: counted}
	words := 0
	if counted {
		words = 1
	}
	key := state.KeyOf(kindsOf(s, v.columns))
	if key == state.IntKey {
		key = state.AnyKey // the hash is not the value's
	}
	v.table = s.State.Table("values "+strconv.Itoa(number), state.Layout{Key: key, Words: words})
	return v
}

// feeds adds an accumulator that the table feeds.
func (v *values) feeds(a accumulator, least bool) {
	if !least {
		v.sums = append(v.sums, a)
		return
	}
	v.least = append(v.least, a)
}

// index builds the ordered index, if it is needed, over the groups of a table.
func (v *values) index(s exec.Setup, groups *state.Table) error {
	kinds := exec.Layout(s.Input)
	v.one = batch.Batch{Columns: make([]batch.Vector, v.arg+1), Len: 1}
	v.one.Columns[v.arg].Physical = kinds[v.arg]
	if len(v.least) == 0 {
		return nil
	}
	v.groups = groups
	v.table.Pin() // the index knows both by slot
	groups.Pin()
	v.order = btree.NewBTreeGOptions(v.before, btree.Options{NoLocks: true})
	key := batch.Batch{Columns: make([]batch.Vector, len(v.columns)-1), Len: 1}
	all := make([]int, len(key.Columns))
	for i := range all {
		all[i], key.Columns[i].Physical = i, kinds[v.columns[i]]
	}
	var failed error
	v.table.Range(func(entry int) bool {
		for i := range key.Columns {
			key.Columns[i].Reset()
		}
		text := v.table.Key(entry)
		rest, err := batch.DecodeKey(text, key.Columns)
		if err == nil {
			err = v.decode(rest)
		}
		var hash [1]uint64
		batch.HashRows(&key, all, hash[:])
		group, ok := groups.Find(hash[0], text[:len(text)-len(rest)])
		if err == nil && !ok {
			err = fmt.Errorf("%w: a value of a group that is not there", weir.ErrInvalid)
		}
		if failed = err; err == nil {
			v.order.Set(valueRef{int32(group), int32(entry), headOf(&v.one.Columns[v.arg], 0)})
		}
		return failed == nil
	})
	return failed
}

// decode reads an encoded value into v.one.
func (v *values) decode(value []byte) error {
	column := v.one.Columns[v.arg:]
	column[0].Reset()
	if _, err := batch.DecodeKey(value, column); err != nil {
		return fmt.Errorf("a value of a group: %w", err)
	}
	return nil
}

// headOf gives the first 64 bits of a value: they order values, but for some that differ behind
// them only.
func headOf(v *batch.Vector, row int) uint64 {
	const sign = 1 << 63
	switch v.Physical {
	case batch.Bools:
		return uint64(truth(v.Bools[row]))
	case batch.Ints:
		return uint64(v.Ints[row]) ^ sign
	case batch.Floats:
		return batch.FloatOrder(v.Floats[row]) ^ sign
	case batch.Decimals:
		return uint64(v.Decimals[row].Hi) ^ sign
	}
	var head [8]byte
	copy(head[:], v.Str(row))
	return binary.BigEndian.Uint64(head[:])
}

// before orders values by group, and within it as MIN and MAX do. The encoding of keys
// orders all values but texts, which begin with their length.
func (v *values) before(a, b valueRef) bool {
	if a.group != b.group {
		return a.group < b.group
	}
	if a.head != b.head || a.entry == b.entry {
		return a.head < b.head
	}
	group := len(v.groups.Key(int(a.group)))
	x, y := v.table.Key(int(a.entry))[group:], v.table.Key(int(b.entry))[group:]
	if x[0] == byte(batch.Strings) {
		return bytes.Compare(textOf(x), textOf(y)) < 0
	}
	return bytes.Compare(x, y) < 0
}

// textOf is the text of an encoded one.
func textOf(key []byte) []byte {
	_, n := binary.Uvarint(key[1:])
	return key[1+n:]
}

// find enters the rows of a batch whose argument is not NULL; hashes are those of their groups.
func (v *values) find(b *batch.Batch, hashes []uint64) {
	v.view, v.at = batch.Batch{Columns: b.Columns, Len: b.Len, Sel: b.Sel}, v.at[:0]
	arg := &b.Columns[v.arg]
	v.sel = v.sel[:0]
	for i := range b.Rows() {
		if row := b.Row(i); !arg.Null(row) {
			v.at, v.sel = append(v.at, int32(i)), append(v.sel, int32(row))
		}
	}
	if len(v.at) < b.Rows() {
		v.view.Sel = v.sel
	}
	n := len(v.at)
	if n == 0 {
		return
	}
	v.hashes = slices.Grow(v.hashes[:0], n)[:n]
	v.slots = slices.Grow(v.slots[:0], n)[:n]
	v.fresh = slices.Grow(v.fresh[:0], n)[:n]
	for i, at := range v.at {
		v.hashes[i] = hashes[at]
	}
	batch.HashMore(&v.view, v.columns[len(v.columns)-1:], v.hashes)
	for i, at := range v.at {
		v.hashes[i] = hashes[at]&^(1<<32-1) | v.hashes[i]&(1<<32-1)
	}
	v.table.UpsertRows(&v.view, v.columns, v.hashes, v.slots, v.fresh)
}

// addValues takes the batch's values of one argument into the aggregates that they feed.
func (a *globalAgg) addValues(v *values, b *batch.Batch) error {
	v.find(b, a.hashes)
	for i, at := range v.at {
		row, slot := b.Row(int(at)), a.slots[at]
		var err error
		switch adds := added(b.Kind(row)); {
		case !v.counted && v.fresh[i]:
			err = a.enter(v, slot, v.slots[i], b, row)
		case v.counted && adds:
			w := v.table.Words(v.slots[i])
			if w[0]++; w[0] == 1 {
				err = a.enter(v, slot, v.slots[i], b, row)
			}
		case v.counted:
			err = a.takeValue(v, slot, v.slots[i], b, row)
		}
		if err != nil {
			return err
		}
	}
	v.drop()
	return nil
}

func (a *globalAgg) takeValue(v *values, slot, entry int, b *batch.Batch, row int) error {
	w := v.table.Words(entry)
	if w[0] == 0 {
		return fmt.Errorf("%s: a %v of a value that the group does not hold", a.name, b.Kind(row))
	}
	if w[0]--; w[0] > 0 {
		return nil
	}
	v.zeros = append(v.zeros, entry)
	return a.leave(v, slot, entry, b, row)
}

// drop deletes the entries that are at 0 at the end of a batch.
func (v *values) drop() {
	slices.Sort(v.zeros)
	for _, entry := range slices.Compact(v.zeros) {
		if v.table.ReadWords(entry)[0] == 0 {
			v.table.Delete(entry)
		}
	}
	v.zeros = v.zeros[:0]
}

// enter tells the aggregates of a value that is new in the group.
func (a *globalAgg) enter(v *values, slot, entry int, b *batch.Batch, row int) error {
	w := a.table.Words(slot)
	for i := range v.sums {
		if err := v.sums[i].add(w[v.sums[i].word:], b, row); err != nil {
			return err
		}
	}
	if v.order == nil {
		return nil
	}
	v.order.Set(valueRef{int32(slot), int32(entry), headOf(&b.Columns[v.arg], row)})
	for i := range v.least {
		if err := a.offer(&v.least[i], slot, b, row); err != nil {
			return err
		}
	}
	return nil
}

// offer takes a value into MIN or MAX.
func (a *globalAgg) offer(acc *accumulator, slot int, b *batch.Batch, row int) error {
	if acc.kind == leastStrings {
		a.offerText(acc, slot, b.Columns[acc.arg].Str(row))
		return nil
	}
	return acc.add(a.table.Words(slot)[acc.word:], b, row)
}

// leave tells the aggregates of a value that is no longer in the group.
func (a *globalAgg) leave(v *values, slot, entry int, b *batch.Batch, row int) error {
	w := a.table.Words(slot)
	for i := range v.sums {
		if err := v.sums[i].take(w[v.sums[i].word:], b, row); err != nil {
			return err
		}
	}
	if v.order == nil {
		return nil
	}
	ref := valueRef{int32(slot), int32(entry), headOf(&b.Columns[v.arg], row)}
	v.order.Delete(ref)
	for i := range v.least {
		if err := a.replace(v, &v.least[i], slot, ref, b, row); err != nil {
			return err
		}
	}
	return nil
}

// replace gives MIN or MAX the next value of the group where its own is gone.
func (a *globalAgg) replace(v *values, acc *accumulator, slot int, gone valueRef, b *batch.Batch, row int) error {
	w := a.table.Words(slot)[acc.word:][:acc.words()]
	var kept []byte
	if acc.kind == leastStrings {
		kept = partOf(a.table.Blob(slot), acc.part)
	}
	if !acc.holds(w, kept, b, row) {
		return nil
	}
	clear(w)
	if acc.part >= 0 {
		a.setPart(acc, slot, nil)
	}
	next, ok := v.next(gone, acc.flip != 0)
	if !ok {
		return nil
	}
	if err := v.decode(v.table.Key(int(next.entry))[len(a.table.Key(slot)):]); err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	return a.offer(acc, slot, &v.one, 0)
}

// next finds the value of the same group that comes after one that has left the index;
// down: before it. Its entry is still there.
func (v *values) next(gone valueRef, down bool) (next valueRef, ok bool) {
	look := func(r valueRef) bool {
		next, ok = r, r.group == gone.group
		return false
	}
	if down {
		v.order.Descend(gone, look)
	} else {
		v.order.Ascend(gone, look)
	}
	return next, ok
}

package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/btree"

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
// MIN and MAX find the next value in an ordered index in memory, about 12 bytes per value
// beside the 32 and more of the entry; it is built when the state is opened.
type values struct {
	arg     int
	columns []int // the keys, then the argument
	table   *state.Table
	counted bool
	sums    []accumulator
	least   []accumulator
	order   *btree.BTreeG[valueRef] // nil: no MIN, no MAX

	view   batch.Batch // scratch: the rows whose argument is not NULL
	at     []int32     // which of the batch's selected rows each of them is
	sel    []int32
	hashes []uint64
	slots  []int
	fresh  []bool
	zeros  []int       // entries that reached 0 in this batch
	one    batch.Batch // scratch: a value, in the argument's column
}

// A valueRef is an entry in the ordered index. Its first bytes are the group's.
type valueRef struct {
	slot  int32
	group int32 // length of the group's key
}

func newValues(store *state.Store, number int, keys []int, arg int, counted bool) *values {
	v := &values{arg: arg, columns: append(slices.Clone(keys), arg), counted: counted}
	words := 0
	if counted {
		words = 1
	}
	v.table = store.Table("values "+strconv.Itoa(number), state.Layout{Words: words})
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

// index builds the ordered index, if it is needed.
func (v *values) index(s exec.Setup, keys []int) error {
	kinds := exec.Layout(s.Input)
	v.one = batch.Batch{Columns: make([]batch.Vector, v.arg+1), Len: 1}
	v.one.Columns[v.arg].Physical = kinds[v.arg]
	if len(v.least) == 0 {
		return nil
	}
	v.order = btree.NewBTreeGOptions(v.before, btree.Options{NoLocks: true})
	group := make([]batch.Vector, len(keys))
	var failed error
	v.table.Range(func(slot int) bool {
		for i, k := range keys {
			group[i].Physical = kinds[k]
			group[i].Reset()
		}
		key := v.table.Key(slot)
		rest, err := batch.DecodeKey(key, group)
		if err != nil {
			failed = fmt.Errorf("index the values of a group: %w", err)
			return false
		}
		v.order.Set(valueRef{int32(slot), int32(len(key) - len(rest))})
		return true
	})
	return failed
}

// before orders values by group, and within it as MIN and MAX do. The encoding of keys
// orders all values but texts, which begin with their length.
func (v *values) before(a, b valueRef) bool {
	x, y := v.table.Key(int(a.slot)), v.table.Key(int(b.slot))
	if c := bytes.Compare(x[:a.group], y[:b.group]); c != 0 {
		return c < 0
	}
	x, y = x[a.group:], y[b.group:]
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
	batch.HashRows(&v.view, v.columns, v.hashes)
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
	v.order.Set(valueRef{int32(entry), int32(len(a.table.Key(slot)))})
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
	ref := valueRef{int32(entry), int32(len(a.table.Key(slot)))}
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
	value := &v.one.Columns[v.arg]
	value.Reset()
	if _, err := batch.DecodeKey(v.table.Key(int(next.slot))[next.group:], v.one.Columns[v.arg:]); err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	return a.offer(acc, slot, &v.one, 0)
}

// next finds the value of the same group that comes after one that has left the index;
// down: before it. Its entry is still there.
func (v *values) next(gone valueRef, down bool) (next valueRef, ok bool) {
	group := v.table.Key(int(gone.slot))[:gone.group]
	look := func(r valueRef) bool {
		next, ok = r, r.group == gone.group && bytes.Equal(v.table.Key(int(r.slot))[:r.group], group)
		return false
	}
	if down {
		v.order.Descend(gone, look)
	} else {
		v.order.Ascend(gone, look)
	}
	return next, ok
}

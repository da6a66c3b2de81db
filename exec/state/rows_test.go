package state

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/exec/batch"
)

// Rows looked up by column are the entries that encoded keys find.
func TestUpsertRows(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]int{{0}, {1}, {0, 1}, {}} {
		b := batch.New([]batch.Physical{batch.Ints, batch.Strings}, 8)
		for i := range 3000 {
			if i%50 == 0 {
				b.Columns[0].AppendNull()
				b.Columns[1].AppendNull()
			} else {
				b.Columns[0].AppendInt(int64(i%97) - 40)
				b.Columns[1].AppendString(strings.Repeat("k", i%31))
			}
			b.EndRow(batch.Insert)
			if i%3 > 0 {
				b.Sel = append(b.Sel, int32(i))
			}
		}
		s := New(Options{})
		table := s.Table("t", Layout{Words: 1})
		hashes, slots, fresh := make([]uint64, b.Len), make([]int, b.Len), make([]bool, b.Len)
		batch.HashRows(b, keys, hashes)
		table.UpsertRows(b, keys, hashes, slots, fresh)
		distinct := map[string]bool{}
		for i := range b.Rows() {
			key := batch.EncodeKey(nil, b, keys, b.Row(i))
			if fresh[i] == distinct[string(key)] {
				t.Fatalf("keys %v: row %d fresh %v", keys, i, fresh[i])
			}
			distinct[string(key)] = true
			if slot, ok := table.Find(hashes[i], key); !ok || slot != slots[i] || !bytes.Equal(table.Key(slot), key) {
				t.Fatalf("keys %v: row %d is at %d, found at %d, %v", keys, i, slots[i], slot, ok)
			}
		}
		if table.Len() != len(distinct) {
			t.Fatalf("keys %v: %d entries, want %d", keys, table.Len(), len(distinct))
		}
	}
}

// Rows find their entries in a table that is larger than the caches as well.
func TestUpsertRowsOfMany(t *testing.T) {
	t.Parallel()
	const rows = warmEntries + 16*batch.Target // the last ones come when the table is that large
	for _, keys := range [][]int{{0}, {1}, {0, 1}} {
		table := New(Options{}).Table("t", Layout{Words: 1})
		b := batch.New([]batch.Physical{batch.Ints, batch.Strings}, batch.Target)
		hashes, slots, fresh := make([]uint64, batch.Target), make([]int, batch.Target), make([]bool, batch.Target)
		var key []byte
		for _, from := range slices.Concat(steps(0, rows), steps(warmEntries-16*batch.Target, rows)) {
			b.Reset()
			for i := range batch.Target {
				b.Columns[0].AppendInt(int64(from + i))
				b.Columns[1].AppendString(strings.Repeat("k", i%31) + strconv.Itoa(from+i))
				b.EndRow(batch.Insert)
			}
			batch.HashRows(b, keys, hashes)
			before := table.Len()
			table.UpsertRows(b, keys, hashes, slots, fresh)
			for i, slot := range slots {
				key = batch.EncodeKey(key[:0], b, keys, i)
				if fresh[i] != (before == from) || !bytes.Equal(table.Key(slot), key) {
					t.Fatalf("keys %v, %d entries: row %d is at %d, fresh %v", keys, before, from+i, slot, fresh[i])
				}
			}
		}
		if table.Len() != rows {
			t.Fatalf("keys %v: %d entries, want %d", keys, table.Len(), rows)
		}
	}
}

// steps are the numbers of the first rows of batches.
func steps(from, to int) (list []int) {
	for ; from < to; from += batch.Target {
		list = append(list, from)
	}
	return list
}

// Numbers of one tag are told apart, whether they come in one batch or in two.
func TestUpsertRowsOfOneTag(t *testing.T) {
	t.Parallel()
	tags, pairs := map[uint32]int64{}, [][2]int64{}
	for x := int64(0); len(pairs) < 4; x++ {
		tag := uint32(batch.HashInt(x))
		if other, ok := tags[tag]; ok {
			pairs = append(pairs, [2]int64{other, x})
		}
		tags[tag] = x
	}
	table := New(Options{}).Table("t", Layout{Key: IntKey, Words: 1})
	upsert := func(numbers ...int64) ([]int, []bool) {
		b := batch.New([]batch.Physical{batch.Ints}, len(numbers))
		for _, x := range numbers {
			b.Columns[0].AppendInt(x)
			b.EndRow(batch.Insert)
		}
		hashes, slots, fresh := make([]uint64, b.Len), make([]int, b.Len), make([]bool, b.Len)
		batch.HashRows(b, []int{0}, hashes)
		table.UpsertRows(b, []int{0}, hashes, slots, fresh)
		return slots, fresh
	}
	for _, p := range pairs {
		slots, fresh := upsert(p[0], p[1], p[1], p[0])
		if slots[0] == slots[1] || slots[1] != slots[2] || slots[0] != slots[3] || !slices.Equal(fresh, []bool{true, true, false, false}) {
			t.Errorf("%v and %v of one tag are at %v, fresh %v", p[0], p[1], slots, fresh)
		}
		again, fresh := upsert(p[1], p[0])
		if again[0] != slots[1] || again[1] != slots[0] || fresh[0] || fresh[1] {
			t.Errorf("%v and %v of one tag are at %v first, at %v then, fresh %v", p[0], p[1], slots[:2], again, fresh)
		}
	}
	if table.Len() != 2*len(pairs) {
		t.Errorf("%d entries, want %d", table.Len(), 2*len(pairs))
	}
}

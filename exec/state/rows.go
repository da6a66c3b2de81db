package state

import "weir/exec/batch"

// UpsertRows is Upsert for the key columns of every selected row of b: slots[i] and
// fresh[i] belong to the i-th. hashes are those of batch.HashRows. Keys of one number
// or one short string are looked up without being encoded.
func (t *Table) UpsertRows(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	n := b.Rows()
	hashes, slots, fresh = hashes[:n], slots[:n], fresh[:n]
	if len(keys) == 1 && b.Columns[keys[0]].Physical == batch.Ints {
		t.upsertInts(b, keys, hashes, slots, fresh)
		return
	}
	if len(keys) == 1 && b.Columns[keys[0]].Physical == batch.Strings {
		t.upsertStrings(b, keys, hashes, slots, fresh)
		return
	}
	t.upsertAny(b, keys, hashes, slots, fresh)
}

func (t *Table) upsertInts(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	v := &b.Columns[keys[0]]
	var scratch []byte
	for i, h := range hashes {
		row := b.Row(i)
		if v.Null(row) {
			scratch = batch.EncodeKey(scratch[:0], b, keys, row)
			slots[i], fresh[i] = t.Upsert(h, scratch)
			continue
		}
		slots[i], fresh[i] = t.upsert(h, packInt(v.Ints[row]))
	}
}

func (t *Table) upsertStrings(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	v := &b.Columns[keys[0]]
	var scratch []byte
	for i, h := range hashes {
		row := b.Row(i)
		if !v.Null(row) {
			if from, to := int(v.Offsets[row]), int(v.Offsets[row+1]); to-from <= inlineString {
				slots[i], fresh[i] = t.upsert(h, packString(v.Bytes, from, to))
				continue
			}
		}
		scratch = batch.EncodeKey(scratch[:0], b, keys, row)
		slots[i], fresh[i] = t.Upsert(h, scratch)
	}
}

func (t *Table) upsertAny(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	scratch := make([]byte, 0, 64)
	for i, h := range hashes {
		scratch = batch.EncodeKey(scratch[:0], b, keys, b.Row(i))
		slots[i], fresh[i] = t.Upsert(h, scratch)
	}
}

package state

import "weir/exec/batch"

// UpsertRows is Upsert for the key columns of every selected row of b: slots[i] and
// fresh[i] belong to the i-th. hashes are those of batch.HashRows. Keys of one number
// or one short string are looked up without being encoded.
func (t *Table) UpsertRows(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	n := b.Rows()
	hashes, slots, fresh = hashes[:n], slots[:n], fresh[:n]
	t.warm(hashes)
	switch {
	case t.layout.Key == IntKey:
		t.upsertInts(&b.Columns[keys[0]], b, hashes, slots, fresh)
	case t.layout.Key == AnyKey && len(keys) == 1 && b.Columns[keys[0]].Physical == batch.Strings:
		t.upsertStrings(b, keys, hashes, slots, fresh)
	default:
		t.upsertAny(b, keys, hashes, slots, fresh)
	}
}

func (t *Table) upsertInts(v *batch.Vector, b *batch.Batch, hashes []uint64, slots []int, fresh []bool) {
	for i, h := range hashes {
		row := b.Row(i)
		if v.Null(row) {
			slots[i], fresh[i] = t.upsertNull()
			continue
		}
		slots[i], fresh[i] = t.upsertInt(h, v.Ints[row])
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

// warmEntries is the number of entries from which on a table is larger than the caches.
const warmEntries = 1 << 16

// warm reads what the lookups of the hashes are going to read, so that the processor waits
// for many places of memory at once instead of one after the other.
func (t *Table) warm(hashes []uint64) {
	x := &t.index
	if x.n < warmEntries {
		return
	}
	var sum uint64
	for _, h := range hashes {
		g := x.segmentOf(uint32(h))
		e := g.entries[g.home(uint32(h))]
		if e == 0 || uint32(e>>32) != uint32(h) {
			continue
		}
		slot := int(uint32(e)) - 1
		c := t.chunks[slot>>chunkBits]
		r := c.at(t.rec, slot&chunkMask)
		sum += r[0]
		if !t.rec.ints && keyLength(r, t.rec) == longKey {
			sum += uint64(c.bytes[r[1]>>32])
		}
	}
	t.warmed += byte(sum)
}

package state

import "weir/exec/batch"

// UpsertRows is Upsert for the key columns of every selected row of b: slots[i] and
// fresh[i] belong to the i-th. hashes are those of batch.HashRows. Keys of one number
// or one short string are looked up without being encoded.
func (t *Table) UpsertRows(b *batch.Batch, keys []int, hashes []uint64, slots []int, fresh []bool) {
	n := b.Rows()
	hashes, slots, fresh = hashes[:n], slots[:n], fresh[:n]
	switch {
	case t.layout.Key == IntKey:
		t.upsertInts(&b.Columns[keys[0]], b, hashes, slots, fresh)
	case t.layout.Key == AnyKey && len(keys) == 1 && b.Columns[keys[0]].Physical == batch.Strings:
		t.warm(hashes)
		t.upsertStrings(b, keys, hashes, slots, fresh)
	default:
		t.warm(hashes)
		t.upsertAny(b, keys, hashes, slots, fresh)
	}
}

// upsertInts looks up as many numbers at once as seek does: where a number is not found where
// its tag is found first, it is looked up again alone.
func (t *Table) upsertInts(v *batch.Vector, b *batch.Batch, hashes []uint64, slots []int, fresh []bool) {
	var found seeks
	for from := 0; from < len(hashes); from += len(found) {
		to := min(from+len(found), len(hashes))
		t.seek(hashes[from:to], &found)
		for i := from; i < to; i++ {
			row := b.Row(i)
			if v.Null(row) {
				slots[i], fresh[i] = t.upsertNull()
				continue
			}
			x := v.Ints[row]
			if f := &found[i-from]; f.first == uint64(x) && f.slot >= 0 && f.slot != t.null-1 {
				slots[i], fresh[i] = f.slot, false
				continue
			}
			slots[i], fresh[i] = t.upsertInt(hashes[i], x)
		}
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

// seeks is what seek finds for so many hashes.
type seeks [256]struct {
	slot  int    // of the first entry that has the hash's tag; -1: there is none
	first uint64 // the first word of its record
}

// seek looks for many hashes at once. It reads from one place after the other, and nothing
// that it decides hangs on memory that is not there yet: so the processor waits for many places
// at once, and not for one after the other.
func (t *Table) seek(hashes []uint64, found *seeks) {
	x := &t.index
	if x.n == 0 {
		for i := range hashes {
			found[i&(len(found)-1)].slot = -1
		}
		return
	}
	var entries [len(found)]uint64
	for i, h := range hashes {
		g := x.segmentOf(uint32(h))
		entries[i&(len(found)-1)] = g.entries[g.home(uint32(h))]
	}
	for i, h := range hashes {
		f := &found[i&(len(found)-1)]
		e := entries[i&(len(found)-1)]
		if e != 0 && uint32(e>>32) != uint32(h) {
			g := x.segmentOf(uint32(h))
			for at := g.home(uint32(h)); e != 0 && uint32(e>>32) != uint32(h); e = g.entries[at] {
				at = g.next(at)
			}
		}
		if e == 0 {
			f.slot = -1
			continue
		}
		f.slot = int(uint32(e)) - 1
		f.first = t.chunks[f.slot>>chunkBits].records[(f.slot&chunkMask)*t.rec.stride]
	}
}

// warmEntries is the number of entries from which on a table is larger than the caches.
const warmEntries = 1 << 16

// warm reads what the lookups of the hashes are going to read.
func (t *Table) warm(hashes []uint64) {
	if t.index.n < warmEntries {
		return
	}
	var found seeks
	var sum uint64
	for len(hashes) > 0 {
		n := min(len(hashes), len(found))
		t.seek(hashes[:n], &found)
		for i := range found[:n] {
			slot := found[i].slot
			if slot < 0 {
				continue
			}
			c := t.chunks[slot>>chunkBits]
			if r := c.at(t.rec, slot&chunkMask); keyLength(r, t.rec) == longKey {
				sum += uint64(c.bytes[r[1]>>32])
			}
		}
		hashes = hashes[n:]
	}
	t.warmed += byte(sum)
}

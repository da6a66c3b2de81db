package state

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
)

// An Entry is an entry as one reads it, wherever it lies. Key is valid until the next
// entry, the rest until the table is changed.
type Entry struct {
	Hash  uint64
	Key   []byte
	Words []uint64
	Blob  []byte
}

// Entry is the entry in a slot.
func (t *Table) Entry(slot int) Entry {
	e := Entry{Hash: t.Hash(slot), Key: t.Key(slot), Words: t.ReadWords(slot)}
	if t.layout.Blob {
		e.Blob = t.Blob(slot)
	}
	return e
}

// Entries yields every entry, in no promised order. Nothing may be changed meanwhile.
func (t *Table) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		more := true
		t.Range(func(slot int) bool {
			more = yield(t.Entry(slot))
			return more
		})
		if more && t.isCold() {
			t.coldFrom(0)(yield)
		}
	}
}

// Ranked yields the entries whose rank is at least from, by (rank, key). It costs about
// what it yields, so that a large table can be read in small parts: an entry that stays is
// found once by reads that each go on where the one before ended, however the table
// changes between them. Nothing may be changed while one reads.
func (t *Table) Ranked(from uint32) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if !t.isCold() {
			for slot := range t.rankedSlots(from) {
				if !yield(t.Entry(slot)) {
					return
				}
			}
			return
		}
		next, stop := iter.Pull(t.rankedSlots(from))
		defer stop()
		slot, ok := next()
		var place, coldPlace []byte
		for e := range t.coldFrom(from) {
			coldPlace = appendPlace(coldPlace[:0], e)
			for ; ok; slot, ok = next() {
				warm := t.Entry(slot)
				if place = appendPlace(place[:0], warm); bytes.Compare(place, coldPlace) > 0 {
					break
				}
				if !yield(warm) {
					return
				}
			}
			if !yield(e) {
				return
			}
		}
		for ; ok; slot, ok = next() {
			if !yield(t.Entry(slot)) {
				return
			}
		}
	}
}

func appendPlace(dst []byte, e Entry) []byte {
	return append(binary.BigEndian.AppendUint32(dst, Rank(e.Hash)), e.Key...)
}

// coldFrom yields the entries that are on disk only, by (rank, key).
func (t *Table) coldFrom(from uint32) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		c := t.cold
		err := c.disk.each(c.fromRank(from), after(c.prefix), func(key, value []byte) bool {
			hash := c.hashOf(key, value)
			key = key[len(c.prefix)+4:]
			e := Entry{Hash: hash, Key: key}
			if _, gone := c.graves[string(key)]; gone {
				return true
			}
			if _, warm := t.lookup(e.Hash, key); warm {
				return true
			}
			value = value[hashHigh:]
			for range t.layout.Words {
				e.Words = append(e.Words, binary.LittleEndian.Uint64(value))
				value = value[8:]
			}
			if t.layout.Blob {
				e.Blob = slices.Clone(value)
			}
			return yield(e)
		})
		if err != nil {
			panic(err) // as in recall
		}
	}
}

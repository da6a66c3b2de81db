package state

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is there all the time is read once, in the order of ranks, by parts between
// which the table grows and shrinks; and the order is that of any other table.
func TestRanked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := New(Options{}).Table("t", Layout{Words: 1})
		hashes := map[string]uint64{}
		put := func(k int) {
			key := binary.BigEndian.AppendUint32(nil, uint32(k))
			if k%3 == 0 {
				key = append(key, bytes.Repeat([]byte("long"), 5)...)
			}
			hash := uint64(k) * 0x9e3779b97f4a7c15
			if k%50 == 0 {
				hash = hash>>32<<32 | 7 // the same rank, and home
			}
			hashes[string(key)] = hash
			table.Upsert(hash, key)
		}
		stays := rapid.IntRange(0, 1000).Draw(t, "stays")
		for k := range stays {
			put(k)
		}
		seen := map[string]int{}
		var last []byte
		for more := true; more; {
			left := rapid.IntRange(1, 1+stays/2).Draw(t, "part")
			from := uint32(0)
			if last != nil {
				from = binary.BigEndian.Uint32(last)
			}
			more = false
			for slot := range table.rankedSlots(from) {
				place := append(binary.BigEndian.AppendUint32(nil, Rank(table.Hash(slot))), table.Key(slot)...)
				if last != nil && bytes.Compare(place, last) <= 0 {
					if bytes.Compare(place[:4], binary.BigEndian.AppendUint32(nil, from)) > 0 {
						t.Fatalf("%x comes after %x", place, last)
					}
					continue // of the part before
				}
				if left == 0 {
					more = true
					break
				}
				left--
				last = place
				seen[string(table.Key(slot))]++
			}
			comesAndGoes := rapid.IntRange(0, 1000).Draw(t, "changes")
			if rapid.Bool().Draw(t, "grow") {
				for k := range comesAndGoes {
					put(1000 + k)
				}
				continue
			}
			for k := range comesAndGoes {
				key := binary.BigEndian.AppendUint32(nil, uint32(1000+k))
				if hash, ok := hashes[string(key)]; ok {
					if slot, ok := table.Find(hash, key); ok {
						table.Delete(slot)
					}
				}
			}
		}
		for key, n := range seen {
			if k := binary.BigEndian.Uint32([]byte(key)); n != 1 {
				t.Fatalf("%d was read %d times", k, n)
			}
		}
		for key := range hashes {
			if k := int(binary.BigEndian.Uint32([]byte(key))); k < stays && seen[key] != 1 {
				t.Fatalf("%d was read %d times", k, seen[key])
			}
		}
	})
}

// A table that has shrunk is read through its large index all the same.
func TestRankedSparse(t *testing.T) {
	t.Parallel()
	table := New(Options{}).Table("t", Layout{Words: 1})
	var slots []int
	for k := range 10_000 {
		slot, _ := table.Upsert(uint64(k)*0x9e3779b97f4a7c15, binary.BigEndian.AppendUint32(nil, uint32(k)))
		slots = append(slots, slot)
	}
	for _, slot := range slots[10:] {
		table.Delete(slot)
	}
	n, last := 0, uint32(0)
	for slot := range table.rankedSlots(0) {
		if rank := Rank(table.Hash(slot)); rank < last {
			t.Errorf("rank %x after %x", rank, last)
		} else {
			last = rank
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d entries of 10", n)
	}
	for range table.rankedSlots(last + 1) {
		t.Error("an entry behind the last")
	}
}

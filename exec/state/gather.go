package state

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
)

// A place names a changed entry in a cutTable: chunk<<chunkBits | slot, or a deletion.
type place struct {
	hash uint64
	at   uint64
}

const goneAt = 1 << 63

// gather lists what changed in a table by (hash, key).
func (t *cutTable) gather() []place {
	n := len(t.gone.hashes)
	for _, c := range t.chunks {
		for w := range c.dirty {
			n += bits.OnesCount64(c.dirty[w] & c.live[w])
		}
	}
	list := make([]place, 0, n)
	for k, c := range t.chunks {
		for w := range c.dirty {
			for set := c.dirty[w] & c.live[w]; set != 0; set &= set - 1 {
				list = append(list, place{at: uint64(k)<<chunkBits | uint64(w<<6|bits.TrailingZeros64(set))})
			}
		}
	}
	for i := range list {
		if i%warmPlaces == 0 {
			t.warm(list[i:min(i+warmPlaces, len(list))])
		}
		p := &list[i]
		p.hash = t.chunks[p.at>>chunkBits].hash(t.rec, int(p.at&chunkMask))
	}
	for i, hash := range t.gone.hashes {
		list = append(list, place{hash, goneAt | uint64(i)})
	}
	list = byHash(list)
	t.settle(list)
	return list
}

// warmPlaces are read ahead at a time.
const warmPlaces = 64

// warm reads what is read next of the entries at places, so that the processor waits for
// many places of memory at once instead of one after the other.
func (t *cutTable) warm(list []place) {
	var sum uint64
	for _, p := range list {
		if p.at&goneAt == 0 {
			sum += t.chunks[p.at>>chunkBits].records[int(p.at&chunkMask)*t.rec.stride]
		}
	}
	t.warmed = byte(sum)
}

// byHash sorts places by hash: into buckets by the highest bits that differ, and each of
// these by comparison, since hashes spread.
func byHash(list []place) []place {
	if len(list) < 64 {
		slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.hash, b.hash) })
		return list
	}
	least, most := list[0].hash, list[0].hash
	for _, p := range list {
		least, most = min(least, p.hash), max(most, p.hash)
	}
	shift := max(bits.Len64(most-least)-(bits.Len(uint(len(list)))-2), 0)
	starts := make([]int32, (most-least)>>shift+2)
	for _, p := range list {
		starts[(p.hash-least)>>shift+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	sorted := make([]place, len(list))
	for _, p := range list {
		b := (p.hash - least) >> shift
		sorted[starts[b]] = p
		starts[b]++
	}
	from := 0
	for _, to := range starts[:len(starts)-1] { // each is now where its bucket ends
		sortBucket(sorted[from:to])
		from = int(to)
	}
	return sorted
}

func sortBucket(list []place) {
	if len(list) > 48 {
		slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.hash, b.hash) })
		return
	}
	for i := 1; i < len(list); i++ {
		p := list[i]
		j := i
		for ; j > 0 && list[j-1].hash > p.hash; j-- {
			list[j] = list[j-1]
		}
		list[j] = p
	}
}

// settle orders the places of one hash by key, and where an entry was deleted and came
// again, the deletion before the entry.
func (t *cutTable) settle(list []place) {
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].hash == list[from].hash {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(list[from:to], func(a, b place) int {
				return cmp.Or(bytes.Compare(t.key(a), t.key(b)), cmp.Compare(b.at&goneAt, a.at&goneAt), cmp.Compare(a.at, b.at))
			})
		}
		from = to
	}
}

// key returns the key of a place.
func (t *cutTable) key(p place) []byte {
	if p.at&goneAt != 0 {
		return t.gone.key(int(p.at &^ goneAt))
	}
	return t.chunks[p.at>>chunkBits].key(t.rec, int(p.at&chunkMask), nil)
}

// fill appends the entries at places to columns, at most to a block's size, and returns
// the rest.
func (t *cutTable) fill(to *columns, list []place) (rest []place) {
	for i, p := range list {
		if to.full() {
			return list[i:]
		}
		if i%warmPlaces == 0 {
			t.warm(list[i:min(i+warmPlaces, len(list))])
		}
		if p.at&goneAt == 0 {
			to.addRecord(p.hash, t.chunks[p.at>>chunkBits], t.rec, int(p.at&chunkMask))
			continue
		}
		if again := i+1 < len(list) && list[i+1].hash == p.hash && bytes.Equal(t.key(list[i+1]), t.key(p)); !again {
			to.addGone(p.hash, t.key(p))
		}
	}
	return nil
}

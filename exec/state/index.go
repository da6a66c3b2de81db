package state

// An index finds slots by hash: open addressing with linear probing. An entry is the
// low half of the hash, then the slot + 1; 0 is empty. Since it keeps the half of the
// hash that places it, it grows without looking at records.
type index struct {
	entries []uint64
	n       int
}

const leastIndex = 16

// home is where the probe for a hash, or for an entry, begins.
func (x *index) home(tag uint32) int { return int(tag) & (len(x.entries) - 1) }

// next is the place after i.
func (x *index) next(i int) int { return (i + 1) & (len(x.entries) - 1) }

// reserve makes room for n entries in all.
func (x *index) reserve(n int) {
	size := max(len(x.entries), leastIndex)
	for n*3 > size*2 {
		size *= 2
	}
	if size == len(x.entries) {
		return
	}
	old := x.entries
	x.entries = make([]uint64, size)
	for _, e := range old {
		if e != 0 {
			x.place(e)
		}
	}
}

// place puts an entry into the first empty place from its home on.
func (x *index) place(e uint64) {
	i := x.home(uint32(e >> 32))
	for x.entries[i] != 0 {
		i = x.next(i)
	}
	x.entries[i] = e
}

// add enters a slot that is not there.
func (x *index) add(hash uint64, slot int) {
	x.reserve(x.n + 1)
	x.n++
	x.place(hash<<32 | uint64(slot+1))
}

// remove takes a slot out and moves up the entries that probed past it.
func (x *index) remove(hash uint64, slot int) {
	gone := hash<<32 | uint64(slot+1)
	i := x.home(uint32(hash))
	for x.entries[i] != gone {
		i = x.next(i)
	}
	x.n--
	for j := x.next(i); x.entries[j] != 0; j = x.next(j) {
		home, mask := x.home(uint32(x.entries[j]>>32)), len(x.entries)-1
		if (j-home)&mask >= (j-i)&mask { // its home is not behind the gap
			x.entries[i] = x.entries[j]
			i = j
		}
	}
	x.entries[i] = 0
}

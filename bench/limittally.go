package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"sync"
)

// A countTable counts by number: open addressing, keys beside their counts, half full at
// most. A slot whose count is 0 is free.
type countTable struct {
	slots []countSlot
	shift uint
	used  int
}

type countSlot struct{ key, n uint64 }

func newCountTable(size int) countTable {
	return countTable{slots: make([]countSlot, size), shift: uint(64 - bits.TrailingZeros(uint(size)))}
}

const golden = 0x9E3779B97F4A7C15

func (t *countTable) add(key, n uint64) {
	slots := t.slots
	mask := uint64(len(slots) - 1)
	for i := key * golden >> t.shift; ; i++ {
		s := &slots[i&mask]
		if s.n != 0 {
			if s.key != key {
				continue
			}
			s.n += n
			return
		}
		s.key, s.n = key, n
		if t.used++; t.used*2 > len(slots) {
			t.grow()
		}
		return
	}
}

func (t *countTable) grow() {
	old := t.slots
	*t = newCountTable(len(old) * 4)
	for _, s := range old {
		if s.n != 0 {
			t.add(s.key, s.n)
		}
	}
}

// touch loads the slots where keys are, or near them: the memory's latencies overlap,
// where those of one look-up after the other would not.
func (t *countTable) touch(keys []uint64) (sum uint64) {
	slots := t.slots
	mask := uint64(len(slots) - 1)
	for _, k := range keys {
		sum += slots[k*golden>>t.shift&mask].n
	}
	return sum
}

// A tally is what one goroutine has counted: numbers, or texts.
type tally struct {
	rows, nulls uint64
	numbers     []countTable // by a part of the hash, one for each goroutine, which merges these of all
	short       countTable   // texts of up to 7 bytes, which are a number with their length
	long        map[string]uint64

	pending [512]uint64 // numbers that are not in the tables yet
	n       int
	parted  [][]uint64 // the pending ones of each table
	touched uint64
}

func newTally(parts int) *tally {
	t := &tally{short: newCountTable(1 << 8), long: map[string]uint64{}, parted: make([][]uint64, parts)}
	for i := range parts {
		t.numbers = append(t.numbers, newCountTable(1<<10))
		t.parted[i] = make([]uint64, 0, len(t.pending))
	}
	return t
}

// number counts a row of a number.
func (t *tally) number(k uint64) {
	t.pending[t.n] = k
	if t.n++; t.n == len(t.pending) {
		t.flush()
	}
}

// flush puts the pending numbers into their tables.
func (t *tally) flush() {
	keys := t.pending[:t.n]
	t.rows += uint64(t.n)
	t.n = 0
	if len(t.numbers) == 1 {
		t.put(&t.numbers[0], keys)
		return
	}
	for i := range t.parted {
		t.parted[i] = t.parted[i][:0]
	}
	for _, k := range keys {
		p := &t.parted[partOf(k, len(t.numbers))]
		*p = append(*p, k)
	}
	for i, keys := range t.parted {
		t.put(&t.numbers[i], keys)
	}
}

func (t *tally) put(table *countTable, keys []uint64) {
	t.touched += table.touch(keys)
	for _, k := range keys {
		table.add(k, 1)
	}
}

// partOf picks one of so many tables by bits of the hash that the table itself does not use.
func partOf(key uint64, parts int) int {
	return int((key * golden & 0xffff_ffff * uint64(parts)) >> 32)
}

// text counts a row of a text.
func (t *tally) text(b []byte) {
	if len(b) > 7 {
		t.rows++
		t.long[string(b)]++
		return
	}
	var word [8]byte
	copy(word[:], b)
	t.word(binary.LittleEndian.Uint64(word[:]), len(b))
}

// word counts a row of a text of n bytes, at most 7, the lowest ones of w; what is above
// them does not matter.
func (t *tally) word(w uint64, n int) {
	t.rows++
	key := w&(1<<(8*uint(n))-1) | uint64(n)<<56
	if s := &t.short.slots[key*golden>>t.short.shift]; s.key == key && s.n != 0 {
		s.n++
		return
	}
	t.short.add(key, 1)
}

// null counts a row without a value.
func (t *tally) null() { t.rows, t.nulls = t.rows+1, t.nulls+1 }

// merge puts all into the first one, each table in a goroutine of its own.
func merge(tallies []*tally) {
	all := tallies[0]
	touched := make([]uint64, len(all.numbers)) // else the loads would be left out
	var group sync.WaitGroup
	for i := range all.numbers {
		group.Go(func() {
			var keys [512]uint64
			for _, t := range tallies[1:] {
				into := &all.numbers[i]
				for slots := t.numbers[i].slots; len(slots) > 0; {
					part := slots[:min(len(slots), len(keys))]
					slots = slots[len(part):]
					for j, s := range part {
						keys[j] = s.key
					}
					touched[i] += into.touch(keys[:len(part)])
					for _, s := range part {
						if s.n != 0 {
							into.add(s.key, s.n)
						}
					}
				}
			}
		})
	}
	group.Wait()
	for _, sum := range touched {
		all.touched += sum
	}
	for _, t := range tallies[1:] {
		all.rows += t.rows
		all.nulls += t.nulls
		for _, s := range t.short.slots {
			if s.n != 0 {
				all.short.add(s.key, s.n)
			}
		}
		for k, n := range t.long {
			all.long[k] += n
		}
	}
}

// texts gives the counts of texts.
func (t *tally) texts() map[string]int64 {
	out := map[string]int64{}
	for k, n := range t.long {
		out[k] = int64(n)
	}
	for _, s := range t.short.slots {
		if s.n != 0 {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], s.key)
			out[string(word[:s.key>>56])] = int64(s.n)
		}
	}
	return out
}

// each gives the counts of numbers.
func (t *tally) each(yield func(key int64, n int64)) {
	for _, table := range t.numbers {
		for _, s := range table.slots {
			if s.n != 0 {
				yield(int64(s.key), int64(s.n))
			}
		}
	}
}

// check compares the counts with those of so many copies of the rows.
func (t *tally) check(query string, want *answers, copies int) error {
	if t.nulls > 0 || t.rows != uint64(want.rows*copies) {
		return fmt.Errorf("%d rows and %d without a value, of %d", t.rows, t.nulls, want.rows*copies)
	}
	if query == "behavior" {
		return sameCounts(t.texts(), want.behaviors, copies)
	}
	users := userCheck{want: want, copies: copies}
	t.each(users.add)
	return users.done()
}

// sameCounts compares counts with those of so many copies.
func sameCounts(got, want map[string]int64, copies int) error {
	all := map[string]int64{}
	for k, n := range want {
		all[k] = n * int64(copies)
	}
	if !maps.Equal(got, all) {
		return fmt.Errorf("counted %v, the generator wrote %v", got, all)
	}
	return nil
}

// A userCheck compares the counts of users, each of which it is told once.
type userCheck struct {
	want   *answers
	copies int
	seen   int
	wrong  string
}

func (u *userCheck) add(user, n int64) {
	u.seen++
	if u.wrong == "" && (user < 0 || user >= int64(len(u.want.users)) || n != u.want.users[user]*int64(u.copies)) {
		u.wrong = fmt.Sprintf("%d rows of user %d", n, user)
	}
}

func (u *userCheck) done() error {
	there := 0
	for _, n := range u.want.users {
		if n > 0 {
			there++
		}
	}
	if u.wrong != "" || u.seen != there {
		return fmt.Errorf("%d users where %d are; wrong: %q", u.seen, there, u.wrong)
	}
	return nil
}

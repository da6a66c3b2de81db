package op

import "weir/exec/batch"

// maxLocalBytes bounds the texts and sketches of a local aggregate.
const maxLocalBytes = 4 << 20

// A localBytes keeps the texts and sketches of a local aggregate's groups. A group's
// words say where: for a text seen and place<<32 | length, for a sketch its number, from 1.
type localBytes struct {
	accs     []localBytesAcc
	text     []byte   // of all groups; what a better one replaces is waste until reset
	sketches []sketch // their memory is used again
	n        int      // sketches in use
	size     int      // their bytes, about
}

// A localBytesAcc is an aggregate with parts.
type localBytesAcc struct {
	accumulator
	column [1]int
	hashes []uint64 // of the argument, per selected row of the batch
}

// begin prepares for a batch.
func (l *localBytes) begin(b *batch.Batch) {
	for i := range l.accs {
		if l.accs[i].kind == sketches {
			l.accs[i].hash(b)
		}
	}
}

// hash hashes the argument of every row. The hash is that of keys: frozen.
func (a *localBytesAcc) hash(b *batch.Batch) {
	if n := b.Rows(); cap(a.hashes) < n {
		a.hashes = make([]uint64, n, max(n, batch.Target))
	}
	a.hashes, a.column[0] = a.hashes[:b.Rows()], a.arg
	batch.HashRows(b, a.column[:], a.hashes)
}

// heavy reports whether the groups should be emitted soon.
func (l *localBytes) heavy() bool { return len(l.text)+l.size > maxLocalBytes }

// reset forgets everything, and keeps memory for a few large sketches.
func (l *localBytes) reset() {
	for i := 64; i < l.n; i++ {
		if cap(l.sketches[i]) > 1024 {
			l.sketches[i] = nil
		}
	}
	l.text, l.n, l.size = l.text[:0], 0, 0
}

// addAll takes the rows from the from-th on into groups, as accumulator.addAll does.
func (l *localBytes) addAll(mem []uint64, stride int, groups []uint32, b *batch.Batch, from int) {
	for k := range l.accs {
		acc := &l.accs[k]
		word, v := mem[acc.word:], &b.Columns[acc.arg]
		for i, g := range groups {
			row := b.Row(from + i)
			if v.Null(row) {
				continue
			}
			if w := word[int(g)*stride:]; acc.kind == sketches {
				l.note(w, acc.hashes[from+i])
			} else {
				l.offer(acc, w, v.Str(row))
			}
		}
	}
}

// addRow takes one row, the i-th selected, into a group's words.
func (l *localBytes) addRow(words []uint64, b *batch.Batch, row, i int) {
	for k := range l.accs {
		acc := &l.accs[k]
		v := &b.Columns[acc.arg]
		if v.Null(row) {
			continue
		}
		if w := words[acc.word:]; acc.kind == sketches {
			l.note(w, acc.hashes[i])
		} else {
			l.offer(acc, w, v.Str(row))
		}
	}
}

// offer keeps a text that comes before the one of the group.
func (l *localBytes) offer(acc *localBytesAcc, w []uint64, text []byte) {
	if w[0] != 0 && !acc.betters(text, l.kept(w)) {
		return
	}
	w[0], w[1] = 1, uint64(len(l.text))<<32|uint64(len(text))
	l.text = append(l.text, text...)
}

// kept is the text of a group.
func (l *localBytes) kept(w []uint64) []byte {
	from, n := w[1]>>32, w[1]&(1<<32-1)
	return l.text[from : from+n]
}

// note puts a hash into the group's sketch.
func (l *localBytes) note(w []uint64, hash uint64) {
	if w[0] == 0 {
		if l.n == len(l.sketches) {
			l.sketches = append(l.sketches, nil)
		}
		l.sketches[l.n] = l.sketches[l.n][:0]
		l.n++
		w[0] = uint64(l.n)
	}
	s := &l.sketches[w[0]-1]
	before := len(*s)
	*s = s.put(entryOf(hash))
	l.size += len(*s) - before
}

// appendPartial appends a group's text, or its sketch, of no bytes where it saw no value.
func (l *localBytes) appendPartial(v *batch.Vector, acc *accumulator, w []uint64) {
	switch {
	case acc.kind == sketches && w[0] == 0:
		v.AppendBytes(nil)
	case acc.kind == sketches:
		v.AppendBytes(l.sketches[w[0]-1])
	case w[0] == 0:
		v.AppendNull()
	default:
		v.AppendBytes(l.kept(w))
	}
}

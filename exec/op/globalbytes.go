package op

import (
	"fmt"
	"slices"

	"weir/exec/batch"
)

// A bytesAcc is an aggregate of a global phase that keeps a part: a text or a sketch.
type bytesAcc = localBytesAcc

// addBytes takes the rows into the parts that they feed.
func (a *globalAgg) addBytes(b *batch.Batch) error {
	for k := range a.bytes {
		acc := &a.bytes[k]
		v := &b.Columns[acc.arg]
		if acc.kind == sketches && a.spec.Raw {
			acc.hash(b)
		}
		for i, slot := range a.slots {
			row := b.Row(i)
			if v.Null(row) {
				continue
			}
			switch {
			case acc.kind == leastStrings:
				a.offerText(&acc.accumulator, slot, v.Str(row))
			case a.spec.Raw:
				a.note(&acc.accumulator, slot, acc.hashes[i])
			default:
				if err := a.mergeSketch(&acc.accumulator, slot, v.Str(row)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// offerText keeps a text that comes before the group's.
func (a *globalAgg) offerText(acc *accumulator, slot int, text []byte) {
	if a.table.ReadWords(slot)[acc.word] != 0 && !acc.betters(text, partOf(a.table.Blob(slot), acc.part)) {
		return
	}
	a.table.Words(slot)[acc.word] = 1
	a.setPart(acc, slot, text)
}

// setPart replaces a part of a group.
func (a *globalAgg) setPart(acc *accumulator, slot int, part []byte) {
	a.blob = appendWith(a.blob[:0], a.table.Blob(slot), a.layout.parts, acc.part, part)
	a.table.SetBlob(slot, a.blob)
}

// note puts a hash into a group's sketch. Most hashes change nothing, and cost a look; most
// of the others change a few bytes where they lie.
func (a *globalAgg) note(acc *accumulator, slot int, hash uint64) {
	blob := a.table.Blob(slot)
	s, entry := sketch(partOf(blob, acc.part)), entryOf(hash)
	if s.holds(entry) {
		return
	}
	if at, bytes := s.patch(a.blob[:0], entry); len(bytes) > 0 {
		a.table.PatchBlob(slot, partAt(blob, acc.part)+at, bytes)
		a.blob = bytes
	} else {
		a.part = append(a.part[:0], s...).put(entry)
		a.setPart(acc, slot, a.part)
	}
	a.table.Words(slot)[acc.word+1] = 1
}

// mergeSketch takes the sketch of a partial aggregate in.
func (a *globalAgg) mergeSketch(acc *accumulator, slot int, other sketch) error {
	if err := other.check(); err != nil {
		return fmt.Errorf("%s: %s: %w", a.name, acc.text, err)
	}
	a.part = append(a.part[:0], partOf(a.table.Blob(slot), acc.part)...)
	var changed bool
	if a.part, changed = a.part.merge(other); changed {
		a.setPart(acc, slot, a.part)
		a.table.Words(slot)[acc.word+1] = 1
	}
	return nil
}

// estimate brings the estimates of a group's sketches up to date. Between batches they
// are, unless groups are kept to the end: so an old value is at hand without its sketch.
func (a *globalAgg) estimate(slot int) {
	if slices.ContainsFunc(a.bytes, func(acc bytesAcc) bool {
		return acc.kind == sketches && a.table.ReadWords(slot)[acc.word+1] != 0
	}) {
		a.estimates(a.table.Words(slot), a.table.Blob(slot))
	}
}

// estimates does it in the words of a group.
func (a *globalAgg) estimates(w []uint64, blob []byte) {
	for k := range a.bytes {
		if acc := &a.bytes[k]; acc.kind == sketches && w[acc.word+1] != 0 {
			w[acc.word], w[acc.word+1] = uint64(sketch(partOf(blob, acc.part)).estimate()), 0
		}
	}
}

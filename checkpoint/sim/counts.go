package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
	"weir/exec/state"
)

// counts is the keyed state of a counter: how often each key was seen, in two tables, so
// that entries come and go. A key that was seen 3*t+s times is t in one; the other one has
// an entry for it where s is not 0, with s letters.
type counts struct {
	store  *state.Store
	thirds *state.Table
	steps  *state.Table
}

// newCounts returns what a store has, or will have.
func newCounts(s *state.Store) *counts {
	return &counts{
		store:  s,
		thirds: s.Table("thirds", state.Layout{Key: state.IntKey, Words: 1}),
		steps:  s.Table("steps", state.Layout{Words: 1, Blob: true}),
	}
}

func hashOf(key int) uint64 { return batch.HashInt(int64(key)) }

func groupOf(key int) int { return weir.KeyGroupOf(hashOf(key), maxGroups) }

// intKey is a key as a table of numbers has it.
func intKey(key int) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(batch.Ints)}, batch.EncodeIntKey(int64(key)))
}

// textKey is a key as a table of any keys has it: some fit into a record, others do not.
func textKey(key int) []byte { return fmt.Appendf(nil, "%s%d", strings.Repeat("key ", 1+key%6), key) }

func letters(key, step int) []byte { return bytes.Repeat([]byte{'a' + byte(key)}, 16*step) }

// add counts one more of a key and returns how many there are.
func (c *counts) add(key int) int {
	hash, thirds := hashOf(key), 0
	if slot, ok := c.thirds.Find(hash, intKey(key)); ok {
		thirds = int(c.thirds.ReadWords(slot)[0])
	}
	slot, _ := c.steps.Upsert(hash, textKey(key))
	step := int(c.steps.ReadWords(slot)[0]) + 1
	if step < 3 {
		c.steps.Words(slot)[0] = uint64(step)
		c.steps.SetBlob(slot, letters(key, step))
		return 3*thirds + step
	}
	c.steps.Delete(slot)
	slot, _ = c.thirds.Upsert(hash, intKey(key))
	c.thirds.Words(slot)[0]++
	return 3*thirds + step
}

// sum adds what the store has of each key.
func (c *counts) sum(into *[keys]int) error {
	for e := range c.thirds.Entries() {
		key := int(batch.DecodeIntKey(binary.BigEndian.Uint64(e.Key[1:])))
		into[key] += 3 * int(e.Words[0])
	}
	for e := range c.steps.Entries() {
		text := string(e.Key)
		key, err := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
		if err != nil {
			return err
		}
		step := int(e.Words[0])
		if step < 1 || step > 2 || !bytes.Equal(e.Blob, letters(key, step)) {
			return fmt.Errorf("key %d is at step %d with %q", key, step, e.Blob)
		}
		into[key] += step
	}
	return nil
}

// restored reads the counts that handles make.
func restored(ctx context.Context, b blob.Store, o state.Options, handles []checkpoint.Handle, anew bool) (c *counts, base []checkpoint.Handle, err error) {
	s := state.New(o)
	if anew {
		err = s.RestoreAnew(ctx, b, handles)
	} else {
		base, err = s.Restore(ctx, b, handles)
	}
	if err != nil {
		return nil, nil, err
	}
	return newCounts(s), base, nil
}

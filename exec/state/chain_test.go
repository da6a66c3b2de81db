package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// A history is a job's checkpoints as the chain of its one store lives through them.
type history struct {
	m     modelStore
	chain *Chain
	blobs blob.Store
	at    weir.CheckpointID
	base  weir.CheckpointID
	kept  map[weir.CheckpointID]pending // the base, and what is pending
	fulls int
	names map[string]bool // objects that are there
}

// A pending is a checkpoint, what its snapshot names, and what the store held.
type pending struct {
	handles []checkpoint.Handle
	want    []model
	saved   bool // a savepoint: it is kept, and moves no base
}

func (h *history) put(t *rapid.T, name string, data []byte) {
	if err := h.blobs.Put(context.Background(), name, strings.NewReader(string(data))); err != nil {
		t.Fatal(err)
	}
	h.names[name] = true
}

// store stores pieces as a task does: a small one inline.
func (h *history) store(t *rapid.T, prefix string, pieces []Piece, delta bool) (handles []checkpoint.Handle) {
	for i, p := range pieces {
		name := ""
		if len(pieces) > 1 || len(p.Data) > 200 {
			name = fmt.Sprintf("%s-%d", prefix, i)
			h.put(t, name, p.Data)
		}
		handles = append(handles, p.Handle(name, delta))
	}
	return handles
}

func (h *history) merge(t *rapid.T, parts []checkpoint.Handle, whole bool) (pieces []Piece) {
	err := Merge{MaxParallelism: testGroups, Handles: parts, Whole: whole}.run(context.Background(), h.blobs, 2000, func(p Piece) error {
		pieces = append(pieces, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pieces
}

// snapshot takes the next checkpoint; stored: its objects are stored, before others end.
func (h *history) snapshot(t *rapid.T, stored, savepoint bool) {
	h.at++
	h.chain.Add(h.at, h.m.store.Cut().run(2000))
	h.chain.Rebase(h.base)
	if !stored {
		return
	}
	s := h.chain.Snapshot(savepoint)
	pieces := s.Pieces
	if len(s.Parts) > 0 {
		pieces = h.merge(t, s.Parts, s.Whole && !s.Runs)
		if s.Runs {
			h.chain.Merged(s, pieces)
		}
	}
	handles := slices.Concat(s.Kept, h.store(t, fmt.Sprintf("cp-%d", h.at), pieces, !s.Whole))
	h.chain.Stored(h.at, handles)
	h.kept[h.at] = pending{handles, h.m.copied(), savepoint}
}

// complete completes the newest pending checkpoint; all older ones go, with what nothing
// else needs.
func (h *history) complete(t *rapid.T, id weir.CheckpointID) {
	h.base = id
	for other, p := range h.kept {
		if other < id && !p.saved {
			delete(h.kept, other)
		}
	}
	used := map[string]bool{}
	for _, p := range h.kept {
		for _, x := range p.handles {
			used[x.Object] = true
		}
	}
	for name := range h.names {
		if !used[name] && !strings.HasPrefix(name, "full") {
			h.delete(t, name)
		}
	}
}

// abort ends a checkpoint: its own objects go.
func (h *history) abort(t *rapid.T, id weir.CheckpointID) {
	delete(h.kept, id)
	for name := range h.names {
		if strings.HasPrefix(name, fmt.Sprintf("cp-%d-", id)) {
			h.delete(t, name)
		}
	}
}

func (h *history) delete(t *rapid.T, name string) {
	delete(h.names, name)
	if err := h.blobs.Delete(context.Background(), name); err != nil {
		t.Fatal(err)
	}
}

func (h *history) compact(t *rapid.T) {
	handles, whole := h.chain.Compaction()
	if len(handles) == 0 || h.chain.id != h.base && slices.ContainsFunc(handles, func(x checkpoint.Handle) bool { return x.Object != "" && !h.names[x.Object] }) {
		return // or the base has moved on, and what it does not need is gone: the merge fails
	}
	h.fulls++
	h.chain.Compacted(handles, h.store(t, fmt.Sprintf("full%d", h.fulls), h.merge(t, handles, whole), !whole))
}

// smallLimits make a chain merge soon.
func smallLimits() Limits { return Limits{Deltas: 4, Merged: 2, Bytes: 300} }

// Whatever becomes of checkpoints, what one that completed names restores what the store
// held at its barrier, though all that others stored has gone.
func TestChain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{
			m: modelStore{store: New(Options{MaxParallelism: testGroups})}, chain: NewChain(0, nil, smallLimits()), blobs: blob.NewMemory(),
			kept: map[weir.CheckpointID]pending{}, names: map[string]bool{},
		}
		for range modelTables {
			h.m.want = append(h.m.want, model{})
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			var open []weir.CheckpointID
			for id, p := range h.kept {
				if id > h.base && !p.saved {
					open = append(open, id)
				}
			}
			slices.Sort(open)
			switch rapid.IntRange(0, 9).Draw(t, "action") {
			case 0, 1:
				h.snapshot(t, rapid.IntRange(0, 4).Draw(t, "stored") > 0, rapid.IntRange(0, 4).Draw(t, "savepoint") == 0)
			case 2, 3:
				if len(open) > 0 {
					h.complete(t, rapid.SampledFrom(open).Draw(t, "which"))
				}
			case 4:
				if len(open) > 0 {
					h.abort(t, rapid.SampledFrom(open).Draw(t, "which"))
				}
			case 5:
				h.compact(t)
			case 6: // the attempt ends
				was := h.kept[h.base]
				h.m.store = New(Options{MaxParallelism: testGroups})
				base, err := h.m.store.Restore(t.Context(), h.blobs, was.handles)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range open {
					h.abort(t, id)
				}
				h.chain = NewChain(h.base, base, smallLimits())
				for k := range h.m.want {
					h.m.want[k] = model{}
					if was.want != nil {
						for key, v := range was.want[k] {
							h.m.want[k][key] = v
						}
					}
				}
				check(t, h.m.store, h.m.want)
			default:
				h.m.step(t)
			}
		}
		for id, p := range h.kept {
			if id >= h.base || p.saved {
				check(t, restored(t, h.blobs, p.handles, h.m.store.KeyGroups()), p.want)
			}
		}
	})
}

// A chain stays short, and what is stored stays in proportion to what changes.
func TestCompactionIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := NewChain(0, nil, Limits{})
		n, changed, stored := 0, int64(0), int64(0)
		whole := rapid.Int64Range(1, 50_000_000).Draw(t, "whole")
		piece := func(size int64, delta bool) checkpoint.Handle {
			n++
			stored += size
			return checkpoint.Handle{Object: fmt.Sprint(n), Size: size, Delta: delta}
		}
		c.base = []checkpoint.Handle{piece(whole, false)}
		stored = 0
		most := rapid.Int64Range(1, 2_000_000).Draw(t, "delta")
		for id := range weir.CheckpointID(rapid.IntRange(1, 2000).Draw(t, "checkpoints")) {
			size := rapid.Int64Range(most/2+1, most).Draw(t, "size")
			changed += size
			c.Stored(id+1, append(slices.Clone(c.base), piece(size, true)))
			c.Rebase(id + 1)
			if handles, all := c.Compaction(); len(handles) > 0 {
				var sum int64
				for _, h := range handles {
					sum += h.Size
				}
				if all {
					sum = max(whole, 1)
				}
				c.Compacted(handles, []checkpoint.Handle{piece(sum, !all)})
			}
			if len(c.base) > c.limits.Deltas+1 {
				t.Fatalf("%d handles", len(c.base))
			}
		}
		if most := 4*changed + 4*c.limits.Bytes; stored > most && stored-whole > most {
			t.Fatalf("%d bytes stored for %d that changed, of %d", stored, changed, whole)
		}
	})
}

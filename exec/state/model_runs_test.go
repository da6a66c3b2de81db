package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
)

// cut cuts for a checkpoint, or, with none, because nothing may be spilled.
func (p *part) cut(of *modelCheckpoint) {
	c := &partCut{id: p.job.last + 1, of: of}
	if of != nil {
		c.id = of.id
	} else {
		p.job.count("internal cut")
	}
	if len(p.cuts) > 0 {
		p.job.count("cut within a generation")
	}
	c.cut = p.store.Cut()
	p.cuts = append(p.cuts, c)
}

// write writes the run of a cut, writeAny that of any; seal adds the oldest to the chain, and sees
// what its snapshot consists of.
func (p *part) write(i int) *partCut {
	j, c := p.job, p.cuts[i]
	if c.cut == nil {
		return c
	}
	var err error
	c.run, err = p.shelve(func(put func(Piece) error) error {
		return c.cut.write(rapid.IntRange(1, 20_000).Draw(j.T, "piece size"), put)
	})
	j.may(err)
	c.cut.Release() // no harm
	if c.whole = c.cut.Whole(); c.whole {
		j.count("whole runs")
	}
	if c.cut = nil; len(c.run) > 1 {
		j.count("several pieces")
	}
	return c
}

func (p *part) writeAny() {
	if n := len(p.cuts); n > 1 {
		p.job.count("runs out of order")
		p.write(p.job.below(n))
	}
}

func (p *part) seal() {
	if len(p.cuts) == 0 {
		return
	}
	j := p.job
	c := p.write(0)
	p.cuts = p.cuts[1:]
	p.chain.Add(c.id, c.run, c.whole)
	defer p.tidy()
	if c.of == nil {
		return
	}
	p.chain.Rebase(c.of.origin)
	s := p.chain.Snapshot(c.of.savepoint)
	if j.checkpoints[c.of.id] != c.of {
		j.count("given up")
		return
	}
	switch {
	case s.Runs && len(s.Parts) > 1:
		j.count("runs merged")
	case !c.of.savepoint && len(s.Parts) > 0:
		j.count("inline tail merged")
	}
	p.uploads = append(p.uploads, &partUpload{of: c.of, Snapshot: s})
}

// upload stores one of the oldest snapshots, and acknowledges it.
func (p *part) upload() {
	if len(p.uploads) == 0 {
		return
	}
	j, i := p.job, min(p.job.below(2), len(p.uploads)-1)
	if i > 0 {
		j.count("out of order")
	}
	u := p.uploads[i]
	p.uploads = slices.Delete(p.uploads, i, i+1)
	if j.checkpoints[u.of.id] != u.of {
		j.count("given up")
		return
	}
	name := fmt.Sprintf("%d-%d/%d-", j.attempt, slices.Index(j.parts, p), u.of.id)
	fails := j.below(16) == 0
	put := func(x Piece) error {
		u.stored = append(u.stored, j.put(name, u.of.id, len(u.stored), p, x, !u.Whole))
		if fails {
			return errStorage
		}
		return nil
	}
	var err error
	if fails && len(u.Pieces)+len(u.Parts) == 0 {
		err = errStorage
	}
	for _, x := range u.Pieces {
		if err == nil {
			err = put(x)
		}
	}
	switch {
	case err != nil || len(u.Parts) == 0:
	case u.Runs:
		err = p.merge(u.Snapshot, put)
	default:
		m := Merge{MaxParallelism: testGroups, Handles: u.Parts, Whole: u.Whole}
		err = m.run(j.Context(), p.store.Shelf().Over(j.blobs), rapid.IntRange(1, 20_000).Draw(j.T, "piece size"), put)
	}
	p.tidy()
	j.stored(p, u, err)
}

// shelve has pieces put on the shelf.
func (p *part) shelve(write func(put func(Piece) error) error) (pieces []Piece, err error) {
	err = write(func(x Piece) error {
		x, err := p.store.Shelf().Put(x)
		pieces = append(pieces, x)
		if x.file != "" {
			p.job.count("run in a file")
		}
		return err
	})
	return pieces, err
}

// merge merges runs of the chain, which takes what that gives instead; each is given the
// pieces on their way.
func (p *part) merge(s Snapshot, each func(Piece) error) error {
	j := p.job
	pieces, err := p.shelve(func(put func(Piece) error) error {
		m := Merge{MaxParallelism: testGroups, Handles: s.Parts}
		return m.run(j.Context(), p.store.Shelf().Over(j.blobs), rapid.IntRange(1, 20_000).Draw(j.T, "piece size"), func(x Piece) error {
			if err := each(x); err != nil {
				return err
			}
			return put(x)
		})
	})
	if err != nil || !p.chain.Merged(s, pieces) {
		return errors.Join(err, p.store.Shelf().Drop(pieces))
	}
	return nil
}

// fold begins to merge runs that no checkpoint has taken, folded ends it.
func (p *part) fold() {
	if s, ok := p.chain.Fold(); ok && p.folding == nil {
		p.folding = &s
	}
}

func (p *part) folded() {
	if p.folding == nil {
		return
	}
	s := *p.folding
	p.folding = nil
	p.job.may(p.merge(s, func(Piece) error { return nil }))
	p.job.count("fold")
	p.tidy()
}

// tidy tells the shelf what is still needed.
func (p *part) tidy() {
	files := p.chain.Files(nil)
	if p.folding != nil {
		files = p.folding.Files(files)
	}
	for _, u := range p.uploads {
		files = u.Files(files)
	}
	p.job.may(p.store.Shelf().Tidy(p.chain.Held(), files))
}

// compact begins a compaction, compacted ends it: well, or not.
func (p *part) compact() {
	if p.compacting != nil {
		return
	}
	if handles, whole := p.chain.Compaction(); len(handles) > 0 {
		p.compacting = &partCompaction{handles, whole}
	}
}

func (p *part) compacted() {
	c, j := p.compacting, p.job
	if c == nil {
		return
	}
	p.compacting = nil
	j.fulls++
	fails, name := j.below(8) == 0, "full-"+strconv.Itoa(j.fulls)+"-"
	var merged []checkpoint.Handle
	m := Merge{MaxParallelism: testGroups, Handles: c.handles, Whole: c.whole}
	err := m.run(j.Context(), j.blobs, rapid.IntRange(1, 20_000).Draw(j.T, "piece size"), func(x Piece) error {
		if fails {
			return errStorage
		}
		merged = append(merged, j.put(name, 0, len(merged), p, x, !c.whole))
		return nil
	})
	gone := slices.ContainsFunc(c.handles, func(h checkpoint.Handle) bool { _, ok := j.objects[h.Object]; return h.Object != "" && !ok })
	switch {
	case errors.Is(err, errStorage):
		j.count("compaction failed")
	case errors.Is(err, weir.ErrNotFound) && gone: // the base has moved on
		j.count("compaction of what has gone")
	case err != nil || gone:
		j.Fatalf("compaction: %v, gone: %v", err, gone)
	default:
		j.count("compaction")
		if c.whole {
			j.count("compaction of all")
		}
		p.chain.Compacted(c.handles, merged)
		return
	}
	p.chain.Postpone()
}

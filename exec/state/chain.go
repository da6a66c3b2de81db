package state

import (
	"bytes"
	"slices"
	"strings"

	"weir"
	"weir/checkpoint"
)

// A Chain is what is known of the runs of one store, a pure machine: which of them a
// checkpoint holds already, which are still to be stored, and which are to be merged.
//
//	base: the handles of the newest completed checkpoint      runs since, in memory
//	[ whole ][ delta ][ delta ] … [ inline ]                  [ run 7 ][ run 8 ]
//
// A snapshot names the handles of the base, which a completed checkpoint holds, and what is
// stored for it itself, and nothing else: objects of a checkpoint that is pending may go
// with it.
type Chain struct {
	id     weir.CheckpointID   // of the base
	base   []checkpoint.Handle // oldest first
	runs   []chainRun          // newer than the base, oldest first
	stored []chainStored       // newer than the base, oldest first
	last   weir.CheckpointID   // whose barrier ended the newest generation
	merged []chainMerged       // compactions that a snapshot which is stored may not know of, oldest first
	extra  int64               // bytes of merged objects that no snapshot has counted
	wait   int                 // runs to come until a compaction is tried again
	pause  int                 // that it was to wait the last time; 0: the last one did not fail
	limits Limits
	added  int // runs so far
}

type chainRun struct {
	id          weir.CheckpointID // the first barrier at or behind its end
	first, last int               // which of the runs that were added it consists of
	pieces      []Piece
	whole       bool // nothing below it counts
}

func (r chainRun) size() (n int64) {
	for _, p := range r.pieces {
		n += int64(p.Size())
	}
	return n
}

type chainStored struct {
	id      weir.CheckpointID
	handles []checkpoint.Handle
}

// A chainMerged is a compaction: what it made of which handles, while snapshots up to one
// of a checkpoint were begun.
type chainMerged struct {
	last            weir.CheckpointID
	handles, merged []checkpoint.Handle
}

// NewChain returns the chain of a store that was restored from a checkpoint of its own job
// as these handles; 0 and none: of one that begins empty, or is to be written anew.
func NewChain(id weir.CheckpointID, base []checkpoint.Handle, limits Limits) *Chain {
	return &Chain{id: id, base: base, limits: limits.withDefaults()}
}

// Add adds the run of a generation. It ended at a barrier, or before it and behind all
// that are older; barriers ascend. whole: it has every entry of the store (Cut.Whole), so
// that nothing below it is named any more.
func (c *Chain) Add(id weir.CheckpointID, pieces []Piece, whole bool) {
	c.wait, c.last = max(c.wait-1, 0), id
	if whole {
		c.runs = nil
	}
	if len(pieces) > 0 {
		c.added++
		c.runs = append(c.runs, chainRun{id, c.added, c.added, pieces, whole})
	}
}

// Stored records what the snapshot of a checkpoint consists of. What was compacted while it
// was being stored it names as it was, and later ones as it is.
func (c *Chain) Stored(id weir.CheckpointID, handles []checkpoint.Handle) {
	if id > c.id {
		for _, m := range c.merged {
			handles = replaced(handles, m.handles, m.merged)
		}
		at, _ := slices.BinarySearchFunc(c.stored, id, func(s chainStored, id weir.CheckpointID) int { return int(s.id - id) })
		c.stored = slices.Insert(c.stored, at, chainStored{id, handles})
	}
}

// Rebase makes a completed checkpoint the base, if it is newer and its snapshot was stored.
func (c *Chain) Rebase(id weir.CheckpointID) {
	for len(c.stored) > 0 && c.stored[0].id <= id {
		if c.stored[0].id == id {
			c.id, c.base = id, c.stored[0].handles
			c.runs = slices.DeleteFunc(c.runs, func(r chainRun) bool { return r.id <= id })
		}
		c.stored = c.stored[1:]
	}
	c.merged = slices.DeleteFunc(c.merged, func(m chainMerged) bool { return m.last <= c.id })
}

// A Snapshot is what a store's snapshot consists of: Kept, and the run that merging Parts
// gives, which is to be stored.
type Snapshot struct {
	Kept []checkpoint.Handle // of the base, to be named again
	// Parts are the pieces to be merged and stored, oldest first, if there are several runs
	// or some that the base holds. All are inline, unless the snapshot is to be whole.
	Parts []checkpoint.Handle
	// Pieces are to be stored as they are: there is one run.
	Pieces []Piece
	// Whole: there is nothing below what is stored.
	Whole bool
	// Runs: the parts are the runs since the base, and no more. What merging them gives is
	// to be kept (Merged), with its deletions: another base may come to lie below it.
	Runs bool

	id          weir.CheckpointID // of the last run
	first, last int               // of the runs
}

// mostInline is up to which size of an inline tail and new runs they are merged.
const mostInline = 4 * InlineLimit

// Snapshot says what the snapshot at the barrier of the newest run consists of. whole: it
// is to name no object of another checkpoint (a savepoint's).
func (c *Chain) Snapshot(whole bool) Snapshot {
	s := Snapshot{Kept: slices.Clone(c.base)}
	if n := len(c.runs); n > 0 {
		if c.runs[0].whole {
			s.Kept = nil
		}
		s.id, s.first, s.last = c.runs[n-1].id, c.runs[0].first, c.runs[n-1].last
	}
	var size int64
	for _, r := range c.runs {
		size += r.size()
	}
	last := len(s.Kept) - 1
	tail := size > 0 && last >= 0 && s.Kept[last].Object == "" && size+s.Kept[last].Size <= mostInline
	switch {
	case whole:
		s.Parts, s.Kept = s.Kept, nil
	case tail:
		s.Parts, s.Kept = s.Kept[last:], s.Kept[:last]
	case len(c.runs) == 1:
		s.Pieces, s.Whole = c.runs[0].pieces, len(s.Kept) == 0
		return s
	default:
		s.Runs = true
	}
	s.Whole = len(s.Kept) == 0
	s.Parts = appendParts(s.Parts, c.runs)
	return s
}

func appendParts(to []checkpoint.Handle, runs []chainRun) []checkpoint.Handle {
	for _, r := range runs {
		for _, p := range r.pieces {
			to = append(to, p.Handle("", true))
		}
	}
	return to
}

// Merged records what merging the runs of a snapshot gave, so that the next one need not
// do it again; false: the runs have gone, or are parts of others already.
func (c *Chain) Merged(s Snapshot, pieces []Piece) bool {
	from := slices.IndexFunc(c.runs, func(r chainRun) bool { return r.first == s.first })
	to := slices.IndexFunc(c.runs, func(r chainRun) bool { return r.last == s.last })
	if from < 0 || to < from {
		return false
	}
	c.runs = slices.Replace(c.runs, from, to+1, chainRun{s.id, s.first, s.last, pieces, c.runs[from].whole})
	return true
}

// Fold says which runs are to be merged, as Snapshot does with Runs, since no checkpoint has
// come or completed for long: the newest of about the same size. So a byte is written again
// as often as the number of runs has digits. ok is false where there are few.
func (c *Chain) Fold() (s Snapshot, ok bool) {
	if len(c.runs) < c.limits.Runs {
		return s, false
	}
	from, sum := len(c.runs), int64(0)
	for from > 0 {
		size := c.runs[from-1].size()
		if size > sum && len(c.runs)-from >= c.limits.Runs/2 {
			break
		}
		from--
		sum += size
	}
	list := c.runs[from:]
	last := list[len(list)-1]
	return Snapshot{Runs: true, Parts: appendParts(nil, list), id: last.id, first: list[0].first, last: last.last}, true
}

// Files appends the files of a shelf in which runs lie.
func (c *Chain) Files(to []string) []string {
	for _, r := range c.runs {
		for _, p := range r.pieces {
			to = p.appendFile(to)
		}
	}
	return to
}

func (p Piece) appendFile(to []string) []string {
	if p.file != "" {
		to = append(to, shelved+p.file)
	}
	return to
}

// Files appends the files of a shelf that storing the snapshot reads.
func (s *Snapshot) Files(to []string) []string {
	for _, p := range s.Pieces {
		to = p.appendFile(to)
	}
	for _, h := range s.Parts {
		if strings.HasPrefix(h.Object, shelved) {
			to = append(to, h.Object)
		}
	}
	return to
}

// Limits say when a chain is merged; the zero value works.
type Limits struct {
	Deltas int   // from which on some are merged; 0: 50
	Merged int   // deltas that are merged at once, at least; 0: 16
	Bytes  int64 // of deltas, up to which a new whole run is not worth it; 0: 32 KiB
	Runs   int   // that no completed checkpoint has, from which on some are merged; 0: 12
}

func (l Limits) withDefaults() Limits {
	if l.Deltas == 0 {
		l.Deltas = 50
	}
	if l.Merged == 0 {
		l.Merged = 16
	}
	if l.Bytes == 0 {
		l.Bytes = 32 << 10
	}
	if l.Runs == 0 {
		l.Runs = 12
	}
	return l
}

// Compaction says which handles of the base are to be merged, a range of them: all,
// once the deltas are as large as what they are laid over; the newest ones of about the
// same size, once there are many. So a byte that was stored once is stored again once, as a
// part of the whole, and once or twice as a part of merged deltas. The last delta is left
// alone where it is inline: the next snapshot writes it anew. Empty: none.
func (c *Chain) Compaction() (handles []checkpoint.Handle, whole bool) {
	if c.wait > 0 {
		return nil, false
	}
	base := c.base
	if n := len(base); n > 0 && base[n-1].Delta && base[n-1].Object == "" {
		base = base[:n-1]
	}
	var below, deltas int64
	n := 0
	for _, h := range base {
		if h.Delta {
			deltas += h.Size
			n++
		} else {
			below += h.Size
		}
	}
	if n > 0 && deltas >= max(below, c.limits.Bytes) {
		return slices.Clone(base), true
	}
	if n < c.limits.Deltas {
		return nil, false
	}
	from, sum := len(base), int64(0)
	for from > 0 && base[from-1].Delta {
		if size := base[from-1].Size; size > sum && len(base)-from >= c.limits.Merged {
			break
		}
		from--
		sum += base[from].Size
	}
	if len(base)-from < 2 {
		return slices.Clone(base), true // deltas of several subtasks lie between others
	}
	return slices.Clone(base[from:]), from == 0
}

// Compacted puts what was made of handles in their place, in the base and in what
// snapshots consist of that lie over it. used: the base holds them still; otherwise what was
// made of them is of no use.
func (c *Chain) Compacted(handles, merged []checkpoint.Handle) (used bool) {
	c.pause = 0
	for _, h := range merged {
		c.extra += h.Size
	}
	if position(c.base, handles) < 0 {
		return false
	}
	c.base = replaced(c.base, handles, merged)
	for i := range c.stored {
		c.stored[i].handles = replaced(c.stored[i].handles, handles, merged)
	}
	c.merged = append(c.merged, chainMerged{c.last, handles, merged})
	return true
}

// Objects appends the objects that the base and the snapshots over it name.
func (c *Chain) Objects(to []string) []string {
	named := map[string]bool{"": true}
	add := func(handles []checkpoint.Handle) {
		for _, h := range handles {
			if !named[h.Object] {
				named[h.Object] = true
				to = append(to, h.Object)
			}
		}
	}
	add(c.base)
	for _, s := range c.stored {
		add(s.handles)
	}
	return to
}

// mostPause bounds how many runs a compaction that fails waits until it is tried again.
const mostPause = 10

// Postpone records that a compaction failed: the next one waits longer each time. It does not
// begin with a long pause, since meanwhile all that changes is kept beside what it changed.
func (c *Chain) Postpone() {
	c.pause = min(2*c.pause+1, mostPause)
	c.wait = c.pause
}

// Extra returns the bytes of merged objects since the last call.
func (c *Chain) Extra() int64 {
	n := c.extra
	c.extra = 0
	return n
}

// replaced puts merged in the place of handles, if list has them in a row.
func replaced(list, handles, merged []checkpoint.Handle) []checkpoint.Handle {
	i := position(list, handles)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], merged, list[i+len(handles):])
}

// position is where list has handles in a row; -1: nowhere.
func position(list, handles []checkpoint.Handle) int {
	for i := range list {
		if len(list)-i >= len(handles) && slices.EqualFunc(list[i:i+len(handles)], handles, sameHandle) {
			return i
		}
	}
	return -1
}

func sameHandle(a, b checkpoint.Handle) bool {
	return a.Object == b.Object && a.Size == b.Size && a.Checksum == b.Checksum && a.KeyGroups == b.KeyGroups && bytes.Equal(a.Inline, b.Inline)
}

package checkpoint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"weir"
)

// Discards says which checkpoints retention gives up: all but the newest keep ones.
// Savepoints, the base, what is pinned, what a pending checkpoint may reuse and what has
// open commits stay in any case, and savepoints do not count.
func Discards(retained []Retained, keep int) []weir.CheckpointID {
	list := slices.DeleteFunc(slices.Clone(retained), func(r Retained) bool { return r.Type != TypeCheckpoint })
	slices.SortFunc(list, func(a, b Retained) int { return cmp.Compare(b.ID, a.ID) })
	var ids []weir.CheckpointID
	for _, r := range list[min(max(0, keep), len(list)):] {
		if r.Free() {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Free reports whether nothing holds a checkpoint but its job's retention.
func (r Retained) Free() bool {
	return r.Type == TypeCheckpoint && !r.Base && !r.Pinned && !r.Reused && !r.CommitsOpen
}

// KeepAtEnd says how many checkpoints, besides savepoints, a job that ended with a
// status keeps: NumRetained, or none where its retention says so.
func (o Options) KeepAtEnd(status weir.Status) int {
	o = o.withDefaults()
	switch {
	case status == weir.StatusCanceled && o.Retention != RetainOnCancellation:
		return 0
	case status == weir.StatusFailed && o.Retention == RetainNone:
		return 0
	}
	return o.NumRetained
}

// Holds are the objects that may not be deleted, since something is kept that needs
// them (I9). The zero value holds nothing.
type Holds struct {
	used    map[string]bool
	pending bool // a checkpoint or savepoint is under way
	// A kept snapshot whose manifest cannot be read holds what may be its own: of a
	// savepoint, which is self-contained, the objects of its number; of a checkpoint
	// those of older ones, too.
	blind   map[weir.CheckpointID]bool
	through weir.CheckpointID
}

// Keep adds what a kept snapshot names: objects, and its manifest.
func (h *Holds) Keep(manifest string, objects []string) {
	if h.used == nil {
		h.used = map[string]bool{}
	}
	h.used[manifest] = true
	for _, key := range objects {
		h.used[key] = true
	}
}

// KeepUnread adds a kept snapshot whose manifest is missing or damaged.
func (h *Holds) KeepUnread(r Retained) {
	if h.blind == nil {
		h.blind = map[weir.CheckpointID]bool{}
	}
	h.blind[r.ID] = true
	if r.Type == TypeCheckpoint {
		h.through = max(h.through, r.ID)
	}
}

// Has reports whether a key may not be deleted.
func (h *Holds) Has(key string) bool {
	if h.used[key] {
		return true
	}
	k, ok := parseKey(key)
	if !ok || k.Agreed {
		return !ok // what we did not write is not ours
	}
	if k.Manifest {
		return h.blind[k.Checkpoint]
	}
	return h.blind[k.Checkpoint] || k.Checkpoint <= h.through && h.through > 0
}

// Garbage lists what goes of a checkpoint that was given up: of the keys that its
// manifest names, and of those listed that its attempt wrote for it, all that nothing
// holds. Its manifest comes last, if it is its own: while it is there, its objects can be
// found and deleted again. What was merged for the attempt stays where the checkpoint
// did not complete: a pending one may name it, too, and no kept one does as yet. It goes with a
// completed one that names it, or with the attempt.
func Garbage(r Record, named, listed []string, ownManifest bool, holds *Holds) []string {
	var keys []string
	for _, key := range slices.Concat(named, ofCheckpoint(listed, r)) {
		if !holds.Has(key) && (r.Status == StatusCompleted || !isFull(key)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if manifest := ManifestKey(r.Job, r.ID); ownManifest && !holds.Has(manifest) {
		keys = append(keys, manifest)
	}
	return keys
}

func isFull(key string) bool {
	k, ok := parseKey(key)
	return ok && k.Full
}

// ofCheckpoint picks what a row's attempt wrote for it.
func ofCheckpoint(keys []string, r Record) (own []string) {
	for _, key := range keys {
		k, ok := parseKey(key)
		if ok && !k.Manifest && !k.Full && !k.Agreed && k.Job == r.Job && k.Attempt == r.Attempt && k.Checkpoint == r.ID {
			own = append(own, key)
		}
	}
	return own
}

// Outlived lists, of an attempt's keys, full states that nobody will come to name: no kept
// snapshot does, and one names a later full state of the same subtask. Snapshots that did not
// complete had named them, or a compaction followed too soon.
func Outlived(keys []string, holds *Holds) (left []string) {
	newest := map[string]int{} // of a subtask's folder
	for key := range holds.used {
		if folder, n, ok := fullOf(key); ok {
			newest[folder] = max(newest[folder], n)
		}
	}
	for _, key := range keys {
		folder, n, ok := fullOf(key)
		if ok && n < newest[folder] && !holds.Has(key) {
			left = append(left, key)
		}
	}
	return left
}

// fullOf takes the key of a full state apart: its subtask's folder, and its number there.
func fullOf(key string) (folder string, n int, ok bool) {
	if k, ok := parseKey(key); !ok || !k.Full {
		return "", 0, false
	}
	folder, number, _ := strings.Cut(key, "/full-")
	n, err := strconv.Atoi(number)
	return folder, n, err == nil
}

// Leftovers lists, of all keys of an attempt that is over, those that nothing holds:
// nobody will come to name them. What belongs to a checkpoint newer than the last one
// that the metastore knows stays, for the metastore may have gone back in time.
func Leftovers(keys []string, attempt weir.AttemptID, last weir.CheckpointID, holds *Holds) (left []string) {
	for _, key := range keys {
		k, ok := parseKey(key)
		if ok && !k.Manifest && k.Attempt == attempt && k.Checkpoint <= last && !holds.Has(key) {
			left = append(left, key)
		}
	}
	return left
}

// Purges lists, of all keys of a job that was deleted, those that nothing holds,
// manifests last.
func Purges(keys []string, last weir.CheckpointID, holds *Holds) []string {
	var objects, manifests []string
	for _, key := range keys {
		k, ok := parseKey(key)
		switch {
		case !ok || k.Checkpoint > last || holds.Has(key):
		case k.Manifest:
			manifests = append(manifests, key)
		default:
			objects = append(objects, key)
		}
	}
	return append(objects, manifests...)
}

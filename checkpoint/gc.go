package checkpoint

import (
	"cmp"
	"slices"

	"weir"
)

// Discards says which checkpoints retention gives up: all but the newest keep ones.
// Savepoints, the base, what is pinned and what has open commits stay in any case, and
// savepoints do not count.
func Discards(retained []Retained, keep int) []weir.CheckpointID {
	list := slices.DeleteFunc(slices.Clone(retained), func(r Retained) bool { return r.Type != TypeCheckpoint })
	slices.SortFunc(list, func(a, b Retained) int { return cmp.Compare(b.ID, a.ID) })
	var ids []weir.CheckpointID
	for _, r := range list[min(max(0, keep), len(list)):] {
		if !r.Base && !r.Pinned && !r.CommitsOpen {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
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

// Garbage lists the objects that the manifests of given-up checkpoints name and no
// kept one does (I9), then those manifests themselves: while a manifest is there, its
// objects can be found and deleted again.
func Garbage(discarded, kept []*Manifest) []string {
	used := objectSet(kept)
	var keys []string
	for _, m := range discarded {
		for _, key := range m.Objects() {
			if !used[key] {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, m := range discarded {
		if !slices.ContainsFunc(kept, func(k *Manifest) bool { return k.Job == m.Job && k.Checkpoint == m.Checkpoint }) {
			keys = append(keys, ManifestKey(m.Job, m.Checkpoint))
		}
	}
	return keys
}

func objectSet(manifests []*Manifest) map[string]bool {
	used := map[string]bool{}
	for _, m := range manifests {
		for _, key := range m.Objects() {
			used[key] = true
		}
	}
	return used
}

// Leftovers lists, of all keys of a job, those that an interrupted clean-up or abort
// left behind: written for a checkpoint whose row says that it failed, was aborted or
// was given up, by the attempt that the row names, and named by no kept manifest. A key
// without such a row stays, for the metastore may have gone back in time. Manifests
// come last.
func Leftovers(keys []string, rows map[weir.CheckpointID]Record, kept []*Manifest) []string {
	used := objectSet(kept)
	for _, m := range kept {
		used[ManifestKey(m.Job, m.Checkpoint)] = true
	}
	var objects, manifests []string
	for _, key := range keys {
		k, ok := parseKey(key)
		row, known := rows[k.Checkpoint]
		if !ok || k.Full || !known || used[key] || !gone(row) {
			continue
		}
		switch {
		case k.Manifest:
			manifests = append(manifests, key)
		case row.Attempt == k.Attempt:
			objects = append(objects, key)
		}
	}
	return append(objects, manifests...)
}

// gone reports whether a checkpoint's objects are nobody's.
func gone(r Record) bool {
	return r.Discarded || r.Status == StatusFailed || r.Status == StatusAborted
}

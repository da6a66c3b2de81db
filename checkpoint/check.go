package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint/blob"
)

// A Fault is what is wrong with an object, or with a snapshot.
type Fault string

// The faults that a check of storage finds.
const (
	FaultOrphan     Fault = "orphan"     // nothing needs it, and nobody will delete it
	FaultMissing    Fault = "missing"    // a kept snapshot names it, and it is not there
	FaultDamaged    Fault = "damaged"    // its size or its bytes are not what they were
	FaultUnknown    Fault = "unknown"    // newer than anything the metastore knows
	FaultForeign    Fault = "foreign"    // no object of Weir
	FaultUnfinished Fault = "unfinished" // an upload in parts that was never completed
)

// A Finding is one thing that a check of storage found.
type Finding struct {
	Fault      Fault
	Job        weir.JobID        // empty: of no job
	Checkpoint weir.CheckpointID // the kept snapshot that is harmed, or whose object it is; 0: none
	Savepoint  string            // its name, if it is one
	Key        string
	Bytes      int64
	Problem    string // what is wrong, and what to do about it
	Repaired   string // what was done; empty: nothing
}

// Harms reports whether something that was to be kept cannot be restored any more.
func (f Finding) Harms() bool { return f.Fault == FaultMissing || f.Fault == FaultDamaged }

// An Inventory is what the metastore knows of a job's objects.
type Inventory struct {
	Subject  Subject
	Running  bool // its current attempt is not over
	Retained []Retained
	Names    map[weir.CheckpointID]string // of savepoints
	GivenUp  GivenUp                      // what collection has still to clear up
}

// A Check looks through the objects of one job.
type Check struct {
	Blobs blob.Store
	// Deep reads every object that is kept and compares its checksum.
	Deep bool
}

// listed are a job's keys with their sizes.
type listed map[string]int64

// List lists the job's objects. It comes before the inventory is read: what is written
// meanwhile is known by then.
func (c Check) List(ctx context.Context, job weir.JobID) (map[string]int64, error) {
	keys := listed{}
	err := c.Blobs.List(ctx, JobPrefix(job), func(key string, size int64) bool {
		keys[key] = size
		return true
	})
	return keys, err
}

// Job compares what storage holds of a job with what the metastore knows.
func (c Check) Job(ctx context.Context, keys map[string]int64, inv Inventory) ([]Finding, error) {
	job := inv.Subject.Fence.Job
	var found []Finding
	holds := &Holds{}
	for _, r := range inv.Retained {
		harm, objects, err := c.snapshot(ctx, job, r, keys)
		if err != nil {
			return nil, err
		}
		for i := range harm {
			harm[i].Job, harm[i].Checkpoint, harm[i].Savepoint = job, r.ID, inv.Names[r.ID]
			harm[i].Problem += ": " + remedy(r, inv.Names[r.ID])
		}
		found = append(found, harm...)
		if objects == nil {
			holds.KeepUnread(r)
		} else {
			holds.Keep(r.Manifest, objects)
		}
	}
	for _, key := range sortedKeys(keys) {
		if f, ok := stray(key, inv, holds); ok {
			f.Job, f.Key, f.Bytes = job, key, keys[key]
			found = append(found, f)
		}
	}
	return found, nil
}

func sortedKeys(keys map[string]int64) []string {
	list := make([]string, 0, len(keys))
	for key := range keys {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// remedy says what to do about a snapshot that is harmed.
func remedy(r Retained, savepoint string) string {
	switch {
	case r.Type == TypeSavepoint:
		return fmt.Sprintf("savepoint %s cannot be restored: bring the object back, or delete the savepoint", savepoint)
	case r.Base:
		return "it is what the job would start from: bring the object back, or start the job from another checkpoint or savepoint"
	case r.Pinned:
		return "it is in use by another job or a reader, so it is not given up"
	case r.CommitsOpen:
		return "its output is not visible yet, so it is not given up"
	}
	return "it cannot be restored: repair gives it up"
}

// snapshot looks for everything a kept snapshot names. objects is nil where its manifest
// cannot be read.
func (c Check) snapshot(ctx context.Context, job weir.JobID, r Retained, keys listed) (harm []Finding, objects []string, err error) {
	m, err := LoadManifest(ctx, c.Blobs, r.Manifest)
	switch {
	case errors.Is(err, weir.ErrNotFound):
		return []Finding{{Fault: FaultMissing, Key: r.Manifest, Problem: fmt.Sprintf("the manifest of checkpoint %d is not there", r.ID)}}, nil, nil
	case errors.Is(err, weir.ErrInvalid):
		return []Finding{{Fault: FaultDamaged, Key: r.Manifest, Bytes: keys[r.Manifest], Problem: fmt.Sprintf("the manifest of checkpoint %d cannot be read (%v)", r.ID, err)}}, nil, nil
	case err != nil:
		return nil, nil, err
	case m.Job != job || m.Checkpoint != r.ID:
		return []Finding{{Fault: FaultDamaged, Key: r.Manifest, Bytes: keys[r.Manifest], Problem: fmt.Sprintf("the manifest of checkpoint %d is that of checkpoint %d of %s", r.ID, m.Checkpoint, m.Job)}}, nil, nil
	}
	objects = append([]string{}, m.Objects()...)
	for _, h := range m.distinct() {
		f, err := c.object(ctx, h, keys)
		if err != nil {
			return nil, nil, err
		}
		if f.Fault != "" {
			f.Key = h.Object
			harm = append(harm, f)
		}
	}
	return harm, objects, nil
}

// object looks for one object of a kept snapshot; no fault: it is as it was.
func (c Check) object(ctx context.Context, h Handle, keys listed) (Finding, error) {
	size, ok := keys[h.Object]
	if !ok || size != h.Size { // it may have been written since the list
		var err error
		size, err = c.Blobs.Stat(ctx, h.Object)
		switch {
		case errors.Is(err, weir.ErrNotFound):
			return Finding{Fault: FaultMissing, Bytes: h.Size, Problem: "the object is not there"}, nil
		case err != nil:
			return Finding{}, err
		}
	}
	if size != h.Size {
		return Finding{Fault: FaultDamaged, Bytes: size, Problem: fmt.Sprintf("the object has %d bytes, its manifest says %d", size, h.Size)}, nil
	}
	if !c.Deep {
		return Finding{}, nil
	}
	sum, err := c.sum(ctx, h.Object)
	switch {
	case errors.Is(err, weir.ErrNotFound): // deleted since the list, as retention does beside it
		return Finding{Fault: FaultMissing, Bytes: h.Size, Problem: "the object is not there"}, nil
	case err != nil:
		return Finding{}, err
	}
	if sum != h.Checksum {
		return Finding{Fault: FaultDamaged, Bytes: size, Problem: "the object's bytes are not those that were written: its checksum does not match"}, nil
	}
	return Finding{}, nil
}

// sum reads an object for its checksum.
func (c Check) sum(ctx context.Context, key string) (uint64, error) {
	r, err := c.Blobs.Get(ctx, key, 0, -1)
	if err != nil {
		return 0, err
	}
	sum := xxh3.New()
	_, err = io.Copy(sum, r)
	return sum.Sum64(), errors.Join(err, r.Close())
}

// distinct lists the handles of objects, each object once, in order.
func (m *Manifest) distinct() []Handle {
	list := slices.DeleteFunc(m.handles(), func(h Handle) bool { return h.Object == "" })
	slices.SortFunc(list, func(a, b Handle) int { return strings.Compare(a.Object, b.Object) })
	return slices.CompactFunc(list, func(a, b Handle) bool { return a.Object == b.Object })
}

// stray judges a key that lies in storage; ok is false for one that is needed, is in use
// by the running attempt, or that collection will come for.
func stray(key string, inv Inventory, holds *Holds) (f Finding, ok bool) {
	s := inv.Subject
	k, ours := parseKey(key)
	if !ours {
		return Finding{Fault: FaultForeign, Problem: "it is no object of Weir: it is left alone"}, true
	}
	f.Checkpoint = k.Checkpoint
	current := k.Attempt == s.Fence.Attempt
	switch {
	case holds.Has(key):
		return f, false
	case s.Fence.Attempt.Number == 0 && s.LastCheckpoint == 0:
		f.Fault, f.Problem = FaultUnknown, "the metastore knows nothing of its job: it may have gone back in time, or be another cluster's; repair with unknown deletes it"
		return f, true
	case k.Checkpoint > s.LastCheckpoint:
		f.Fault, f.Problem = FaultUnknown, fmt.Sprintf("checkpoint %d is newer than the last one known, %d: the metastore may have gone back in time; adopt it; repair with unknown deletes it", k.Checkpoint, s.LastCheckpoint)
		return f, true
	case !k.Manifest && !current && k.Attempt.Number >= s.Fence.Attempt.Number:
		f.Fault, f.Problem = FaultUnknown, fmt.Sprintf("attempt %v is newer than the last one known, %d: the metastore may have gone back in time; adopt a checkpoint; repair with unknown deletes it", k.Attempt, s.Fence.Attempt.Number)
		return f, true
	case inv.Running && (current || k.Manifest), inv.awaits(k):
		return f, false
	}
	f.Fault, f.Problem = FaultOrphan, "nothing that is kept needs it: repair deletes it"
	return f, true
}

// awaits reports whether collection has still to come for a key.
func (inv Inventory) awaits(k objectKey) bool {
	if inv.GivenUp.Job || slices.Contains(inv.GivenUp.Attempts, k.Attempt) {
		return true
	}
	return slices.ContainsFunc(inv.GivenUp.Checkpoints, func(r Record) bool {
		return r.ID == k.Checkpoint && (k.Manifest || r.Attempt == k.Attempt)
	})
}

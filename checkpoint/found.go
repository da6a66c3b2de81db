package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"weir"
	"weir/checkpoint/blob"
)

// A Found is what object storage holds of a job, as the keys tell.
type Found struct {
	Job       weir.JobID
	Manifests []weir.CheckpointID // in order
	Attempts  []weir.AttemptID    // that wrote something, by number and tag
	Highest   weir.CheckpointID   // the highest number that any key bears
}

// Find lists a job's objects.
func Find(ctx context.Context, blobs blob.Store, job weir.JobID) (*Found, error) {
	keys, err := listKeys(ctx, blobs, JobPrefix(job))
	if err != nil {
		return nil, fmt.Errorf("list objects of %s: %w", job, err)
	}
	return FoundIn(job, keys), nil
}

func listKeys(ctx context.Context, blobs blob.Store, prefix string) (keys []string, err error) {
	err = blobs.List(ctx, prefix, func(key string, _ int64) bool {
		keys = append(keys, key)
		return true
	})
	return keys, err
}

// FoundIn tells it from keys that were listed already.
func FoundIn(job weir.JobID, keys []string) *Found {
	f := &Found{Job: job}
	for _, key := range keys {
		f.add(key)
	}
	slices.Sort(f.Manifests)
	slices.SortFunc(f.Attempts, compareAttempts)
	return f
}

func (f *Found) add(key string) {
	k, ok := parseKey(key)
	if ok && k.Job == f.Job {
		f.Highest = max(f.Highest, k.Checkpoint)
	}
	switch {
	case !ok || k.Job != f.Job:
	case k.Manifest:
		f.Manifests = append(f.Manifests, k.Checkpoint)
	case !slices.Contains(f.Attempts, k.Attempt):
		f.Attempts = append(f.Attempts, k.Attempt)
	}
}

func compareAttempts(a, b weir.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Tag, b.Tag))
}

// Newest is the newest checkpoint that has a manifest; 0: none has.
func (f *Found) Newest() weir.CheckpointID {
	if len(f.Manifests) == 0 {
		return 0
	}
	return f.Manifests[len(f.Manifests)-1]
}

// Unknown lists the checkpoints with a manifest that are newer than the last id that the
// metastore gave out.
func (f *Found) Unknown(last weir.CheckpointID) []weir.CheckpointID {
	i, _ := slices.BinarySearch(f.Manifests, last+1)
	return f.Manifests[i:]
}

// Rival is the newest attempt, other than current, that wrote something though it is not
// older; zero: there is none.
func (f *Found) Rival(current weir.AttemptID) weir.AttemptID {
	for _, a := range slices.Backward(f.Attempts) {
		if a != current && a.Number >= current.Number {
			return a
		}
	}
	return weir.AttemptID{}
}

// Behind says what storage holds that a metastore cannot know whose last checkpoint and
// current attempt of the job are these; empty: nothing. The row must have been read after
// the search was begun.
func (f *Found) Behind(last weir.CheckpointID, current weir.AttemptID) string {
	if newest := f.Newest(); newest > last {
		return fmt.Sprintf("storage holds checkpoint %d, but the last id given out is %d", newest, last)
	}
	for _, a := range slices.Backward(f.Attempts) {
		if a.Number > current.Number {
			return fmt.Sprintf("storage holds objects of attempt %v, but the last attempt known is %d", a, current.Number)
		}
		if a.Number == current.Number && a.Tag != current.Tag {
			return fmt.Sprintf("storage holds objects of an attempt %v, but attempt %d known here is %v", a, current.Number, current)
		}
	}
	return ""
}

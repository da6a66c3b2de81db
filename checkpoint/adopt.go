package checkpoint

import (
	"context"
	"errors"
	"slices"

	"weir"
	"weir/checkpoint/blob"
)

// A Candidate is a checkpoint whose manifest lies in storage, whatever the metastore
// knows of it.
type Candidate struct {
	Checkpoint weir.CheckpointID
	Manifest   *Manifest // nil: it cannot be read
	Newer      bool      // than the last one that the metastore knows
	Problem    string    // why it cannot be restored; empty: it is whole
}

// Candidates reads the manifests that were found, newest first, and looks for their
// objects.
func Candidates(ctx context.Context, blobs blob.Store, found *Found, last weir.CheckpointID) ([]Candidate, error) {
	list := []Candidate{}
	for _, id := range slices.Backward(found.Manifests) {
		c := Candidate{Checkpoint: id, Newer: id > last}
		m, err := LoadManifest(ctx, blobs, ManifestKey(found.Job, id))
		if err == nil {
			c.Manifest = m
			err = m.CheckObjects(ctx, blobs)
		}
		switch {
		case errors.Is(err, weir.ErrNotFound), errors.Is(err, weir.ErrInvalid):
			c.Problem = err.Error()
		case err != nil:
			return nil, err
		case m.Job != found.Job || m.Checkpoint != id:
			c.Problem = "its manifest is that of another checkpoint"
		}
		list = append(list, c)
	}
	return list, nil
}

// Bytes is the size of a snapshot: of its objects and of what its manifest holds itself.
func (m *Manifest) Bytes() (n int64) {
	for _, h := range m.handles() {
		n += h.Size
	}
	return n
}

// An Adoption makes a snapshot in storage the base of its job.
type Adoption struct {
	// Record is the row of the snapshot, as its manifest tells it.
	Record Record
	// Savepoints are the others that storage holds and the metastore has forgotten: they
	// are their user's, so they are known again.
	Savepoints []Record
	// LastCheckpoint and Attempt are the highest numbers found in storage: the job's
	// numbers go on above them.
	LastCheckpoint weir.CheckpointID
	Attempt        int64
}

// record is the row of a completed snapshot, as its manifest tells it.
func (m *Manifest) record() Record {
	return Record{
		Job: m.Job, ID: m.Checkpoint, Attempt: m.Attempt, Type: m.Type, Status: StatusCompleted, Savepoint: m.Savepoint, Final: m.Final,
		StateBytes: m.Bytes(), Manifest: ManifestKey(m.Job, m.Checkpoint),
	}
}

// Adopt is the adoption of a manifest, and of the forgotten savepoints among the candidates,
// from what storage holds. Whether the manifest's output was made visible is not known, so
// it counts as not: to commit it again does nothing.
func (f *Found) Adopt(m *Manifest, candidates []Candidate) Adoption {
	a := Adoption{LastCheckpoint: max(f.Highest, f.Newest()), Attempt: m.Attempt.Number, Record: m.record()}
	a.Record.CommitsOpen = len(m.OpenSegments()) > 0
	for _, c := range candidates {
		if c.Newer && c.Problem == "" && c.Manifest.Type == TypeSavepoint && c.Checkpoint != m.Checkpoint {
			a.Savepoints = append(a.Savepoints, c.Manifest.record())
		}
	}
	for _, attempt := range f.Attempts {
		a.Attempt = max(a.Attempt, attempt.Number)
	}
	return a
}

package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint/blob"
	"weir/planner/plan"
)

// A Manifest lists all that a checkpoint consists of; it suffices to restore without
// the metastore. Its bytes follow from the acks, whatever their order was.
type Manifest struct {
	Version        int               `json:"version"`
	Job            weir.JobID        `json:"job"`
	Checkpoint     weir.CheckpointID `json:"checkpoint"`
	Attempt        weir.AttemptID    `json:"attempt"`
	Type           Type              `json:"type"`
	Savepoint      string            `json:"savepoint,omitempty"`
	Final          bool              `json:"final,omitempty"`
	Parallelism    int               `json:"parallelism"`
	MaxParallelism int               `json:"max_parallelism"`
	// Operators are those of the plan, in the order of its chains.
	Operators []ManifestOperator `json:"operators"`
	// Tasks has one snapshot for each task of the attempt, in order.
	Tasks []TaskSnapshot `json:"tasks"`
}

// A ManifestOperator names an operator of the plan.
type ManifestOperator struct {
	ID    weir.OperatorID   `json:"id"`
	Name  string            `json:"name"`
	Kind  plan.OperatorKind `json:"kind"`
	Chain int               `json:"chain"`
	// Meaning is what the operator's keyed state is computed from (plan.Graph.Meanings);
	// empty where it has none, and in manifests that did not keep it.
	Meaning string `json:"meaning,omitempty"`
}

// operatorsOf lists a plan's operators for a manifest.
func operatorsOf(g plan.Graph) []ManifestOperator {
	var list []ManifestOperator
	meanings := g.Meanings()
	for i, c := range g.Chains {
		for _, op := range c.Operators {
			list = append(list, ManifestOperator{ID: op.ID, Name: op.Name, Kind: op.Kind, Chain: i, Meaning: meanings[op.ID]})
		}
	}
	return list
}

// manifestEnd closes the JSON object with the xxh3 of all bytes before it.
const manifestEnd = `,"checksum":"%016x"}` + "\n"

// Encode gives the manifest's bytes: one JSON object whose last field is the checksum
// of what stands before it.
func (m *Manifest) Encode() ([]byte, error) {
	sorted := *m
	sorted.Tasks = slices.SortedFunc(slices.Values(m.Tasks), func(a, b TaskSnapshot) int { return a.Task.Compare(b.Task) })
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&sorted); err != nil {
		return nil, fmt.Errorf("encode manifest of checkpoint %d: %w", m.Checkpoint, err)
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("}\n"))
	return fmt.Appendf(body, manifestEnd, xxh3.Hash(body)), nil
}

// DecodeManifest reads what Encode wrote. A damaged one, or one of a version this
// program does not know, is weir.ErrInvalid.
func DecodeManifest(data []byte) (*Manifest, error) {
	var versioned struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &versioned); err != nil {
		return nil, fmt.Errorf("%w: damaged: %w", weir.ErrInvalid, err)
	}
	if versioned.Version != ManifestVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads version %d", weir.ErrInvalid, versioned.Version, ManifestVersion)
	}
	body := data[:max(0, len(data)-len(fmt.Sprintf(manifestEnd, 0)))]
	if string(data[len(body):]) != fmt.Sprintf(manifestEnd, xxh3.Hash(body)) {
		return nil, fmt.Errorf("%w: damaged: its checksum does not match its bytes", weir.ErrInvalid)
	}
	dec := json.NewDecoder(io.MultiReader(bytes.NewReader(body), bytes.NewReader([]byte("}"))))
	dec.DisallowUnknownFields()
	m := &Manifest{}
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: damaged: %w", weir.ErrInvalid, err)
	}
	return m, nil
}

// Check makes sure that m is the manifest of a snapshot, and not of another one that came to
// lie in its place. attempt is the one that took it, as its row says; zero: there is no row.
// The error is weir.ErrInvalid.
func (m *Manifest) Check(ref weir.SnapshotRef, attempt weir.AttemptID) error {
	key := ManifestKey(ref.Job, ref.Checkpoint)
	if m.Job != ref.Job || m.Checkpoint != ref.Checkpoint {
		return fmt.Errorf("%w: manifest %s is that of checkpoint %d of job %s: bring the right one back, or start the job from another checkpoint", weir.ErrInvalid, key, m.Checkpoint, m.Job)
	}
	if attempt != (weir.AttemptID{}) && m.Attempt != attempt {
		return fmt.Errorf("%w: manifest %s was written by attempt %v, but attempt %v took the checkpoint: bring the right one back, or start the job from another checkpoint", weir.ErrInvalid, key, m.Attempt, attempt)
	}
	return nil
}

// LoadManifest reads the manifest at key. One that is missing is weir.ErrNotFound, a
// damaged one weir.ErrInvalid; both name it.
func LoadManifest(ctx context.Context, blobs blob.Store, key string) (*Manifest, error) {
	data, err := readObject(ctx, blobs, key)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", key, err)
	}
	m, err := DecodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", key, err)
	}
	return m, nil
}

func readObject(ctx context.Context, blobs blob.Store, key string) ([]byte, error) {
	r, err := blobs.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// Objects lists the objects that the manifest names, each once, in order.
func (m *Manifest) Objects() []string {
	var keys []string
	for _, h := range m.handles() {
		if h.Object != "" {
			keys = append(keys, h.Object)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (m *Manifest) handles() []Handle {
	var list []Handle
	for _, t := range m.Tasks {
		for _, op := range t.Operators {
			list = append(list, op.Keyed...)
		}
	}
	return list
}

// CheckObjects makes sure that every object the manifest names is there with its
// size, before anything is restored from it. The first that is not is named: missing
// is weir.ErrNotFound, another size weir.ErrInvalid.
func (m *Manifest) CheckObjects(ctx context.Context, blobs blob.Store) error {
	for _, h := range m.distinct() {
		size, err := blobs.Stat(ctx, h.Object)
		if err != nil {
			return err
		}
		if size != h.Size {
			return fmt.Errorf("%w: object %s has %d bytes, its manifest says %d", weir.ErrInvalid, h.Object, size, h.Size)
		}
	}
	return nil
}

// OpenSegments collects, by sink, the segments that the snapshot holds uncommitted,
// for a deployment that only commits. It is nil where there are none.
func (m *Manifest) OpenSegments() map[weir.OperatorID][]json.RawMessage {
	var lists map[weir.OperatorID][]json.RawMessage
	for _, t := range m.Tasks {
		for _, op := range t.Operators {
			if len(op.List) == 0 || m.kind(op.Operator) != plan.Sink {
				continue
			}
			if lists == nil {
				lists = map[weir.OperatorID][]json.RawMessage{}
			}
			lists[op.Operator] = append(lists[op.Operator], op.List...)
		}
	}
	return lists
}

func (m *Manifest) kind(id weir.OperatorID) plan.OperatorKind {
	for _, op := range m.Operators {
		if op.ID == id {
			return op.Kind
		}
	}
	return ""
}

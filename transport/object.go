package transport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir"
)

// Objects keep the bodies of control messages that NATS does not take.
type Objects interface {
	// Put writes an object.
	Put(ctx context.Context, key string, data []byte) error
	// Get reads an object, of which it refuses more than most bytes; one that is not there
	// is weir.ErrNotFound.
	Get(ctx context.Context, key string, most int64) ([]byte, error)
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
}

const (
	objectMost   = 256 << 20        // bytes of a body
	objectWithin = 20 * time.Second // bounds a put and a get
	deleteWithin = 5 * time.Second
)

// An object says where a body lies, and what its bytes are.
type object struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Length int64  `json:"length"`
}

// A store puts bodies into objects, below the cluster's own prefix, and takes them out.
type store struct {
	objects Objects // nil: there is none
	cluster string
}

func newStore(opts Options) *store {
	return &store{objects: opts.Objects, cluster: keySegment(cmp.Or(opts.Cluster, defaultCluster))}
}

// keySegment makes the name of a cluster a segment of a key.
func keySegment(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return "x-" + hex.EncodeToString([]byte(name))
	}
	return name
}

// put writes a body that a message of so many bytes, which NATS does not take, has.
func (s *store) put(ctx context.Context, body []byte, size int, most int64) (*object, error) {
	if s.objects == nil {
		return nil, fmt.Errorf("%w: a message of %d bytes is larger than the NATS server takes (%d), and there is no object storage to leave it in; raise its max_payload", weir.ErrInvalid, size, most)
	}
	if len(body) > objectMost {
		return nil, fmt.Errorf("%w: a message of %d bytes is larger than any may be (%d)", weir.ErrInvalid, size, objectMost)
	}
	sum := sha256.Sum256(body)
	o := &object{Key: weir.NewControlKey(s.cluster, time.Now()), SHA256: hex.EncodeToString(sum[:]), Length: int64(len(body))}
	return o, s.putAt(ctx, o, body, size, most)
}

func (s *store) putAt(ctx context.Context, o *object, body []byte, size int, most int64) error {
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	if err := s.objects.Put(ctx, o.Key, body); err != nil {
		return fmt.Errorf("%w: a message of %d bytes is larger than the NATS server takes (%d), and object storage did not take it either; try again: %w", weir.ErrConflict, size, most, err)
	}
	return nil
}

// get reads a body and checks it.
func (s *store) get(ctx context.Context, o *object) ([]byte, error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, objectWithin)
	defer cancel()
	body, err := s.objects.Get(ctx, o.Key, o.Length)
	switch sum := sha256.Sum256(body); {
	case errors.Is(err, weir.ErrNotFound):
		return nil, fmt.Errorf("%w: object %s, which holds a control message, is not there; is the storage of all servers and workers the same?", weir.ErrConflict, o.Key)
	case errors.Is(err, weir.ErrInvalid) && int64(len(body)) != o.Length:
		return nil, fmt.Errorf("%w: object %s is damaged: it has not the %d bytes that its message says; try again", weir.ErrConflict, o.Key, o.Length)
	case err != nil:
		return nil, fmt.Errorf("%w: object %s, which holds a control message, cannot be read; try again: %w", weir.ErrConflict, o.Key, err)
	case int64(len(body)) != o.Length:
		return nil, fmt.Errorf("%w: object %s is damaged: it has not the %d bytes that its message says; try again", weir.ErrConflict, o.Key, o.Length)
	case hex.EncodeToString(sum[:]) != o.SHA256:
		return nil, fmt.Errorf("%w: object %s is damaged: its SHA-256 is not the one that its message says; try again", weir.ErrConflict, o.Key)
	}
	return bytes.Clone(body), nil
}

// check refuses what no message of this cluster names: nothing else is read or deleted.
func (s *store) check(o *object) error {
	at, ok := weir.IsControlKey(o.Key)
	switch {
	case s.objects == nil:
		return fmt.Errorf("%w: a control message lies in object %s, and this process has no object storage", weir.ErrInvalid, o.Key)
	case !ok || at.IsZero() || !strings.HasPrefix(o.Key, weir.ControlPrefix(s.cluster)):
		return fmt.Errorf("%w: a control message names object %q, which cannot hold one of cluster %s", weir.ErrInvalid, o.Key, s.cluster)
	case o.Length < 0 || o.Length > objectMost:
		return fmt.Errorf("%w: object %s is said to have %d bytes, a control message has %d at most", weir.ErrInvalid, o.Key, o.Length, objectMost)
	}
	return nil
}

// drop deletes what nobody reads any more, also where ctx has ended. What stays is found
// by a check of storage.
func (s *store) drop(ctx context.Context, o *object) error {
	if o == nil {
		return nil
	}
	if err := s.check(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteWithin)
	defer cancel()
	return s.objects.Delete(ctx, o.Key)
}

package blob

import (
	"context"
	"errors"
	"io"
)

// ErrExists is what PutIfAbsent returns when the object is there already.
var ErrExists = errors.New("object exists")

// Conditional reports whether the store's PutIfAbsent lets one of several writers through,
// also of those that come at the same instant. Where it does not, somebody else has to see
// to it that there is only one.
func Conditional(s Store) bool {
	c, ok := s.(interface{ Conditional() bool })
	return !ok || c.Conditional()
}

// A Store keeps immutable objects under keys: slash-separated paths of
// [A-Za-z0-9._-] segments, none of them "." or "..". Every call honours ctx and is
// safe for concurrent use. An object that does not exist is weir.ErrNotFound.
type Store interface {
	// Put writes r as object key, durably, replacing what was there. A failed or
	// cancelled Put leaves the old object, none or, where only its answer was lost, the
	// new one, never a part.
	Put(ctx context.Context, key string, r io.Reader) error
	// PutIfAbsent is Put that fails with ErrExists when key exists; of several
	// writers one wins.
	PutIfAbsent(ctx context.Context, key string, r io.Reader) error
	// Get reads length bytes of the object from offset; length < 0 reads to its end.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Stat returns the object's size in bytes.
	Stat(ctx context.Context, key string) (int64, error)
	// List calls f with each key under prefix in ascending order until f returns false.
	List(ctx context.Context, prefix string, f func(key string, size int64) bool) error
	// Delete removes the object; one that does not exist is no error.
	Delete(ctx context.Context, key string) error
}

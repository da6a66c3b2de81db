package weir

import "errors"

// The five sentinel errors. Packages wrap them with what happened and where;
// callers ask with errors.Is.
var (
	// ErrInvalid: the user's input is wrong; trying again does not help.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: the thing named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the present state does not allow it, or another writer was
	// first; reading again and retrying may help.
	ErrConflict = errors.New("conflict")
	// ErrStale: a newer owner of the job exists; stop quietly.
	ErrStale = errors.New("stale: a newer owner exists")
	// ErrBroken: a channel lost its peer, or what its peer knew, or has a frame that
	// cannot travel any more; only another attempt, from a checkpoint, goes on.
	ErrBroken = errors.New("broken channel")
)

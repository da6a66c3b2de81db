package weir

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// A JobID names a job for ever: "job_" and 32 hexadecimal digits (128 random bits).
type JobID string

// NewJobID returns a fresh random job id.
func NewJobID() JobID { return JobID("job_" + randomHex(16)) }

// Valid reports whether id has the form that NewJobID gives.
func (id JobID) Valid() bool {
	digits, ok := strings.CutPrefix(string(id), "job_")
	if !ok || len(digits) != 32 {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// An AttemptID names one try at running a job. Number grows by one with each
// attempt of the job, from 1; Tag is 32 random bits in hexadecimal, so that two
// attempts of one number (after the metastore went back in time) differ. The zero
// value means no attempt.
type AttemptID struct {
	Number int64
	Tag    string
}

// NewAttemptID returns attempt number with a fresh tag.
func NewAttemptID(number int64) AttemptID {
	return AttemptID{Number: number, Tag: randomHex(4)}
}

// String gives "number-tag", the form used in subjects, object keys and JSON.
func (a AttemptID) String() string { return fmt.Sprintf("%d-%s", a.Number, a.Tag) }

// ParseAttemptID reads the form that String gives. The error is ErrInvalid.
func ParseAttemptID(s string) (AttemptID, error) {
	number, tag, ok := strings.Cut(s, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || n < 0 {
		return AttemptID{}, fmt.Errorf("%w: attempt %q is not NUMBER-TAG", ErrInvalid, s)
	}
	return AttemptID{Number: n, Tag: tag}, nil
}

// MarshalText makes an AttemptID a JSON string.
func (a AttemptID) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *AttemptID) UnmarshalText(b []byte) error {
	parsed, err := ParseAttemptID(string(b))
	if err == nil {
		*a = parsed
	}
	return err
}

// A CheckpointID numbers the checkpoints and savepoints of one job, from 1, over
// all its attempts; ids are never used twice (I1). 0 means none.
type CheckpointID int64

// An OperatorID names an operator of a job's graph and the state it keeps. It is
// derived from the bound query before rewriting, so that a replanned query finds
// the state it can; it is made of [a-z0-9_] and fit for an object key.
type OperatorID string

// A WorkerID names a worker process over its restarts; an incarnation tells two
// lives of it apart.
type WorkerID string

// Life is the name under which one incarnation of a worker takes commands, and no
// other process that bears the worker's name: one that hung while it was replaced.
func (w WorkerID) Life(incarnation string) WorkerID {
	return w + "@" + WorkerID(incarnation)
}

// NewIncarnation returns 64 random bits in hexadecimal, naming one life of a process.
func NewIncarnation() string { return randomHex(8) }

// A TaskID names a task within an attempt: the chain (its index in the graph) and
// the index of the subtask, from 0.
type TaskID struct {
	Chain   int `json:"chain"`
	Subtask int `json:"subtask"`
}

// String gives "chain/subtask".
func (t TaskID) String() string { return fmt.Sprintf("%d/%d", t.Chain, t.Subtask) }

// Compare orders tasks by chain, then by subtask.
func (t TaskID) Compare(u TaskID) int {
	if t.Chain != u.Chain {
		return t.Chain - u.Chain
	}
	return t.Subtask - u.Subtask
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

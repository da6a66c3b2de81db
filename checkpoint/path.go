package checkpoint

import (
	"fmt"
	"strconv"
	"strings"

	"weir"
)

// The keys of a job's objects are made and read here and nowhere else:
//
//	<job>/<checkpoint>/manifest
//	<job>/<attempt>/<operator>-<subtask>/<checkpoint>-<n>   state written for one checkpoint
//	<job>/<attempt>/<operator>-<subtask>/full-<n>           a full state in the making
//	<job>/<attempt>/<operator>-0/agreed-<name>              what the subtasks of an attempt go by
//
// An attempt's form "number-tag" has a dash, a checkpoint's number has none.

// ManifestKey is the key of a checkpoint's manifest.
func ManifestKey(job weir.JobID, id weir.CheckpointID) string {
	return fmt.Sprintf("%s/%d/manifest", job, id)
}

// StateKey is the key of the n-th object that an operator's subtask writes for a
// checkpoint.
func StateKey(job weir.JobID, attempt weir.AttemptID, op weir.OperatorID, subtask int, id weir.CheckpointID, n int) string {
	return fmt.Sprintf("%s/%d-%d", stateDir(job, attempt, op, subtask), id, n)
}

// FullKey is the key of the n-th object of a full state in the making; it belongs to
// the attempt, not to a checkpoint.
func FullKey(job weir.JobID, attempt weir.AttemptID, op weir.OperatorID, subtask, n int) string {
	return fmt.Sprintf("%s/full-%d", stateDir(job, attempt, op, subtask), n)
}

// AgreedKey is the key of what the subtasks of an operator have agreed on under a name.
// It is read while an attempt's tasks are built, and nobody's once the next one runs.
func AgreedKey(job weir.JobID, attempt weir.AttemptID, op weir.OperatorID, name string) string {
	return fmt.Sprintf("%s/agreed-%s", stateDir(job, attempt, op, 0), name)
}

func stateDir(job weir.JobID, attempt weir.AttemptID, op weir.OperatorID, subtask int) string {
	return fmt.Sprintf("%s/%v/%s-%d", job, attempt, op, subtask)
}

// JobPrefix is the prefix of all keys of a job.
func JobPrefix(job weir.JobID) string { return string(job) + "/" }

// AttemptPrefix is the prefix of the state that an attempt wrote.
func AttemptPrefix(job weir.JobID, attempt weir.AttemptID) string {
	return fmt.Sprintf("%s/%v/", job, attempt)
}

// IsManifest reports whether a key is that of a manifest: those are deleted last.
func IsManifest(key string) bool {
	k, ok := parseKey(key)
	return ok && k.Manifest
}

// StateOf tells the job and the checkpoint for which a subtask wrote an object of its
// state, by the object's key; 0: for its attempt (FullKey). ok is false for any other object.
func StateOf(key string) (job weir.JobID, id weir.CheckpointID, ok bool) {
	k, ok := parseKey(key)
	return k.Job, k.Checkpoint, ok && !k.Manifest && !k.Agreed
}

// WrittenBy tells the attempt and the number of the subtask that wrote an object of its state, by
// the object's key; ok is false for any other object.
func WrittenBy(key string) (attempt weir.AttemptID, subtask int, ok bool) {
	k, ok := parseKey(key)
	if !ok || k.Manifest || k.Agreed {
		return k.Attempt, 0, false
	}
	dir := strings.Split(key, "/")[2]
	subtask, err := strconv.Atoi(dir[strings.LastIndexByte(dir, '-')+1:])
	return k.Attempt, subtask, err == nil
}

// An objectKey is a key taken apart. Manifests have no Attempt; objects of a full
// state, and what was agreed on, have no Checkpoint.
type objectKey struct {
	Job        weir.JobID
	Attempt    weir.AttemptID
	Checkpoint weir.CheckpointID
	Manifest   bool
	Full       bool
	Agreed     bool
}

// parseKey takes a key apart; ok is false for a key that none of the forms gives.
func parseKey(key string) (k objectKey, ok bool) {
	parts := strings.Split(key, "/")
	k.Job = weir.JobID(parts[0])
	switch {
	case len(parts) == 3 && parts[2] == "manifest":
		id, err := strconv.ParseInt(parts[1], 10, 64)
		k.Checkpoint, k.Manifest = weir.CheckpointID(id), true
		return k, err == nil && id > 0
	case len(parts) == 4:
		attempt, err := weir.ParseAttemptID(parts[1])
		if err != nil {
			return k, false
		}
		k.Attempt = attempt
		number, _, dash := strings.Cut(parts[3], "-")
		if k.Full, k.Agreed = number == "full", number == "agreed"; k.Full || k.Agreed {
			return k, dash
		}
		id, err := strconv.ParseInt(number, 10, 64)
		k.Checkpoint = weir.CheckpointID(id)
		return k, dash && err == nil && id > 0
	}
	return k, false
}

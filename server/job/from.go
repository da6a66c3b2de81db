package job

import (
	"fmt"
	"strconv"
	"strings"

	"weir"
)

// A From names where a job's state comes from, as users write it: latest, nothing,
// checkpoint:7, checkpoint:JOB/7 or savepoint:NAME.
type From struct {
	Latest     bool
	Nothing    bool
	Job        string            // of a checkpoint, id or name; empty: the job asked about
	Checkpoint weir.CheckpointID // 0: none
	Savepoint  string
}

// ParseFrom reads a From; empty means latest. The error is weir.ErrInvalid.
func ParseFrom(s string) (From, error) {
	kind, rest, hasRest := strings.Cut(s, ":")
	switch {
	case s == "" || s == "latest":
		return From{Latest: true}, nil
	case s == "nothing":
		return From{Nothing: true}, nil
	case kind == "savepoint" && validName(rest):
		return From{Savepoint: rest}, nil
	case kind == "checkpoint" && hasRest:
		return parseCheckpoint(s, rest)
	}
	return From{}, fmt.Errorf("%w: %q names no snapshot: write latest, nothing, checkpoint:7, checkpoint:JOB/7 or savepoint:NAME", weir.ErrInvalid, s)
}

func parseCheckpoint(whole, s string) (From, error) {
	job, number, ofJob := strings.Cut(s, "/")
	if !ofJob {
		job, number = "", s
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 || ofJob && !validName(job) && !weir.JobID(job).Valid() {
		return From{}, fmt.Errorf("%w: %q names no checkpoint: write checkpoint:7 or checkpoint:JOB/7", weir.ErrInvalid, whole)
	}
	return From{Job: job, Checkpoint: weir.CheckpointID(id)}, nil
}

// String gives the form that ParseFrom reads.
func (f From) String() string {
	switch {
	case f.Nothing:
		return "nothing"
	case f.Savepoint != "":
		return "savepoint:" + f.Savepoint
	case f.Checkpoint != 0 && f.Job != "":
		return fmt.Sprintf("checkpoint:%s/%d", f.Job, f.Checkpoint)
	case f.Checkpoint != 0:
		return fmt.Sprintf("checkpoint:%d", f.Checkpoint)
	}
	return "latest"
}

// validName reports whether s may name a job or a savepoint:
// [a-z0-9][a-z0-9_-]{0,62}.
func validName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '_' || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

package sink

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir"
	"weir/exec"
)

// hidden begins the names of files that are not published; sources pass them over.
const hidden = ".weir-"

// A segment is the rows of one sink subtask between two barriers, sealed in a file.
// Its JSON is the unit of the sink's state.
type segment struct {
	Job      weir.JobID        `json:"job"`
	Operator weir.OperatorID   `json:"operator"`
	Subtask  int               `json:"subtask"`
	Barrier  weir.CheckpointID `json:"barrier"`
	Temp     string            `json:"temp"`  // the sealed file
	Final    string            `json:"final"` // the published one
	Rows     int64             `json:"rows"`
	Bytes    int64             `json:"bytes"`
	Checksum string            `json:"checksum"` // CRC-32C, in hexadecimal

	file *os.File // the sealed file, of the sink that wrote it; nil: another one's
}

// String names the segment in errors.
func (s *segment) String() string {
	return fmt.Sprintf("segment %s/%s/%d/%d", s.Job, s.Operator, s.Subtask, s.Barrier)
}

// A writer is who writes segments: one sink subtask of an attempt.
type writer struct {
	job      weir.JobID
	operator weir.OperatorID
	subtask  int
	attempt  weir.AttemptID
	format   string
}

func writerOf(setup exec.Setup, format string) writer {
	return writer{job: setup.Job, operator: setup.Operator.ID, subtask: setup.Subtask, attempt: setup.Attempt, format: format}
}

// prefix begins the names of all unpublished files of the sink.
func (w writer) prefix() string {
	return hidden + string(w.job) + "-" + shortened(string(w.operator)) + "-"
}

// openName names the file that is being written.
func (w writer) openName() string {
	return fmt.Sprintf("%s%d-open-%v", w.prefix(), w.subtask, w.attempt)
}

// seal returns the segment of a barrier.
func (w writer) seal(barrier weir.CheckpointID, rows, bytes int64, checksum uint32) segment {
	job := strings.TrimPrefix(string(w.job), "job_")
	return segment{
		Job: w.job, Operator: w.operator, Subtask: w.subtask, Barrier: barrier,
		Temp:  fmt.Sprintf("%s%d-%d-%v", w.prefix(), w.subtask, barrier, w.attempt),
		Final: fmt.Sprintf("part-%s-%s-%d-%d.%s", job[:min(len(job), 12)], shortened(string(w.operator)), w.subtask, barrier, w.format),
		Rows:  rows, Bytes: bytes, Checksum: fmt.Sprintf("%08x", checksum),
	}
}

// shortened keeps names within what file systems allow.
func shortened(operator string) string {
	if len(operator) <= 80 {
		return operator
	}
	sum := sha256.Sum256([]byte(operator))
	return operator[:64] + "_" + hex.EncodeToString(sum[:6])
}

// leftover reads the name of an unpublished file of the sink: which attempt wrote it,
// and whether it was sealed.
func (w writer) leftover(name string) (attempt weir.AttemptID, sealed, ok bool) {
	rest, ok := strings.CutPrefix(name, w.prefix())
	if !ok {
		return attempt, false, false
	}
	parts := strings.SplitN(rest, "-", 3)
	if len(parts) != 3 {
		return attempt, false, false
	}
	attempt, err := weir.ParseAttemptID(parts[2])
	if _, bad := strconv.Atoi(parts[0]); err != nil || bad != nil {
		return attempt, false, false
	}
	return attempt, parts[1] != "open", true
}

// restoredSegments reads the state of all old subtasks back, in the order in which
// segments are committed.
func restoredSegments(items []json.RawMessage) ([]segment, error) {
	segments := make([]segment, len(items))
	for i, item := range items {
		s := &segments[i]
		if err := json.Unmarshal(item, s); err != nil {
			return nil, fmt.Errorf("restore a segment: %w", err)
		}
		for _, name := range []string{s.Temp, s.Final} {
			if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
				return nil, fmt.Errorf("%w: restore %v: %q is no file name", weir.ErrInvalid, s, name)
			}
		}
	}
	sortSegments(segments)
	return segments, nil
}

func sortSegments(segments []segment) {
	slices.SortFunc(segments, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.Barrier, b.Barrier), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Subtask, b.Subtask))
	})
}

package checkpoint

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"

	"weir"
)

// CheckSavepointName says what is wrong with a savepoint's name, as weir.ErrInvalid.
func CheckSavepointName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`).MatchString(name) {
		return fmt.Errorf("%w: savepoint name %q: give 1 to 63 of [a-z0-9_-], the first a letter or digit", weir.ErrInvalid, name)
	}
	return nil
}

// NewSavepointName makes a name up: "sp-" and 12 random hexadecimal digits.
func NewSavepointName() string {
	b := make([]byte, 6)
	rand.Read(b) // never fails (crypto/rand)
	return "sp-" + hex.EncodeToString(b)
}

// SavepointOf is the row of the list of savepoints that a savepoint's record gives.
func SavepointOf(r Record, jobName string) Savepoint {
	return Savepoint{
		Name: r.Savepoint, Job: r.Job, JobName: jobName, Checkpoint: r.ID, Status: r.Status, Manifest: r.Manifest,
		StateBytes: r.StateBytes, TriggeredAt: r.TriggeredAt, CompletedAt: r.CompletedAt, Failure: r.Failure,
	}
}

package weir

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A CommandKey names what a server wants of a worker, whichever server says it and
// however often: two commands of one key are the same one.
type CommandKey struct {
	Job     JobID
	Attempt AttemptID
	Kind    string
	// ID tells commands of one kind and attempt apart, such as a checkpoint's number;
	// empty where there is only one.
	ID string
}

// controlDir begins the keys of the objects that control messages too large for NATS
// leave in storage. No job's id looks like it.
const controlDir = "control"

// ControlPrefix is the prefix of the keys of a cluster's control messages.
func ControlPrefix(cluster string) string { return controlDir + "/" + cluster + "/" }

// NewControlKey is the key of the object that holds a control message's body. The time
// in it is for clean-up alone.
func NewControlKey(cluster string, now time.Time) string {
	return fmt.Sprintf("%s%d-%s", ControlPrefix(cluster), now.Unix(), randomHex(16))
}

// IsControlKey reports whether a key lies where the bodies of control messages do, and
// when its object was written; zero where the key does not say.
func IsControlKey(key string) (at time.Time, ok bool) {
	parts := strings.Split(key, "/")
	if parts[0] != controlDir {
		return time.Time{}, false
	}
	if len(parts) != 3 {
		return time.Time{}, true
	}
	seconds, random, _ := strings.Cut(parts[2], "-")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || len(random) != 32 {
		return time.Time{}, true
	}
	return time.Unix(unix, 0), true
}

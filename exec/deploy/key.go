package deploy

import (
	"strconv"

	"weir"
)

// KeyOf names a command by what it wants, so that a repetition, by whichever server, is
// known; ok is false for what each message asks anew, such as reads.
func KeyOf(kind string, m Message) (key weir.CommandKey, ok bool) {
	key.Kind = kind
	number := func(id weir.CheckpointID) string { return strconv.FormatInt(int64(id), 10) }
	switch m := m.(type) {
	case Deploy:
		key.Job, key.Attempt = m.Job, m.Attempt
	case Trigger:
		key.Job, key.Attempt, key.ID = m.Job, m.Attempt, number(m.Checkpoint)
	case Commit:
		key.Job, key.Attempt, key.ID = m.Job, m.Attempt, number(m.Checkpoint)
	case Close:
		key.Job, key.Attempt = m.Job, m.Attempt
	case Stop:
		key.Job, key.Attempt = m.Job, m.Attempt
	case CommitOnly:
		key.Job, key.Attempt, key.ID = m.Job, m.Attempt, number(m.Checkpoint)
	default:
		return weir.CommandKey{}, false
	}
	return key, true
}

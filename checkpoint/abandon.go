package checkpoint

import (
	"encoding/json"
	"fmt"

	"weir"
	"weir/planner/plan"
)

// A Cut is a place in the history of a job: a barrier of one of its attempts.
type Cut struct {
	Attempt weir.AttemptID
	Barrier weir.CheckpointID
}

// GivenUpBefore tells up to which barrier the output of a snapshot was given up, 0 for none
// of it, from the checkpoints whose output was. from says what attempts started from. The
// segments that two snapshots share are those before the last cut that both histories have.
func GivenUpBefore(snapshot Cut, given []Cut, from map[weir.AttemptID]Cut) weir.CheckpointID {
	past := history(snapshot, from)
	var highest weir.CheckpointID
	for _, g := range given {
		for at, ok := g, true; ok; at, ok = earlier(at, from) {
			if barrier, shared := past[at.Attempt]; shared {
				highest = max(highest, min(barrier, at.Barrier))
				break
			}
		}
	}
	return highest
}

// history says up to which barrier of each attempt a snapshot follows it.
func history(c Cut, from map[weir.AttemptID]Cut) map[weir.AttemptID]weir.CheckpointID {
	past := map[weir.AttemptID]weir.CheckpointID{}
	for ok := true; ok; c, ok = earlier(c, from) {
		past[c.Attempt] = c.Barrier
	}
	return past
}

// earlier is what the attempt of a cut started from; numbers of attempts only grow.
func earlier(c Cut, from map[weir.AttemptID]Cut) (Cut, bool) {
	f, ok := from[c.Attempt]
	return f, ok && f.Attempt.Number < c.Attempt.Number
}

// WithoutGivenUp takes the segments of barriers up to one out of the lists of the
// snapshot's sinks. Every sink's item says whose segment it is, and so of which barrier.
func (m *Manifest) WithoutGivenUp(lists map[weir.OperatorID][]json.RawMessage, upTo weir.CheckpointID) (kept, given map[weir.OperatorID][]json.RawMessage, err error) {
	if upTo == 0 {
		return lists, nil, nil
	}
	kept, given = map[weir.OperatorID][]json.RawMessage{}, map[weir.OperatorID][]json.RawMessage{}
	for op, items := range lists {
		sink := m.kind(op) == plan.Sink
		for _, item := range items {
			var segment struct {
				Barrier weir.CheckpointID `json:"barrier"`
			}
			if sink {
				if err := json.Unmarshal(item, &segment); err != nil {
					return nil, nil, fmt.Errorf("%w: a segment of sink %s: %w", weir.ErrInvalid, op, err)
				}
			}
			if sink && segment.Barrier <= upTo {
				given[op] = append(given[op], item)
			} else {
				kept[op] = append(kept[op], item)
			}
		}
	}
	return kept, given, nil
}

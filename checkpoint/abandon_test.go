package checkpoint_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// What was given up of a snapshot's output is taken out, of sinks only: what follows, and
// what sources hold, stays.
func TestWithoutGivenUp(t *testing.T) {
	t.Parallel()
	m := &checkpoint.Manifest{Operators: []checkpoint.ManifestOperator{{ID: "in", Kind: plan.Source}, {ID: "out", Kind: plan.Sink}, {ID: "log", Kind: plan.Sink}}}
	type lists = map[weir.OperatorID][]json.RawMessage
	item := func(s string) json.RawMessage { return json.RawMessage(s) }
	all := lists{
		"in":  {item(`{"barrier":1}`)},
		"out": {item(`{"barrier":3,"subtask":0}`), item(`{"barrier":4}`), item(`{"barrier":3,"subtask":1}`)},
		"log": {item(`{"barrier":2}`)},
	}
	kept, given, err := m.WithoutGivenUp(all, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lists{"in": all["in"], "out": all["out"][1:2]}, kept); diff != "" {
		t.Errorf("kept: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(lists{"out": {all["out"][0], all["out"][2]}, "log": all["log"]}, given); diff != "" {
		t.Errorf("given up: -want +got:\n%s", diff)
	}
	if kept, given, err = m.WithoutGivenUp(all, 0); err != nil || given != nil || !cmp.Equal(kept, all) {
		t.Errorf("nothing was given up: %v, %v, %v", kept, given, err)
	}
	if _, _, err = m.WithoutGivenUp(lists{"out": {item(`"part-1"`)}}, 3); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a segment of no barrier: %v", err)
	}
}

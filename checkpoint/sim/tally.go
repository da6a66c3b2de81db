package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/checkpoint"
)

// A Tally counts what really happened in some runs: a fault that hit a call, an incident
// that found something to hit, a checkpoint that ended. What is drawn and hits nothing
// does not count.
type Tally map[string]int

// Add adds what happened in another run.
func (t Tally) Add(other Tally) {
	for what, n := range other {
		t[what] += n
	}
}

// String lists everything, a line for each group: what stands before the first colon.
func (t Tally) String() string {
	groups := map[string][]string{}
	for _, what := range slices.Sorted(maps.Keys(t)) {
		group, name, _ := strings.Cut(what, ": ")
		groups[group] = append(groups[group], fmt.Sprintf("%s %d", name, t[what]))
	}
	var lines []string
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		lines = append(lines, group+": "+strings.Join(groups[group], ", "))
	}
	return strings.Join(lines, "\n")
}

// sawEnd counts how a checkpoint or savepoint ended.
func (w *world) sawEnd(r checkpoint.Record) {
	how := string(r.Status)
	if r.Failure != nil {
		how += " " + r.Failure.Reason
	}
	if r.Final {
		how += ", the final one"
	}
	w.saw("%s: %s", r.Type, how)
}

// answered says what became of a request.
func answered(a checkpoint.Answer) string {
	switch {
	case a.Err != nil:
		return "refused"
	case a.Turn == "":
		return "canceled"
	}
	return string(a.Turn)
}

// saw counts that something happened.
func (w *world) saw(format string, args ...any) { w.tally[fmt.Sprintf(format, args...)]++ }

package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// What an object is and what comes of it decide whether a copy is kept, and until when.
func TestKeptWanted(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	all := func(job string, ids ...int) (keys []string) {
		for _, id := range ids {
			keys = append(keys, stateKey(job, id, 0))
		}
		slices.Sort(keys)
		return keys
	}
	expect := func(what string, keys ...string) {
		t.Helper()
		slices.Sort(keys)
		if got := r.keys(); !slices.Equal(got, keys) || len(r.files(t)) != len(keys) {
			t.Errorf("%s: copies %v, want %v, files %v", what, got, keys, r.files(t))
		}
	}
	for _, key := range []string{"job_a/1/manifest", "job_a/1-x/op-0/agreed-files", "control/default/1-x"} {
		r.put(t, key, content(10))
	}
	expect("no state")
	for _, key := range slices.Concat(all("job_a", 1, 2, 3, 4, 5), all("job_b", 1)) {
		r.put(t, key, content(10))
	}
	trigger := func(id, base weir.CheckpointID, pending ...weir.CheckpointID) {
		r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: weir.AttemptID{Number: 1, Tag: "x"}, Checkpoint: id, Base: base, Pending: pending})
	}
	trigger(4, 1, 3, 4)
	expect("a trigger", slices.Concat(all("job_a", 1, 3, 4, 5), all("job_b", 1))...)
	trigger(5, 3, 4, 5)
	expect("a savepoint's trigger", slices.Concat(all("job_a", 3, 4, 5), all("job_b", 1))...)
	trigger(4, 1, 3, 4)
	expect("one that comes late", slices.Concat(all("job_a", 3, 4, 5), all("job_b", 1))...)
	trigger(6, 3, 6)
	expect("a later trigger", slices.Concat(all("job_a", 3), all("job_b", 1))...)
	for range keptLooks + 1 {
		r.look([]weir.JobID{"job_a"})
	}
	expect("job_b is long gone", all("job_a", 3)...)
	for range keptLooks - 1 {
		r.look(nil)
	}
	r.look([]weir.JobID{"job_a"})
	for range keptLooks - 1 {
		r.look(nil)
	}
	expect("job_a was between two attempts", all("job_a", 3)...)
	r.look(nil)
	expect("both are long gone")
	if r.mu.bytes != 0 || r.log.Len() > 0 {
		t.Errorf("%d bytes: %s", r.mu.bytes, r.log.String())
	}
}

// Copies of what a job's state consists of stay, however old the checkpoint is that they were
// stored for.
func TestKeptNamed(t *testing.T) {
	t.Parallel()
	r, full := newKeptRig(t, 1<<20), "job_a/1-x/op-0/full-3"
	one, two, three := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0), stateKey("job_a", 3, 0)
	first, second := weir.AttemptID{Number: 1, Tag: "x"}, weir.AttemptID{Number: 2, Tag: "y"}
	task, other := weir.TaskID{Chain: 1}, weir.TaskID{Chain: 1, Subtask: 1}
	expect := func(what string, keys ...string) {
		t.Helper()
		slices.Sort(keys)
		if got := r.keys(); !slices.Equal(got, keys) {
			t.Errorf("%s: copies %v, want %v", what, got, keys)
		}
	}
	trigger := func(attempt weir.AttemptID, id, base weir.CheckpointID) {
		r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: attempt, Checkpoint: id, Base: base, Pending: []weir.CheckpointID{id}})
	}
	for _, key := range []string{one, two, three, full} {
		r.put(t, key, content(10))
	}
	r.named("job_a", first, task, []string{one, two})
	r.named("job_a", first, other, nil)
	trigger(first, 4, 2)
	expect("a delta over an older whole state, and a merged one in the making", one, two, full)
	r.named("job_a", first, task, []string{full})
	trigger(first, 5, 2)
	expect("the merged one in their place", full)
	r.put(t, two, content(10))
	r.named("job_a", second, other, []string{two})
	trigger(second, 6, 5)
	expect("another attempt", two)
	for range keptLooks {
		r.look(nil)
	}
	if expect("no attempt"); len(r.mu.names) > 0 {
		t.Error("names stay")
	}
}

// Of what an earlier life stored stays what the tasks of the next attempt name; a job that
// does not run here any more has none after a while.
func TestKeptRestartWanted(t *testing.T) {
	t.Parallel()
	r, full := newKeptRig(t, 1<<20), "job_a/1-x/op-0/full-3"
	one, two, three := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0), stateKey("job_a", 3, 0)
	other := stateKey("job_b", 3, 0)
	for _, key := range []string{one, two, three, full, other} {
		r.put(t, key, content(10))
	}
	r.restart(1 << 20)
	second := weir.AttemptID{Number: 2, Tag: "y"}
	r.named("job_a", second, weir.TaskID{Chain: 1}, []string{one, three})
	fresh := checkpoint.StateKey("job_a", second, "op", 0, 4, 0)
	making := checkpoint.FullKey("job_a", second, "op", 0, 0)
	r.put(t, fresh, content(10))
	r.put(t, making, content(10))
	r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: second, Checkpoint: 4, Base: 3, Pending: []weir.CheckpointID{4}})
	want := []string{one, three, other, fresh, making}
	if slices.Sort(want); !cmp.Equal(r.keys(), want) {
		t.Errorf("copies %v, want %v", r.keys(), want)
	}
	for range keptLooks {
		r.look([]weir.JobID{"job_a"})
	}
	if slices.Contains(r.keys(), other) || len(r.keys()) != 4 {
		t.Errorf("job_b does not run here: copies %v", r.keys())
	}
}

// The tasks of an attempt that was followed name nothing any more, however late they end.
func TestKeptNamedLate(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	one, two := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0)
	first, second := weir.AttemptID{Number: 1, Tag: "x"}, weir.AttemptID{Number: 2, Tag: "y"}
	r.put(t, one, content(10))
	r.put(t, two, content(10))
	r.named("job_a", second, weir.TaskID{Chain: 1}, []string{one})
	r.named("job_a", first, weir.TaskID{Chain: 1, Subtask: 1}, []string{two})
	r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: second, Checkpoint: 6, Base: 5, Pending: []weir.CheckpointID{6}})
	if want := []string{one}; !slices.Equal(r.keys(), want) {
		t.Errorf("copies %v, want %v", r.keys(), want)
	}
}

// A heartbeat tells of no more copies than fit into it, of the newest ones.
func TestKeptListBounded(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<30)
	for i := range keptTold + 5 {
		c := r.copyOf(checkpoint.StateKey(weir.JobID(fmt.Sprintf("job_%032d", i)), weir.AttemptID{Number: 1, Tag: "00000001"}, "op", i%7, 1<<40, 0))
		r.mu.copies = append(r.mu.copies, c, c)
	}
	list := r.list(nil)
	if n := len(deploy.Encode(deploy.Heartbeat{Kept: list})); len(list) != keptTold || list[0].Job != "job_00000000000000000000000000000005" || n > 128<<10 {
		t.Errorf("%d are told in %d bytes, the first of %s", len(list), n, list[0].Job)
	}
}

// Where the disk is full, copies give way for a while.
func TestKeptYields(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	r.put(t, stateKey("job_a", 1, 0), content(10))
	r.yield()
	r.yield()
	r.put(t, stateKey("job_a", 2, 0), content(10))
	if text := r.log.String(); len(r.keys()) > 0 || len(r.files(t)) > 0 || r.mu.bytes != 0 || strings.Count(text, "the disk is full") != 1 {
		t.Errorf("copies %v, files %v: %s", r.keys(), r.files(t), text)
	}
	for range keptLooks {
		r.look(nil)
	}
	r.put(t, stateKey("job_a", 3, 0), content(10))
	if want := []string{stateKey("job_a", 3, 0)}; !slices.Equal(r.keys(), want) {
		t.Errorf("then copies %v", r.keys())
	}
}

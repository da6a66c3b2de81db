package worker

import (
	"cmp"
	"maps"
	"slices"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// named is told which objects the state of a task consists of. What the tasks of an older
// attempt have named does not count any more.
func (k *kept) named(job weir.JobID, attempt weir.AttemptID, task weir.TaskID, objects []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.mu.names[job]
	if n != nil && n.attempt.Number > attempt.Number {
		return // it is ending
	}
	if n == nil || n.attempt != attempt {
		n = &keptNames{attempt, map[weir.TaskID][]string{}}
		k.mu.names[job] = n
	}
	n.tasks[task] = objects
	for _, c := range k.mu.copies {
		c.named = c.named || slices.Contains(objects, c.key)
	}
}

// wanted keeps of a job what its tasks have named, what the trigger's attempt has stored for the
// base, for what the trigger names, and what is newer: of an older attempt, or an earlier life of
// this worker, only what was named.
func (k *kept) wanted(t checkpoint.Trigger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := map[string]bool{}
	if n := k.mu.names[t.Job]; n != nil {
		for _, objects := range n.tasks {
			for _, key := range objects {
				names[key] = true
			}
		}
	}
	known := func(c *keptCopy) bool { return c.named || c.attempt != t.Attempt } // its tasks would name it
	ended := func(c *keptCopy) bool {
		return c.job == t.Job && (known(c) || c.id > 0) && c.id < t.Checkpoint && !slices.Contains(t.Pending, c.id)
	}
	k.dropLocked(func(c *keptCopy) bool {
		return ended(c) && !names[c.key] && (known(c) || c.id != t.Base)
	})
}

// yield gives all copies up, and makes none for several looks: the disk is full, and what tasks
// spill there needs the room.
func (k *kept) yield() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.yields == 0 && k.dropLocked(func(*keptCopy) bool { return true }) {
		k.log.Warn("the disk is full: copies of the state give way, and none are kept for a while", "for", keptLooks*keptLook)
	}
	k.mu.yields = keptLooks
}

// look drops the copies of jobs that have not run here for several looks.
func (k *kept) look(running []weir.JobID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.yields = max(k.mu.yields-1, 0)
	looks := map[weir.JobID]int{}
	for _, c := range k.mu.copies {
		if !slices.Contains(running, c.job) {
			looks[c.job] = k.mu.looks[c.job] + 1
		}
	}
	k.mu.looks = looks
	maps.DeleteFunc(k.mu.names, func(job weir.JobID, _ *keptNames) bool { return looks[job] >= keptLooks })
	k.dropLocked(func(c *keptCopy) bool { return looks[c.job] >= keptLooks })
}

// list says of which subtasks there are copies, in order, of jobs that do not run here: those of the
// newest copies, since a heartbeat has to go into one message.
func (k *kept) list(running []weir.JobID) (list []deploy.Kept) {
	type subtask struct {
		job    weir.JobID
		number int
	}
	at := map[subtask]int{} // in list
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range slices.Backward(k.mu.copies) {
		s := subtask{c.job, c.subtask}
		i, ok := at[s]
		if !ok {
			if len(list) == keptTold || slices.Contains(running, c.job) {
				continue
			}
			i, at[s], list = len(list), len(list), append(list, deploy.Kept{Job: c.job, Subtask: c.subtask})
		}
		list[i].Checkpoint = max(list[i].Checkpoint, c.id)
	}
	slices.SortFunc(list, func(a, b deploy.Kept) int { return cmp.Or(cmp.Compare(a.Job, b.Job), a.Subtask-b.Subtask) })
	return list
}

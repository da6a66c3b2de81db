package job

import (
	"cmp"
	"math"
	"slices"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// A freeWorker is a worker as placement sees it.
type freeWorker struct {
	ID   weir.WorkerID
	Free int // slots that no job holds
}

// slotsNeeded is the number of slots of a job: one holds a subtask of every operator.
func slotsNeeded(g plan.Graph, parallelism int) int {
	need := 1
	for _, c := range g.Chains {
		need = max(need, c.Subtasks(parallelism))
	}
	return need
}

// place chooses a worker for each of need slots: always the one that has the fewest
// slots of this job so far, then one where more subtasks of it were before, then the most free
// ones, then the lowest id. The choice follows from the arguments alone. Where slots are missing
// it places nothing and says how many.
func place(workers []freeWorker, need int, was []deploy.Placed) (slots []weir.WorkerID, missing int) {
	free := 0
	for _, w := range workers {
		free += max(0, w.Free)
	}
	if free < need {
		return nil, need - free
	}
	left := slices.Clone(workers)
	given, had := make(map[weir.WorkerID]int, len(left)), map[weir.WorkerID]map[int]bool{}
	for _, p := range was {
		if had[p.Worker] == nil {
			had[p.Worker] = map[int]bool{}
		}
		had[p.Worker][p.Task.Subtask] = true
	}
	more := func(w freeWorker) int { return truth(len(had[w.ID]) > given[w.ID]) }
	for range need {
		best := -1
		for i, w := range left {
			if w.Free > 0 && (best < 0 || cmp.Or(cmp.Compare(given[w.ID], given[left[best].ID]), more(left[best])-more(w), cmp.Compare(left[best].Free, w.Free), cmp.Compare(w.ID, left[best].ID)) < 0) {
				best = i
			}
		}
		id := left[best].ID
		left[best].Free--
		given[id]++
		slots = append(slots, id)
	}
	return slots, 0
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stay deals out the same slots so that a subtask is where it was before, as far as that
// worker has any: it may have kept what is to be restored.
func stay(slots []weir.WorkerID, before []deploy.Placed) []weir.WorkerID {
	left, dealt := slices.Clone(slots), make([]weir.WorkerID, len(slots))
	for _, p := range before {
		i := p.Task.Subtask
		if at := slices.Index(left, p.Worker); at >= 0 && i < len(dealt) && dealt[i] == "" {
			dealt[i], left = p.Worker, slices.Delete(left, at, at+1)
		}
	}
	for i := range dealt {
		if dealt[i] == "" {
			dealt[i], left = left[0], left[1:]
		}
	}
	return dealt
}

// keepers says which workers run tasks of a job, or have copies of its state, by subtask; those
// that run count first, then those of the newest checkpoint.
func keepers(job weir.JobID, beats []deploy.Heartbeat) []deploy.Placed {
	type keeper struct {
		deploy.Placed
		id weir.CheckpointID
	}
	var list []keeper
	for _, b := range beats {
		for _, r := range b.Attempts {
			for _, t := range r.Tasks {
				if r.Job == job {
					list = append(list, keeper{deploy.Placed{Task: t.Task, Worker: b.Worker}, math.MaxInt64})
				}
			}
		}
		for _, k := range b.Kept {
			if k.Job == job {
				list = append(list, keeper{deploy.Placed{Task: weir.TaskID{Subtask: k.Subtask}, Worker: b.Worker}, k.Checkpoint})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b keeper) int { return cmp.Compare(b.id, a.id) })
	var placed []deploy.Placed
	for _, k := range list {
		if !slices.ContainsFunc(placed, func(p deploy.Placed) bool { return p.Task.Subtask == k.Task.Subtask }) {
			placed = append(placed, k.Placed)
		}
	}
	return placed
}

// placeTasks gives every task of the attempt its worker: subtask i of each chain runs
// in slot i.
func placeTasks(g plan.Graph, parallelism int, slots []weir.WorkerID) []deploy.Placed {
	var placed []deploy.Placed
	for chain, c := range g.Chains {
		for i := range c.Subtasks(parallelism) {
			placed = append(placed, deploy.Placed{Task: weir.TaskID{Chain: chain, Subtask: i}, Worker: slots[i]})
		}
	}
	return placed
}

package job

import (
	"cmp"
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
// slots of this job so far, then the most free ones, then the lowest id. The choice
// follows from the arguments alone. Where slots are missing it places nothing and
// says how many.
func place(workers []freeWorker, need int) (slots []weir.WorkerID, missing int) {
	free := 0
	for _, w := range workers {
		free += max(0, w.Free)
	}
	if free < need {
		return nil, need - free
	}
	left := slices.Clone(workers)
	given := make(map[weir.WorkerID]int, len(left))
	for range need {
		best := -1
		for i, w := range left {
			if w.Free > 0 && (best < 0 || before(w, left[best], given)) {
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

// before reports whether a is to be chosen rather than b.
func before(a, b freeWorker, given map[weir.WorkerID]int) bool {
	return cmp.Or(cmp.Compare(given[a.ID], given[b.ID]), cmp.Compare(b.Free, a.Free), cmp.Compare(a.ID, b.ID)) < 0
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

package job

import (
	"slices"

	"weir"
	"weir/exec/deploy"
)

// reserve gives a job its slots. One that was taken over waits until every worker has
// had time to be heard, so that it is spread over all of them, and is where its state is. was says
// where its subtasks were.
func (s *Service) reserve(job weir.JobID, need int, taken bool, was []deploy.Placed) evPlaced {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.reserved, job)
	if taken && s.now().Before(s.mu.workers.settled()) {
		return evPlaced{Wait: true, Missing: need}
	}
	was = slices.Concat(was, s.keepersLocked(job))
	slots, missing := place(s.freeLocked(), need, was)
	if missing > 0 {
		return evPlaced{Missing: missing}
	}
	mine := map[weir.WorkerID]int{}
	for _, w := range slots {
		mine[w]++
	}
	s.mu.reserved[job] = mine
	return evPlaced{Slots: slots}
}

// release gives a job's slots back.
func (s *Service) release(job weir.JobID) {
	s.mu.Lock()
	held := len(s.mu.reserved[job]) > 0
	delete(s.mu.reserved, job)
	s.mu.Unlock()
	if held {
		s.broadcast(evSlots{})
	}
}

// freeLocked lists the living workers with the slots that no job holds; s.mu is held.
func (s *Service) freeLocked() []freeWorker {
	var free []freeWorker
	for _, w := range s.mu.workers.alive() {
		f := freeWorker{w.beat.Worker, w.beat.Slots}
		for _, taken := range s.mu.reserved {
			f.Free -= taken[f.ID]
		}
		free = append(free, f)
	}
	return free
}

// keepersLocked says which living workers have copies of a job's state; s.mu is held.
func (s *Service) keepersLocked(job weir.JobID) []deploy.Placed {
	var beats []deploy.Heartbeat
	for _, w := range s.mu.workers.alive() {
		beats = append(beats, w.beat)
	}
	return keepers(job, beats)
}

// keepers is keepersLocked.
func (s *Service) keepers(job weir.JobID) []deploy.Placed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keepersLocked(job)
}

// anyWorker names a living worker, the one with most free slots; empty: none lives.
func (s *Service) anyWorker() weir.WorkerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best freeWorker
	for _, w := range s.freeLocked() {
		if best.ID == "" || w.Free > best.Free {
			best = w
		}
	}
	return best.ID
}

// workersOf lists the living workers that run, or may run, tasks of a job.
func (s *Service) workersOf(job weir.JobID, placed []deploy.Placed) []weir.WorkerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.mu.workers.runs(job, weir.AttemptID{})
	for _, w := range s.mu.workers.alive() {
		if slices.ContainsFunc(placed, func(p deploy.Placed) bool { return p.Worker == w.beat.Worker }) {
			list = append(list, w.beat.Worker)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

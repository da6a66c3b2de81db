package weir

import "fmt"

// DefaultMaxParallelism is the number of key groups of a job that names none.
const DefaultMaxParallelism = 1024

// A KeyGroupRange is the half-open range [Start, End) of key groups.
type KeyGroupRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// String gives "[start,end)".
func (r KeyGroupRange) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }

// Contains reports whether group lies in the range.
func (r KeyGroupRange) Contains(group int) bool { return r.Start <= group && group < r.End }

// Empty reports whether the range holds no group.
func (r KeyGroupRange) Empty() bool { return r.Start >= r.End }

// Intersect returns the groups in both ranges; the result may be empty.
func (r KeyGroupRange) Intersect(s KeyGroupRange) KeyGroupRange {
	return KeyGroupRange{Start: max(r.Start, s.Start), End: min(r.End, s.End)}
}

// KeyGroupOf maps a key's 64-bit hash to its key group in [0, maxParallelism):
// the high half of the product, so that groups are contiguous in hash order.
func KeyGroupOf(hash uint64, maxParallelism int) int {
	return int((hash >> 32) * uint64(maxParallelism) >> 32)
}

// KeyGroupsOf returns the range that subtask owns when parallelism subtasks share
// maxParallelism groups. The ranges of all subtasks are disjoint and cover all
// groups; none is empty while parallelism ≤ maxParallelism.
func KeyGroupsOf(subtask, parallelism, maxParallelism int) KeyGroupRange {
	return KeyGroupRange{
		Start: (subtask*maxParallelism + parallelism - 1) / parallelism,
		End:   ((subtask+1)*maxParallelism + parallelism - 1) / parallelism,
	}
}

// SubtaskOf returns the subtask that owns group; it is the inverse of KeyGroupsOf.
func SubtaskOf(group, parallelism, maxParallelism int) int {
	return group * parallelism / maxParallelism
}

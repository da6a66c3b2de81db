package source

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"weir"
	"weir/exec"
)

// splitSize is the length of a split. It is a part of what a table means: splits are
// a function of the input, never of the parallelism.
const splitSize = 32 << 20

// A split is a stretch of a file that one subtask reads: the records that start in
// [Start, End). Its JSON is the unit of the source's state.
//
// A line feed between quotes ends no CSV record. So a cut of a CSV file holds (is open) only
// where no quote stands in front of the first record behind it. Whoever is to read behind a
// cut looks first; a split whose End turns out not to hold goes on to the end of the file, and
// those behind it are done. What is known does not depend on who looks, nor when.
type split struct {
	input
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Position is the offset of the next record; as long as it is Start, the record
	// that reaches into the split from before it may still have to be passed over.
	Position int64 `json:"position"`
	Done     bool  `json:"done,omitempty"`
	// Clean says how far from its start the file is known to be free of quotes.
	Clean int64 `json:"clean,omitempty"`
}

// left returns how many bytes are still to be read.
func (s *split) left() int64 {
	if s.Done {
		return 0
	}
	return max(s.End-s.Position, 0)
}

// splitsOf cuts files into splits of a size.
func splitsOf(files []input, size int64) []split {
	var splits []split
	for _, in := range files {
		for start := int64(0); start == 0 || start < in.Size; start += size {
			splits = append(splits, split{input: in, Start: start, End: min(start+size, in.Size), Position: start})
		}
	}
	return splits
}

// restoredSplits reads the state of all old subtasks back. Unfinished splits come
// first, so that the subtasks of any parallelism share them evenly.
func restoredSplits(items []json.RawMessage) ([]split, error) {
	splits := make([]split, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &splits[i]); err != nil {
			return nil, fmt.Errorf("restore a split: %w", err)
		}
	}
	slices.SortFunc(splits, func(a, b split) int {
		if a.Done != b.Done {
			if b.Done {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Start, b.Start))
	})
	seen := make(map[string]input, len(splits))
	clean := make(map[string]int64, len(splits))
	for _, s := range splits {
		if was, ok := seen[s.Path]; ok && was != s.input {
			return nil, fmt.Errorf("%w: file %s changed while the job began to read it; start the job from nothing", weir.ErrInvalid, s.Path)
		}
		seen[s.Path] = s.input
		clean[s.Path] = max(clean[s.Path], s.Clean)
	}
	for i := range splits {
		splits[i].Clean = clean[splits[i].Path]
	}
	return splits, nil
}

// share picks what one of several subtasks takes.
func share[T any](all []T, subtask, parallelism int) []T {
	var own []T
	for i := subtask; i < len(all); i += parallelism {
		own = append(own, all[i])
	}
	return own
}

// agreedFiles lists the files of a path as all subtasks go by: each looks at another
// moment, and a file that appears in between would move the shares of some of them.
func agreedFiles(ctx context.Context, setup exec.Setup, roots []string, path string) ([]input, error) {
	files, err := list(roots, path)
	if err != nil || setup.Agree == nil {
		return files, err
	}
	mine, err := json.Marshal(files)
	if err != nil {
		return nil, err
	}
	all, err := setup.Agree(ctx, "files", mine)
	if err != nil {
		return nil, fmt.Errorf("agree on the files of %s: %w", path, err)
	}
	files = nil
	return files, json.Unmarshal(all, &files)
}

// allSplits returns the splits of all subtasks: restored ones, or those of the files
// that are there now.
func (s *filesystem) allSplits(ctx context.Context, setup exec.Setup) ([]split, error) {
	if setup.Restored {
		return restoredSplits(setup.List)
	}
	files, err := agreedFiles(ctx, setup, s.roots, s.path)
	if err != nil {
		return nil, err
	}
	return splitsOf(files, s.splitSize), nil
}

package exectest

import (
	"context"
	"encoding/json"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
)

// splits is how many parts a Numbers source has, whatever the parallelism.
const splits = 6

// Numbers returns an opener of sources that emit 0 … n-1, one row each in a BIGINT
// column, in batches of size rows; further columns of the schema are texts, as text
// gives them. Number i lies in split i mod 6.
func Numbers(n, size int, text func(i int) string) func(context.Context, exec.Setup) (exec.Source, error) {
	return func(_ context.Context, s exec.Setup) (exec.Source, error) {
		src := &numbers{n: n, size: size, text: text, pool: batch.NewPool(exec.Layout(s.Operator.Schema), size)}
		next := map[int]int{}
		for _, item := range s.List {
			var p position
			if err := json.Unmarshal(item, &p); err != nil {
				return nil, err
			}
			next[p.Split] = p.Next
		}
		for split := s.Subtask; split < splits; split += s.Parallelism {
			p := position{Split: split, Next: split}
			if at, ok := next[split]; ok {
				p.Next = at
			}
			src.positions = append(src.positions, p)
		}
		return src, nil
	}
}

type position struct {
	Split int `json:"split"`
	Next  int `json:"next"`
}

type numbers struct {
	n, size   int
	text      func(i int) string
	pool      *batch.Pool
	positions []position
}

// Next implements exec.Source.
func (s *numbers) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	b := s.pool.Get()
	for i := range s.positions {
		for p := &s.positions[i]; p.Next < s.n && b.Len < s.size; p.Next += splits {
			b.Columns[0].AppendInt(int64(p.Next))
			for c := 1; c < len(b.Columns); c++ {
				b.Columns[c].AppendString(s.text(p.Next))
			}
			b.EndRow(batch.Insert)
		}
	}
	if b.Len > 0 {
		return b, exec.More, time.Time{}, nil
	}
	b.Release()
	return nil, exec.Done, time.Time{}, nil
}

// Snapshot implements exec.Source.
func (s *numbers) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	var items []json.RawMessage
	for _, p := range s.positions {
		item, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Close implements exec.Source.
func (s *numbers) Close() error { return nil }

package op

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// TestPages: pages of any size, in any order, from the tasks or a snapshot, hold each
// row as often as it is there, while others come and go between them.
func TestPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := &plan.ResultSpec{Keys: []int{0}, Show: []int{0, 1}, Multiset: rapid.Bool().Draw(t, "multiset")}
		o := plan.Operator{Kind: plan.Result, Schema: oneInt, Result: spec}
		store := state.New(state.Options{})
		opened, err := Open(context.Background(), exec.Setup{
			Operator: o, Input: oneInt, Parallelism: 1, State: store, Logger: slog.New(slog.DiscardHandler),
		})
		must(t, err)
		r := opened.(*result)
		want, total := map[string]int{}, 0
		for k := range rapid.IntRange(0, 100).Draw(t, "rows") {
			copies := 1
			if spec.Multiset {
				copies = rapid.IntRange(1, 5).Draw(t, "copies")
			}
			for range copies {
				must(t, r.Process(changed(batch.Insert, k, "stays"), nil))
			}
			want[fmt.Sprintf(`{"k":%d,"s":"stays"}`, k)] = copies
			total += copies
		}
		var read exec.Reader = r
		q := exec.Query{Limit: rapid.SampledFrom([]int{0, 1, 7, 100}).Draw(t, "limit"), Bytes: rapid.SampledFrom([]int{0, 1, 500}).Draw(t, "bytes")}
		snapshot := rapid.Bool().Draw(t, "snapshot")
		if snapshot {
			read, err = OpenStored(o, nil, oneInt, store)
			must(t, err)
		}
		if rapid.Bool().Draw(t, "ordered") {
			q.OrderBy = []exec.Order{{Column: "s"}, {Column: "k", Desc: true}}
		}
		got, there := map[string]int{}, map[int]bool{}
		for {
			page, err := read.Read(q)
			must(t, err)
			if page.Total != int64(total) || q.Limit > 0 && len(page.Rows) > q.Limit {
				t.Fatalf("%d rows, total %d of %d", len(page.Rows), page.Total, total)
			}
			size := 0
			for i, row := range page.Rows {
				got[string(row.JSON)]++
				if size += row.Size(); q.Bytes > 0 && size > q.Bytes && i > 0 {
					t.Fatalf("row %d, %d bytes of %d", i, size, q.Bytes)
				}
			}
			if !page.More {
				break
			}
			q.After = page.Rows[len(page.Rows)-1].Sort
			if !snapshot && rapid.Bool().Draw(t, "change") {
				k, kind, n := rapid.IntRange(1000, 1010).Draw(t, "k"), batch.Insert, 1
				if there[k] {
					kind, n = batch.Delete, -1
				}
				must(t, r.Process(changed(kind, k, "goes"), nil))
				there[k] = !there[k]
				total += n
			}
		}
		for row, n := range want {
			if got[row] != n {
				t.Fatalf("%s: read %d times, it is there %d times", row, got[row], n)
			}
		}
	})
}

// TestPagesRefuse: a place that no page gave out.
func TestPagesRefuse(t *testing.T) {
	t.Parallel()
	r := openTestResult(t, 1)
	if _, err := r.Read(exec.Query{After: []byte("abc")}); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

package op_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/exec"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner/plan"
)

// TestOrderOfTypes: order_by over a column of every layout is PostgreSQL's order of its
// values, NULL last, and the opposite with desc; pages go on where the last one ended.
func TestOrderOfTypes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	const n = 300
	list := make([][]any, n)
	for i := range list {
		list[i] = []any{i}
		for _, pool := range pools[1:] {
			list[i] = append(list[i], pool[random.IntN(len(pool))])
		}
	}
	o, err := op.Open(context.Background(), exec.Setup{
		Operator: plan.Operator{ID: "r", Name: "result", Kind: plan.Result, Schema: mixed, Result: &plan.ResultSpec{Keys: columns(0), Show: columns(0, 1, 2, 3, 4, 5)}},
		Input:    mixed, Parallelism: 1, State: state.New(state.Options{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Process(rows(mixed, list...), nil); err != nil {
		t.Fatal(err)
	}
	for c := range mixed {
		for _, desc := range []bool{false, true} {
			sorted := slices.Clone(list)
			slices.SortFunc(sorted, func(x, y []any) int {
				order := compareNull(x[c], y[c])
				if desc {
					order = -order
				}
				if order == 0 {
					order = compare(x[0], y[0]) // the key
				}
				return order
			})
			var want, got []string
			for _, row := range sorted {
				want = append(want, fmt.Sprint(row[0]))
			}
			q := exec.Query{Limit: 37, OrderBy: []exec.Order{{Column: mixed[c].Name, Desc: desc}}}
			for more := true; more; {
				page, err := o.(exec.Reader).Read(q)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Rows {
					var k int
					if _, err := fmt.Sscanf(string(r.JSON), `{"k":%d,`, &k); err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprint(k))
				}
				more, q.After = page.More, page.Rows[len(page.Rows)-1].Sort
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("order by %s, desc %v: -want +got:\n%s", mixed[c].Name, desc, diff)
			}
		}
	}
}

// compareNull is compare with NULL last.
func compareNull(x, y any) int {
	if x == nil || y == nil {
		return isTrue(x == nil) - isTrue(y == nil)
	}
	return compare(x, y)
}

package op

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

var oneInt = []plan.Column{{Name: "k", Type: expr.Type{Kind: expr.BigInt}}, {Name: "s", Type: expr.Type{Kind: expr.String}}}

func openTestResult(t interface{ Fatal(...any) }, attempt int64) *result {
	o, err := Open(context.Background(), exec.Setup{
		Operator: plan.Operator{Kind: plan.Result, Schema: oneInt, Result: &plan.ResultSpec{Keys: []int{0}, Show: []int{0, 1}}},
		Input:    oneInt, Attempt: weir.AttemptID{Number: attempt}, Parallelism: 1,
		State: state.New(state.Options{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*result)
}

func changed(kind batch.RowKind, k int, s string) *batch.Batch {
	b := batch.New(exec.Layout(oneInt), 1)
	b.Columns[0].AppendInt(int64(k))
	b.Columns[1].AppendString(s)
	b.EndRow(kind)
	return b
}

// TestChanges: a reader that follows the changes, however far behind, holds the table.
func TestChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := openTestResult(t, 3)
		table, mirror := map[int]string{}, map[string]bool{}
		var version uint64
		follow := func(limit int) {
			page, err := r.Read(exec.Query{Changes: true, Since: version, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if page.Full {
				clear(mirror)
			}
			for _, row := range page.Rows {
				if row.Op == "+I" || row.Op == "+U" {
					mirror[string(row.JSON)] = true
				} else {
					delete(mirror, string(row.JSON))
				}
			}
			version = page.Version
			if page.More {
				return
			}
			if len(mirror) != len(table) {
				t.Fatalf("the reader holds %v, the table %v", mirror, table)
			}
			for k, s := range table {
				if !mirror[fmt.Sprintf(`{"k":%d,"s":"%s"}`, k, s)] {
					t.Fatalf("the reader lacks %d: %s", k, s)
				}
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := rapid.IntRange(0, 5).Draw(t, "k")
			s := strings.Repeat("x", rapid.SampledFrom([]int{1, 2, 300_000}).Draw(t, "size")) + fmt.Sprint(i)
			old, there := table[k]
			switch {
			case there && rapid.Bool().Draw(t, "delete"):
				delete(table, k)
				must(t, r.Process(changed(batch.Delete, k, old), nil))
			case there:
				table[k] = s
				b := changed(batch.UpdateBefore, k, old)
				b.AppendRow(changed(batch.UpdateAfter, k, s), 0)
				must(t, r.Process(b, nil))
			default:
				table[k] = s
				must(t, r.Process(changed(batch.Insert, k, s), nil))
			}
			if rapid.IntRange(0, 9).Draw(t, "read") == 0 {
				follow(rapid.IntRange(0, 3).Draw(t, "limit"))
			}
		}
		follow(0)
	})
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesBounds(t *testing.T) {
	t.Parallel()
	r := openTestResult(t, 2)
	for i := range maxChanges + 10 {
		if err := r.Process(changed(batch.Insert, i, "a"), nil); err != nil {
			t.Fatal(err)
		}
	}
	base := uint64(2) << 40
	for _, test := range []struct {
		since uint64
		full  bool
		rows  int
	}{
		{0, true, maxChanges + 10},           // another attempt, or never
		{base + 9, true, maxChanges + 10},    // just out of reach
		{base + 10, false, maxChanges},       // the oldest kept
		{base + maxChanges + 10, false, 0},   // up to date
		{3 << 40, true, maxChanges + 10},     // a later attempt
		{base + maxChanges + 5, false, 5},    // a little behind
		{base - 1, true, maxChanges + 10},    // before the first
		{base + maxChanges + 11, true, 8202}, // never given out
	} {
		page, err := r.Read(exec.Query{Changes: true, Since: test.since})
		if err != nil || page.Full != test.full || len(page.Rows) != test.rows || page.Version != base+maxChanges+10 || page.Total != maxChanges+10 {
			t.Errorf("since %d: full=%v, %d rows, version %d, total %d: %v", test.since, page.Full, len(page.Rows), page.Version, page.Total, err)
		}
	}
}

package op

import (
	"log/slog"
	"math"
	"testing"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

// printed collects what is put out.
type printed struct{ text string }

func (p *printed) Emit(b *batch.Batch) error {
	p.text += b.String()
	return nil
}

// A group changes, whatever the number of batches since it last did.
func TestBatchesBeyondStamps(t *testing.T) {
	t.Parallel()
	bigint := expr.Type{Kind: expr.BigInt}
	a, err := openGlobalAgg(exec.Setup{
		Operator: plan.Operator{
			Kind: plan.GlobalAggregate, Schema: []plan.Column{{Type: bigint}, {Type: bigint}},
			Aggregate: &plan.AggregateSpec{Keys: []int{0}, Raw: true, Aggregates: []expr.Aggregate{{Func: expr.CountStar, Arg: -1, Type: bigint}}},
		},
		Input: []plan.Column{{Type: bigint}}, Logger: slog.New(slog.DiscardHandler),
		State: state.New(state.Options{MaxParallelism: weir.DefaultMaxParallelism}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out printed
	for i, epoch := range []uint32{0, math.MaxUint32} {
		a.seen.epoch = epoch
		b := batch.New([]batch.Physical{batch.Ints}, 2)
		for k := range 1 + i {
			b.Columns[0].AppendInt(int64(7 + k))
			b.EndRow(batch.Insert)
		}
		if err := a.Process(b, &out); err != nil {
			t.Fatal(err)
		}
	}
	if want := "+I 7|1\n-U 7|1\n+U 7|2\n+I 8|1\n"; out.text != want {
		t.Errorf("put out\n%swant\n%s", out.text, want)
	}
}

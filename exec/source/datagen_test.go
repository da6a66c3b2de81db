package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir"
	"weir/exec"
	"weir/planner/expr"
	"weir/planner/plan"
)

// everything is a table with a generated column of each kind.
func everything() plan.Table {
	return plan.Table{
		Name: "g", Connector: "datagen",
		Columns: []plan.Column{
			col("n", bigint), col("i", integer), col("r", bigint), col("x", double), col("b", boolean), col("s", text), col("h", text),
			col("at", expr.Type{Kind: expr.TimestampLTZ, Precision: 3}), col("w", text), col("v", bigint), col("q", text), col("y", double), col("when", timestamp),
		},
		Options: map[string]string{
			"number-of-rows": "10007", "seed": "42",
			"fields.n.kind": "sequence",
			"fields.i.kind": "sequence", "fields.i.start": "-2", "fields.i.end": "4",
			"fields.r.min": "-5", "fields.r.max": "5",
			"fields.x.min": "1", "fields.x.max": "2",
			"fields.s.values": "pv,cart,fav,buy", "fields.s.weights": "90, 5,3,2",
			"fields.at.kind": "sequence", "fields.at.start": "2017-11-25T01:00:00Z",
			"fields.w.values": "a,b,c",
			"fields.v.values": "10,-20", "fields.v.weights": "0,1",
			"fields.q.kind": "sequence",
			"fields.y.kind": "sequence",
		},
	}
}

// TestDatagenGolden pins the generator: rows depend on the seed and their number, for ever.
func TestDatagenGolden(t *testing.T) {
	t.Parallel()
	spec := reading(everything())
	d, err := newDatagen(spec)
	if err != nil {
		t.Fatal(err)
	}
	got := show(d.make(0, 3), spec) + show(d.make(10006, 1), spec)
	want := golden
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDatagenReadsWhatIsAsked(t *testing.T) {
	t.Parallel()
	all, err := newDatagen(reading(everything()))
	if err != nil {
		t.Fatal(err)
	}
	some, err := newDatagen(reading(everything(), 5, 2))
	if err != nil {
		t.Fatal(err)
	}
	a, b := all.make(77, 100), some.make(77, 100)
	for i := range 100 {
		if string(a.Columns[5].Str(i)) != string(b.Columns[0].Str(i)) || a.Columns[2].Ints[i] != b.Columns[1].Ints[i] {
			t.Fatalf("row %d depends on the columns that are read", i)
		}
	}
}

func TestDatagenDistribution(t *testing.T) {
	t.Parallel()
	d, err := newDatagen(reading(everything(), 5, 2, 3, 8))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	const n = 100 * 1024
	for i := range 100 {
		b := d.make(int64(i)*1024, 1024)
		for k := range 1024 {
			counts[string(b.Columns[0].Str(k))]++
			counts[fmt.Sprint(b.Columns[1].Ints[k])]++
			counts["of "+string(b.Columns[3].Str(k))]++
			if x := b.Columns[2].Floats[k]; x < 1 || x >= 2 {
				t.Fatalf("%v is not in [1, 2)", x)
			}
		}
		b.Release()
	}
	for value, part := range map[string]float64{"pv": 0.9, "cart": 0.05, "fav": 0.03, "buy": 0.02, "-5": 1. / 11, "0": 1. / 11, "5": 1. / 11, "of a": 1. / 3, "of c": 1. / 3} {
		if got := float64(counts[value]) / n; math.Abs(got-part) > 0.01 {
			t.Errorf("%s: %.4f of the rows, want %.4f", value, got, part)
		}
	}
	if counts["6"] != 0 || counts["-6"] != 0 {
		t.Error("values out of range")
	}
}

// TestDatagenSplits: at any parallelism, restored at any moment, every row comes once.
func TestDatagenSplits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.SampledFrom([]int{0, 1, 1023, 1024, 5000, 10007, 60_000}).Draw(t, "rows")
		table := everything()
		table.Options["number-of-rows"] = fmt.Sprint(total)
		spec := reading(table, 0)
		open := func(parallelism int, old []exec.Source) (sources []exec.Source) {
			for i := range parallelism {
				setup := setupOf(spec, "", i, parallelism)
				if old != nil {
					setup.Restored, setup.List = true, snapshots(t, old...)
				}
				s, err := Open(context.Background(), setup)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, s)
			}
			return sources
		}
		var got []int64
		poll := func(s exec.Source) bool {
			b, p, _, err := s.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if b != nil {
				got = append(got, b.Columns[0].Ints...)
				b.Release()
			}
			return p != exec.Done
		}
		sources := open(rapid.SampledFrom([]int{1, 2, 3, 7, 130}).Draw(t, "parallelism"), nil)
		for range rapid.IntRange(0, 50).Draw(t, "polls") {
			poll(sources[rapid.IntRange(0, len(sources)-1).Draw(t, "subtask")])
		}
		for _, s := range open(rapid.SampledFrom([]int{1, 2, 4, 130}).Draw(t, "parallelism"), sources) {
			for poll(s) {
			}
		}
		slices.Sort(got)
		if len(got) != total || total > 0 && (got[0] != 0 || got[total-1] != int64(total-1)) || len(slices.Compact(got)) != total {
			t.Fatalf("%d rows instead of %d, or some twice", len(got), total)
		}
	})
}

func TestDatagenInOrder(t *testing.T) {
	t.Parallel()
	spec := reading(everything(), 1)
	s, err := Open(context.Background(), setupOf(spec, "", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := drain(t, s, spec)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 10007 {
		fmt.Fprintln(&want, i%7-2)
	}
	if got != want.String() {
		t.Error("a sequence at parallelism 1 is out of order")
	}
}

func TestDatagenRefuses(t *testing.T) {
	t.Parallel()
	for option, value := range map[string]string{
		"fields.n.kind": "other", "fields.r.min": "6", "fields.i.end": "2147483648", "fields.s.weights": "1,2", "seed": "x",
		"fields.v.values": "1,b", "fields.v.weights": "0,0", "fields.x.max": "NaN", "fields.at.start": "yesterday",
	} {
		table := everything()
		table.Options[option] = value
		if _, err := Open(context.Background(), setupOf(reading(table), "", 0, 1)); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "fields.") && option != "seed" {
			t.Errorf("%s = %s: %v", option, value, err)
		}
	}
	setup := setupOf(reading(everything()), "", 0, 1)
	setup.Restored = true
	if _, err := Open(context.Background(), setup); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a snapshot without positions: %v", err)
	}
	table := everything()
	table.Connector = "blackhole"
	if _, err := Open(context.Background(), setupOf(reading(table), "", 0, 1)); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a blackhole: %v", err)
	}
}

const golden = `0|-2|-2|1.827472287374575|true|"pv"|"bd432151654431f2"|2017-11-25T01:00:00Z|"c"|-20|"0"|0|2020-11-10T03:35:58.514Z
1|-1|-4|1.058931601451373|true|"pv"|"6d04b905ef400ba5"|2017-11-25T01:00:00.001Z|"b"|-20|"1"|1|2020-11-24T21:03:01.048Z
2|0|5|1.6100688066018094|true|"buy"|"8e26a802643325c2"|2017-11-25T01:00:00.002Z|"b"|-20|"2"|2|2020-03-06T23:39:22.813Z
10006|1|0|1.2712325187723525|false|"pv"|"9d34e3a6646a9f08"|2017-11-25T01:00:10.006Z|"b"|-20|"10006"|10006|2020-11-14T08:09:00.62Z
`

package state

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"weir"
)

// Parts give all rows back by hash, whatever the key groups, however many rows were said to come.
func TestParts(t *testing.T) {
	t.Parallel()
	var slabs sync.Pool
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SampledFrom([]int{1, 2, 3, 128, 1000, maxKeyGroups}).Draw(t, "groups")
		start := rapid.IntRange(0, groups-1).Draw(t, "start")
		g := weir.KeyGroupRange{Start: start, End: rapid.IntRange(start+1, groups).Draw(t, "end")}
		n := rapid.SampledFrom([]int{0, 1, 100, 5_000}).Draw(t, "rows")
		p := newParts(g, groups, rapid.SampledFrom([]int{0, n, 1 << 20, 1 << 31}).Draw(t, "said"), &slabs)
		defer p.free()
		m, narrow := uint64(groups), rapid.Uint64Range(0, 32).Draw(t, "narrow")
		from, to := (uint64(g.Start)<<32+m-1)/m<<32, ((uint64(g.End)<<32+m-1)/m-1)<<32|(1<<32-1)
		var want []row
		for i := range n {
			hash := from + (to-from)>>narrow/uint64(n)*uint64(i*7919%n)
			if i%50 == 0 {
				hash = []uint64{from, to}[i/50%2]
			}
			if !g.Contains(weir.KeyGroupOf(hash, groups)) {
				t.Fatalf("%x is not of %v", hash, g)
			}
			want = append(want, row{hash, uint64(i)})
			p.add(want[i])
		}
		var got []row
		for rows := range p.each() {
			got = append(got, rows...)
		}
		if !slices.IsSortedFunc(got, func(a, b row) int { return cmp.Compare(a[0], b[0]) }) {
			t.Fatal("they do not ascend")
		}
		byNumber := func(a, b row) int { return cmp.Compare(a[1], b[1]) }
		if slices.SortFunc(got, byNumber); !slices.Equal(got, want) {
			t.Fatalf("%d of %d rows", len(got), len(want))
		}
	})
}

// What a large run took is not kept for the next one.
func TestSlabsAreBounded(t *testing.T) {
	t.Parallel()
	var slabs sync.Pool
	p := newParts(weir.KeyGroupRange{End: 1}, 1, 1<<20, &slabs)
	for i := range uint64(1 << 20) {
		p.add(row{i * 0x9e3779b97f4a7c15, i})
	}
	taken := len(p.taken)
	p.free()
	kept := 0
	for slabs.Get() != nil {
		kept++
	}
	if taken <= slabsKept || kept > slabsKept {
		t.Errorf("%d slabs of %d are kept", kept, taken)
	}
}

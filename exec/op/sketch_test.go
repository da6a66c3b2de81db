package op

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
)

// hashed gives the frozen hashes of the numbers from start to end.
func hashed(start, end int) []uint64 {
	b := batch.New([]batch.Physical{batch.Ints}, end-start)
	for i := start; i < end; i++ {
		b.Columns[0].AppendInt(int64(i))
		b.EndRow(batch.Insert)
	}
	into := make([]uint64, b.Len)
	batch.HashRows(b, []int{0}, into)
	return into
}

func sketchOf(hashes []uint64) sketch {
	var s sketch
	for _, h := range hashes {
		s = s.put(entryOf(h))
	}
	return s
}

// The estimates and the bytes are frozen: a restored job goes on with them.
func TestSketchGolden(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n    int
		want int64
	}{{0, 0}, {1, 1}, {2, 2}, {10, 10}, {100, 100}, {1000, 1000}, {2500, 2486}, {10_000, 9972}, {100_000, 100_644}, {1_000_000, 1_003_724}} {
		if got := sketchOf(hashed(0, test.n)).estimate(); got != test.want {
			t.Errorf("%d values: estimate %d, want %d", test.n, got, test.want)
		}
	}
	if got := hex.EncodeToString(sketchOf(hashed(0, 3))); got != "01975835c2e220a801e4d9714100000000" {
		t.Errorf("the bytes of three values: %s", got)
	}
}

// TestSketchError: the estimate lies within 2.5 standard errors, for sixty sets of each size.
func TestSketchError(t *testing.T) {
	t.Parallel()
	const sets = 60
	sizes := []int{10, 300, 3000, 20_000, 60_000}
	sum, squares := make([]float64, len(sizes)), make([]float64, len(sizes))
	for i := range sets {
		var s sketch
		from := 0
		for k, n := range sizes { // the larger set begins as the smaller one
			for _, h := range hashed(1_000_000*i+from, 1_000_000*i+n) {
				s = s.put(entryOf(h))
			}
			from = n
			off := float64(s.estimate())/float64(n) - 1
			sum[k] += off
			squares[k] += off * off
		}
	}
	for k, n := range sizes {
		if bias, deviation := sum[k]/sets, math.Sqrt(squares[k]/sets); math.Abs(bias) > 0.003 || deviation > 0.01 {
			t.Errorf("%d values: bias %.4f, standard error %.4f", n, bias, deviation)
		}
	}
}

// TestSketchMerge: bytes and estimate follow from the set of values, however it is divided,
// repeated and merged.
func TestSketchMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		hashes := hashed(0, rapid.SampledFrom([]int{0, 1, 50, 1000, 1024, 1025, 1300, 5000}).Draw(r, "values"))
		whole := sketchOf(hashes)
		parts := make([]sketch, rapid.IntRange(1, 4).Draw(r, "parts"))
		seed := rapid.IntRange(1, 1000).Draw(r, "seed")
		for i, h := range hashes {
			p := (i*seed + i/7) % len(parts)
			parts[p] = parts[p].put(entryOf(h))
			if i%3 == 0 {
				p = (p + 1) % len(parts)
				parts[p] = parts[p].put(entryOf(h))
			}
		}
		var merged sketch
		for _, p := range parts {
			if err := p.check(); err != nil {
				r.Fatal(err)
			}
			before := slices.Clone(merged)
			var changed bool
			merged, changed = merged.merge(p)
			if changed == bytes.Equal(before, merged) {
				r.Fatalf("changed is %v", changed)
			}
		}
		if !bytes.Equal(merged, whole) {
			r.Fatalf("%d values in %d parts give other bytes than in one", len(hashes), len(parts))
		}
	})
}

// TestSketchPatch: a patch in place gives the same bytes as taking the entry in.
func TestSketchPatch(t *testing.T) {
	t.Parallel()
	var s sketch
	for _, h := range hashed(0, 4000) {
		entry := entryOf(h)
		if s.holds(entry) {
			continue
		}
		want := slices.Clone(s).put(entry)
		at, patch := s.patch(nil, entry)
		if len(patch) == 0 && len(s) == len(want) {
			t.Fatal("no patch, and the sketch got no longer")
		}
		got := slices.Clone(s)
		if copy(got[at:], patch); len(patch) > 0 && !bytes.Equal(got, want) {
			t.Fatalf("patch of %d bytes at %d gives other bytes", len(patch), at)
		}
		s = want
	}
}

func TestSketchRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []sketch{{3}, {formSparse, 1}, {formSparse}, slices.Concat(sketch{formSparse}, make(sketch, 3*sparseEntry)), make(sketch, registers), slices.Concat(sketch{formDense}, make(sketch, registers+1))} {
		if s.check() == nil {
			t.Errorf("%d bytes are a sketch", len(s))
		}
	}
}

// TestParts compares blobs of parts with a slice of strings.
func TestParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		want := make([]string, rapid.IntRange(1, 4).Draw(r, "parts"))
		var blob []byte
		for range rapid.IntRange(0, 8).Draw(r, "changes") {
			i := rapid.IntRange(0, len(want)-1).Draw(r, "part")
			want[i] = rapid.StringN(0, 200, -1).Draw(r, "value")
			blob = appendWith(nil, blob, len(want), i, []byte(want[i]))
		}
		end := 0
		for i, w := range want {
			if got := partOf(blob, i); string(got) != w {
				r.Fatalf("part %d is %q, want %q", i, got, w)
			}
			if partsEnd(blob, i) != end {
				r.Fatalf("part %d begins at %d, not %d", i, partsEnd(blob, i), end)
			}
			if len(blob) > 0 {
				end += len(fmt.Appendf(nil, "%s", w)) + 1
				if len(w) > 127 {
					end++
				}
			}
		}
	})
}

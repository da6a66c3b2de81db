package batch

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// equalKeys is the naive form of B4.
func equalKeys(a *Batch, i int, b *Batch, j int) bool {
	for c := range a.Columns {
		if !sameValue(&a.Columns[c], i, &b.Columns[c], j) {
			return false
		}
	}
	return true
}

// drawKey appends a row of few different values, so that equal keys are frequent.
func drawKey(t *rapid.T, b *Batch) {
	for i := range b.Columns {
		v := &b.Columns[i]
		switch n := rapid.IntRange(-1, 2).Draw(t, "value"); {
		case n < 0:
			v.AppendNull()
		case v.Physical == Bools:
			v.AppendBool(n == 1)
		case v.Physical == Ints:
			v.AppendInt(int64(n))
		case v.Physical == Floats:
			v.AppendFloat(drawFloat(t))
		case v.Physical == Decimals:
			v.AppendDecimal(Int128{Hi: int64(n - 1)})
		default:
			v.AppendString([]string{"", "a", "ab"}[n])
		}
	}
	b.EndRow(Insert)
}

func TestHashAndKeyAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom(allKinds), 1, 3).Draw(t, "kinds")
		b := New(kinds, 4)
		for range 8 {
			drawKey(t, b)
		}
		keys := make([]int, len(kinds))
		for i := range keys {
			keys[i] = i
		}
		hashes := make([]uint64, b.Len)
		HashRows(b, keys, hashes)
		for i := range b.Len {
			for j := range b.Len {
				same := bytes.Equal(EncodeKey(nil, b, keys, i), EncodeKey(nil, b, keys, j))
				if want := equalKeys(b, i, b, j); same != want || want && hashes[i] != hashes[j] {
					t.Fatalf("rows %d, %d of\n%vkeys equal: %v, want %v; hashes %x %x", i, j, b, same, want, hashes[i], hashes[j])
				}
			}
		}
		checkSelected(t, b, keys, hashes)
		checkDecodeKey(t, b, keys)
	})
}

// checkSelected hashes a selection, in two steps: the hashes must be those of the rows.
func checkSelected(t *rapid.T, b *Batch, keys []int, hashes []uint64) {
	b.Sel = []int32{1, 4, 5}
	got := make([]uint64, 3)
	HashRows(b, keys[:1], got)
	HashMore(b, keys[1:], got)
	for i, r := range b.Sel {
		if got[i] != hashes[r] {
			t.Fatalf("selected row %d hashes to %x, not %x", r, got[i], hashes[r])
		}
	}
	b.Sel = nil
}

func checkDecodeKey(t *rapid.T, b *Batch, keys []int) {
	back := New(KindsOf(b), 4)
	for i := range b.Len {
		rest, err := DecodeKey(append(EncodeKey(nil, b, keys, i), 'x'), back.Columns)
		if err != nil || string(rest) != "x" {
			t.Fatalf("decode key: %q, %v", rest, err)
		}
		back.EndRow(Insert)
	}
	if !back.Equal(b) {
		t.Fatalf("decoded keys\n%vwant\n%v", back, b)
	}
	cut := EncodeKey(nil, b, keys, 0)
	if _, err := DecodeKey(cut[:len(cut)-1], New(KindsOf(b), 4).Columns); err == nil {
		t.Fatal("decoded a key cut short")
	}
}

func TestKeysKeepApart(t *testing.T) {
	t.Parallel()
	b := New([]Physical{Strings, Strings}, 4)
	for _, s := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}} {
		b.Columns[0].AppendString(s[0])
		b.Columns[1].AppendString(s[1])
		b.EndRow(Insert)
	}
	b.Columns[0].AppendNull()
	b.Columns[1].AppendString("abc")
	b.EndRow(Insert)
	seen, hashes := map[string]bool{}, make([]uint64, b.Len)
	HashRows(b, []int{0, 1}, hashes)
	distinct := map[uint64]bool{}
	for i := range b.Len {
		seen[string(EncodeKey(nil, b, []int{0, 1}, i))] = true
		distinct[hashes[i]] = true
	}
	if len(seen) != b.Len || len(distinct) != b.Len {
		t.Fatalf("%d keys and %d hashes of %d different rows", len(seen), len(distinct), b.Len)
	}
}

func TestFloatOrder(t *testing.T) {
	t.Parallel()
	ordered := []float64{
		math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 1, math.MaxFloat64, math.Inf(1), math.NaN(),
	}
	for i := range ordered {
		for j := range ordered {
			if got := int64(FloatOrder(ordered[i])) < int64(FloatOrder(ordered[j])); got != (i < j) {
				t.Errorf("%v < %v: %v", ordered[i], ordered[j], got)
			}
		}
	}
}

func TestHashAndKeyGolden(t *testing.T) {
	t.Parallel()
	b := goldenBatch()
	hashes := make([]uint64, b.Len)
	var out []byte
	for _, keys := range [][]int{{}, {0}, {1}, {2}, {3}, {4}, {1, 4}, {0, 1, 2, 3, 4}} {
		HashRows(b, keys, hashes)
		for _, h := range hashes {
			out = binary.BigEndian.AppendUint64(out, h)
		}
	}
	golden(t, "hash.hex", out)
	out = out[:0]
	for i := range b.Len {
		out = EncodeKey(out, b, []int{0, 1, 2, 3, 4}, i)
	}
	golden(t, "key.hex", out)
}

// The hash must spread what users have: small integers, aligned ones, short strings.
func TestHashSpreads(t *testing.T) {
	t.Parallel()
	const rows, groups = 1 << 14, 128
	for _, step := range []int64{1, 64, 1 << 20, 1 << 40} {
		b := New([]Physical{Ints}, rows)
		for i := range rows {
			b.Columns[0].AppendInt(int64(i) * step)
			b.EndRow(Insert)
		}
		hashes := make([]uint64, rows)
		HashRows(b, []int{0}, hashes)
		var high, low [groups]int
		for _, h := range hashes {
			high[h>>57]++
			low[h&(groups-1)]++
		}
		for g := range groups {
			if mean := rows / groups; high[g] > 2*mean || high[g] < mean/2 || low[g] > 2*mean || low[g] < mean/2 {
				t.Errorf("step %d: group %d holds %d by high bits, %d by low bits; the mean is %d", step, g, high[g], low[g], mean)
			}
		}
	}
}

// A number follows from its hash.
func TestIntOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Int64().Draw(t, "x")
		if got := IntOf(HashInt(x)); got != x {
			t.Errorf("%d comes back as %d", x, got)
		}
	})
}

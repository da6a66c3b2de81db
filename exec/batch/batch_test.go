package batch

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var allKinds = []Physical{Bools, Ints, Floats, Decimals, Strings}

// appendRandom appends a random value, with NULLs and the awkward ones often.
func appendRandom(t *rapid.T, v *Vector) {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		v.AppendNull()
		return
	}
	switch v.Physical {
	case Bools:
		v.AppendBool(rapid.Bool().Draw(t, "bool"))
	case Ints:
		v.AppendInt(rapid.Int64().Draw(t, "int"))
	case Floats:
		v.AppendFloat(drawFloat(t))
	case Decimals:
		v.AppendDecimal(drawInt128(t))
	case Strings:
		v.AppendString(rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00é")), 0, 20, -1).Draw(t, "string"))
	}
}

func drawFloat(t *rapid.T) float64 {
	if rapid.Bool().Draw(t, "special") {
		return rapid.SampledFrom([]float64{
			0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1,
			math.Float64frombits(0xfff8000000000001),
		}).Draw(t, "float")
	}
	return rapid.Float64().Draw(t, "float")
}

func drawInt128(t *rapid.T) Int128 {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1}))
	return Int128{Lo: word.Draw(t, "lo"), Hi: int64(word.Draw(t, "hi"))}
}

// drawBatch makes a batch of all layouts, with or without kinds and a selection.
func drawBatch(t *rapid.T) *Batch {
	b := New(allKinds, 4)
	kinds := rapid.Bool().Draw(t, "changes")
	for range rapid.IntRange(0, 150).Draw(t, "rows") {
		for i := range b.Columns {
			appendRandom(t, &b.Columns[i])
		}
		k := Insert
		if kinds {
			k = RowKind(rapid.IntRange(0, 3).Draw(t, "kind"))
		}
		b.EndRow(k)
	}
	if rapid.Bool().Draw(t, "located") {
		b.Origin = &Origin{Table: "t", Path: rapid.SampledFrom([]string{"", "a/b"}).Draw(t, "path"), Offsets: make([]int64, b.Len)}
		for i := range b.Origin.Offsets {
			b.Origin.Offsets[i] = rapid.Int64().Draw(t, "offset")
		}
	}
	if rapid.Bool().Draw(t, "select") {
		b.Sel = []int32{}
		for i := range b.Len {
			if rapid.Bool().Draw(t, "selected") {
				b.Sel = append(b.Sel, int32(i))
			}
		}
	}
	return b
}

func TestCopiesAgree(t *testing.T) {
	t.Parallel()
	pool := NewPool(allKinds, 16)
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		rows := b.Sel
		if rows == nil {
			for i := range b.Len {
				rows = append(rows, int32(i))
			}
		}
		gathered, appended := pool.Get(), pool.Get()
		half := len(rows) / 2
		gathered.AppendRows(b, rows[:half])
		gathered.AppendRows(b, rows[half:])
		for _, r := range rows {
			appended.AppendRow(b, int(r))
		}
		if !gathered.Equal(b) || !appended.Equal(b) {
			t.Fatalf("source\n%vgathered\n%vappended\n%v", b, gathered, appended)
		}
		for i := range b.Columns {
			var v Vector
			v.CopyFrom(&b.Columns[i])
			if v.Len() != b.Len {
				t.Fatalf("copied %d rows of %d", v.Len(), b.Len)
			}
		}
		b.Compact()
		if b.Sel != nil || b.Len != len(rows) || !gathered.Equal(b) {
			t.Fatalf("compacted\n%vwant\n%v", b, gathered)
		}
		for i := range b.Columns { // still fit for appending
			b.Columns[i].AppendNull()
			gathered.Columns[i].AppendNull()
		}
		b.EndRow(Delete)
		gathered.EndRow(Delete)
		if !gathered.Equal(b) {
			t.Fatalf("after an append\n%vwant\n%v", b, gathered)
		}
		gathered.Release()
		appended.Release()
	})
}

func TestCompactKeepsOrigins(t *testing.T) {
	t.Parallel()
	b := New([]Physical{Ints}, 3)
	for i := range 3 {
		b.Columns[0].AppendInt(int64(i))
		b.EndRow(Insert)
	}
	shared := &Origin{Table: "t", Path: "p", Offsets: []int64{10, 20, 30}}
	b.Origin, b.Sel = shared, []int32{0, 2}
	b.Compact()
	if !slices.Equal(b.Origin.Offsets, []int64{10, 30}) || !slices.Equal(shared.Offsets, []int64{10, 20, 30}) {
		t.Fatalf("offsets %v, shared %v", b.Origin.Offsets, shared.Offsets)
	}
}

func TestBatchText(t *testing.T) {
	t.Parallel()
	b := New(allKinds, 1)
	b.Columns[0].AppendBool(true)
	b.Columns[1].AppendInt(-7)
	b.Columns[2].AppendFloat(1.5)
	b.Columns[3].AppendDecimal(Int128Of(12))
	b.Columns[4].AppendString("buy")
	b.EndRow(UpdateAfter)
	for i := range b.Columns {
		b.Columns[i].AppendNull()
	}
	b.EndRow(Insert)
	if got, want := b.String(), "+U true|-7|1.5|12|buy\n+I NULL|NULL|NULL|NULL|NULL\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestPoolDropsForeignLayouts(t *testing.T) {
	t.Parallel()
	p := NewPool([]Physical{Ints}, 8)
	b := p.Get()
	b.Columns[0].Physical = Strings
	b.Release()
	if got := p.Get(); got == b || got.Columns[0].Physical != Ints {
		t.Fatal("a batch of another layout came out of the pool")
	}
}

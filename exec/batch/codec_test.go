package batch

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCodecRoundTrip(t *testing.T) {
	t.Parallel()
	into := New(allKinds, 4)
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		prefix := []byte("head")
		data := Append(prefix, b)
		if string(data[:4]) != "head" || len(data)-4 > Size(b) {
			t.Fatalf("%d bytes, Size says at most %d", len(data)-4, Size(b))
		}
		if err := Decode(data[4:], into); err != nil {
			t.Fatal(err)
		}
		if !into.Equal(b) {
			t.Fatalf("decoded\n%vwant\n%v", into, b)
		}
		if got, want := located(into), located(b); got != want {
			t.Fatalf("decoded the origin %s, want %s", got, want)
		}
		cut := rapid.IntRange(0, len(data)-5).Draw(t, "cut")
		if err := Decode(data[4:4+cut], into); err == nil {
			t.Fatalf("decoded %d of %d bytes", cut, len(data)-4)
		}
		if into.Len != 0 || into.Rows() != 0 {
			t.Fatal("rows left after an error")
		}
	})
}

// located tells the origin of the selected rows.
func located(b *Batch) string {
	if b.Origin == nil {
		return "none"
	}
	s := fmt.Sprintf("%q %q", b.Origin.Table, b.Origin.Path)
	for i := range b.Rows() {
		s += fmt.Sprintf(" %d", b.Origin.Offsets[b.Row(i)])
	}
	return s
}

// TestAppendLocated: rows keep their origin as long as it is one file's.
func TestAppendLocated(t *testing.T) {
	t.Parallel()
	from := func(o *Origin) *Batch {
		b := New([]Physical{Ints}, 2)
		b.Columns[0].AppendInt(1)
		b.EndRow(Insert)
		b.Columns[0].AppendInt(2)
		b.EndRow(Insert)
		b.Origin = o
		return b
	}
	a, other := &Origin{Table: "t", Path: "a", Offsets: []int64{7, 9}}, &Origin{Table: "t", Path: "b", Offsets: []int64{1, 2}}
	to := New([]Physical{Ints}, 2)
	if !to.AppendLocated(from(a), []int32{1}) || !to.AppendLocated(from(a), []int32{0, 1}) {
		t.Fatal("rows of one file")
	}
	if to.AppendLocated(from(other), []int32{0}) || to.AppendLocated(from(nil), []int32{0}) {
		t.Fatal("rows of two files in one batch")
	}
	if got := located(to); got != `"t" "a" 9 7 9` || to.Len != 3 {
		t.Errorf("%d rows from %s", to.Len, got)
	}
	to.Reset()
	if !to.AppendLocated(from(nil), []int32{0}) || !to.AppendLocated(from(nil), []int32{1}) || to.AppendLocated(from(a), []int32{0}) || located(to) != "none" {
		t.Errorf("rows from nowhere: %s", located(to))
	}
}

func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s: the frozen form changed; got\n%s", name, hex.Dump(got))
	}
	return want
}

// goldenBatch has every layout, NULLs, kinds and the awkward values.
func goldenBatch() *Batch {
	b := New(allKinds, 3)
	add := func(k RowKind, x bool, i int64, f float64, d Int128, s string) {
		b.Columns[0].AppendBool(x)
		b.Columns[1].AppendInt(i)
		b.Columns[2].AppendFloat(f)
		b.Columns[3].AppendDecimal(d)
		b.Columns[4].AppendString(s)
		b.EndRow(k)
	}
	add(Insert, true, 7, 1.5, Int128Of(-1), "buy")
	for i := range b.Columns {
		b.Columns[i].AppendNull()
	}
	b.EndRow(UpdateBefore)
	add(UpdateAfter, false, -2, math.Copysign(0, -1), Int128{Lo: 5, Hi: 1}, "")
	add(Delete, true, math.MinInt64, math.NaN(), Int128{}, "é")
	return b
}

func TestCodecGolden(t *testing.T) {
	t.Parallel()
	b := goldenBatch()
	want := golden(t, "batch.hex", Append(nil, b))
	into := &Batch{}
	if err := Decode(want, into); err != nil || !into.Equal(b) {
		t.Fatalf("decoded\n%v%v", into, err)
	}
	b.Sel = []int32{0, 3}
	golden(t, "batch_selected.hex", Append(nil, b))
	b.Origin = &Origin{Table: "t", Path: "in/é.csv", Offsets: []int64{0, 1, 2, 1 << 40}}
	golden(t, "batch_located.hex", Append(nil, b))
	golden(t, "batch_rows_only.hex", Append(nil, &Batch{Len: 300}))
	b = narrowBatch()
	if err := Decode(golden(t, "batch_narrow.hex", Append(nil, b)), into); err != nil || !into.Equal(b) {
		t.Fatalf("decoded\n%v%v", into, err)
	}
}

// narrowBatch has whole numbers that lie near each other, and NULLs among them.
func narrowBatch() *Batch {
	b := New([]Physical{Ints, Ints, Ints, Ints, Ints}, 4)
	for i, step := range []int64{0, 1, 2, 3} {
		b.Columns[0].AppendInt(-7)
		b.Columns[1].AppendInt(1_511_571_600_000_000 + 85*step)
		b.Columns[2].AppendInt(math.MinInt64 + 21_845*step)
		b.Columns[3].AppendInt(math.MaxInt64 - 1_431_655_765*step)
		if i == 2 {
			b.Columns[4].AppendNull()
		} else {
			b.Columns[4].AppendInt(step - 2)
		}
		b.EndRow(Insert)
	}
	return b
}

// TestNarrow: the widths change where the differences no longer fit, and never cost more.
func TestNarrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, -1, 0, math.MaxInt64 - 1<<33})).Draw(t, "least")
		spread := rapid.SampledFrom([]uint64{0, 1, 1<<8 - 1, 1 << 8, 1<<16 - 1, 1 << 16, 1<<32 - 1, 1 << 32, math.MaxUint64}).Draw(t, "spread")
		if spread > uint64(math.MaxInt64)-uint64(least) {
			least = math.MaxInt64 - int64(spread)
		}
		n := rapid.IntRange(3, 700).Draw(t, "rows")
		b := New([]Physical{Ints}, n)
		for range n {
			b.Columns[0].AppendInt(int64(uint64(least) + rapid.Uint64Range(0, spread).Draw(t, "difference")))
			b.EndRow(Insert)
		}
		b.Columns[0].Ints[0], b.Columns[0].Ints[n-1] = least, int64(uint64(least)+spread)
		rows := n
		if rapid.Bool().Draw(t, "select") {
			b.Sel = []int32{0}
			for r := 1 + rapid.IntRange(0, 1).Draw(t, "from"); r < n-1; r += 2 {
				b.Sel = append(b.Sel, int32(r))
			}
			b.Sel = append(b.Sel, int32(n-1))
			rows = len(b.Sel)
		}
		data, width := Append(nil, b), 8
		for w, most := range map[int]uint64{1: 1<<8 - 1, 2: 1<<16 - 1, 4: 1<<32 - 1} {
			if spread <= most {
				width = min(width, w)
			}
		}
		want := headerSize + 2 + 8*rows
		if width < 8 && rows >= 3 {
			want = headerSize + 2 + 8 + width*rows
		}
		if len(data) != want {
			t.Fatalf("%d rows that spread by %d: %d bytes, want %d", rows, spread, len(data), want)
		}
		into := &Batch{}
		if err := Decode(data, into); err != nil || !into.Equal(b) {
			t.Fatalf("decoded\n%vwant\n%v%v", into, b, err)
		}
	})
}

// TestDecodeFirstVersion: frames of builds before narrow numbers are read.
func TestDecodeFirstVersion(t *testing.T) {
	t.Parallel()
	b, into := goldenBatch(), &Batch{}
	data := Append(nil, b) // none of its columns is narrow
	data[0] = 1
	golden(t, "batch_v1.hex", data)
	if err := Decode(data, into); err != nil || !into.Equal(b) {
		t.Fatalf("decoded\n%v%v", into, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hex, want string
	}{
		"empty":            {"", "shorter than its header"},
		"version":          {"0300000000000000", "version 3, this build reads versions 1 to 2"},
		"flags":            {"0104000000000000", "unknown flags"},
		"origin":           {"0102000000000000" + "02000000" + "61", "origin: cut off"},
		"origin's offsets": {"0102000001000000" + "00000000" + "00000000" + "01", "origin: values cut off"},
		"too many rows":    {"01000000ffffffff", "rows, more than"},
		"too many columns": {"0100ffff00000000", "65535 columns do not fit"},
		"layout":           {"0100010000000000" + "0900", "unknown layout 9"},
		"huge column":      {"01000100ffffff00" + "0200", "values cut off"},
		"boolean":          {"0100010001000000" + "010002", "neither 0 nor 1"},
		"kind":             {"0101000001000000" + "04", "unknown row kind 4"},
		"kinds cut":        {"0101000002000000" + "00", "row kinds cut off"},
		"offsets":          {"0100010002000000" + "0500" + "00000000" + "02000000" + "01000000" + "6162", "do not ascend"},
		"negative offset":  {"0100010001000000" + "0500" + "000000f0" + "00000000", "do not ascend"},
		"text cut":         {"0100010001000000" + "0500" + "00000000" + "02000000" + "61", "string bytes cut off"},
		"bitmap cut":       {"0100010001000000" + "010101" + "01", "null bitmap cut off"},
		"width of texts":   {"0200010000000000" + "0510" + "00000000", "unknown flags 0x10"},
		"width":            {"0200010000000000" + "0240", "unknown flags 0x40"},
		"width of old":     {"0100010001000000" + "0210" + "0000000000000000" + "00", "unknown flags 0x10"},
		"least cut":        {"0200010001000000" + "0210" + "00000000000000", "values cut off"},
		"narrow cut":       {"0200010002000000" + "0220" + "0000000000000000" + "010001", "values cut off"},
		"trailing":         {"0100000000000000" + "00", "1 bytes after the last row"},
	} {
		data, _ := hex.DecodeString(c.hex)
		if err := Decode(data, New(allKinds, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b := goldenBatch()
	f.Add(Append(nil, b))
	b.Sel = []int32{1, 2}
	f.Add(Append(nil, b))
	f.Add([]byte{1, 0, 0, 0, 44, 1, 0, 0})
	f.Add(Append(nil, narrowBatch()))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &Batch{}
		if Decode(data, b) != nil {
			return
		}
		again := &Batch{}
		if err := Decode(Append(nil, b), again); err != nil || !again.Equal(b) {
			t.Fatalf("decoded again: %v", err)
		}
	})
}

package batch

import (
	"fmt"
	"testing"
)

// benchBatch has an id and a behaviour, as the classic example.
func benchBatch() *Batch {
	b := New([]Physical{Ints, Strings}, Target)
	for i := range Target {
		b.Columns[0].AppendInt(int64(i) * 7919)
		b.Columns[1].AppendString([]string{"pv", "buy", "cart", "fav"}[i&3])
		b.EndRow(Insert)
	}
	return b
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Target, "ns/row")
}

func BenchmarkHash(b *testing.B) {
	rows, hashes := benchBatch(), make([]uint64, Target)
	for _, keys := range [][]int{{0}, {1}, {0, 1}} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			for b.Loop() {
				HashRows(rows, keys, hashes)
			}
			perRow(b)
		})
	}
}

func BenchmarkEncodeKey(b *testing.B) {
	rows := benchBatch()
	var key []byte
	for b.Loop() {
		for i := range Target {
			key = EncodeKey(key[:0], rows, []int{0, 1}, i)
		}
	}
	perRow(b)
}

func BenchmarkEncode(b *testing.B) {
	rows := benchBatch()
	var dst []byte
	for _, name := range []string{"all", "half"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dst = Append(dst[:0], rows)
			}
			b.SetBytes(int64(len(dst)))
			perRow(b)
		})
		for i := int32(0); i < Target; i += 2 {
			rows.Sel = append(rows.Sel, i)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, into := Append(nil, benchBatch()), &Batch{}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Decode(data, into); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b)
}

func BenchmarkGather(b *testing.B) {
	rows, into := benchBatch(), New([]Physical{Ints, Strings}, Target)
	var sel []int32
	for i := int32(0); i < Target; i += 2 {
		sel = append(sel, i)
	}
	for b.Loop() {
		into.Reset()
		into.AppendRows(rows, sel)
	}
	perRow(b)
}

package exec

import (
	"math"
	"strconv"
	"testing"
)

// TestWhole compares with strconv: around each power of ten, at both ends, and all short ones.
func TestWhole(t *testing.T) {
	t.Parallel()
	check := func(x int64) {
		if got, want := string(AppendWhole([]byte("x"), x)), "x"+strconv.FormatInt(x, 10); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	for x := range int64(1_100_000) {
		check(x)
		check(-x)
		check(x * 8_191 * 1_009)
		check(math.MaxInt64 - x)
	}
	check(math.MinInt64)
	for power := int64(1); power > 0 && power <= math.MaxInt64/10; power *= 10 {
		for _, x := range []int64{power - 1, power, power + 1, 9 * power, 9*power + 9} {
			check(x)
			check(-x)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	for name, appendTo := range map[string]func(dst []byte, x int64) []byte{
		"whole": AppendWhole, "strconv": func(dst []byte, x int64) []byte { return strconv.AppendInt(dst, x, 10) },
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			x := int64(0)
			for b.Loop() {
				x = (x + 7_654_321) % 20_000_003
				dst = appendTo(dst[:0], x)
			}
		})
	}
}

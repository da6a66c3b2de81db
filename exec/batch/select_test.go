package batch_test

import (
	"slices"
	"testing"

	"weir/exec/batch"
)

// Selections in a row never share memory with the one before, and stay the batch's.
func TestSelect(t *testing.T) {
	t.Parallel()
	b := &batch.Batch{Len: 8}
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	b.Select(append(b.SelMemory(), all...))
	for len(b.Sel) > 1 {
		before := slices.Clone(b.Sel)
		next := append(b.SelMemory(), b.Sel[1:]...)
		if !slices.Equal(before, b.Sel) {
			t.Fatalf("the new selection overwrote the old one: %v", b.Sel)
		}
		b.Select(next)
		if !slices.Equal(before[1:], b.Sel) || b.Rows() != len(before)-1 {
			t.Fatalf("selected %v of %v", b.Sel, before)
		}
	}
	b.Reset()
	if b.Sel != nil || cap(b.SelMemory()) == 0 {
		t.Error("Reset keeps the memory and drops the selection")
	}
}

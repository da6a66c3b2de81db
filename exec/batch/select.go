package batch

// SelMemory returns memory, owned by the batch, for a new selection; it shares none
// with a present one that Select has set.
func (b *Batch) SelMemory() []int32 { return b.selMemory[1-b.selTurn][:0] }

// Select makes sel the selected rows, none where it is empty; sel lies in what SelMemory
// returned, grown if need be, and travels with the batch.
func (b *Batch) Select(sel []int32) {
	if sel == nil {
		sel = []int32{} // nil would select everything
	}
	b.selTurn = 1 - b.selTurn
	b.selMemory[b.selTurn], b.Sel = sel, sel
}

package batch

// A Physical says how a vector lays out its values.
type Physical uint8

// The layouts. Values are part of the wire format.
const (
	Bools    Physical = 1 // BOOLEAN: one bool per row
	Ints     Physical = 2 // INT, BIGINT; TIMESTAMP_LTZ as microseconds: one int64 per row
	Floats   Physical = 3 // DOUBLE
	Decimals Physical = 4 // DECIMAL: unscaled 128-bit integers
	Strings  Physical = 5 // STRING: Offsets (Len+1) into Bytes
)

// An Int128 is a signed 128-bit integer in two's complement.
type Int128 struct {
	Lo uint64
	Hi int64
}

// A Vector is one column of a batch. The slice that its Physical names holds the
// values; at rows that are NULL they are zero (an empty string), so that kernels may compute on them.
type Vector struct {
	Physical Physical
	Bools    []bool
	Ints     []int64
	Floats   []float64
	Decimals []Int128
	Offsets  []int32 // Strings: row i is Bytes[Offsets[i]:Offsets[i+1]]
	Bytes    []byte
	// Valid is a bitmap, bit i of word i/64 set where row i is not NULL; nil: no row is NULL.
	Valid []uint64

	spare []uint64 // storage for Valid while it is nil
}

// Null reports whether row i is NULL.
func (v *Vector) Null(i int) bool {
	return v.Valid != nil && v.Valid[i>>6]&(1<<(i&63)) == 0
}

// Str returns row i of a Strings vector; it aliases the vector.
func (v *Vector) Str(i int) []byte { return v.Bytes[v.Offsets[i]:v.Offsets[i+1]] }

// Len returns the number of rows in the vector.
func (v *Vector) Len() int {
	switch v.Physical {
	case Bools:
		return len(v.Bools)
	case Ints:
		return len(v.Ints)
	case Floats:
		return len(v.Floats)
	case Decimals:
		return len(v.Decimals)
	case Strings:
		return max(len(v.Offsets)-1, 0)
	}
	return 0
}

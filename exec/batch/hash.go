package batch

import (
	"math"

	"github.com/zeebo/xxh3"
)

// The constants of the hash, frozen (B5).
const (
	hashStep = 0x9e3779b97f4a7c15 // spreads the columns before
	hashNull = 0xa0761d6478bd642f // stands for the value of NULL
	mixA     = 0xbf58476d1ce4e5b9
	mixB     = 0x94d049bb133111eb
	unmixA   = 0x96de1b173f119089 // mixA * unmixA = 1, modulo 2^64
	unmixB   = 0x319642b2d24d8ec3 // likewise
)

// mix is a bijection on 64 bits in which every bit of the input reaches every bit of
// the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * mixA
	x = (x ^ x>>27) * mixB
	return x ^ x>>31
}

// unmix is mix the other way round.
func unmix(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * unmixB
	x = (x ^ x>>27 ^ x>>54) * unmixA
	return x ^ x>>30 ^ x>>60
}

// HashInt is the hash of a key of one Ints value, and HashNull that of one NULL. No two
// numbers have the same.
func HashInt(x int64) uint64 { return mix(hashStep ^ uint64(x)) }

// IntOf gives the number of which h is the HashInt.
func IntOf(h uint64) int64 { return int64(unmix(h) ^ hashStep) }

// HashNull is the hash of a key of one NULL.
func HashNull() uint64 { return mix(hashStep ^ hashNull) }

// HashRows writes the hash of the key columns of the i-th selected row to into[i];
// into has at least Rows entries. Equal keys (B4) have equal hashes; the hash of no
// columns is 0. A key's group is weir.KeyGroupOf of this hash.
func HashRows(b *Batch, keys []int, into []uint64) {
	into = into[:b.Rows()]
	clear(into)
	HashMore(b, keys, into)
}

// HashMore goes on where into holds the hashes of the columns before: those of all of
// them are the same as HashRows gives.
func HashMore(b *Batch, keys []int, into []uint64) {
	for _, k := range keys {
		b.Columns[k].hash(b.Len, b.Sel, into[:b.Rows()])
	}
}

// hash folds the vector's selected rows into the hashes of the columns before.
func (v *Vector) hash(n int, sel []int32, into []uint64) {
	if sel == nil && v.Valid == nil {
		v.hashDense(n, into)
		return
	}
	for i := range into {
		row := i
		if sel != nil {
			row = int(sel[i])
		}
		word := uint64(hashNull)
		if !v.Null(row) {
			word = v.hashWord(row)
		}
		into[i] = mix(into[i]*hashStep + hashStep ^ word)
	}
}

func (v *Vector) hashDense(n int, into []uint64) {
	into = into[:n]
	switch v.Physical {
	case Ints:
		values := v.Ints[:n]
		for i, h := range into {
			into[i] = mix(h*hashStep + hashStep ^ uint64(values[i]))
		}
	case Strings:
		offsets := v.Offsets[:n+1]
		for i, h := range into {
			into[i] = mix(h*hashStep + hashStep ^ xxh3.Hash(v.Bytes[offsets[i]:offsets[i+1]]))
		}
	default:
		for i, h := range into {
			into[i] = mix(h*hashStep + hashStep ^ v.hashWord(i))
		}
	}
}

// hashWord reduces the value of a row that is not NULL to 64 bits, equal for equal values.
func (v *Vector) hashWord(row int) uint64 {
	switch v.Physical {
	case Bools:
		if v.Bools[row] {
			return 1
		}
		return 0
	case Ints:
		return uint64(v.Ints[row])
	case Floats:
		return floatBits(v.Floats[row])
	case Decimals:
		d := v.Decimals[row]
		return d.Lo ^ mix(uint64(d.Hi))
	default:
		return xxh3.Hash(v.Str(row))
	}
}

// floatBits gives equal bits to doubles that SQL holds equal: -0 and 0, all NaNs.
func floatBits(f float64) uint64 {
	if f == 0 {
		return 0
	}
	if f != f {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

package batch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// KeyNull is the tag of NULL, and all of its encoding. That of a key goes column by column; it delimits itself, so that columns never
// run into each other:
//
//	tag  1 byte   the Physical; 0xff for NULL
//	Bools         1 byte, 0 or 1
//	Ints          8 bytes big-endian, sign bit flipped: bytes order as values do
//	Floats        8 bytes big-endian, ordered as PostgreSQL orders doubles
//	Decimals      16 bytes big-endian, sign bit flipped
//	Strings       length as an unsigned varint, then the bytes
const KeyNull = 0xff

// IntKeySize is the size of the encoding of one Ints value that is not NULL.
const IntKeySize = 9

// EncodeKey appends the encoding of the key columns of a row (its index in the
// columns) to dst. Two rows have the same encoding if and only if their keys are
// equal (B4).
func EncodeKey(dst []byte, b *Batch, keys []int, row int) []byte {
	for _, k := range keys {
		dst = b.Columns[k].encodeKey(dst, row)
	}
	return dst
}

// EncodeValue appends the encoding of one value to dst.
func EncodeValue(dst []byte, v *Vector, row int) []byte { return v.encodeKey(dst, row) }

// EncodeIntKey returns the payload of an Ints value in a key: the 8 bytes behind the tag.
func EncodeIntKey(x int64) uint64 { return uint64(x) ^ 1<<63 }

// DecodeIntKey gives back the value of such a payload.
func DecodeIntKey(payload uint64) int64 { return int64(payload ^ 1<<63) }

func (v *Vector) encodeKey(dst []byte, row int) []byte {
	if v.Null(row) {
		return append(dst, KeyNull)
	}
	dst = append(dst, byte(v.Physical))
	switch v.Physical {
	case Bools:
		if v.Bools[row] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case Ints:
		return binary.BigEndian.AppendUint64(dst, EncodeIntKey(v.Ints[row]))
	case Floats:
		return binary.BigEndian.AppendUint64(dst, FloatOrder(v.Floats[row])^1<<63)
	case Decimals:
		d := v.Decimals[row]
		dst = binary.BigEndian.AppendUint64(dst, uint64(d.Hi)^1<<63)
		return binary.BigEndian.AppendUint64(dst, d.Lo)
	default:
		s := v.Str(row)
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		return append(dst, s...)
	}
}

// FloatOrder maps a double to bits which, read as int64, order as PostgreSQL orders
// doubles: -0 equals 0, NaN equals NaN and is greater than everything else.
func FloatOrder(f float64) uint64 {
	x := floatBits(f)
	return x ^ uint64(int64(x)>>63)>>1 // negative: the greater the magnitude, the less
}

func fromFloatOrder(x uint64) float64 {
	return math.Float64frombits(x ^ uint64(int64(x)>>63)>>1)
}

// DecodeKey appends the columns of an encoded key to the vectors, whose layouts must
// be those that were encoded, and returns what follows the key.
func DecodeKey(key []byte, into []Vector) (rest []byte, err error) {
	for i := range into {
		if key, err = into[i].decodeKey(key); err != nil {
			return nil, fmt.Errorf("key column %d: %w", i, err)
		}
	}
	return key, nil
}

func (v *Vector) decodeKey(key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, fmt.Errorf("cut off")
	}
	tag, key := key[0], key[1:]
	if tag == KeyNull {
		v.AppendNull()
		return key, nil
	}
	if tag != byte(v.Physical) {
		return nil, fmt.Errorf("layout %d where %d is expected", tag, v.Physical)
	}
	size := [...]int{Bools: 1, Ints: 8, Floats: 8, Decimals: 16, Strings: 1}
	if int(tag) >= len(size) || len(key) < size[tag] {
		return nil, fmt.Errorf("cut off")
	}
	switch v.Physical {
	case Bools:
		v.AppendBool(key[0] != 0)
	case Ints:
		v.AppendInt(DecodeIntKey(binary.BigEndian.Uint64(key)))
	case Floats:
		v.AppendFloat(fromFloatOrder(binary.BigEndian.Uint64(key) ^ 1<<63))
	case Decimals:
		v.AppendDecimal(Int128{Hi: int64(binary.BigEndian.Uint64(key) ^ 1<<63), Lo: binary.BigEndian.Uint64(key[8:])})
	default:
		n, at := binary.Uvarint(key)
		if at <= 0 || n > uint64(len(key)-at) {
			return nil, fmt.Errorf("string cut off")
		}
		v.AppendBytes(key[at : at+int(n)])
		return key[at+int(n):], nil
	}
	return key[size[tag]:], nil
}

// KindsOf returns the layouts of a batch's columns.
func KindsOf(b *Batch) []Physical {
	kinds := make([]Physical, len(b.Columns))
	for i := range b.Columns {
		kinds[i] = b.Columns[i].Physical
	}
	return kinds
}

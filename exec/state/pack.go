package state

import (
	"encoding/binary"
	"math/bits"
)

// A packed column of a block is a width in bytes (0 to 8), the least value (8 bytes,
// signed), and each value less that one in as many bytes.

// appendPacked appends a packed column. What it leaves of dst's capacity is not defined.
func appendPacked(dst []byte, values []uint64) []byte {
	if len(values) == 0 {
		return binary.LittleEndian.AppendUint64(append(dst, 0), 0)
	}
	least, most := int64(values[0]), int64(values[0])
	for _, v := range values {
		least, most = min(least, int64(v)), max(most, int64(v))
	}
	base := uint64(least)
	width := (bits.Len64(uint64(most)-base) + 7) / 8
	dst = binary.LittleEndian.AppendUint64(append(dst, byte(width)), base)
	if width == 0 {
		return dst
	}
	from := len(dst)
	dst = grown(dst, len(values)*width+8)
	to := dst[from:]
	switch width {
	case 1:
		for i, v := range values {
			to[i] = byte(v - base)
		}
	case 2:
		for i, v := range values {
			binary.LittleEndian.PutUint16(to[2*i:], uint16(v-base))
		}
	case 4:
		for i, v := range values {
			binary.LittleEndian.PutUint32(to[4*i:], uint32(v-base))
		}
	default:
		for i, v := range values { // each overwrites what the one before wrote too much
			binary.LittleEndian.PutUint64(to[width*i:], v-base)
		}
	}
	return dst[:from+len(values)*width]
}

// grown makes dst longer by n bytes of any content.
func grown(dst []byte, n int) []byte {
	if need := len(dst) + n; need > cap(dst) {
		dst = append(make([]byte, 0, max(need, 2*cap(dst))), dst...)
	}
	return dst[:len(dst)+n]
}

// unpack reads a packed column of n values into dst, whose memory it uses again; ok is
// false where it is cut off.
func unpack(dst []uint64, from []byte, n int) (values []uint64, rest []byte, ok bool) {
	if len(from) < 9 {
		return nil, nil, false
	}
	width, base := int(from[0]), binary.LittleEndian.Uint64(from[1:])
	from = from[9:]
	if width > 8 || n > len(from)/max(width, 1) && width > 0 {
		return nil, nil, false
	}
	if cap(dst) < n {
		dst = make([]uint64, n, n+n/4)
	}
	dst = dst[:n]
	data := from[:n*width]
	switch width {
	case 0:
		for i := range dst {
			dst[i] = base
		}
	case 1:
		for i, b := range data {
			dst[i] = base + uint64(b)
		}
	case 2:
		for i := range dst {
			dst[i] = base + uint64(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case 4:
		for i := range dst {
			dst[i] = base + uint64(binary.LittleEndian.Uint32(data[4*i:]))
		}
	default:
		unpackOdd(dst, data, width, base)
	}
	return dst, from[n*width:], true
}

// unpackOdd does it for the other widths: eight bytes at a time, the last ones singly.
func unpackOdd(dst []uint64, data []byte, width int, base uint64) {
	mask := uint64(1)<<(8*width) - 1 // of all bits, for 8
	i := 0
	for ; i < len(dst) && width*i+8 <= len(data); i++ {
		dst[i] = base + binary.LittleEndian.Uint64(data[width*i:])&mask
	}
	for ; i < len(dst); i++ {
		var v uint64
		for j := range width {
			v |= uint64(data[width*i+j]) << (8 * j)
		}
		dst[i] = base + v
	}
}

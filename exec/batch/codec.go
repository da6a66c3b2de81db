package batch

import (
	"encoding/binary"
	"unsafe"
)

// The wire form, little-endian throughout:
//
//	version  1 byte    2; 1 has no widths
//	flags    1 byte    bit 0: kinds follow the columns; bit 1: the origin follows those
//	columns  2 bytes
//	rows     4 bytes
//	then per column
//	  physical 1 byte
//	  flags    1 byte    bit 0: a bitmap of nulls follows the values; bits 4 and 5, of Ints:
//	                     0: 8 bytes a row; 1, 2, 3: the least in 8 bytes, then what is to be
//	                     added to it, 1, 2 or 4 bytes a row
//	  values             Bools 1 byte a row; Ints as their flags say; Floats 8; Decimals 16 (low
//	                     half first); Strings: rows+1 offsets of 4 bytes, the first 0, then the bytes
//	  bitmap             (rows+63)/64 words of 8 bytes; bits at and after rows are 0
//	kinds    1 byte a row
//	origin             table and path, each a length of 4 bytes and the text; then 8 bytes a row
//
// Only selected rows travel.
const (
	codecVersion = 2
	headerSize   = 8
	flagKinds    = 1
	flagOrigin   = 2
)

// MaxRows is the largest number of rows that a batch may have on the wire.
const MaxRows = 1 << 24

// littleEndian: memory and wire agree, so that vectors are copied as they lie.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Size returns the number of bytes that Append writes for b at most: those that it writes where
// no whole numbers are narrow.
func Size(b *Batch) int {
	n := b.Rows()
	size := headerSize
	for i := range b.Columns {
		v := &b.Columns[i]
		size += 2
		switch v.Physical {
		case Bools:
			size += n
		case Ints, Floats:
			size += 8 * n
		case Decimals:
			size += 16 * n
		case Strings:
			size += 4*(n+1) + v.textSize(b.Len, b.Sel)
		}
		if v.Valid != nil {
			size += 8 * ((n + 63) / 64)
		}
	}
	if b.Kinds != nil {
		size += n
	}
	if o := b.Origin; o != nil {
		size += 8 + len(o.Table) + len(o.Path) + 8*n
	}
	return size
}

// textSize returns the number of bytes in the selected rows of a Strings vector.
func (v *Vector) textSize(n int, sel []int32) int {
	if n == 0 {
		return 0
	}
	if sel == nil {
		return int(v.Offsets[n] - v.Offsets[0])
	}
	size := 0
	for _, r := range sel {
		size += int(v.Offsets[r+1] - v.Offsets[r])
	}
	return size
}

// Append appends the wire form of the selected rows of b to dst.
func Append(dst []byte, b *Batch) []byte {
	at := len(dst)
	dst = extend(dst, Size(b))
	out := dst[at:]
	n := b.Rows()
	out[0], out[1] = codecVersion, 0
	if b.Kinds != nil {
		out[1] |= flagKinds
	}
	if b.Origin != nil {
		out[1] |= flagOrigin
	}
	binary.LittleEndian.PutUint16(out[2:], uint16(len(b.Columns)))
	binary.LittleEndian.PutUint32(out[4:], uint32(n))
	out = out[headerSize:]
	for i := range b.Columns {
		out = b.Columns[i].put(out, b.Len, b.Sel)
	}
	if b.Kinds != nil {
		out = put(out, b.Kinds[:b.Len], b.Sel)
	}
	if o := b.Origin; o != nil {
		out = put(putText(putText(out, o.Table), o.Path), o.Offsets[:b.Len], b.Sel)
	}
	return dst[:len(dst)-len(out)]
}

// putText writes a text behind its length and returns the rest of out.
func putText(out []byte, text string) []byte {
	binary.LittleEndian.PutUint32(out, uint32(len(text)))
	return out[4+copy(out[4:], text):]
}

// extend lengthens dst by n bytes, whose values the caller sets.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		grown := make([]byte, len(dst), max(len(dst)+n, cap(dst)+cap(dst)/2))
		copy(grown, dst)
		dst = grown
	}
	return dst[:len(dst)+n]
}

// put writes one column to the head of out and returns the rest of out.
func (v *Vector) put(out []byte, n int, sel []int32) []byte {
	head := out
	head[0], head[1] = byte(v.Physical), 0
	if v.Valid != nil {
		head[1] = 1
	}
	out = out[2:]
	switch v.Physical {
	case Bools:
		out = put(out, v.Bools[:n], sel)
	case Ints:
		var code int
		out, code = putInts(out, v.Ints[:n], sel)
		head[1] |= byte(code << widthShift)
	case Floats:
		out = put(out, v.Floats[:n], sel)
	case Decimals:
		out = put(out, v.Decimals[:n], sel)
	case Strings:
		out = v.putStrings(out, n, sel)
	}
	if v.Valid != nil {
		out = v.putValid(out, n, sel)
	}
	return out
}

// put writes values of a fixed size and returns the rest of out.
func put[T fixed](out []byte, values []T, sel []int32) []byte {
	if sel == nil && littleEndian {
		return out[copy(out, memory(values)):]
	}
	size := int(unsafe.Sizeof(*new(T)))
	if sel == nil {
		for i := range values {
			putValue(out[i*size:], &values[i])
		}
		return out[len(values)*size:]
	}
	for i, r := range sel {
		putValue(out[i*size:], &values[r])
	}
	return out[len(sel)*size:]
}

// fixed are the element types of vectors; none has padding.
type fixed interface {
	bool | RowKind | int32 | int64 | uint64 | float64 | Int128
}

// memory returns the bytes of a slice as they lie.
func memory[T fixed](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

func putValue[T fixed](out []byte, p *T) {
	switch unsafe.Sizeof(*p) {
	case 1:
		out[0] = *(*byte)(unsafe.Pointer(p))
	case 4:
		binary.LittleEndian.PutUint32(out, *(*uint32)(unsafe.Pointer(p)))
	case 8:
		binary.LittleEndian.PutUint64(out, *(*uint64)(unsafe.Pointer(p)))
	case 16:
		x := (*Int128)(unsafe.Pointer(p))
		binary.LittleEndian.PutUint64(out, x.Lo)
		binary.LittleEndian.PutUint64(out[8:], uint64(x.Hi))
	}
}

func (v *Vector) putStrings(out []byte, n int, sel []int32) []byte {
	rows := n
	if sel != nil {
		rows = len(sel)
	}
	text := out[4*(rows+1):]
	binary.LittleEndian.PutUint32(out, 0)
	if rows == 0 {
		return text
	}
	if sel == nil {
		base := v.Offsets[0]
		if base == 0 && littleEndian {
			copy(out, memory(v.Offsets[:n+1]))
		} else {
			for i, o := range v.Offsets[1 : n+1] {
				binary.LittleEndian.PutUint32(out[4*i+4:], uint32(o-base))
			}
		}
		return text[copy(text, v.Bytes[base:v.Offsets[n]]):]
	}
	end := 0
	for i, r := range sel {
		end += copy(text[end:], v.Bytes[v.Offsets[r]:v.Offsets[r+1]])
		binary.LittleEndian.PutUint32(out[4*i+4:], uint32(end))
	}
	return text[end:]
}

func (v *Vector) putValid(out []byte, n int, sel []int32) []byte {
	if sel == nil {
		words := (n + 63) / 64
		for i, w := range v.Valid[:words] {
			if i == words-1 && n&63 != 0 {
				w &= 1<<(n&63) - 1
			}
			binary.LittleEndian.PutUint64(out[8*i:], w)
		}
		return out[8*words:]
	}
	var w uint64
	for i, r := range sel {
		w |= v.Valid[r>>6] >> (r & 63) & 1 << (i & 63)
		if i&63 == 63 || i == len(sel)-1 {
			binary.LittleEndian.PutUint64(out[i>>6*8:], w)
			w = 0
		}
	}
	return out[(len(sel)+63)/64*8:]
}

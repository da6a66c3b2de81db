package batch

import (
	"encoding/binary"
	"fmt"
)

// Whole numbers that lie near each other travel as differences from the least of them, in 1,
// 2 or 4 bytes each: keys, counts and times of one batch need an eighth to a half of what they
// take in memory, and every byte is copied some six times between two workers.

// asTheyLie and the widths below are the second half of a column's flags on the wire.
const (
	asTheyLie   = 0 // 8 bytes a row
	widthShift  = 4
	narrowLeast = 8 // bytes of the least, in front of the differences
)

// narrowed finds the least of the selected values, and the code of the fewest bytes that all
// differences from it fit in: 1, 2 or 3 for 1, 2 or 4 bytes.
func narrowed(values []int64, sel []int32) (least int64, code int) {
	n := len(values)
	if sel != nil {
		n = len(sel)
	}
	if n < 3 { // the least would take more than is saved
		return 0, asTheyLie
	}
	var most int64
	if sel == nil {
		least, most = values[0], values[0]
		for _, x := range values {
			least, most = min(least, x), max(most, x)
		}
	} else {
		least, most = values[sel[0]], values[sel[0]]
		for _, r := range sel {
			least, most = min(least, values[r]), max(most, values[r])
		}
	}
	switch spread := uint64(most) - uint64(least); {
	case spread < 1<<8:
		return least, 1
	case spread < 1<<16:
		return least, 2
	case spread < 1<<32:
		return least, 3
	}
	return 0, asTheyLie
}

// putInts writes whole numbers and returns the rest of out, and the code of their width.
func putInts(out []byte, values []int64, sel []int32) (rest []byte, code int) {
	least, code := narrowed(values, sel)
	if code == asTheyLie {
		return put(out, values, sel), code
	}
	binary.LittleEndian.PutUint64(out, uint64(least))
	out = out[narrowLeast:]
	if sel == nil {
		return putNarrow(out, values, least, code), code
	}
	size := 1 << (code - 1)
	var gathered [256]int64
	for len(sel) > 0 {
		n := min(len(sel), len(gathered))
		for i, r := range sel[:n] {
			gathered[i] = values[r]
		}
		putNarrow(out, gathered[:n], least, code)
		out, sel = out[n*size:], sel[n:]
	}
	return out, code
}

// putNarrow writes the differences from the least, and returns the rest of out.
func putNarrow(out []byte, values []int64, least int64, code int) []byte {
	switch code {
	case 1:
		for i, x := range values {
			out[i] = byte(x - least)
		}
	case 2:
		for i, x := range values {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(x-least))
		}
	default:
		for i, x := range values {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(x-least))
		}
	}
	return out[len(values)<<(code-1):]
}

// readInts reads rows whole numbers of a width into the storage of s.
func readInts(r *reader, s []int64, rows, code int) ([]int64, error) {
	if code == asTheyLie {
		return read(r, s, rows)
	}
	head, ok := r.take(narrowLeast)
	if !ok {
		return s[:0], fmt.Errorf("values cut off")
	}
	least := int64(binary.LittleEndian.Uint64(head))
	from, ok := r.take(rows << (code - 1))
	if !ok {
		return s[:0], fmt.Errorf("values cut off")
	}
	s = resized(s, rows)
	switch code {
	case 1:
		for i := range s {
			s[i] = least + int64(from[i])
		}
	case 2:
		for i := range s {
			s[i] = least + int64(binary.LittleEndian.Uint16(from[2*i:]))
		}
	default:
		for i := range s {
			s[i] = least + int64(binary.LittleEndian.Uint32(from[4*i:]))
		}
	}
	return s, nil
}

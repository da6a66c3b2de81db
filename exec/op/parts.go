package op

import "encoding/binary"

// The byte strings of a group lie in one blob, in the order of their parts: the texts
// of MIN and MAX first, then the sketches. Each is its length as an unsigned varint and
// its bytes. An empty blob is one of empty parts.

// partOf returns the i-th part of a blob; it aliases the blob.
func partOf(blob []byte, i int) []byte {
	for len(blob) > 0 {
		n, at := binary.Uvarint(blob)
		end := at + int(n)
		if i == 0 {
			return blob[at:end:end]
		}
		blob, i = blob[end:], i-1
	}
	return nil
}

// partAt is where the i-th part of a blob begins, behind its length.
func partAt(blob []byte, i int) int {
	from := partsEnd(blob, i)
	_, n := binary.Uvarint(blob[from:])
	return from + n
}

// partsEnd is where the first n parts of a blob end.
func partsEnd(blob []byte, n int) int {
	end := 0
	for ; n > 0 && end < len(blob); n-- {
		size, at := binary.Uvarint(blob[end:])
		end += at + int(size)
	}
	return end
}

// appendWith appends a blob of n parts, those of blob but for the i-th.
func appendWith(dst, blob []byte, n, i int, part []byte) []byte {
	from := partsEnd(blob, i)
	dst = append(dst, blob[:from]...)
	for k := i; k > 0 && from == 0; k-- { // the parts before it are empty
		dst = append(dst, 0)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
	if rest := partsEnd(blob, i+1); rest < len(blob) {
		return append(dst, blob[rest:]...)
	}
	for k := i + 1; k < n; k++ {
		dst = append(dst, 0)
	}
	return dst
}

package op

import (
	"encoding/binary"
	"fmt"
	"strings"

	"weir"
	"weir/exec"
	"weir/exec/batch"
)

// An ordered column of a read.
type ordered struct {
	column int
	desc   bool
}

// order finds the columns of an order among those shown. Names are compared as SQL
// compares them: without case.
func (v *view) order(by []exec.Order) ([]ordered, error) {
	var list []ordered
	for _, o := range by {
		at := -1
		for i, c := range v.show {
			name := v.names[i]
			if strings.EqualFold(string(exec.AppendJSONString(nil, []byte(o.Column))), string(name[:len(name)-1])) {
				at = c
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("%w: order_by %q: the result has no such column", weir.ErrInvalid, o.Column)
		}
		list = append(list, ordered{at, o.Desc})
	}
	return list, nil
}

// sortKey gives bytes that order rows: the columns of the order, then the row's key,
// so that no two rows are equal. It appends to dst.
func (v *view) sortKey(dst []byte, order []ordered, key, row []byte) ([]byte, error) {
	if len(order) > 0 {
		for i := range v.row[:v.ordering] {
			v.row[i].Reset()
		}
		if _, err := batch.DecodeKey(row, v.row[:v.ordering]); err != nil {
			return nil, err
		}
	}
	for _, o := range order {
		from := len(dst)
		dst = appendSort(dst, &v.row[o.column])
		if o.desc {
			for i := from; i < len(dst); i++ {
				dst[i] = ^dst[i]
			}
		}
	}
	return append(dst, key...), nil
}

// appendSort appends the only row of v so that bytes order as PostgreSQL orders
// values; NULL is last.
func appendSort(dst []byte, v *batch.Vector) []byte { return appendSortAt(dst, v, 0) }

// appendSortAt is appendSort for one row of several.
func appendSortAt(dst []byte, v *batch.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, 1)
	}
	dst = append(dst, 0)
	const sign = 1 << 63
	switch v.Physical {
	case batch.Bools:
		if v.Bools[i] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case batch.Ints:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Ints[i])^sign)
	case batch.Floats:
		return binary.BigEndian.AppendUint64(dst, batch.FloatOrder(v.Floats[i])^sign)
	case batch.Decimals:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.Decimals[i].Hi)^sign)
		return binary.BigEndian.AppendUint64(dst, v.Decimals[i].Lo)
	}
	for _, c := range v.Str(i) { // 0 is escaped, and ends the string
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0)
}

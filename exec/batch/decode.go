package batch

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Decode reads the wire form into a batch, whose columns' storage it reuses and
// whose layouts it replaces. On an error the batch is empty.
func Decode(data []byte, into *Batch) error {
	into.Reset()
	if err := decode(data, into); err != nil {
		into.Columns = into.Columns[:0]
		into.Reset()
		return fmt.Errorf("decode batch of %d bytes: %w", len(data), err)
	}
	return nil
}

func decode(data []byte, into *Batch) error {
	if len(data) < headerSize {
		return fmt.Errorf("shorter than its header")
	}
	if data[0] < 1 || data[0] > codecVersion {
		return fmt.Errorf("version %d, this build reads versions 1 to %d", data[0], codecVersion)
	}
	flags, columns := data[1], int(binary.LittleEndian.Uint16(data[2:]))
	rows := int(binary.LittleEndian.Uint32(data[4:]))
	if flags&^(flagKinds|flagOrigin) != 0 {
		return fmt.Errorf("unknown flags %#x", flags)
	}
	if rows > MaxRows {
		return fmt.Errorf("%d rows, more than %d", rows, MaxRows)
	}
	r := reader{rest: data[headerSize:], version: data[0]}
	if columns*2 > len(r.rest) {
		return fmt.Errorf("%d columns do not fit", columns)
	}
	into.Columns = into.Columns[:min(columns, cap(into.Columns))]
	for len(into.Columns) < columns {
		into.Columns = append(into.Columns, Vector{})
	}
	for i := range into.Columns {
		into.Columns[i].Reset()
		if err := into.Columns[i].read(&r, rows); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	if flags&flagKinds != 0 {
		if len(r.rest) < rows {
			return fmt.Errorf("row kinds cut off")
		}
		into.makeKinds(rows)
		into.Kinds, _ = read(&r, into.Kinds, rows)
		if m := maxByte(memory(into.Kinds)); m > byte(Delete) {
			return fmt.Errorf("unknown row kind %d", m)
		}
	}
	if flags&flagOrigin != 0 {
		if err := into.readOrigin(&r, rows); err != nil {
			return fmt.Errorf("origin: %w", err)
		}
	}
	if len(r.rest) != 0 {
		return fmt.Errorf("%d bytes after the last row", len(r.rest))
	}
	into.Len = rows
	return nil
}

// A reader holds what is still unread, of a version.
type reader struct {
	rest    []byte
	version byte
}

// take returns the next n bytes; ok is false when there are fewer.
func (r *reader) take(n int) (head []byte, ok bool) {
	if n > len(r.rest) {
		return nil, false
	}
	head, r.rest = r.rest[:n], r.rest[n:]
	return head, true
}

// readOrigin reads where the rows come from.
func (b *Batch) readOrigin(r *reader, rows int) error {
	var texts [2]string
	for i := range texts {
		head, ok := r.take(4)
		if !ok {
			return fmt.Errorf("cut off")
		}
		text, ok := r.take(int(binary.LittleEndian.Uint32(head)))
		if !ok {
			return fmt.Errorf("cut off")
		}
		texts[i] = string(text)
	}
	offsets, err := read(r, []int64(nil), rows)
	b.Origin = &Origin{Table: texts[0], Path: texts[1], Offsets: offsets}
	return err
}

// read reads one column.
func (v *Vector) read(r *reader, rows int) error {
	head, ok := r.take(2)
	if !ok {
		return fmt.Errorf("cut off")
	}
	v.Physical = Physical(head[0])
	code := int(head[1] >> widthShift)
	if head[1]&0xf > 1 || code > 3 || code != asTheyLie && (v.Physical != Ints || r.version == 1) {
		return fmt.Errorf("unknown flags %#x", head[1])
	}
	var err error
	switch v.Physical {
	case Bools:
		if v.Bools, err = read(r, v.Bools, rows); err == nil && maxByte(memory(v.Bools)) > 1 {
			err = fmt.Errorf("a boolean is neither 0 nor 1")
		}
	case Ints:
		v.Ints, err = readInts(r, v.Ints, rows, code)
	case Floats:
		v.Floats, err = read(r, v.Floats, rows)
	case Decimals:
		v.Decimals, err = read(r, v.Decimals, rows)
	case Strings:
		err = v.readStrings(r, rows)
	default:
		err = fmt.Errorf("unknown layout %d", v.Physical)
	}
	if err == nil && head[1]&1 == 1 {
		err = v.readValid(r, rows)
	}
	return err
}

// read reads rows values of a fixed size into the storage of s.
func read[T fixed](r *reader, s []T, rows int) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	head, ok := r.take(rows * size)
	if !ok {
		return s[:0], fmt.Errorf("values cut off")
	}
	s = resized(s, rows)
	copy(memory(s), head)
	if !littleEndian {
		for i := range s {
			putValue(memory(s[i:i+1]), &s[i])
		}
	}
	return s, nil
}

func (v *Vector) readStrings(r *reader, rows int) error {
	var err error
	if v.Offsets, err = read(r, v.Offsets, rows+1); err != nil {
		return err
	}
	last := int32(0)
	bad := v.Offsets[0] // turns non-zero where offsets do not ascend from 0
	for _, o := range v.Offsets {
		bad |= (o - last) >> 31
		bad |= o >> 31
		last = o
	}
	if bad != 0 {
		v.Offsets = v.Offsets[:0]
		return fmt.Errorf("string offsets do not ascend from 0")
	}
	text, ok := r.take(int(last))
	if !ok {
		v.Offsets = v.Offsets[:0]
		return fmt.Errorf("string bytes cut off")
	}
	v.Bytes = append(v.Bytes[:0], text...)
	return nil
}

func (v *Vector) readValid(r *reader, rows int) error {
	words := (rows + 63) / 64
	head, ok := r.take(8 * words)
	if !ok {
		return fmt.Errorf("null bitmap cut off")
	}
	valid := v.MakeValid(rows)
	for i := range words {
		valid[i] = binary.LittleEndian.Uint64(head[8*i:])
	}
	return nil
}

func maxByte(s []byte) (m byte) {
	for _, c := range s {
		m = max(m, c)
	}
	return m
}

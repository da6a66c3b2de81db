package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

const (
	byteZeros = 0x3030303030303030 // '0' in each byte
	byteHighs = 0x8080808080808080
	byteOnes  = 0x0101010101010101
)

// word8 reads eight bytes, the first one lowest.
func word8(b []byte, p int) uint64 { return binary.LittleEndian.Uint64(b[p:]) }

// digitsOf counts the decimal digits at the low end of w.
func digitsOf(w uint64) int {
	t := w ^ byteZeros // 0 to 9 where a digit is
	return bits.TrailingZeros64((t&^byteHighs+0x7676767676767676|t)&byteHighs) >> 3
}

// spelled is the number that the n lowest bytes of w, all digits, spell; n is at least 1.
func spelled(w uint64, n int) uint64 {
	t := (w ^ byteZeros) << (64 - 8*uint(n))
	t = t*10 + t>>8
	return (t&0x000000ff000000ff*(100+1000000<<32) + t>>16&0x000000ff000000ff*(1+10000<<32)) >> 32
}

// equalBytes marks with the high bit the bytes of w that equal those of pattern; above
// the lowest one it may err.
func equalBytes(w, pattern uint64) uint64 {
	x := w ^ pattern
	return (x - byteOnes) &^ x & byteHighs
}

// moreDigits counts the digits at b[p:].
func moreDigits(b []byte, p int) (all int) {
	for {
		n := digitsOf(word8(b, p))
		if all += n; n < 8 {
			return all
		}
		p += 8
	}
}

// number is what the n digits at b[p:] spell, of which w has the first ones; more than 19 wrap.
func number(b []byte, p int, w uint64, n int) uint64 {
	if n < 8 {
		return spelled(w, n)
	}
	v := spelled(w, 8)
	for n, p = n-8, p+8; n > 0; n, p = n-8, p+8 {
		v = v*powers[min(n, 8)] + spelled(word8(b, p), min(n, 8))
	}
	return v
}

var powers = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// scanned is a lineCounter that trusts its lines: nothing is looked at but what it takes
// to find the field.
type scanned func(b []byte, end int) error

func (s scanned) block(b []byte, end int) error { return s(b, end) }

var errNoField = errors.New("no line of the block has the field")

// scanJSONUsers looks for the one letter u that a line is sure to have, of "user_id", with what is beside it.
func (t *tally) scanJSONUsers(b []byte, end int) error {
	const name = `"user_id":`
	want, before := binary.LittleEndian.Uint64([]byte(name)), t.rows+uint64(t.n)
	for p := 1; p < end; {
		n := bytes.IndexByte(b[p:end], 'u')
		if n < 0 {
			break
		}
		if p += n; word8(b, p-1) != want {
			p++
			continue
		}
		p += len(name) - 1
		w := word8(b, p)
		n = digitsOf(w)
		if n == 8 {
			n += moreDigits(b, p+8)
		}
		t.number(number(b, p, w, n))
	}
	return t.advanced(before)
}

// scanJSONBehaviors looks for the one letter h of a line, of "behavior".
func (t *tally) scanJSONBehaviors(b []byte, end int) error {
	const name, lead = `"behavior":"`, 3 // before the h
	want, before := binary.LittleEndian.Uint64([]byte(name)), t.rows
	for p := lead; p < end; {
		n := bytes.IndexByte(b[p:end], 'h')
		if n < 0 {
			break
		}
		if p += n; word8(b, p-lead) != want {
			p++
			continue
		}
		p += len(name) - lead
		p += t.textUntil(b, p, '"')
	}
	return t.advanced(before)
}

// textUntil counts the text that ends with a byte, and returns its length.
func (t *tally) textUntil(b []byte, p int, end byte) int {
	w := word8(b, p)
	if m := equalBytes(w, uint64(end)*byteOnes); m != 0 {
		n := bits.TrailingZeros64(m) >> 3
		t.word(w, n)
		return n
	}
	n := bytes.IndexByte(b[p:], end)
	t.text(b[p : p+n])
	return n
}

// scanCSVUsers reads the number at each line's start.
func (t *tally) scanCSVUsers(b []byte, end int) error {
	before := t.rows + uint64(t.n)
	for p := 0; p < end; {
		w := word8(b, p)
		n := digitsOf(w)
		if n == 8 {
			n += moreDigits(b, p+8)
		}
		t.number(number(b, p, w, n))
		p += bytes.IndexByte(b[p:end], '\n') + 1
	}
	return t.advanced(before)
}

// scanCSVBehaviors looks for letters, of which only behaviours have any: bytes of 64 and more.
func (t *tally) scanCSVBehaviors(b []byte, end int) error {
	before := t.rows
	for p := 0; p < end; {
		m := word8(b, p) & (0x40 * byteOnes)
		if m == 0 {
			p += 8
			continue
		}
		if p += bits.TrailingZeros64(m) >> 3; p < end {
			p += t.textUntil(b, p, ',')
			p += 12 // a time in milliseconds is longer
		}
	}
	return t.advanced(before)
}

// advanced says whether rows have come.
func (t *tally) advanced(before uint64) error {
	if t.rows+uint64(t.n) == before {
		return errNoField
	}
	return nil
}

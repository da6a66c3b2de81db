package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A textTable prints rows under headers in aligned columns; numbers go to the right.
type textTable struct {
	header []string
	rows   [][]string
	right  []bool // per column
}

func newTextTable(header ...string) *textTable {
	return &textTable{header: header, right: make([]bool, len(header))}
}

func (t *textTable) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *textTable) print(w io.Writer) error {
	width := make([]int, len(t.header))
	for i, h := range t.header {
		width[i] = utf8.RuneCountInString(h)
	}
	for _, r := range t.rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b bytes.Buffer
	line := func(cells []string) {
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch {
			case t.right[i]:
				b.WriteString(pad + c)
			case i == len(cells)-1:
				b.WriteString(c)
			default:
				b.WriteString(c + pad)
			}
			if i < len(cells)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
	}
	line(t.header)
	for _, r := range t.rows {
		line(r)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// cell gives a JSON value of a result row as a terminal shows it: strings bare, with
// control characters escaped, null as NULL.
func cell(v json.RawMessage) string {
	if len(v) > 0 && v[0] == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return printable(s)
		}
	}
	if string(v) == "null" {
		return "NULL"
	}
	return string(v)
}

// printable escapes what would move the cursor of a terminal.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// grouped writes n with thousands separated.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// groupedIfKnown writes a figure without fractions, "-" where it is not known.
func groupedIfKnown[T int64 | float64](n *T) string {
	if n == nil {
		return "-"
	}
	return grouped(int64(*n))
}

// rateText writes a rate in three digits or so: 23200000 is "23.2 M".
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 1e9:
		return fmt.Sprintf("%.1f G", perSecond/1e9)
	case perSecond >= 1e6:
		return fmt.Sprintf("%.1f M", perSecond/1e6)
	case perSecond >= 1e4:
		return fmt.Sprintf("%.1f k", perSecond/1e3)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// bytesText writes n bytes in binary units.
func bytesText(n int64) string {
	f, unit := float64(n), ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	if unit == "" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// ago says how long before now t was.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "-"
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d d ago", int(d.Hours()/24))
}

package op

import (
	"weir/exec"
	"weir/exec/batch"
)

// Bounds of a change log: whichever is reached first.
const (
	maxChanges     = 8192
	maxChangeBytes = 4 << 20
)

// A changeLog is a ring of a result's last changes, numbered by version. Its rows'
// memory is used again, so that logging allocates nothing in the long run.
type changeLog struct {
	base  uint64 // the version before the first change of this attempt
	last  uint64 // the version of the newest change
	ring  []change
	first uint64 // the oldest version that the ring holds; last+1: none
	bytes int
}

type change struct {
	kind batch.RowKind
	row  []byte
}

func newChangeLog(base uint64) changeLog {
	return changeLog{base: base, last: base, first: base + 1}
}

func (l *changeLog) at(version uint64) *change {
	return &l.ring[(version-l.base-1)%maxChanges]
}

func (l *changeLog) append(kind batch.RowKind, row []byte) {
	l.last++
	if i := l.last - l.base - 1; i < maxChanges {
		l.ring = append(l.ring, change{})
	}
	if l.last-l.first >= maxChanges {
		l.drop()
	}
	c := l.at(l.last)
	c.kind, c.row = kind, append(c.row[:0], row...)
	l.bytes += len(row)
	for l.bytes > maxChangeBytes && l.first < l.last {
		l.drop()
	}
}

func (l *changeLog) drop() {
	c := l.at(l.first)
	l.bytes -= len(c.row)
	if len(c.row) > 1024 { // one large row must not hold memory for ever
		c.row = nil
	}
	l.first++
}

// since returns the changes after q.Since; ok is false when the log does not reach
// back to it, or it is a version of another attempt.
func (l *changeLog) since(q exec.Query, v *view) (page exec.Page, ok bool, err error) {
	if q.Since+1 < l.first || q.Since > l.last {
		return page, false, nil
	}
	page.Version = q.Since
	for version := q.Since + 1; version <= l.last; version++ {
		if q.Limit > 0 && len(page.Rows) >= q.Limit {
			page.More = true
			break
		}
		c := l.at(version)
		json, err := v.appendJSON(nil, c.row)
		if err != nil {
			return page, false, err
		}
		page.Rows = append(page.Rows, exec.Row{Op: c.kind.String(), JSON: json})
		page.Version = version
	}
	return page, true, nil
}

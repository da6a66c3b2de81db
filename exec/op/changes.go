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

// A log that nobody has asked for its last unasked changes keeps no more of them, for they
// cost as much as the rest of the result; the next question is answered with the whole
// table, and from then on they are kept again.
const unasked = 64 * maxChanges

// A changeLog is a result's last changes, numbered by version. They lie one behind the
// other, so that logging allocates nothing in the long run and passes over memory once.
type changeLog struct {
	base  uint64 // the version before the first change of this attempt
	last  uint64 // the version of the newest change
	first uint64 // the oldest version that is kept; last+1: none
	asked uint64 // the newest version when somebody asked
	most  uint64 // changes that are kept unasked
	ring  []change
	text  []byte // rows
	gone  int    // bytes that lay before text
}

// A change's row lies at from, counted with what is gone.
type change struct {
	kind batch.RowKind
	from int
}

func newChangeLog(base uint64) changeLog {
	return changeLog{base: base, last: base, first: base + 1, asked: base, most: unasked}
}

func (l *changeLog) at(version uint64) *change {
	return &l.ring[(version-l.base-1)%maxChanges]
}

// wanted reports whether the next change is kept.
func (l *changeLog) wanted() bool { return l.last-l.asked < l.most }

// skip counts changes that are not kept.
func (l *changeLog) skip(n int) {
	l.last += uint64(n)
	l.first = l.last + 1
	l.gone, l.text, l.ring = l.gone+len(l.text), nil, nil
}

func (l *changeLog) append(kind batch.RowKind, row []byte) {
	l.last++
	if l.ring == nil {
		l.ring = make([]change, maxChanges)
	}
	if l.last-l.first >= maxChanges {
		l.first++
	}
	*l.at(l.last) = change{kind, l.gone + len(l.text)}
	l.text = append(l.text, row...)
	for l.size() > maxChangeBytes && l.first < l.last {
		l.first++
	}
	if dead := len(l.text) - l.size(); dead > len(l.text)/4 && dead > 16<<10 {
		l.text = l.text[:copy(l.text, l.text[dead:])]
		l.gone += dead
	}
}

// size is the length of the rows that are kept.
func (l *changeLog) size() int { return l.gone + len(l.text) - l.at(l.first).from }

// row is that of a change which is kept.
func (l *changeLog) row(version uint64) []byte {
	to := len(l.text)
	if version < l.last {
		to = l.at(version+1).from - l.gone
	}
	return l.text[l.at(version).from-l.gone : to]
}

// since returns the changes after q.Since; ok is false when the log does not reach
// back to it, or it is a version of another attempt.
func (l *changeLog) since(q exec.Query, v *view) (page exec.Page, ok bool, err error) {
	l.asked = l.last
	if q.Since+1 < l.first || q.Since > l.last {
		return page, false, nil
	}
	page.Version = q.Since
	for version := q.Since + 1; version <= l.last; version++ {
		if q.Limit > 0 && len(page.Rows) >= q.Limit {
			page.More = true
			break
		}
		json, err := v.appendJSON(nil, l.row(version))
		if err != nil {
			return page, false, err
		}
		page.Rows = append(page.Rows, exec.Row{Op: l.at(version).kind.String(), JSON: json})
		page.Version = version
	}
	return page, true, nil
}

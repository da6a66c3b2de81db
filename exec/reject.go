package exec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/plan"
)

// How much is kept of a rejected row; what is longer is cut, and of a record that is
// said in the reason.
const (
	keptRecord    = 64 << 10 // with on_row_error keep
	skippedRecord = 1 << 10  // with skip, of the first rows of each table
	keptText      = 4 << 10  // of each other text
)

// fit bounds what is kept so that a rejected row fits into a frame: half of it is the
// record, a quarter the other texts.
func (r *rejects) fit(limit int) {
	r.record, r.text = min(r.record, limit/2), min(keptText, limit/16)
}

// A rejects is the side output of a task: what its source and operators reject goes over
// the chain's Rejects edge, in batches of plan.RejectColumns, with the outputs' flushes
// and so before every barrier.
type rejects struct {
	task   *Task
	out    *output
	record int // how much of a record is kept
	text   int // and of each other text
	lines  lineCounter
}

// newRejects returns the side output of a chain; nil: it has none.
func (c *BuildConfig) newRejects(t *Task) *rejects {
	for _, e := range c.Graph.Edges {
		if e.From == t.id.Chain && e.Rejects {
			r := &rejects{task: t, record: skippedRecord, lines: lineCounter{roots: c.Files}}
			if c.Graph.OnRowError == "keep" {
				r.record = keptRecord
			}
			return r
		}
	}
	return nil
}

// Reject implements Rejecter.
func (r *rejects) Reject(e *RowError) error {
	line := e.Line
	if line == 0 && e.Path != "" {
		line = r.lines.at(e.Path, e.Offset)
	}
	raw, reason := e.Raw, e.Reason
	if len(raw) > r.record {
		raw = raw[:r.record]
		if utf8.ValidString(e.Raw) {
			raw = whole(raw)
		}
		reason = fmt.Sprintf("%s (of the record's %d bytes the first %d are kept)", r.clip(reason), len(e.Raw), len(raw))
	}
	t := &r.out.targets[0]
	if t.buf == nil {
		t.buf = r.out.pool.Get()
	}
	row := t.buf.Columns
	appendText(&row[0], r.clip(e.Table), true)
	appendText(&row[1], r.clip(e.Path), e.Path != "")
	appendNumber(&row[2], line, line > 0)
	appendNumber(&row[3], e.Offset, e.Offset >= 0)
	appendText(&row[4], r.clip(e.Column), e.Column != "")
	appendText(&row[5], r.clip(reason), true)
	appendText(&row[6], raw, raw != "")
	t.buf.EndRow(batch.Insert)
	r.task.held.came()
	if t.buf.Len >= batch.Target || batch.Size(t.buf) >= min(fullPayload, r.out.limit) {
		return r.out.flush(r.task.outputs.ctx, t)
	}
	return nil
}

// A sourceRejects takes what a source rejects: rows that it read, though nobody else
// sees them.
type sourceRejects struct{ *rejects }

// Reject implements Rejecter.
func (r sourceRejects) Reject(e *RowError) error {
	r.task.stats.rowsIn.Add(1)
	return r.rejects.Reject(e)
}

// rejecter gives operators of a kind where their rejects go; nil: a row error fails the job.
func (t *Task) rejecter(kind plan.OperatorKind) Rejecter {
	switch {
	case t.rejects == nil:
		return nil
	case kind == plan.Source:
		return sourceRejects{t.rejects}
	}
	return t.rejects
}

func appendText(v *batch.Vector, text string, there bool) {
	if there {
		v.AppendString(text)
	} else {
		v.AppendNull()
	}
}

func appendNumber(v *batch.Vector, n int64, there bool) {
	if there {
		v.AppendInt(n)
	} else {
		v.AppendNull()
	}
}

// clip makes a text one that can be kept: valid, and not too long.
func (r *rejects) clip(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= r.text {
		return text
	}
	return whole(text[:r.text-len("…")]) + "…"
}

// whole drops the part of a character at the end of a text that was cut.
func whole(text string) string {
	for i := len(text) - 1; i >= 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

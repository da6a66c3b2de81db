package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"weir/exec"
)

// shownRecord is how much is handed on of a record that is longer than maxRecord.
const shownRecord = 64 << 10

// rowError locates a fault of the record at the window's front.
func (s *filesystem) rowError(sp *split, f *fault) error {
	offset := s.reader.offset()
	return &exec.RowError{
		Table: s.table, Path: sp.Path, Line: exec.LineOf(s.reader.file, offset), Offset: offset,
		Column: f.column, Reason: f.reason,
	}
}

// reject hands on the record at the window's front, which has a fault, and passes over
// it; more: the window does not hold it whole.
func (s *filesystem) reject(sp *split, f *fault) (more bool, err error) {
	if s.rejects == nil {
		return false, s.rowError(sp, f)
	}
	r := &s.reader
	next := s.decoder.behind(r.data(), r.p, f)
	if next < 0 && r.end { // its quotes do not end it: its line does
		next = nextLine(r.data(), r.p)
	}
	if next < 0 {
		return true, nil
	}
	if err := s.handOn(sp, f, r.buf[r.p:next]); err != nil {
		return false, err
	}
	r.p = next
	return false, nil
}

// handOn gives a record to those who take rejected ones.
func (s *filesystem) handOn(sp *split, f *fault, record []byte) error {
	s.bad++
	record = bytes.TrimSuffix(bytes.TrimSuffix(record, []byte{'\n'}), []byte{'\r'})
	return s.rejects.Reject(&exec.RowError{
		Table: s.table, Path: sp.Path, Offset: s.reader.offset(), Column: f.column, Reason: f.reason, Raw: string(record),
	})
}

// fill reads on; a record that no window holds is rejected, up to the end of its line.
func (s *filesystem) fill(ctx context.Context, sp *split) error {
	return s.tooLong(ctx, sp, s.reader.fill(sp.End))
}

// tooLong rejects the record at the window's front where err says that it is too long.
func (s *filesystem) tooLong(ctx context.Context, sp *split, err error) error {
	if s.rejects == nil || s.header && s.reader.offset() == 0 || !errors.Is(err, errTooLong) {
		return err
	}
	r := &s.reader
	line := r.buf[r.p:min(r.m, r.p+shownRecord)]
	if next := bytes.IndexByte(line, '\n'); next >= 0 {
		line = line[:next]
	}
	if err := s.handOn(sp, recordTooLong(), line); err != nil {
		return err
	}
	return r.skipLine(ctx)
}

func recordTooLong() *fault {
	return &fault{reason: fmt.Sprintf("the record is longer than %d MiB", maxRecord>>20), broken: true}
}

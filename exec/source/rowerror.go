package source

import "weir/exec"

// rowError locates a fault of the record at the window's front.
func (s *filesystem) rowError(sp *split, f *fault) error {
	offset := s.reader.offset()
	return &exec.RowError{
		Table: s.table, Path: sp.Path, Line: exec.LineOf(s.reader.file, offset), Offset: offset,
		Column: f.column, Reason: f.reason,
	}
}

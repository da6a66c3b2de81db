package source

import (
	"bytes"
	"os"

	"weir/exec"
)

// rowError locates a fault of the record at the window's front.
func (s *filesystem) rowError(sp *split, f *fault) error {
	offset := s.reader.offset()
	return &exec.RowError{
		Table: s.table, Path: sp.Path, Line: lineOf(s.reader.file, offset), Offset: offset,
		Column: f.column, Reason: f.reason,
	}
}

// lineOf counts the lines up to offset, from 1; 0 when the file cannot be read. It
// reads the file from its start, for errors only.
func lineOf(file *os.File, offset int64) int64 {
	line := int64(1)
	buf := make([]byte, blockSize)
	for at := int64(0); at < offset; {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), offset-at)], at)
		line += int64(bytes.Count(buf[:n], []byte{'\n'}))
		if at += int64(n); err != nil && at < offset {
			return 0
		}
	}
	return line
}

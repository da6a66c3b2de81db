package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// LineOf counts the lines of a file up to offset, from 1; 0 when it cannot be read.
// It reads from the start: for errors only.
func LineOf(file io.ReaderAt, offset int64) int64 {
	line := int64(1)
	buf := make([]byte, 64<<10)
	for at := int64(0); at < offset; {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), offset-at)], at)
		line += int64(bytes.Count(buf[:n], []byte{'\n'}))
		if at += int64(n); err != nil && at < offset {
			return 0
		}
	}
	return line
}

// locate adds the line to a row error that an operator behind a file source found: it
// knows the record's offset only.
func locate(err error) {
	var row *RowError
	if !errors.As(err, &row) || row.Path == "" || row.Line != 0 {
		return
	}
	file, openErr := os.Open(row.Path)
	if openErr != nil {
		return
	}
	defer file.Close()
	row.Line = LineOf(file, row.Offset)
}

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

// A lineCounter numbers the lines of many records: it counts on from the place where it
// was last, forwards or back, for rejected rows come about in the order of their files.
type lineCounter struct {
	roots  []string
	path   string
	file   *os.File // nil: it cannot be read
	offset int64
	line   int64 // at offset
	buf    []byte
}

// at gives the line of the record at offset; 0: the file cannot be read.
func (c *lineCounter) at(path string, offset int64) int64 {
	if path != c.path {
		c.open(path)
	}
	if c.file == nil {
		return 0
	}
	if offset < c.offset-offset { // the start is nearer
		c.offset, c.line = 0, 1
	}
	from, to := min(c.offset, offset), max(c.offset, offset)
	n, ok := c.feeds(from, to)
	if !ok {
		c.close()
		return 0
	}
	if offset < c.offset {
		n = -n
	}
	c.offset, c.line = offset, c.line+n
	return c.line
}

// open begins to count another file.
func (c *lineCounter) open(path string) {
	c.close()
	c.path, c.offset, c.line = path, 0, 1
	place, err := Locate(c.roots, path)
	if err != nil {
		return
	}
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if file, err := root.Open(place.Name); err == nil {
		c.file = file
	}
}

// feeds counts the line feeds between two offsets.
func (c *lineCounter) feeds(from, to int64) (n int64, ok bool) {
	if c.buf == nil {
		c.buf = make([]byte, 64<<10)
	}
	for from < to {
		got, err := c.file.ReadAt(c.buf[:min(int64(len(c.buf)), to-from)], from)
		n += int64(bytes.Count(c.buf[:got], []byte{'\n'}))
		if from += int64(got); err != nil && from < to {
			return 0, false
		}
	}
	return n, true
}

func (c *lineCounter) close() {
	if c.file != nil {
		_ = c.file.Close() // it was only read
		c.file = nil
	}
}

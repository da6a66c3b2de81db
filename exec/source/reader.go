package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// blockSize is how much of a file is read at once: it stays in the cache.
	blockSize = 256 << 10
	// beyond is how much is read behind a split's end for its last record.
	beyond = 16 << 10
	// maxRecord is the longest record, as text.
	maxRecord = 16 << 20
)

// errTooLong: a record is longer than maxRecord.
var errTooLong = errors.New("record too long")

// A reader holds a window of a file in which the records of a split lie whole.
//
//	base          p          n             m
//	 │ (decoded)  │ whole    │ a part of   │
//	 │            │ records  │ the next    │
type reader struct {
	file  *os.File
	size  int64
	block int // how much to read at once

	buf  []byte
	base int64 // offset of buf[0] in the file
	p    int   // the next record
	n    int   // behind the last line feed
	m    int   // behind the last byte read
	end  bool  // buf[:m] reaches the end of the file
	read int64 // bytes, of all files

	quotes  bool  // look for quotes
	plain   bool  // there are none in buf[:m]
	entered bool  // the window is in the split, no longer in front of it
	clean   int64 // there are none in front of here in the file
	found   bool  // and here stands one
}

// seek empties the window, which is then as small as can be, and puts it at offset.
func (r *reader) seek(offset int64) {
	r.base, r.p, r.n, r.m, r.end = offset, 0, 0, 0, false
	r.plain = true
	if size := r.block + 1 + pad; len(r.buf) != size { // none yet, or one that a long record needed
		r.buf = make([]byte, size)
	}
}

// offset returns the position of the next record in the file.
func (r *reader) offset() int64 { return min(r.base+int64(r.p), r.size) }

// data returns the window as decoders want it.
func (r *reader) data() []byte { return r.buf[:r.n+pad] }

// fill reads on until another line feed is in the window, or the end of the file,
// which ends a line too. Behind until it reads no more than it has to.
func (r *reader) fill(until int64) error {
	if r.p > 0 {
		copy(r.buf, r.buf[r.p:r.m])
		r.base += int64(r.p)
		r.n, r.m, r.p = r.n-r.p, r.m-r.p, 0
		r.plain = r.plain || bytes.IndexByte(r.buf[:r.m], '"') < 0
	}
	for {
		room := len(r.buf) - pad - 1 - r.m
		if room < beyond && room < r.block/2 {
			if len(r.buf) > maxRecord {
				return errTooLong
			}
			bigger := make([]byte, 2*len(r.buf))
			copy(bigger, r.buf[:r.m])
			r.buf = bigger
		}
		if whole, err := r.load(until); err != nil || whole {
			return err
		}
	}
}

// load reads once into the room behind the window; it reports whether the window grew by
// a line.
func (r *reader) load(until int64) (whole bool, err error) {
	room := len(r.buf) - pad - 1 - r.m
	at := r.base + int64(r.m)
	want := min(int64(room), r.size-at, max(until-at, 0)+beyond)
	fresh := r.buf[r.m : r.m+int(want)]
	if err := r.readAt(fresh, at); err != nil {
		return false, err
	}
	r.read += want
	if r.quotes {
		r.note(fresh, at)
	}
	return r.extend(len(fresh)), nil
}

// readAt reads all of b from an offset.
func (r *reader) readAt(b []byte, at int64) error {
	got, err := r.file.ReadAt(b, at)
	if got == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read at byte %d: %w", at, err)
}

// skipLine moves the window's front behind the next line feed, however far that is.
func (r *reader) skipLine(ctx context.Context) error {
	for {
		if i := bytes.IndexByte(r.buf[r.p:r.m], '\n'); i >= 0 {
			r.p += i + 1
			r.n = max(r.n, r.p)
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.base, r.p, r.n, r.m = r.base+int64(r.m), 0, 0, 0
		if _, err := r.load(r.base + int64(r.block)); err != nil {
			return err
		}
	}
}

// extend takes in the bytes just read; it reports whether the window grew by a line.
func (r *reader) extend(got int) bool {
	fresh := r.buf[r.m : r.m+got]
	r.m += got
	if r.base+int64(r.m) >= r.size {
		if r.m > 0 && r.buf[r.m-1] != '\n' {
			r.buf[r.m] = '\n'
			r.m++
		}
		r.n, r.end = r.m, true
		return true
	}
	if i := bytes.LastIndexByte(fresh, '\n'); i >= 0 {
		r.n = r.m - got + i + 1
		return true
	}
	return false
}

// align moves the window, just put one byte before a split's start, to the first
// record that starts there or behind: behind the first line feed.
func (r *reader) align(until int64) error {
	for {
		if err := r.fill(until); err != nil {
			if !errors.Is(err, errTooLong) {
				return err
			}
			// A record reaches through the split: what was read of it is not needed.
			r.base, r.m = r.base+int64(r.m), 0
			if r.base >= until {
				r.p, r.n = 0, 0
				return nil
			}
			continue
		}
		i := bytes.IndexByte(r.buf[:r.n], '\n')
		if i < 0 { // the end of an empty file
			r.p = r.n
			return nil
		}
		r.p = i + 1
		return nil
	}
}

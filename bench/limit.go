package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// A limit is a program written by hand for one question about the files, and for nothing
// else: no plan, no checkpoints, no exchange. What it reaches is the machine's limit, or near it.
type limit struct {
	query  string // behavior or user: whose rows are counted
	format string // json or csv
	// kind: scan finds the field and trusts everything else, validate takes no line that
	// Weir would not take.
	kind       string
	goroutines int
}

func (l limit) String() string {
	return fmt.Sprintf("loop, %s, %d goroutine%s", l.kind, l.goroutines, map[bool]string{true: "s"}[l.goroutines > 1])
}

// A lineCounter counts the rows of a block of whole lines: b[:end], behind which it may
// read as much as pad, whatever is there.
type lineCounter interface {
	block(b []byte, end int) error
}

// counter makes the one of a goroutine, which puts into t.
func (l limit) counter(t *tally) lineCounter {
	switch {
	case l.kind == "validate" && l.format == "json":
		return newJSONLines(l.query, t)
	case l.kind == "validate":
		return newCSVLines(l.query, t)
	case l.format == "json" && l.query == "user":
		return scanned(t.scanJSONUsers)
	case l.format == "json":
		return scanned(t.scanJSONBehaviors)
	case l.query == "user":
		return scanned(t.scanCSVUsers)
	}
	return scanned(t.scanCSVBehaviors)
}

// count counts the files' rows and says how long that took, from the first byte to the
// one table of all counts.
func (l limit) count(files []string) (*tally, time.Duration, error) {
	runtime.GC() // what others left is not of its time
	began := time.Now()
	tallies := make([]*tally, l.goroutines)
	errs := make([]error, l.goroutines)
	var group sync.WaitGroup
	for i := range tallies {
		tallies[i] = newTally(l.goroutines)
		group.Go(func() { errs[i] = l.part(files, i, tallies[i]) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", l, err)
	}
	merge(tallies)
	return tallies[0], time.Since(began), nil
}

// part counts the stretch of each file that is goroutine i's.
func (l limit) part(files []string, i int, t *tally) error {
	c := l.counter(t)
	buf := make([]byte, blockSize+pad)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			size := info.Size()
			s := stretch{f: f, size: size, from: size * int64(i) / int64(l.goroutines), to: size * int64(i+1) / int64(l.goroutines)}
			err = s.read(&buf, c.block)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	t.flush()
	return nil
}

const (
	blockSize = 1 << 20
	// pad is how far behind a block may be read.
	pad     = 96
	maxLine = 16 << 20
)

// A stretch is the lines of a file that begin in its bytes from..to.
type stretch struct {
	f              *os.File
	size, from, to int64
}

// read hands out blocks of whole lines, the last of which ends with a line feed though
// the file may not.
func (s stretch) read(buf *[]byte, block func(b []byte, end int) error) error {
	at := max(s.from-1, 0) // of what is read next
	if s.from == s.to {
		return nil
	}
	first, kept := s.from > 0, 0 // first: the end of a line that began before is to come
	for last := false; !last; {
		b := *buf
		n, err := s.f.ReadAt(b[kept:len(b)-pad], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		low := at - int64(kept)
		at += int64(n)
		n += kept
		if last = at >= s.size; last && n > 0 && b[n-1] != '\n' {
			b[n] = '\n'
			n++
		}
		end := bytes.LastIndexByte(b[:n], '\n') + 1
		if own := s.to - 1 - low; own < int64(end) { // the line that has the last byte is the last
			end, last = int(own)+bytes.IndexByte(b[own:end], '\n')+1, true
		}
		if end == 0 && !last {
			if n > maxLine {
				return fmt.Errorf("a line is longer than %d bytes", maxLine)
			}
			*buf = append(make([]byte, 0, 2*len(b)), b[:n]...)[:2*len(b)]
			kept = n
			continue
		}
		begin := 0
		if first && end > 0 {
			begin, first = bytes.IndexByte(b, '\n')+1, false
		}
		if begin < end {
			if err := block(b[begin:], end-begin); err != nil {
				return err
			}
		}
		kept = copy(b, b[end:n])
	}
	return nil
}

// lanes is how many lines are read in turns.
const lanes = 4

// inLanes cuts a block into lanes and reads a line of each in turn: where a field begins
// depends on the one before, so that the processor waits in one line, and goes on with the next.
func inLanes(b []byte, end int, line func(b []byte, p, end int) (int, error)) (err error) {
	var at, stop [lanes]int
	for i := range lanes {
		stop[i] = end
		if cut := end * (i + 1) / lanes; i < lanes-1 {
			stop[i] = cut + bytes.IndexByte(b[cut:end], '\n') + 1
		}
		if i > 0 {
			at[i] = stop[i-1]
		}
	}
	for at[0] < stop[0] && at[1] < stop[1] && at[2] < stop[2] && at[3] < stop[3] {
		for i := range lanes {
			if at[i], err = line(b, at[i], end); err != nil {
				return err
			}
		}
	}
	for i := range lanes {
		for at[i] < stop[i] {
			if at[i], err = line(b, at[i], end); err != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// printChanges prints each change of the result as one JSON object a line, until the
// job ends; it returns the job as it is then. A stream that breaks off is taken up again.
func printChanges(ctx context.Context, c *client, job jobView, stdout io.Writer) (jobView, error) {
	if !job.HasResult {
		return job, fmt.Errorf("job %s writes to a table: it keeps no result whose changes could be printed", job.Name)
	}
	log := &changeLog{out: stdout, rows: map[string]int{}}
	for !log.ended {
		err := c.changes(ctx, job, log)
		var p *problem
		switch {
		case ctx.Err() != nil:
			return job, context.Canceled
		case log.err != nil:
			return job, log.err
		case errors.As(err, &p) && p.Status < 500:
			return job, err
		case !log.ended:
			if err := pause(ctx, followEvery); err != nil {
				return job, err
			}
		}
	}
	err := c.do(ctx, "GET", jobPath(job.ID, ""), nil, &job)
	return job, err
}

// changes feeds log from one stream, to its end.
func (c *client) changes(ctx context.Context, job jobView, log *changeLog) error {
	res, err := c.send(ctx, "GET", jobPath(job.ID, "/results"), "text/event-stream", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return eachEvent(res.Body, log.event)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Canceled
	}
}

// A changeLog prints changes. The server begins anew now and then, when tasks have been
// started again or have ended: it sends all rows as if they were new. Of those the log
// prints what is different from the rows that it has printed.
type changeLog struct {
	out   io.Writer
	rows  map[string]int // printed and not taken back
	old   map[string]int // those of before, while the server begins anew
	ended bool
	err   error // it cannot go on
}

// event takes one event of the stream in.
func (l *changeLog) event(event, data string) error {
	switch event {
	case "reset":
		if l.err = wholeReset(data); l.err != nil {
			return l.err
		}
		l.settle()
		l.old, l.rows = l.rows, map[string]int{}
	case "change":
		l.change(data)
	case "end":
		l.settle()
		l.ended = true
	}
	return l.err
}

// wholeReset is an error where the server begins anew and leaves rows out: what is not
// told again cannot be known from what is gone.
func wholeReset(data string) error {
	var reset struct {
		Truncated bool `json:"truncated"`
	}
	if err := json.Unmarshal([]byte(data), &reset); err != nil {
		return fmt.Errorf("the server sent a reset that is none: %w", err)
	}
	if reset.Truncated {
		return errors.New("the changes of this result cannot be followed: it is too large to be told anew, and some of its changes were lost, for they came too fast or its tasks were started again; weir job results JOB --limit 0 prints all of its rows")
	}
	return nil
}

func (l *changeLog) change(data string) {
	var c struct {
		Op  string          `json:"op"`
		Row json.RawMessage `json:"row"`
	}
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		l.err = fmt.Errorf("the server sent a change that is none: %w", err)
		return
	}
	row := string(c.Row)
	switch c.Op {
	case "+I":
		l.rows[row]++
		if l.old[row] > 0 {
			l.old[row]--
			return
		}
	case "+U":
		l.settle()
		l.rows[row]++
	default:
		l.settle()
		if l.rows[row]--; l.rows[row] <= 0 {
			delete(l.rows, row)
		}
	}
	l.print(data)
}

// settle takes back the rows of before that have not come again.
func (l *changeLog) settle() {
	for _, row := range slices.Sorted(maps.Keys(l.old)) {
		for range l.old[row] {
			l.print(`{"op":"-D","row":` + row + `}`)
		}
	}
	l.old = nil
}

func (l *changeLog) print(line string) {
	if l.err == nil {
		_, l.err = fmt.Fprintln(l.out, line)
	}
}

// eachEvent calls f with the name and data of each server-sent event.
func eachEvent(r io.Reader, f func(event, data string) error) error {
	var event string
	var data []string
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			if len(data) > 0 {
				if err := f(event, strings.Join(data, "\n")); err != nil {
					return err
				}
			}
			event, data = "", nil
		case strings.HasPrefix(line, "event:"):
			event = strings.TrimSpace(line[len("event:"):])
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[len("data:"):], " "))
		}
	}
}

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A script's line is an event's name, or a change as op and row; a line behind "> " is
// what the log prints for those before it.
func TestChangeLog(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"changes as they come": `
			reset
			+I {"n":1}
			> +I {"n":1}
			-U {"n":1}
			+U {"n":2}
			> -U {"n":1}
			> +U {"n":2}
			end`,
		"the job has ended and nothing is different": `
			+I {"n":1}
			+I {"n":1}
			-U {"n":1}
			+U {"n":2}
			> +I {"n":1}
			> +I {"n":1}
			> -U {"n":1}
			> +U {"n":2}
			reset
			+I {"n":2}
			+I {"n":1}
			end`,
		"the last changes were not seen": `
			+I {"k":"a","n":1}
			+I {"k":"b","n":1}
			> +I {"k":"a","n":1}
			> +I {"k":"b","n":1}
			reset
			+I {"k":"a","n":5}
			> +I {"k":"a","n":5}
			+I {"k":"b","n":1}
			end
			> -D {"k":"a","n":1}`,
		"back to a checkpoint and on": `
			+I {"n":7}
			+I {"n":8}
			> +I {"n":7}
			> +I {"n":8}
			reset
			+I {"n":8}
			-U {"n":8}
			+U {"n":9}
			> -D {"n":7}
			> -U {"n":8}
			> +U {"n":9}`,
		"twice anew": `
			+I {"n":1}
			> +I {"n":1}
			reset
			reset
			> -D {"n":1}
			+I {"n":1}
			> +I {"n":1}
			end`,
	} {
		var out strings.Builder
		log := &changeLog{out: &out, rows: map[string]int{}}
		var want []string
		for line := range strings.Lines(strings.TrimSpace(script)) {
			line = strings.TrimSpace(line)
			printed, isPrinted := strings.CutPrefix(line, "> ")
			op, row, isChange := strings.Cut(printed, " ")
			text := `{"op":"` + op + `","row":` + row + `}`
			var err error
			switch {
			case isPrinted:
				want = append(want, text)
			case isChange:
				err = log.event("change", text)
			default:
				err = log.event(line, "{}")
			}
			if err != nil {
				t.Fatal(name, err)
			}
		}
		if diff := cmp.Diff(strings.Join(want, "\n")+"\n", out.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if log.ended != strings.HasSuffix(script, "end") && !strings.Contains(script, "end\n") {
			t.Errorf("%s: ended %v", name, log.ended)
		}
	}
}

type closedPipe struct{}

var errClosed = errors.New("closed")

func (closedPipe) Write([]byte) (int, error) { return 0, errClosed }

func TestChangeLogStops(t *testing.T) {
	t.Parallel()
	log := &changeLog{out: closedPipe{}, rows: map[string]int{}}
	if err := log.event("change", `{"op":"+I","row":{}}`); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	log = &changeLog{out: &strings.Builder{}, rows: map[string]int{}}
	if err := log.event("change", `{"op":`); err == nil {
		t.Error("half a change was taken")
	}
	out := &strings.Builder{}
	log = &changeLog{out: out, rows: map[string]int{`{"n":1}`: 1}}
	if err := log.event("reset", `{"truncated":true}`); err == nil || !strings.Contains(err.Error(), "too large") || out.Len() > 0 {
		t.Errorf("rows that were left out: %v, printed %q", err, out)
	}
}

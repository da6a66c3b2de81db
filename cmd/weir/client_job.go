package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newJob() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "submit, list, show, stop, cancel, start, adopt and delete jobs", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJobSubmit(), newJobList(), newJobShow(), newJobStop(), newJobCancel(), newJobStart(), newJobDelete(), newJobAdopt(), newJobResults(), newJobRejects(), newJobEvents(), newJobMetrics())
	return cmd
}

// A submission is the body of POST /v1/jobs as the verbs fill it.
type submission struct {
	Name        string `json:"name,omitempty"`
	SQL         string `json:"sql"`
	Parallelism int    `json:"parallelism,omitempty"`
	OnRowError  string `json:"on_row_error,omitempty"`
	RestoreFrom string `json:"restore_from,omitempty"`
}

// addOnRowError adds the flag of what becomes of rows at fault.
func (s *submission) addOnRowError(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.OnRowError, "on-row-error", "", "what becomes of a row at fault: fail (the job, the default), skip (it is counted), keep (and kept)")
}

// readScript reads a script from a file, or from standard input for "-".
func readScript(stdin io.Reader, path string) (string, error) {
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = os.ReadFile(path)
	}
	if err == nil && strings.TrimSpace(string(b)) == "" {
		err = fmt.Errorf("script %s is empty", path)
	}
	return string(b), err
}

var notInName = regexp.MustCompile(`[^a-z0-9_-]+`)

// nameOf makes a job's name from a script's file name: "a B.sql" is "a-b".
func nameOf(path string) string {
	if path == "-" {
		return ""
	}
	base := filepath.Base(path)
	name := notInName.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "-")
	name = strings.Trim(name, "-_")
	return name[:min(len(name), 63)]
}

// submit creates a job; a refusal of its SQL carries the script for the caret lines.
func (c *client) submit(ctx context.Context, s submission) (jobView, error) {
	var job jobView
	err := c.do(ctx, "POST", "/v1/jobs", s, &job)
	var p *problem
	if errors.As(err, &p) {
		p.sql = s.SQL
	}
	return job, err
}

func newJobSubmit() *cobra.Command {
	var f clientFlags
	var s submission
	cmd := &cobra.Command{
		Use: "submit FILE.sql|-", Short: "create a job and start it", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			if s.SQL, err = readScript(cmd.InOrStdin(), args[0]); err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = nameOf(args[0])
			}
			job, err := c.submit(cmd.Context(), s)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), job, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  %s  %s\n", job.Name, job.ID, job.Status)
				return err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&s.Name, "name", "", "the job's name (default: from the file's name)")
	cmd.Flags().IntVar(&s.Parallelism, "parallelism", 0, "subtasks per operator (default: the server's)")
	s.addOnRowError(cmd)
	cmd.Flags().StringVar(&s.RestoreFrom, "from", "", "start from savepoint:NAME or checkpoint:JOB/7")
	return cmd
}

func newJobList() *cobra.Command {
	var f clientFlags
	var status string
	cmd := &cobra.Command{
		Use: "list", Short: "list jobs", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			path := "/v1/jobs"
			if status != "" {
				path += "?status=" + url.QueryEscape(strings.ToUpper(status))
			}
			jobs := []jobView{}
			err = eachPage(cmd.Context(), c, path, func(p *jobPage) string { return p.Next }, func(p *jobPage) { jobs = append(jobs, p.Jobs...) })
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), jobs, func(w io.Writer) error {
				t := newTextTable("NAME", "STATUS", "ATTEMPT", "PARALLELISM", "ROWS IN", "STARTED")
				t.right[2], t.right[3], t.right[4] = true, true, true
				for _, j := range jobs {
					t.add(j.Name, j.Status, strconv.FormatInt(j.Attempt, 10), strconv.Itoa(j.Parallelism), groupedIfKnown(j.RowsIn), ago(orZero(j.StartedAt), time.Now()))
				}
				return t.print(w)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "only jobs of this status")
	return cmd
}

// eachPage reads a list page by page: it decodes each into page, which it clears
// before, and calls use; next gives the cursor of the page just decoded.
func eachPage[P any](ctx context.Context, c *client, path string, next func(*P) string, use func(*P)) error {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	at := path
	for {
		var page P
		if err := c.do(ctx, "GET", at, nil, &page); err != nil {
			return err
		}
		use(&page)
		cursor := next(&page)
		if cursor == "" {
			return nil
		}
		at = path + separator + "cursor=" + url.QueryEscape(cursor)
	}
}

// The pages of the API's lists.
type (
	jobPage struct {
		Jobs []jobView `json:"jobs"`
		Next string    `json:"next"`
	}
	savepointPage struct {
		Savepoints []savepointView `json:"savepoints"`
		Next       string          `json:"next"`
	}
)

func orZero[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func newJobShow() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "show JOB", Short: "show one job", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.do(cmd.Context(), "GET", jobPath(args[0], ""), nil, &raw); err != nil {
				return err
			}
			if f.output == "json" {
				return f.show(cmd.OutOrStdout(), raw, nil)
			}
			var j jobView
			if err := json.Unmarshal(raw, &j); err != nil {
				return err
			}
			return j.print(cmd.OutOrStdout())
		},
	}
	f.add(cmd)
	return cmd
}

// print writes a job as lines of name and value.
func (j jobView) print(w io.Writer) error {
	t := newTextTable("JOB", j.Name)
	t.add("id", j.ID)
	t.add("status", j.Status)
	t.add("attempt", strconv.FormatInt(j.Attempt, 10))
	t.add("parallelism", strconv.Itoa(j.Parallelism))
	t.add("rows in", groupedIfKnown(j.RowsIn))
	if n := j.RowsRejected; n != nil && *n > 0 {
		t.add("rows rejected", grouped(*n)+", see: weir job rejects "+j.Name)
	}
	t.add("started", ago(orZero(j.StartedAt), time.Now()))
	if j.RestoredFrom != "" {
		t.add("restored from", j.RestoredFrom)
	}
	if cp := j.LastCheckpoint; cp != nil {
		t.add("last checkpoint", fmt.Sprintf("%d, %s, %s", cp.ID, ago(orZero(cp.CompletedAt), time.Now()), bytesText(cp.StateBytes)))
	}
	if j.Failure != nil {
		t.add("failure", printable(j.Failure.Message))
	}
	return t.print(w)
}

// jobVerb makes a verb that POSTs to (or DELETEs) a job, waits for what it asked for
// and shows the job.
func jobVerb(use, short, method, rest string, body func(*cobra.Command) any, wait waiting) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: use + " JOB", Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			if method == "DELETE" {
				return c.do(cmd.Context(), method, jobPath(args[0], rest), nil, nil)
			}
			job, err := c.ask(cmd.Context(), args[0], rest, body(cmd), wait)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), job, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  %s\n", job.Name, job.Status)
				return err
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newJobStop() *cobra.Command {
	var name string
	cmd := jobVerb("stop", "stop a job with a savepoint", "POST", "/stop", func(*cobra.Command) any {
		return map[string]any{"name": name}
	}, stopping)
	cmd.Flags().StringVar(&name, "name", "", "the savepoint's name (default: given by the server)")
	return cmd
}

func newJobCancel() *cobra.Command {
	var abandon bool
	cmd := jobVerb("cancel", "end a job without a savepoint", "POST", "/cancel", func(*cobra.Command) any {
		return map[string]any{"abandon_output": abandon}
	}, ending)
	cmd.Flags().BoolVar(&abandon, "abandon-output", false, "give up output not yet committed")
	return cmd
}

func newJobStart() *cobra.Command {
	var from string
	var parallelism int
	var duplicate, abandon bool
	cmd := jobVerb("start", "start an ended job again", "POST", "/start", func(*cobra.Command) any {
		body := map[string]any{"from": from}
		if parallelism > 0 {
			body["parallelism"] = parallelism
		}
		if duplicate {
			body["allow_duplicate_output"] = true
		}
		if abandon {
			body["abandon_output"] = true
		}
		return body
	}, begun)
	cmd.Flags().StringVar(&from, "from", "latest", "latest, nothing, checkpoint:7 or savepoint:NAME")
	cmd.Flags().IntVar(&parallelism, "parallelism", 0, "another parallelism")
	cmd.Flags().BoolVar(&duplicate, "allow-duplicate-output", false, "start from behind output already committed")
	cmd.Flags().BoolVar(&abandon, "abandon-output", false, "give up output not yet committed")
	return cmd
}

func newJobDelete() *cobra.Command {
	return jobVerb("delete", "delete an ended job and its checkpoints", "DELETE", "", nil, nil)
}

func newJobEvents() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "events JOB", Short: "print a job's history", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			events, err := c.events(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), events, func(w io.Writer) error {
				t := newTextTable("AT", "KIND", "WHAT")
				for _, e := range events {
					t.add(e.At.Format(time.RFC3339), e.Kind, printable(e.Message))
				}
				return t.print(w)
			})
		},
	}
	f.add(cmd)
	return cmd
}

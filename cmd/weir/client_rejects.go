package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// rejectsView is a page of a job's rejected rows.
type rejectsView struct {
	Counts []struct {
		Table string `json:"table"`
		Rows  int64  `json:"rows"`
	} `json:"counts"`
	Rows []json.RawMessage `json:"rows"`
	Next string            `json:"next"`
}

// A rejectView is one of its rows.
type rejectView struct {
	Table     string  `json:"table"`
	Path      string  `json:"path"`
	Line      int64   `json:"line"`
	Offset    *int64  `json:"offset"`
	Column    string  `json:"column"`
	Reason    string  `json:"reason"`
	Raw       *string `json:"raw"`
	RawBase64 string  `json:"raw_base64"`
}

// where names the row's place: file and line, or its number in a source without files.
func (r rejectView) where() string {
	switch {
	case r.Path != "" && r.Line > 0:
		return r.Path + ":" + strconv.FormatInt(r.Line, 10)
	case r.Path != "" && r.Offset != nil:
		return r.Path + ", byte " + strconv.FormatInt(*r.Offset, 10)
	case r.Path != "":
		return r.Path
	case r.Offset != nil:
		return "row " + strconv.FormatInt(*r.Offset, 10)
	}
	return ""
}

// text is the record as a terminal shows it, cut where it is long.
func (r rejectView) text() string {
	const most = 80
	text := r.RawBase64
	if r.Raw != nil {
		text = printable(*r.Raw)
	} else if text != "" {
		text = "base64:" + text
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

func newJobRejects() *cobra.Command {
	var f clientFlags
	var limit int
	cmd := &cobra.Command{
		Use: "rejects JOB", Short: "print the rows that a job skipped or kept because they were at fault", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			page, err := c.rejects(cmd.Context(), args[0], limit)
			if err != nil {
				return err
			}
			show := page.print
			if f.output == "json" {
				show = page.printRows
			}
			if err = show(cmd.OutOrStdout()); err == nil && int64(len(page.Rows)) < page.total() {
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "(%s)\n", page.more())
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 1000, "rows at the most; 0: all")
	return cmd
}

// rejects reads the first limit rejected rows (0: all) of a job, page by page.
func (c *client) rejects(ctx context.Context, job string, limit int) (rejectsView, error) {
	var all rejectsView
	err := paged(url.Values{}, limit, func(query string) (int, string, error) {
		var page rejectsView
		if err := c.do(ctx, "GET", jobPath(job, "/rejects?"+query), nil, &page); err != nil {
			return 0, "", err
		}
		page.Rows = append(all.Rows, page.Rows...)
		all = page
		return len(all.Rows), all.Next, nil
	})
	return all, err
}

// total is the number of rows that were rejected.
func (r rejectsView) total() (n int64) {
	for _, c := range r.Counts {
		n += c.Rows
	}
	return n
}

// more says why the page does not show all.
func (r rejectsView) more() string {
	if r.Next != "" {
		return fmt.Sprintf("the first %d of %d rejected rows; more with --limit", len(r.Rows), r.total())
	}
	return fmt.Sprintf("%d rows were rejected; on_row_error skip keeps the first of each table, keep all of them", r.total())
}

// print writes the rows as a table.
func (r rejectsView) print(w io.Writer) error {
	t := newTextTable("TABLE", "WHERE", "COLUMN", "REASON", "RECORD")
	for _, raw := range r.Rows {
		var row rejectView
		if err := json.Unmarshal(raw, &row); err != nil {
			return fmt.Errorf("rejected row: %w", err)
		}
		t.add(printable(row.Table), printable(row.where()), printable(row.Column), printable(row.Reason), row.text())
	}
	return t.print(w)
}

// printRows writes the rows as one JSON object per line.
func (r rejectsView) printRows(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for _, row := range r.Rows {
		out.Write(row)      //nolint:errcheck // Flush says it
		out.WriteByte('\n') //nolint:errcheck // Flush says it
	}
	return out.Flush()
}

// shownRejects is how many rejected rows a run alone shows, for they are gone with it.
const shownRejects = 10

// sayRejects tells how many rows a job rejected and where they are.
func (f *runFlags) sayRejects(ctx context.Context, c *client, job jobView, alone bool, w *progress) error {
	if job.RowsRejected == nil || *job.RowsRejected == 0 {
		return nil
	}
	rejected := *job.RowsRejected
	said := grouped(rejected) + " rows rejected"
	if rejected == 1 {
		said = "1 row rejected"
	}
	if !alone {
		w.say(said + ": weir job rejects " + job.Name + onServer(f.server))
		return nil
	}
	page, err := c.rejects(ctx, job.ID, shownRejects)
	if err != nil {
		return err
	}
	w.say(said + ":")
	for _, raw := range page.Rows {
		var row rejectView
		if err := json.Unmarshal(raw, &row); err != nil {
			return fmt.Errorf("rejected row: %w", err)
		}
		line := "  " + row.Table
		for _, part := range []string{row.where(), row.Column, row.Reason} {
			if part != "" {
				line += ": " + part
			}
		}
		w.say(printable(line))
	}
	if more := rejected - int64(len(page.Rows)); more > 0 {
		w.say(fmt.Sprintf("  and %s more; with --server the job can be asked for them afterwards", grouped(more)))
	}
	return nil
}

// onServer is the flag that names a server other than the usual one.
func onServer(server string) string {
	if server == defaultServer {
		return ""
	}
	return " --server " + server
}

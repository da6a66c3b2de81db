package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newJobResults() *cobra.Command {
	var f clientFlags
	var limit int
	var order, at string
	cmd := &cobra.Command{
		Use: "results JOB", Short: "print a job's result table", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			q := url.Values{"at": {at}}
			if order != "" {
				q.Set("order_by", order)
			}
			page, err := c.results(cmd.Context(), args[0], q, limit)
			if err != nil {
				return err
			}
			show := page.print
			if f.output == "json" {
				show = page.printRows
			}
			if err = show(cmd.OutOrStdout()); err == nil && page.Next != "" {
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "(the first %d of %d rows; more with --limit)\n", len(page.Rows), page.Total)
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 1000, "rows at the most; 0: all")
	cmd.Flags().StringVar(&order, "order-by", "", "columns, as in \"n desc, behavior\"")
	cmd.Flags().StringVar(&at, "at", "latest", "latest, or a snapshot: checkpoint:7, savepoint:NAME")
	return cmd
}

// results reads the first limit rows (0: all) of a job's result, page by page.
func (c *client) results(ctx context.Context, job string, q url.Values, limit int) (resultView, error) {
	var all resultView
	err := paged(q, limit, func(query string) (int, string, error) {
		var page resultView
		if err := c.do(ctx, "GET", jobPath(job, "/results?"+query), nil, &page); err != nil {
			return 0, "", err
		}
		page.Rows = append(all.Rows, page.Rows...)
		all = page
		return len(all.Rows), all.Next, nil
	})
	return all, err
}

// paged asks for page after page, by query, until the first limit rows (0: all) are read.
// get says how many have been read, and the cursor of the next page, if there is one.
func paged(q url.Values, limit int, get func(query string) (read int, next string, err error)) error {
	if limit < 0 {
		return fmt.Errorf("--limit %d is negative: %w", limit, errUsage)
	}
	read := 0
	for {
		size := pageOfResults
		if limit > 0 {
			size = min(size, limit-read)
		}
		q.Set("limit", strconv.Itoa(size))
		var next string
		var err error
		if read, next, err = get(q.Encode()); err != nil || next == "" || read == limit {
			return err
		}
		q.Set("cursor", next)
	}
}

// print writes the page as a table; numbers go to the right.
func (r resultView) print(w io.Writer) error {
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = printable(c.Name)
	}
	t := newTextTable(names...)
	for i, c := range r.Columns {
		t.right[i] = c.Type != "STRING" && c.Type != "BOOLEAN" && !strings.HasPrefix(c.Type, "TIMESTAMP")
	}
	for _, raw := range r.Rows {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(raw, &row); err != nil {
			return fmt.Errorf("row of the result: %w", err)
		}
		cells := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			cells[i] = cell(row[c.Name])
		}
		t.add(cells...)
	}
	return t.print(w)
}

// printRows writes the page as one JSON object per line.
func (r resultView) printRows(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for _, row := range r.Rows {
		out.Write(row)      //nolint:errcheck // Flush says it
		out.WriteByte('\n') //nolint:errcheck // Flush says it
	}
	return out.Flush()
}

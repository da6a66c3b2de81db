package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir/planner/sql"
)

// sqlAnswer is what a script for the catalog gave, statement by statement.
type sqlAnswer struct {
	Results []sqlResult `json:"results"`
}

// A sqlResult is rows, or a message.
type sqlResult struct {
	Statement string `json:"statement"`
	Line      int    `json:"line"`
	resultView
	Message string `json:"message"`
}

func newSQL() *cobra.Command {
	var f clientFlags
	var text string
	cmd := &cobra.Command{
		Use:   "sql [FILE.sql|-]",
		Short: "run CREATE, DROP, SHOW, DESCRIBE and EXPLAIN on the catalog",
		Long: "SQL runs a script for the catalog: each statement sees what those before it did, and all of the\n" +
			"script is carried out, or nothing. A query is a job: weir run, weir job submit.",
		Example: "  weir sql -e 'SHOW TABLES'\n  weir sql tables.sql",
		Args:    usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			script, err := scriptOf(cmd, args, text)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.postSQL(cmd.Context(), "/v1/sql", script, &raw); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), raw, func(w io.Writer) error {
				var answer sqlAnswer
				if err := json.Unmarshal(raw, &answer); err != nil {
					return fmt.Errorf("the answer is not the JSON expected: %w", err)
				}
				return answer.print(w)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&text, "execute", "e", "", "the script itself, in place of a file")
	return cmd
}

// scriptOf gives the script of -e, or of the file.
func scriptOf(cmd *cobra.Command, args []string, text string) (string, error) {
	given := cmd.Flags().Changed("execute")
	switch {
	case given == (len(args) == 1):
		return "", fmt.Errorf("give one script: FILE, - for standard input, or -e 'SHOW TABLES': %w", errUsage)
	case given:
		return text, nil
	}
	return readScript(cmd.InOrStdin(), args[0])
}

// postSQL posts a script; a refusal carries it for the caret lines.
func (c *client) postSQL(ctx context.Context, path, script string, out any) error {
	err := c.do(ctx, "POST", path, map[string]string{"sql": script}, out)
	var p *problem
	if errors.As(err, &p) {
		p.sql = script
	}
	return err
}

// print writes tables and messages, with a line between a table and what is next to it.
func (a sqlAnswer) print(w io.Writer) error {
	for i, r := range a.Results {
		if i > 0 && (r.Message == "" || a.Results[i-1].Message == "") {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := r.print(w); err != nil {
			return err
		}
	}
	return nil
}

// print writes the message, or the rows as a table; a single text of several lines as it
// is.
func (r sqlResult) print(w io.Writer) error {
	if r.Message != "" {
		_, err := fmt.Fprintln(w, printable(r.Message))
		return err
	}
	if len(r.Columns) != 1 || len(r.Rows) != 1 {
		return r.resultView.print(w)
	}
	var row map[string]string
	if err := json.Unmarshal(r.Rows[0], &row); err != nil {
		return fmt.Errorf("row of the answer: %w", err)
	}
	return printText(w, row[r.Columns[0].Name])
}

// printText writes lines of text as a terminal shows them.
func printText(w io.Writer, text string) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// isExplain reports whether a script says EXPLAIN.
func isExplain(script string) bool {
	parsed, _ := sql.Parse(script) // the server says what is wrong with it
	for _, s := range parsed.Statements {
		if _, ok := s.(*sql.Explain); ok {
			return true
		}
	}
	return false
}

// explain prints the plan of a script that is not to be run.
func (f *runFlags) explain(ctx context.Context, c *client, stdout io.Writer) error {
	var raw json.RawMessage
	if err := c.postSQL(ctx, "/v1/plan", f.SQL, &raw); err != nil {
		return err
	}
	return f.show(stdout, raw, func(w io.Writer) error {
		var plan struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(raw, &plan); err != nil {
			return fmt.Errorf("the answer is not the JSON expected: %w", err)
		}
		return printText(w, plan.Text)
	})
}

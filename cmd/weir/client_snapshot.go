package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/server"
)

// snapshotVerb makes a verb that asks for a checkpoint or savepoint and waits for it.
func snapshotVerb(use, short, rest string, body func() any) *cobra.Command {
	var f clientFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use: use, Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var cp server.TriggeredCheckpoint
			q := url.Values{"wait": {wait.String()}}
			if err := c.do(cmd.Context(), "POST", jobPath(args[0], rest+"?"+q.Encode()), body(), &cp); err != nil {
				return err
			}
			err = f.show(cmd.OutOrStdout(), cp, func(w io.Writer) error {
				var parts []string
				for _, part := range []string{cp.Status, cp.Savepoint, requestText(cp.Request)} {
					if part != "" {
						parts = append(parts, part)
					}
				}
				_, err := fmt.Fprintf(w, "%s %d  %s\n", cp.Type, cp.ID, strings.Join(parts, "  "))
				return err
			})
			if err == nil && cp.Failure != nil {
				err = fmt.Errorf("%s %d %s: %s", cp.Type, cp.ID, cp.Status, cp.Failure.Message)
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 60*time.Second, "how long to wait for its end")
	return cmd
}

func newSavepoint() *cobra.Command {
	cmd := &cobra.Command{
		Use: "savepoint", Short: "create, list and restore savepoints", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSavepointCreate(), newSavepointList(), newSavepointRestore(), newSavepointDelete())
	return cmd
}

func newSavepointCreate() *cobra.Command {
	var name string
	cmd := snapshotVerb("create JOB", "take a savepoint", "/savepoints", func() any {
		if name == "" {
			return nil
		}
		return map[string]any{"name": name}
	})
	cmd.Flags().StringVar(&name, "name", "", "the savepoint's name (default: given by the server)")
	return cmd
}

func newSavepointList() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "list", Short: "list all savepoints, newest first", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			list := []savepointView{}
			err = eachPage(cmd.Context(), c, "/v1/savepoints", func(p *savepointPage) string { return p.Next },
				func(p *savepointPage) { list = append(list, p.Savepoints...) })
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), list, func(w io.Writer) error {
				t := newTextTable("NAME", "JOB", "CHECKPOINT", "STATUS", "TAKEN", "SIZE")
				t.right[2], t.right[5] = true, true
				for _, s := range list {
					t.add(s.Name, s.JobName, strconv.FormatInt(s.Checkpoint, 10), s.Status, ago(s.TriggeredAt, time.Now()), bytesText(s.StateBytes))
				}
				return t.print(w)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newSavepointRestore() *cobra.Command {
	var f clientFlags
	var body struct {
		From                 string `json:"from"`
		Parallelism          int    `json:"parallelism,omitempty"`
		AllowDuplicateOutput bool   `json:"allow_duplicate_output,omitempty"`
		AbandonOutput        bool   `json:"abandon_output,omitempty"`
	}
	cmd := &cobra.Command{
		Use: "restore JOB SAVEPOINT", Short: "take a job back to a savepoint", Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			body.From = "savepoint:" + strings.TrimPrefix(args[1], "savepoint:")
			job, err := c.ask(cmd.Context(), args[0], "/restore", body, begun)
			if err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), job, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  %s  from %s\n", job.Name, job.Status, body.From)
				return err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&body.Parallelism, "parallelism", 0, "another parallelism")
	cmd.Flags().BoolVar(&body.AllowDuplicateOutput, "allow-duplicate-output", false, "go back behind output already committed")
	cmd.Flags().BoolVar(&body.AbandonOutput, "abandon-output", false, "give up output not yet committed")
	return cmd
}

func newSavepointDelete() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "delete SAVEPOINT", Short: "delete a savepoint and its objects", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			return c.do(cmd.Context(), "DELETE", "/v1/savepoints/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	f.add(cmd)
	return cmd
}

package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"weir/server"
)

func newStorage() *cobra.Command {
	cmd := &cobra.Command{
		Use: "storage", Short: "check what lies in object storage", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStorageCheck())
	return cmd
}

func newStorageCheck() *cobra.Command {
	var f clientFlags
	var job string
	var repair, deep, unknown bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "compare object storage with the metastore; exit code 1 if something that is kept is missing or damaged, or a repair gave a checkpoint up",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unknown && !repair {
				return fmt.Errorf("--unknown says what --repair may delete: give both: %w", errUsage)
			}
			if job == "" && cmd.Flags().Changed("job") { // of a variable that is not set: not all jobs
				return fmt.Errorf("--job is empty: name one, or leave it out for all jobs: %w", errUsage)
			}
			c, err := f.client()
			if err != nil {
				return err
			}
			var report server.StorageReport
			if repair {
				err = c.do(cmd.Context(), "POST", "/v1/storage/repair", server.RepairRequest{Job: job, Deep: deep, Unknown: unknown}, &report)
			} else {
				q := url.Values{"deep": {strconv.FormatBool(deep)}}
				if job != "" {
					q.Set("job", job)
				}
				err = c.do(cmd.Context(), "GET", "/v1/storage/check?"+q.Encode(), nil, &report)
			}
			if err != nil {
				return err
			}
			if err := f.show(cmd.OutOrStdout(), report, func(w io.Writer) error { return printReport(w, report, repair) }); err != nil {
				return err
			}
			return verdict(report)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&job, "job", "", "only this job, id or name")
	cmd.Flags().BoolVar(&deep, "deep", false, "read every object that is kept and compare its checksum")
	cmd.Flags().BoolVar(&repair, "repair", false, "delete orphans and unfinished uploads; give up checkpoints that are harmed")
	cmd.Flags().BoolVar(&unknown, "unknown", false, "with --repair: delete also what is newer than the metastore knows")
	return cmd
}

// verdict says what the exit code is about; nil: all that was kept is sound.
func verdict(r server.StorageReport) error {
	lost := fmt.Sprintf("%s could not be restored any more, and the repair gave it up", many(r.GivenUp, "checkpoint"))
	if r.GivenUp > 1 {
		lost = fmt.Sprintf("%s could not be restored any more, and the repair gave them up", many(r.GivenUp, "checkpoint"))
	}
	switch {
	case r.Sound && r.GivenUp == 0:
		return nil
	case r.Sound:
		return fmt.Errorf("%s: see above; all else that is to be kept is sound", lost)
	case r.GivenUp == 0:
		return errors.New("something that is to be kept is missing or damaged: see above")
	}
	return fmt.Errorf("something that is to be kept is missing or damaged: see above; besides, %s", lost)
}

// printReport shows the findings, and a line that sums them up.
func printReport(w io.Writer, r server.StorageReport, repaired bool) error {
	if len(r.Findings) > 0 {
		t := newTextTable("FAULT", "OBJECT", "SIZE", "PROBLEM", "REPAIR")
		t.right[2] = true
		for _, x := range r.Findings {
			did := x.Repaired
			if did == "" && repaired {
				did = "none"
			}
			t.add(x.Fault, printable(x.Object), bytesText(x.Bytes), printable(x.Problem), printable(did))
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s: %s\n", many(r.Jobs, "job"), many(r.Objects, "object"), bytesText(r.Bytes), many(len(r.Findings), "finding"))
	return err
}

// many counts what is called so.
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func newJobAdopt() *cobra.Command {
	var f clientFlags
	var checkpoint int64
	var list bool
	cmd := &cobra.Command{
		Use: "adopt JOB", Short: "let a job go on from a checkpoint in storage, after metastore_behind", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("checkpoint") && checkpoint < 1 {
				return fmt.Errorf("--checkpoint is %d: give 1 or more, or leave it out for the newest whole one: %w", checkpoint, errUsage)
			}
			if list {
				return showAdoptable(cmd, &f, c, args[0])
			}
			var answer server.Adoption
			if err := c.do(cmd.Context(), "POST", jobPath(args[0], "/adopt"), server.AdoptRequest{Checkpoint: checkpoint}, &answer); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), answer, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s  adopted checkpoint %d of attempt %s; start it with: weir job start %s\n",
					answer.Job.Name, answer.Checkpoint.Checkpoint, answer.Checkpoint.Attempt, answer.Job.Name)
				return err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Int64Var(&checkpoint, "checkpoint", 0, "which one (default: the newest whole one)")
	cmd.Flags().BoolVar(&list, "list", false, "only list what lies in storage")
	return cmd
}

func showAdoptable(cmd *cobra.Command, f *clientFlags, c *client, job string) error {
	var found server.AdoptableList
	if err := c.do(cmd.Context(), "GET", jobPath(job, "/adoptable"), nil, &found); err != nil {
		return err
	}
	return f.show(cmd.OutOrStdout(), found.Checkpoints, func(w io.Writer) error {
		t := newTextTable("ID", "TYPE", "ATTEMPT", "SIZE", "KNOWN", "WHOLE", "PROBLEM")
		t.right[0], t.right[3] = true, true
		for _, a := range found.Checkpoints {
			t.add(strconv.FormatInt(a.Checkpoint, 10), a.Type, a.Attempt, bytesText(a.StateBytes), strconv.FormatBool(a.Known), strconv.FormatBool(a.Whole), printable(a.Problem))
		}
		return t.print(w)
	})
}

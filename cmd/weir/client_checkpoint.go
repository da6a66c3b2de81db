package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/server"
)

func newCheckpoint() *cobra.Command {
	cmd := &cobra.Command{
		Use: "checkpoint", Short: "list, show, trigger and cancel checkpoints", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCheckpointList(), newCheckpointShow(), newCheckpointTrigger(), newCheckpointCancel())
	return cmd
}

// historyFilter are the flags that choose from a history; the server checks them.
type historyFilter struct {
	status, reason                  []string
	kind, since, until, minDuration string
	attempt, limit                  int
}

func (h *historyFilter) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&h.status, "status", nil, "only pending, completed, failed or aborted ones; several with commas")
	f.StringVar(&h.kind, "type", "", "only checkpoint or savepoint")
	f.IntVar(&h.attempt, "attempt", 0, "only those of this attempt")
	f.StringSliceVar(&h.reason, "reason", nil, "only those that ended for this reason, such as timeout; several with commas")
	f.StringVar(&h.since, "since", "", "triggered since a time such as 2026-03-01T12:00:00Z, or so long ago, such as 36h")
	f.StringVar(&h.until, "until", "", "triggered before a time, or longer ago than this")
	f.StringVar(&h.minDuration, "min-duration", "", "only those that took this long or longer, such as 1.5s")
	f.IntVar(&h.limit, "limit", 0, "how many, the newest first (default: all)")
}

// query gives the parameters of the request.
func (h *historyFilter) query(now time.Time) (url.Values, error) {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("status", strings.Join(h.status, ","))
	set("type", h.kind)
	set("reason", strings.Join(h.reason, ","))
	set("min_duration", h.minDuration)
	if h.attempt != 0 {
		set("attempt", strconv.Itoa(h.attempt))
	}
	for _, at := range []struct{ name, text string }{{"since", h.since}, {"until", h.until}} {
		text := at.text
		if back, err := parseAge(text); err == nil {
			text = now.Add(-back).UTC().Format(time.RFC3339)
		} else if _, err := time.Parse(time.RFC3339, text); err != nil && text != "" {
			return nil, fmt.Errorf("--%s is %q: give a time such as 2026-03-01T12:00:00Z, or how long ago, such as 36h or 2d: %w", at.name, text, errUsage)
		}
		set(at.name, text)
	}
	q.Set("limit", strconv.Itoa(max(1, min(h.limit, 1000))))
	if h.limit == 0 {
		q.Set("limit", "1000")
	}
	return q, nil
}

func newCheckpointList() *cobra.Command {
	var f clientFlags
	var h historyFilter
	cmd := &cobra.Command{
		Use: "list JOB", Short: "list a job's checkpoints and savepoints, newest first", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			for _, name := range []string{"limit", "attempt"} {
				if n, err := cmd.Flags().GetInt(name); err != nil || cmd.Flags().Changed(name) && n < 1 {
					return fmt.Errorf("--%s is %d: give 1 or more: %w", name, n, errUsage)
				}
			}
			q, err := h.query(time.Now())
			if err != nil {
				return err
			}
			list := []server.Checkpoint{}
			err = eachPage(cmd.Context(), c, jobPath(args[0], "/checkpoints?"+q.Encode()),
				func(p *server.CheckpointList) string {
					if h.limit > 0 && len(list) >= h.limit {
						return ""
					}
					return p.Next
				},
				func(p *server.CheckpointList) { list = append(list, p.Checkpoints...) })
			if err != nil {
				return err
			}
			if h.limit > 0 && len(list) > h.limit {
				list = list[:h.limit]
			}
			return f.show(cmd.OutOrStdout(), list, func(w io.Writer) error { return printHistory(w, list, time.Now()) })
		},
	}
	f.add(cmd)
	h.add(cmd)
	return cmd
}

func printHistory(w io.Writer, list []server.Checkpoint, now time.Time) error {
	t := newTextTable("ID", "TYPE", "STATUS", "TRIGGERED", "DURATION, ms", "SIZE", "NEW", "REASON")
	t.right[0], t.right[4], t.right[5], t.right[6] = true, true, true, true
	for _, cp := range list {
		reason := ""
		if cp.Failure != nil {
			reason = cp.Failure.Reason + ": " + printable(cp.Failure.Message)
		}
		t.add(strconv.FormatInt(cp.ID, 10), cp.Type, cp.Status, ago(cp.TriggeredAt, now), millisText(cp.DurationMS), bytesText(cp.StateBytes), bytesText(cp.NewBytes), reason)
	}
	return t.print(w)
}

// checkpointPath is where a checkpoint is. What is no number may be another path.
func checkpointPath(job, id string) (string, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return "", fmt.Errorf("checkpoints have numbers from 1, %q is none: weir checkpoint list %s shows them: %w", id, job, errUsage)
	}
	return jobPath(job, "/checkpoints/"+strconv.FormatInt(n, 10)), nil
}

// checkpoint is the client, and where the checkpoint is that a command is about.
func (f *clientFlags) checkpoint(job, id string) (*client, string, error) {
	c, err := f.client()
	if err != nil {
		return nil, "", err
	}
	path, err := checkpointPath(job, id)
	return c, path, err
}

func newCheckpointShow() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "show JOB ID", Short: "show a checkpoint, subtask by subtask", Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, path, err := f.checkpoint(args[0], args[1])
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.do(cmd.Context(), "GET", path, nil, &raw); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), raw, func(w io.Writer) error {
				var d server.CheckpointDetail
				if err := json.Unmarshal(raw, &d); err != nil {
					return err
				}
				return printDetail(w, args[0], d, time.Now())
			})
		},
	}
	f.add(cmd)
	return cmd
}

// printDetail writes a checkpoint as a page: what it is, where its time went, and a line
// per subtask.
func printDetail(w io.Writer, job string, d server.CheckpointDetail, now time.Time) error {
	lines := headlines(job, d.Checkpoint, now)
	if d.Failure != nil {
		lines = append(lines, d.Failure.Reason+": "+printable(d.Failure.Message)+where(d.Failure))
	}
	if d.CriticalPath != "" {
		lines = append(lines, "critical path: "+printable(d.CriticalPath))
	}
	if d.Thinned {
		lines = append(lines, "its detail per subtask was given up by --history-detail")
	}
	if d.WaitingUnknown != "" {
		lines = append(lines, "not all tasks say how far they are: "+printable(d.WaitingUnknown))
	}
	if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if len(d.WaitingFor) > 0 {
		return printWaiting(w, d.WaitingFor)
	}
	if len(d.Operators) > 0 {
		return printSubtasks(w, d)
	}
	return nil
}

// headlines say what a checkpoint is, when it was, and how large.
func headlines(job string, c server.Checkpoint, now time.Time) []string {
	what := c.Type
	if c.Savepoint != "" {
		what += " " + c.Savepoint + ", number"
	}
	first := fmt.Sprintf("%s %d of job %s: %s", what, c.ID, printable(job), c.Status)
	times := fmt.Sprintf("triggered %s (%s) in attempt %d, %s", c.TriggeredAt.UTC().Format(clockText), ago(c.TriggeredAt, now), c.Attempt, by(c))
	if c.CompletedAt != nil {
		times += fmt.Sprintf("; ended after %s ms", millisText(c.DurationMS))
	}
	if c.Status != "completed" {
		return []string{first, times}
	}
	sizes := fmt.Sprintf("%s of state, %s of it new", bytesText(c.StateBytes), bytesText(c.NewBytes))
	switch {
	case c.CommitsOpen:
		sizes += "; sinks are still making its output visible"
	case c.OutputGivenUp:
		sizes += "; output that was not visible was given up"
	case c.CommittedAt != nil:
		sizes += fmt.Sprintf("; output visible %s ms later", millisText(c.CommitMS))
	}
	if c.Discarded {
		sizes += "; given up: it cannot be restored"
	}
	return []string{first, times, sizes}
}

const clockText = "2006-01-02 15:04:05.000Z"

// by says who began a checkpoint.
func by(c server.Checkpoint) string {
	switch {
	case c.Periodic:
		return "by the interval"
	case c.Final:
		return "as the last one"
	}
	return "on request"
}

// where names the place of a failure that its message may not.
func where(f *server.CheckpointFailure) string {
	var parts []string
	if f.Operator != "" {
		parts = append(parts, "operator "+printable(f.Operator))
	}
	if f.Subtask != nil {
		parts = append(parts, "subtask "+strconv.Itoa(*f.Subtask))
	}
	if f.Worker != "" {
		parts = append(parts, "worker "+printable(f.Worker))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func printWaiting(w io.Writer, waiting []server.CheckpointWaiting) error {
	t := newTextTable("WAITS FOR", "SUBTASK", "WORKER", "STAGE", "BACK-PRESSURED", "BUSY", "BARRIERS MISSING FROM")
	t.right[1], t.right[4], t.right[5] = true, true, true
	for _, p := range waiting {
		why := make([]string, len(p.Missing))
		for i, m := range p.Missing {
			why[i] = printable(m.Name) + " " + strconv.Itoa(m.Subtask)
		}
		if p.Doing != "" {
			why = append([]string{printable(p.Doing)}, why...)
		}
		t.add(printable(p.Name), strconv.Itoa(p.Subtask), p.Worker, p.Stage, percent(p.BackPressured), percent(p.Busy), strings.Join(why, ", "))
	}
	return t.print(w)
}

func printSubtasks(w io.Writer, d server.CheckpointDetail) error {
	t := newTextTable("OPERATOR", "SUBTASK", "WORKER", "START DELAY, ms", "ALIGNMENT", "CUT", "UPLOAD", "COMMIT", "NEW", "TOTAL", "ACKED, ms", "")
	for i := range t.right {
		t.right[i] = slices.Contains([]int{1, 3, 4, 5, 6, 7, 8, 9, 10}, i)
	}
	for _, op := range d.Operators {
		for _, s := range op.Subtasks {
			acked, mark := "", ""
			if s.AckedAt != nil {
				acked = "+" + millisText(float64(max(s.AckedAt.Sub(d.TriggeredAt), 0).Microseconds())/1000)
			}
			switch {
			case s.Failure != nil:
				mark = s.Failure.Reason + ": " + printable(s.Failure.Message)
			case d.Status != "completed": // it waited for others, who are not in the list
			case d.Last != nil && d.Last.Operator == op.ID && d.Last.Subtask == s.Index:
				mark = "◀ last of all"
			case op.Last != nil && len(op.Subtasks) > 1 && op.Last.Subtask == s.Index:
				mark = "◁ last here"
			}
			t.add(printable(op.Name), strconv.Itoa(s.Index), printable(s.Worker), millisText(s.StartDelayMS), millisText(s.AlignmentMS), millisText(s.CutMS),
				millisText(s.UploadMS), millisText(s.CommitMS), bytesText(s.NewBytes), bytesText(s.TotalBytes), acked, mark)
		}
	}
	return t.print(w)
}

// millisText writes milliseconds: with a fraction where they are few.
func millisText(ms float64) string {
	if ms < 10 && ms != 0 {
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

func percent(share float64) string { return strconv.Itoa(int(share*100+0.5)) + " %" }

func newCheckpointTrigger() *cobra.Command {
	return snapshotVerb("trigger JOB", "take a checkpoint now", "/checkpoints", func() any { return nil })
}

func newCheckpointCancel() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "cancel JOB ID", Short: "give a pending checkpoint or savepoint up", Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, path, err := f.checkpoint(args[0], args[1])
			if err != nil {
				return err
			}
			var cp server.Checkpoint
			if err := c.do(cmd.Context(), "DELETE", path, nil, &cp); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), cp, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %d  %s\n", cp.Type, cp.ID, cp.Status)
				return err
			})
		},
	}
	f.add(cmd)
	return cmd
}

// requestText says how a request came to its checkpoint.
func requestText(request string) string {
	switch request {
	case "queued":
		return "queued: it waited for its turn"
	case "joined":
		return "joined: it shares the one that an earlier request waited for"
	}
	return request
}

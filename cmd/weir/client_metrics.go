package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// metricsView is how a job and its channels fare.
type metricsView struct {
	RowsIn           *int64   `json:"rows_in"` // nil, like the three below: not known
	RowsOut          *int64   `json:"rows_out"`
	RowsInPerSecond  *float64 `json:"rows_in_per_second"`
	RowsOutPerSecond *float64 `json:"rows_out_per_second"`
	StateBytes       *int64   `json:"state_bytes"` // nil: nor these
	SpilledEntries   *int64   `json:"spilled_entries"`
	UploadBytes      *int64   `json:"upload_bytes"`
	DeltaSeconds     *float64 `json:"delta_seconds"`
	Channels         []struct {
		Edge           int     `json:"edge"`
		From           string  `json:"from"`
		To             string  `json:"to"`
		Local          bool    `json:"local"`
		QueuedBytes    int64   `json:"queued_bytes"`
		UnackedBytes   int64   `json:"unacked_bytes"`
		CreditBytes    int64   `json:"credit_bytes"`
		BytesPerSecond float64 `json:"bytes_per_second"`
		ResentFrames   int64   `json:"resent_frames"`
	} `json:"channels"`
	Unanswered []string `json:"unanswered"`
}

// rows says in a line what is known of rows.
func (m metricsView) rows() string {
	if m.RowsIn == nil {
		return "rows not known: no task tells of them"
	}
	return fmt.Sprintf("rows in %s, %s/s; rows out %s, %s/s",
		groupedIfKnown(m.RowsIn), groupedIfKnown(m.RowsInPerSecond), groupedIfKnown(m.RowsOut), groupedIfKnown(m.RowsOutPerSecond))
}

// state says in a line what is known of the state.
func (m metricsView) state() string {
	if m.StateBytes == nil || m.SpilledEntries == nil || m.UploadBytes == nil || m.DeltaSeconds == nil {
		return "state not known"
	}
	return fmt.Sprintf("state %s in memory, %s entries on disk only, %s not in a checkpoint yet; %.1f s of a core went into writing what changed",
		bytesText(*m.StateBytes), grouped(*m.SpilledEntries), bytesText(*m.UploadBytes), *m.DeltaSeconds)
}

func newJobMetrics() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "metrics JOB", Short: "print a job's rates and how the channels between its tasks fare", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.do(cmd.Context(), "GET", jobPath(args[0], "/metrics"), nil, &raw); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), raw, func(w io.Writer) error {
				var m metricsView
				if err := json.Unmarshal(raw, &m); err != nil {
					return err
				}
				return m.print(w)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// print writes a line of rates, one of state, a table of channels, and who is missing in it.
func (m metricsView) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n%s\n", m.rows(), m.state()); err != nil {
		return err
	}
	t := newTextTable("EDGE", "FROM", "TO", "LOCAL", "QUEUED", "UNACKED", "CREDIT", "PER SECOND", "RESENT")
	for i := 4; i < len(t.right); i++ {
		t.right[i] = true
	}
	for _, c := range m.Channels {
		local := "no"
		if c.Local {
			local = "yes"
		}
		t.add(strconv.Itoa(c.Edge), c.From, c.To, local, bytesText(c.QueuedBytes), bytesText(c.UnackedBytes), bytesText(c.CreditBytes), bytesText(int64(c.BytesPerSecond)), grouped(c.ResentFrames))
	}
	if err := t.print(w); err != nil || len(m.Unanswered) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "not answered, so not all is here: %s\n", strings.Join(m.Unanswered, ", "))
	return err
}

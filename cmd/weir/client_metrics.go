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
	Operators        []struct {
		Name              string        `json:"name"`
		Parallelism       int           `json:"parallelism"`
		RowsInPerSecond   *float64      `json:"rows_in_per_second"` // nil, like those below: not known
		RowsOutPerSecond  *float64      `json:"rows_out_per_second"`
		BytesInPerSecond  *float64      `json:"bytes_in_per_second"`
		BytesOutPerSecond *float64      `json:"bytes_out_per_second"`
		Busy              float64       `json:"busy"`
		BackPressured     float64       `json:"back_pressured"`
		Idle              float64       `json:"idle"`
		Busiest           *busiestShare `json:"busiest"`
	} `json:"operators"`
	Bottleneck *bottleneckView `json:"bottleneck"`
	Channels   []struct {
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

// A busiestShare is how busy the busiest subtask is.
type busiestShare struct {
	Subtask int     `json:"subtask"`
	Busy    float64 `json:"busy"`
}

// A bottleneckView is the operator that holds a job up.
type bottleneckView struct {
	Name    string  `json:"name"`
	Subtask int     `json:"subtask"`
	Busy    float64 `json:"busy"`
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

// skewed is by how much more than the mean the busiest subtask has to be busy to be told of.
const skewed = 0.2

// operators writes a table of the operators, and which of them holds the job up.
func (m metricsView) operators(w io.Writer) error {
	t := newTextTable("OPERATOR", "PARALLELISM", "ROWS IN/s", "ROWS OUT/s", "BYTES IN/s", "BYTES OUT/s", "BUSY", "BACK-PRESSURED", "IDLE")
	for i := 1; i < len(t.right); i++ {
		t.right[i] = true
	}
	for _, o := range m.Operators {
		if o.RowsInPerSecond == nil {
			t.add(printable(o.Name), strconv.Itoa(o.Parallelism), "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		busy := percent(o.Busy)
		if b := o.Busiest; b != nil && b.Busy-o.Busy > skewed {
			busy = fmt.Sprintf("%s (subtask %d: %s)", busy, b.Subtask, percent(b.Busy))
		}
		t.add(printable(o.Name), strconv.Itoa(o.Parallelism), rateText(*o.RowsInPerSecond), rateText(orZero(o.RowsOutPerSecond)),
			bytesText(int64(orZero(o.BytesInPerSecond))), bytesText(int64(orZero(o.BytesOutPerSecond))), busy, percent(o.BackPressured), percent(o.Idle))
	}
	if err := t.print(w); err != nil || m.Bottleneck == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the bottleneck is %s: subtask %d is at it for %s of its time\n", printable(m.Bottleneck.Name), m.Bottleneck.Subtask, percent(m.Bottleneck.Busy))
	return err
}

// print writes a line of rates, one of state, a table of operators, one of channels, and who
// is missing in it.
func (m metricsView) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n%s\n", m.rows(), m.state()); err != nil {
		return err
	}
	if err := m.operators(w); err != nil {
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

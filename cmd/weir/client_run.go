package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	followEvery   = 100 * time.Millisecond
	sayEvery      = 5 * time.Second // a plain progress line, where there is no terminal
	waitsAfter    = 2 * time.Second // a job that is not placed by then says why
	liveRows      = 20              // rows of the result shown while the job runs
	stopTimeout   = 60 * time.Second
	pageOfResults = 10_000 // a result that fits one page is printed in order
)

// runFlags are the flags of weir run.
type runFlags struct {
	clientFlags
	submission
	files   []string
	changes bool
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE.sql|-",
		Short: "submit a query, follow its result, print it when bounded input ends",
		Long: "Run submits a script and follows its job until it ends. Without --server it starts everything it needs\n" +
			"in a temporary folder and stops it at the end. Ctrl-C stops a job on a server with a savepoint.\n" +
			"A script with EXPLAIN is planned, and its plan printed; weir sql runs what is for the catalog.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			sql, err := readScript(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			f.SQL = sql
			if f.Name == "" && f.server != "" {
				f.Name = nameOf(args[0])
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.server, "server", "", "a server's address (default: alone, in a temporary folder)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table, or json: one object per row on standard output and nothing else there")
	cmd.Flags().StringVar(&f.Name, "name", "", "the job's name")
	cmd.Flags().IntVar(&f.Parallelism, "parallelism", 0, "subtasks per operator (default 2)")
	f.addOnRowError(cmd)
	cmd.Flags().StringVar(&f.RestoreFrom, "from", "", "start from savepoint:NAME or checkpoint:JOB/7")
	cmd.Flags().StringArrayVar(&f.files, "files", nil, "alone: a folder that file tables may use (default: all your user may)")
	cmd.Flags().BoolVar(&f.changes, "changes", false, "print every change of the result instead")
	return cmd
}

// run starts what is needed, submits, follows and cleans up.
func (f *runFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	alone := f.server == ""
	if alone {
		a, err := startAlone(f.files, stderr)
		if err != nil {
			return err
		}
		defer a.stop()
		f.server = a.url
	}
	c, err := f.client()
	if err != nil {
		return err
	}
	if isExplain(f.SQL) {
		return f.explain(ctx, c, stdout)
	}
	job, err := c.submit(ctx, f.submission)
	if err != nil {
		return err
	}
	w := newProgress(stderr)
	if f.changes {
		job, err = printChanges(ctx, c, job, stdout)
	} else {
		job, err = f.follow(ctx, c, job, w)
	}
	w.clear()
	if errors.Is(err, context.Canceled) {
		return f.interrupted(c, job, alone, stdout, stderr)
	}
	if err != nil {
		return err
	}
	if job.Status == "FAILED" {
		return jobFailed(job)
	}
	if !f.changes { // they were the result
		w.final(job)
	}
	if err := f.sayRejects(ctx, c, job, alone, w); err != nil || f.changes {
		return err
	}
	return f.printResult(ctx, c, job, stdout)
}

func jobFailed(job jobView) error {
	if job.Failure == nil {
		return fmt.Errorf("job %s failed", job.Name)
	}
	return fmt.Errorf("job %s failed: %s", job.Name, job.Failure.Message)
}

// follow polls the job until it has ended; it returns the job as last seen.
func (f *runFlags) follow(ctx context.Context, c *client, job jobView, w *progress) (jobView, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		var now jobView
		if err := c.do(ctx, "GET", jobPath(job.ID, ""), nil, &now); err != nil {
			var p *problem
			if ctx.Err() != nil || errors.As(err, &p) && p.Status < 500 {
				return job, err
			}
			w.say(fmt.Sprintf("waiting for the server: %v", err))
		} else {
			job = now
			if terminal(job) {
				return job, nil
			}
			var table resultView
			if w.terminal && job.Status == "RUNNING" && f.output == "table" {
				q := url.Values{"limit": {fmt.Sprint(liveRows)}}
				_ = c.do(ctx, "GET", jobPath(job.ID, "/results?"+q.Encode()), nil, &table)
			}
			w.show(job, table)
			if w.waits(job) {
				w.reason = c.lastEvent(ctx, job)
			}
		}
		select {
		case <-ctx.Done():
			return job, context.Canceled
		case <-tick.C:
		}
	}
}

// interrupted ends the job after Ctrl-C: with a savepoint on a server; alone there is
// nowhere to keep one, so the result so far is printed and the job ends.
func (f *runFlags) interrupted(c *client, job jobView, alone bool, stdout, stderr io.Writer) error {
	ctx := context.Background()
	if !alone {
		var err error
		if job, err = c.ask(ctx, job.ID, "/stop", nil, ending); err != nil {
			return fmt.Errorf("stop with savepoint: %w", err)
		}
		if job.Status == "FAILED" {
			return jobFailed(job)
		}
		_, err = fmt.Fprintf(stderr, "%s: %s at %s; go on with: weir job start %s%s\n", job.Name, strings.ToLower(job.Status), job.Base, job.Name, onServer(f.server))
		if err != nil {
			return err
		}
	}
	if f.changes {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return f.printResult(ctx, c, job, stdout)
}

// printResult prints the whole result table, if the job keeps one.
func (f *runFlags) printResult(ctx context.Context, c *client, job jobView, stdout io.Writer) error {
	if !job.HasResult {
		return nil
	}
	var probe, all resultView
	if err := c.do(ctx, "GET", jobPath(job.ID, "/results?limit=1"), nil, &probe); err != nil {
		return err
	}
	q := url.Values{"limit": {fmt.Sprint(pageOfResults)}}
	if probe.Total <= pageOfResults {
		q.Set("order_by", probe.order())
	}
	path := jobPath(job.ID, "/results?"+q.Encode())
	var printErr error
	err := eachPage(ctx, c, path, func(p *resultView) string { return p.Next }, func(p *resultView) {
		if f.output == "json" {
			printErr = errors.Join(printErr, p.printRows(stdout))
			return
		}
		all.Columns = p.Columns
		all.Rows = append(all.Rows, p.Rows...)
	})
	if err = errors.Join(err, printErr); err != nil || f.output == "json" {
		return err
	}
	return all.print(stdout)
}

// order names the columns, so that a small result comes out the same each time: as many
// as a URL carries.
func (r resultView) order() string {
	const most = 4000
	var names []string
	length := 0
	for _, c := range r.Columns {
		name := c.Name
		if strings.ContainsAny(name, "\", -\t\r\n") {
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		if length += len(name) + 1; length > most {
			break
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// A progress shows how a job fares: in place on a terminal, as plain lines elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	lines    int // drawn last, to be overdrawn
	began    time.Time
	said     time.Time
	state    string // said last
	reason   string // why the job is not placed, once that takes long
}

func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, began: time.Now(), terminal: ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"}
}

// line is the one line that says it all.
func (p *progress) line(job jobView) string {
	now := time.Now()
	s := strings.ToLower(job.Status)
	if job.RowsIn != nil {
		s += fmt.Sprintf("  %s rows  %s rows/s", grouped(*job.RowsIn), rateText(orZero(job.RowsInPerSecond)))
		if b := job.BytesInPerSecond; b != nil {
			s += fmt.Sprintf("  %s/s", bytesText(int64(*b)))
		}
	}
	if b := job.Bottleneck; b != nil {
		s += fmt.Sprintf("  busiest: %s %s", printable(b.Name), percent(b.Busy))
	}
	if cp := job.LastCheckpoint; cp != nil && cp.CompletedAt != nil {
		s += fmt.Sprintf("  checkpoint %d, %.1f s ago", cp.ID, max(0, now.Sub(*cp.CompletedAt).Seconds()))
	}
	if job.Status == "SCHEDULING" && p.reason != "" {
		s += "  " + printable(p.reason)
	}
	if job.Failure != nil && job.Status == "RESTARTING" {
		s += "  after: " + printable(job.Failure.Message)
	}
	return s
}

// waits reports whether the job has not been placed for long, and nobody has asked why.
func (p *progress) waits(job jobView) bool {
	if job.Status != "SCHEDULING" {
		p.reason = ""
	}
	return job.Status == "SCHEDULING" && p.reason == "" && time.Since(orZero(job.StartedAt)) > waitsAfter
}

// show draws the job's state; off a terminal it says a line now and then, and when
// the status changes.
func (p *progress) show(job jobView, table resultView) {
	line := p.line(job)
	if !p.terminal {
		if state := job.Status + p.reason; state != p.state || time.Since(p.said) >= sayEvery {
			p.state = state
			p.say(line)
		}
		return
	}
	var b bytes.Buffer
	if len(table.Columns) > 0 {
		_ = table.print(&b)
	}
	b.WriteString(line + "\n")
	p.redraw(b.String())
}

func (p *progress) redraw(text string) {
	var b strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.lines)
	}
	b.WriteString("\x1b[J")
	width := 1 << 20
	if f, ok := p.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			width = w
		}
	}
	for line := range strings.Lines(text) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		b.WriteString(string(runes[:min(len(runes), width)]) + "\n")
	}
	p.lines = strings.Count(text, "\n")
	io.WriteString(p.out, b.String()) //nolint:errcheck // progress only
}

// clear takes the drawing away.
func (p *progress) clear() {
	if p.terminal && p.lines > 0 {
		p.redraw("")
		p.lines = 0
	}
}

// say writes a plain line.
func (p *progress) say(line string) {
	p.clear()
	p.said = time.Now()
	fmt.Fprintln(p.out, line) //nolint:errcheck // progress only
}

// final sums the run up.
func (p *progress) final(job jobView) {
	s := strings.ToLower(job.Status)
	if job.RowsIn != nil {
		s += fmt.Sprintf("  %s rows", grouped(*job.RowsIn))
	}
	if job.StartedAt != nil && job.EndedAt != nil {
		d := max(job.EndedAt.Sub(*job.StartedAt), 0) // by times of day, which may have been set between
		s += fmt.Sprintf(" in %.3f s", d.Seconds())
		if d > 0 && job.RowsIn != nil {
			s += fmt.Sprintf("  %s rows/s", grouped(int64(float64(*job.RowsIn)/d.Seconds())))
		}
	}
	if job.Attempt > 1 {
		s += fmt.Sprintf("  since attempt %d began", job.Attempt) // those before read rows too
	}
	if cp := job.LastCheckpoint; cp != nil {
		s += fmt.Sprintf("  checkpoint %d", cp.ID)
	}
	p.say(s)
}

package main

import (
	"bufio"
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
	followEvery   = 250 * time.Millisecond
	sayEvery      = 5 * time.Second // a plain progress line, where there is no terminal
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
			"in a temporary folder and stops it at the end. Ctrl-C stops a job on a server with a savepoint.",
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
	job, err := c.submit(ctx, f.submission)
	if err != nil {
		return err
	}
	if f.changes {
		return f.printChanges(ctx, c, job, stdout)
	}
	w := newProgress(stderr)
	job, err = f.follow(ctx, c, job, w)
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
	w.final(job)
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
			switch job.Status {
			case "FINISHED", "FAILED", "STOPPED", "CANCELED":
				return job, nil
			}
			var table resultView
			if w.terminal && job.Status == "RUNNING" && f.output == "table" {
				q := url.Values{"limit": {fmt.Sprint(liveRows)}}
				_ = c.do(ctx, "GET", jobPath(job.ID, "/results?"+q.Encode()), nil, &table)
			}
			w.show(job, table)
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
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if alone {
		return f.printResult(ctx, c, job, stdout)
	}
	if err := c.do(ctx, "POST", jobPath(job.ID, "/stop"), nil, &job); err != nil {
		return fmt.Errorf("stop with savepoint: %w", err)
	}
	job, err := f.follow(ctx, c, job, newProgress(io.Discard))
	if err != nil {
		return fmt.Errorf("stop with savepoint: %w", err)
	}
	if job.Status == "FAILED" {
		return jobFailed(job)
	}
	if _, err := fmt.Fprintf(stderr, "%s: %s at %s; go on with: weir job start %s\n", job.Name, strings.ToLower(job.Status), job.Base, job.Name); err != nil {
		return err
	}
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

// order names all columns, so that a small result comes out the same each time. A
// name that the parameter could not carry is left out.
func (r resultView) order() string {
	var names []string
	for _, c := range r.Columns {
		if !strings.ContainsAny(c.Name, ", -\"") {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ",")
}

// printChanges prints each change of the result as one JSON object a line, until the
// job ends.
func (f *runFlags) printChanges(ctx context.Context, c *client, job jobView, stdout io.Writer) error {
	if !job.HasResult {
		return fmt.Errorf("job %s writes to a table: it keeps no result whose changes could be printed: %w", job.Name, errUsage)
	}
	res, err := c.send(ctx, "GET", jobPath(job.ID, "/results"), "text/event-stream", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	err = eachEvent(res.Body, func(event, data string) error {
		if event != "change" {
			return nil
		}
		_, err := fmt.Fprintln(stdout, data)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := c.do(ctx, "GET", jobPath(job.ID, ""), nil, &job); err != nil {
		return err
	}
	if job.Status == "FAILED" {
		return jobFailed(job)
	}
	return nil
}

// eachEvent calls f with the name and data of each server-sent event.
func eachEvent(r io.Reader, f func(event, data string) error) error {
	var event string
	var data []string
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			if len(data) > 0 {
				if err := f(event, strings.Join(data, "\n")); err != nil {
					return err
				}
			}
			event, data = "", nil
		case strings.HasPrefix(line, "event:"):
			event = strings.TrimSpace(line[len("event:"):])
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[len("data:"):], " "))
		}
	}
}

// A progress shows how a job fares: in place on a terminal, as plain lines elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	lines    int // drawn last, to be overdrawn
	began    time.Time
	said     time.Time
	status   string
	rows     int64
	at       time.Time
	rate     float64
}

func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, began: time.Now(), terminal: ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"}
}

// line is the one line that says it all.
func (p *progress) line(job jobView) string {
	now := time.Now()
	if !p.at.IsZero() && now.After(p.at) && job.RowsIn >= p.rows {
		current := float64(job.RowsIn-p.rows) / now.Sub(p.at).Seconds()
		p.rate += (current - p.rate) * 0.5
	}
	p.rows, p.at = job.RowsIn, now
	s := fmt.Sprintf("%s  %s rows  %s rows/s", strings.ToLower(job.Status), grouped(job.RowsIn), grouped(int64(p.rate)))
	if cp := job.LastCheckpoint; cp != nil && cp.CompletedAt != nil {
		s += fmt.Sprintf("  checkpoint %d, %.1f s ago", cp.ID, max(0, now.Sub(*cp.CompletedAt).Seconds()))
	}
	if job.Failure != nil && job.Status == "RESTARTING" {
		s += "  after: " + printable(job.Failure.Message)
	}
	return s
}

// show draws the job's state; off a terminal it says a line now and then, and when
// the status changes.
func (p *progress) show(job jobView, table resultView) {
	line := p.line(job)
	if !p.terminal {
		if job.Status != p.status || time.Since(p.said) >= sayEvery {
			p.status = job.Status
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
	s := fmt.Sprintf("%s  %s rows", strings.ToLower(job.Status), grouped(job.RowsIn))
	if job.StartedAt != nil && job.EndedAt != nil {
		d := job.EndedAt.Sub(*job.StartedAt)
		s += fmt.Sprintf(" in %.3f s", d.Seconds())
		if d > 0 {
			s += fmt.Sprintf("  %s rows/s", grouped(int64(float64(job.RowsIn)/d.Seconds())))
		}
	}
	if cp := job.LastCheckpoint; cp != nil {
		s += fmt.Sprintf("  checkpoint %d", cp.ID)
	}
	p.say(s)
}

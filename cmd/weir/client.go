package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// defaultServer is where weir up listens.
const defaultServer = "http://127.0.0.1:7420"

// A client speaks to a server's HTTP API.
type client struct {
	base string // scheme and host, no slash at the end
	http *http.Client
}

func newClient(server string) (*client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("server %q is not a URL such as %s: %w", server, defaultServer, errUsage)
	}
	return &client{base: u.Scheme + "://" + u.Host, http: &http.Client{}}, nil
}

// A problem is the server's answer to a request it refuses (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"errors"`
	sql string // the script sent, for the caret lines
}

// Error gives the faults, each with its line of SQL, a caret and a hint.
func (p *problem) Error() string {
	if len(p.Errors) == 0 {
		if p.Detail == "" {
			return p.Title
		}
		return p.Detail
	}
	lines := strings.Split(p.sql, "\n")
	var b strings.Builder
	for i, e := range p.Errors {
		if i > 0 {
			b.WriteString("\n")
		}
		if e.Line > 0 {
			fmt.Fprintf(&b, "line %d, column %d: ", e.Line, e.Column)
		} else if e.Field != "" {
			b.WriteString(e.Field + " ")
		}
		b.WriteString(e.Message)
		if e.Line > 0 && e.Line <= len(lines) && p.sql != "" {
			line, at := excerpt(lines[e.Line-1], e.Column-1)
			fmt.Fprintf(&b, "\n  %s\n  %s^", line, strings.Repeat(" ", at))
		}
		if e.Hint != "" {
			fmt.Fprintf(&b, "\n  hint: %s", e.Hint)
		}
	}
	return b.String()
}

// excerpt cuts a long line down to what stands around a character of it, and says where
// that is now.
func excerpt(line string, at int) (string, int) {
	const before, behind = 70, 50
	text := []rune(strings.Map(visible, strings.TrimRight(line, "\r")))
	at = min(max(0, at), len(text))
	if len(text) > at+behind {
		text = append(text[:at+behind:at+behind], '…')
	}
	if at > before {
		text = append([]rune{'…'}, text[at-before:]...)
		at = before + 1
	}
	return string(text), at
}

// visible makes a blank of what would move the caret or steer the terminal.
func visible(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// do sends in as JSON (nil: no body) and decodes the answer into out (nil: none).
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	res, err := c.send(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: the answer is not the JSON expected: %w", method, place(path), err)
	}
	return nil
}

// send makes one request; an answer of 400 or more becomes a *problem.
func (c *client) send(ctx context.Context, method, path, accept string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) && ctx.Err() == nil {
			return nil, fmt.Errorf("cannot reach the server at %s (%w); is 'weir up' running?", c.base, ue.Err)
		}
		return nil, err
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	defer res.Body.Close()
	p := &problem{Title: res.Status, Status: res.StatusCode}
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err := json.Unmarshal(b, p); err != nil {
		p.Detail = fmt.Sprintf("%s %s: %s", method, place(path), res.Status)
	}
	return nil, p
}

// place is a path as an error shows it: without the query, whose cursor may be long.
func place(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// The parts of the API's answers that the verbs show.
type (
	jobView struct {
		ID               string          `json:"id"`
		Name             string          `json:"name"`
		Status           string          `json:"status"`
		Desired          string          `json:"desired"`
		Attempt          int64           `json:"attempt"`
		Base             string          `json:"base"`
		RestoredFrom     string          `json:"restored_from"`
		Parallelism      int             `json:"parallelism"`
		SQL              string          `json:"sql"`
		CreatedAt        time.Time       `json:"created_at"`
		StartedAt        *time.Time      `json:"started_at"`
		EndedAt          *time.Time      `json:"ended_at"`
		HasResult        bool            `json:"has_result"`
		RowsIn           *int64          `json:"rows_in,omitempty"` // nil, like the two below: not known
		RowsOut          *int64          `json:"rows_out,omitempty"`
		RowsRejected     *int64          `json:"rows_rejected,omitempty"`
		RowsInPerSecond  *float64        `json:"rows_in_per_second,omitempty"`
		BytesInPerSecond *float64        `json:"bytes_in_per_second,omitempty"`
		Bottleneck       *bottleneckView `json:"bottleneck,omitempty"`
		Bounded          bool            `json:"bounded"`
		Failure          *failure        `json:"failure"`
		LastCheckpoint   *checkpointView `json:"last_checkpoint"`
	}
	failure struct {
		Reason   string `json:"reason"`
		Operator string `json:"operator"`
		Message  string `json:"message"`
	}
	checkpointView struct {
		ID          int64      `json:"id"`
		Type        string     `json:"type"`
		Status      string     `json:"status"`
		Savepoint   string     `json:"savepoint"`
		TriggeredAt time.Time  `json:"triggered_at"`
		CompletedAt *time.Time `json:"completed_at"`
		DurationMS  float64    `json:"duration_ms"`
		StateBytes  int64      `json:"state_bytes"`
		NewBytes    int64      `json:"new_bytes"`
		Failure     *failure   `json:"failure"`
	}
	savepointView struct {
		Name        string    `json:"name"`
		Job         string    `json:"job"`
		JobName     string    `json:"job_name"`
		Checkpoint  int64     `json:"checkpoint"`
		Status      string    `json:"status"`
		StateBytes  int64     `json:"state_bytes"`
		TriggeredAt time.Time `json:"triggered_at"`
		Failure     *failure  `json:"failure"`
	}
	resultView struct {
		Columns []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"columns"`
		Rows  []json.RawMessage `json:"rows"`
		Total int64             `json:"total"`
		Next  string            `json:"next"`
	}
)

// clientFlags are the flags of every verb that speaks to a server.
type clientFlags struct {
	server string
	output string
}

func (f *clientFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.server, "server", defaultServer, "the server's address")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table or json")
}

// client checks the flags and returns the client.
func (f *clientFlags) client() (*client, error) {
	if f.output != "table" && f.output != "json" {
		return nil, fmt.Errorf("output %q is neither table nor json: %w", f.output, errUsage)
	}
	return newClient(f.server)
}

// show prints v as indented JSON, or as table does.
func (f *clientFlags) show(w io.Writer, v any, table func(io.Writer) error) error {
	if f.output != "json" {
		return table(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// jobPath gives the API's path of a job and what follows it.
func jobPath(job string, rest string) string { return "/v1/jobs/" + url.PathEscape(job) + rest }

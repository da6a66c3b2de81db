package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/server/job"
)

// Results is a page of a job's result table.
type Results struct {
	Columns []ResultColumn    `json:"columns"`
	Rows    []json.RawMessage `json:"rows" swaggertype:"array,object"` // objects of the columns
	AsOf    AsOf              `json:"as_of"`
	Total   int64             `json:"total"`          // rows of the whole table
	Next    string            `json:"next,omitempty"` // cursor of the next page; absent: this is the last
} // @name Results

// AsOf says what a read shows: a checkpoint's state or, live, the running tasks',
// which go back to the checkpoint when they fail.
type AsOf struct {
	Checkpoint int64 `json:"checkpoint"`
	Live       bool  `json:"live"`
} // @name AsOf

// getResults shows a job's result table, or follows its changes.
//
//	@Summary		Show a job's result table, or follow its changes
//	@Description	With Accept: text/event-stream and follow=rows the answer is a stream of events: rows, whose data is what the same request answers without them, now and whenever it has changed, and end when the job has ended.
//	@Description	With Accept: text/event-stream alone it is one of changes: reset (forget all rows; its data has columns and as_of, and truncated where the table is too large to be told: then rows are left out), then change with {"op":"+I|-U|+U|-D","row":{…}}, and end when the job has ended. An event's id may be given as Last-Event-ID to go on from it.
//	@Tags			results
//	@Produce		json,text/event-stream
//	@Param			job			path		string	true	"id or name"
//	@Param			limit		query		int		false	"rows per page"	default(1000)	minimum(1)	maximum(10000)
//	@Param			order_by	query		string	false	"columns with commas between, each with - before it or desc after it to turn its order; a name with a blank, a comma or - in front stands in double quotes"
//	@Param			cursor		query		string	false	"next of the page before"
//	@Param			at			query		string	false	"latest (live while the job runs), checkpoint:7 or savepoint:NAME"
//	@Param			follow		query		string	false	"what a stream of events tells: each change of the table, or the page's rows"	Enums(changes,rows)	default(changes)
//	@Param			format		query		string	false	"json"	Enums(json)
//	@Param			numbers		query		string	false	"string: numbers that a double cannot hold are strings"	Enums(string,number)
//	@Success		200			{object}	Results
//	@Router			/v1/jobs/{job}/results [get]
func (s *Server) getResults(c echo.Context) error {
	q := query(c)
	ask := job.ResultQuery{Limit: int(q.number("limit", 1000, 1, 10000)), OrderBy: q.text("order_by"), Cursor: q.text("cursor"), At: q.text("at")}
	if format := q.text("format"); format != "" && format != "json" {
		q.fault("format", "is "+quoted(format)+": only json is supported by this version")
	}
	exact := false
	switch numbers := q.text("numbers"); numbers {
	case "", "number":
	case "string":
		exact = true
	default:
		q.fault("numbers", "is "+quoted(numbers)+": give string or number")
	}
	stream, follow := wantsStream(c.Request()), q.text("follow")
	switch {
	case follow != "" && follow != "changes" && follow != "rows":
		q.fault("follow", "is "+quoted(follow)+": give changes or rows")
	case follow != "" && !stream:
		q.fault("follow", "goes with Accept: text/event-stream only")
	case follow == "rows" && ask.At != "" && ask.At != "latest":
		q.fault("at", "is "+quoted(ask.At)+": only latest changes and can be followed")
	}
	if err := q.done(); err != nil {
		return err
	}
	switch {
	case stream && follow == "rows":
		return s.streamRows(c, ask, exact)
	case stream:
		return s.streamChanges(c, exact)
	}
	page, err := s.deps.Service.Results(c.Request().Context(), param(c, "job"), ask)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewResults(page, exact))
}

func viewResults(page *job.ResultPage, exact bool) Results {
	v := Results{Columns: viewColumns(page.Columns), Rows: page.Rows, AsOf: viewAsOf(page.AsOf), Total: page.Total, Next: page.Next}
	if v.Rows == nil {
		v.Rows = []json.RawMessage{}
	}
	if exact {
		for i, row := range v.Rows {
			v.Rows[i] = quoteNumbers(row)
		}
	}
	return v
}

func viewAsOf(a job.AsOf) AsOf { return AsOf{Checkpoint: int64(a.Checkpoint), Live: a.Live} }

// streamChanges sends what changes in a job's result table until the job has ended.
func (s *Server) streamChanges(c echo.Context, exact bool) error {
	ctx, cancel := streamContext(c.Request())
	defer cancel()
	cursor := c.Request().Header.Get("Last-Event-ID")
	j, err := s.deps.Service.Get(ctx, param(c, "job"))
	if err != nil {
		return err
	}
	page, err := s.deps.Service.Changes(ctx, param(c, "job"), cursor)
	if err != nil {
		if !later(j, err) {
			return err // nothing is sent yet: an ordinary problem
		}
		page = nil
	}
	out := newStream(c)
	began, anew := time.Now(), false
	for {
		wait := s.opts.Poll
		if page != nil {
			if anew = page.Reset && !anew; page.Reset && !anew { // again: it changes faster than it can be told
				wait = new(pace).rest(wait, time.Since(began), changesSize(page))
			}
			if err := sendChanges(out, page, exact); err != nil {
				return nil // the client has gone
			}
			cursor = page.Cursor
			if page.Status.Terminal() && !page.More {
				out.send("end", cursor, map[string]any{"status": page.Status})
				return nil
			}
		}
		if (page == nil || !page.More) && !out.pause(ctx, wait) {
			return nil
		}
		began = time.Now()
		page, err = s.deps.Service.Changes(ctx, param(c, "job"), cursor)
		if err != nil {
			// Its tasks may be between attempts, or have just ended. Only without the job is it over.
			if _, gone := s.deps.Service.Get(ctx, param(c, "job")); ctx.Err() != nil || errors.Is(gone, weir.ErrNotFound) {
				return nil
			}
			s.deps.Logger.Debug("changes not read, tried again", "job", param(c, "job"), "err", err)
			page = nil // its tasks are between attempts: later
		}
	}
}

func changesSize(page *job.ChangePage) (n int) {
	for _, change := range page.Changes {
		n += len(change.Row)
	}
	return n
}

// later reports whether a result that could not be read will be: the job's tasks are
// between attempts, or have just ended.
func later(j weir.Job, err error) bool {
	graph, _ := graphOf(j) // of a plan that cannot be read there is no result
	return !j.Status.Terminal() && graph.keepsResult() && (errors.Is(err, weir.ErrConflict) || errors.Is(err, job.ErrUnavailable))
}

func sendChanges(out *stream, page *job.ChangePage, exact bool) error {
	if page.Reset {
		reset := map[string]any{"columns": viewColumns(page.Columns), "as_of": viewAsOf(page.AsOf)}
		if page.Truncated {
			reset["truncated"] = true
		}
		out.put("reset", "", reset)
	}
	for i, change := range page.Changes {
		if exact {
			change.Row = quoteNumbers(change.Row)
		}
		id := ""
		if i == len(page.Changes)-1 {
			id = page.Cursor // only the whole page is a place to go on from
		}
		out.put("change", id, change)
	}
	return out.flush()
}

// quoteNumbers makes those numbers of a JSON object strings that a double does not
// hold exactly: whole ones beyond 2^53, others of more than 17 digits.
func quoteNumbers(row json.RawMessage) json.RawMessage {
	var out []byte
	last := 0
	for i := 0; i < len(row); {
		switch b := row[i]; {
		case b == '"':
			for i++; i < len(row) && row[i] != '"'; i++ {
				if row[i] == '\\' {
					i++
				}
			}
			i++
		case b == '-' || b >= '0' && b <= '9':
			end := i + 1
			for end < len(row) && strings.IndexByte("0123456789.eE+-", row[end]) >= 0 {
				end++
			}
			if beyondDouble(string(row[i:end])) {
				out = append(append(append(append(out, row[last:i]...), '"'), row[i:end]...), '"')
				last = end
			}
			i = end
		default:
			i++
		}
	}
	if last == 0 {
		return row
	}
	return append(out, row[last:]...)
}

func beyondDouble(number string) bool {
	number = strings.TrimPrefix(number, "-")
	if strings.ContainsAny(number, "eE") {
		return false // only doubles are written so
	}
	whole, fraction, point := strings.Cut(number, ".")
	const limit = "9007199254740992" // 2^53
	if len(whole) > len(limit) || len(whole) == len(limit) && whole > limit {
		return true
	}
	return point && len(strings.TrimLeft(whole+fraction, "0")) > 17
}

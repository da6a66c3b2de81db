package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

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
//	@Description	With Accept: text/event-stream the answer is a stream of events: reset (forget all rows; its data has columns and as_of), then change with {"op":"+I|-U|+U|-D","row":{…}}, and end when the job has ended. An event's id may be given as Last-Event-ID to go on from it.
//	@Tags			results
//	@Produce		json,text/event-stream
//	@Param			job			path		string	true	"id or name"
//	@Param			limit		query		int		false	"rows per page"	default(1000)	minimum(1)	maximum(10000)
//	@Param			order_by	query		string	false	"columns with commas between, each with - before it or desc after it to turn its order"
//	@Param			cursor		query		string	false	"next of the page before"
//	@Param			at			query		string	false	"latest (live while the job runs), checkpoint:7 or savepoint:NAME"
//	@Param			format		query		string	false	"json"	Enums(json)
//	@Param			numbers		query		string	false	"string: numbers that a double cannot hold are strings"	Enums(string,number)
//	@Success		200			{object}	Results
//	@Router			/v1/jobs/{job}/results [get]
func (s *Server) getResults(c echo.Context) error {
	q := query(c)
	ask := job.ResultQuery{Limit: int(q.number("limit", 1000, 1, 10000)), OrderBy: orderBy(q.text("order_by")), Cursor: q.text("cursor"), At: q.text("at")}
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
	if err := q.done(); err != nil {
		return err
	}
	if wantsStream(c.Request()) {
		return s.streamChanges(c, exact)
	}
	page, err := s.deps.Service.Results(c.Request().Context(), param(c, "job"), ask)
	if err != nil {
		return err
	}
	v := Results{Columns: viewColumns(page.Columns), Rows: page.Rows, AsOf: viewAsOf(page.AsOf), Total: page.Total, Next: page.Next}
	if v.Rows == nil {
		v.Rows = []json.RawMessage{}
	}
	if exact {
		for i, row := range v.Rows {
			v.Rows[i] = quoteNumbers(row)
		}
	}
	return c.JSON(http.StatusOK, v)
}

func viewAsOf(a job.AsOf) AsOf { return AsOf{Checkpoint: int64(a.Checkpoint), Live: a.Live} }

// orderBy turns "-n,behavior" into "n desc,behavior".
func orderBy(text string) string {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		if column, ok := strings.CutPrefix(strings.TrimSpace(part), "-"); ok {
			parts[i] = column + " desc"
		}
	}
	return strings.Join(parts, ",")
}

// streamChanges sends what changes in a job's result table until the job has ended.
func (s *Server) streamChanges(c echo.Context, exact bool) error {
	ctx, cancel := streamContext(c.Request())
	defer cancel()
	cursor := c.Request().Header.Get("Last-Event-ID")
	j, err := s.deps.Service.Get(ctx, param(c, "job"))
	if err != nil {
		return err
	}
	graph, _ := graphOf(j) // of a plan that cannot be read there is no result
	page, err := s.deps.Service.Changes(ctx, param(c, "job"), cursor)
	switch {
	case err == nil:
	case j.Status.Terminal(), !graph.keepsResult(), !errors.Is(err, weir.ErrConflict) && !errors.Is(err, job.ErrUnavailable):
		return err // nothing is sent yet: an ordinary problem
	default:
		page = nil // its tasks are between attempts, or have just ended: later
	}
	out := newStream(c)
	for {
		if page != nil {
			if err := sendChanges(out, page, exact); err != nil {
				return nil // the client has gone
			}
			cursor = page.Cursor
			if page.Status.Terminal() && !page.More {
				out.send("end", cursor, map[string]any{"status": page.Status})
				return nil
			}
		}
		if (page == nil || !page.More) && !out.pause(ctx, s.opts.Poll) {
			return nil
		}
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

func sendChanges(out *stream, page *job.ChangePage, exact bool) error {
	if page.Reset {
		out.put("reset", "", map[string]any{"columns": viewColumns(page.Columns), "as_of": viewAsOf(page.AsOf)})
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

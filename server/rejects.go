package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir"
)

// Rejects is a page of the rows that a job rejected.
type Rejects struct {
	Counts []RejectCount `json:"counts"` // all of them, by table
	Rows   []Reject      `json:"rows"`   // by table, path and offset; with skip only the first 100 of each table
	AsOf   AsOf          `json:"as_of"`
	Next   string        `json:"next,omitempty"` // cursor of the next page; absent: this is the last
} // @name Rejects

// A RejectCount is the number of rows that were rejected of a table.
type RejectCount struct {
	Table string `json:"table"` // or the operator, where rows computed from many were at fault
	Rows  int64  `json:"rows"`
} // @name RejectCount

// A Reject is a row at fault.
type Reject struct {
	Table     string  `json:"table" example:"events"`
	Path      string  `json:"path,omitempty" example:"data/events.json"`
	Line      int64   `json:"line,omitempty"`   // from 1
	Offset    *int64  `json:"offset,omitempty"` // of the record in its file, bytes, or the row's number in its source
	Column    string  `json:"column,omitempty"` // the column or expression at fault; absent: the whole record
	Reason    string  `json:"reason"`
	Raw       *string `json:"raw,omitempty"`        // the record as it lies in the source; absent: it is well-formed
	RawBase64 string  `json:"raw_base64,omitempty"` // in place of raw, of a record that is no UTF-8
} // @name Reject

// getRejects shows the rows that a job rejected.
//
//	@Summary		Show the rows that a job skipped or kept because they were at fault
//	@Description	With on_row_error keep all of them are kept, a record of more than 64 KiB shortened; with skip they are counted, and the first 100 of each table kept, shortened to 1 KiB. With fail (409) there are none: a row at fault fails the job.
//	@Tags			results
//	@Produce		json
//	@Param			job		path		string	true	"id or name"
//	@Param			limit	query		int		false	"rows per page"	default(100)	minimum(1)	maximum(10000)
//	@Param			cursor	query		string	false	"next of the page before"
//	@Success		200		{object}	Rejects
//	@Router			/v1/jobs/{job}/rejects [get]
func (s *Server) getRejects(c echo.Context) error {
	q := query(c)
	limit, cursor := int(q.number("limit", 100, 1, 10000)), q.text("cursor")
	if err := q.done(); err != nil {
		return err
	}
	page, err := s.deps.Service.Rejects(c.Request().Context(), param(c, "job"), limit, cursor)
	if err != nil {
		return err
	}
	v := Rejects{Counts: []RejectCount{}, Rows: make([]Reject, len(page.Rows)), AsOf: viewAsOf(page.AsOf), Next: page.Next}
	for _, n := range page.Counts {
		v.Counts = append(v.Counts, RejectCount(n))
	}
	for i, row := range page.Rows {
		if err := json.Unmarshal(row, &v.Rows[i]); err != nil {
			return fmt.Errorf("rejected row %d: %w", i, err)
		}
	}
	return c.JSON(http.StatusOK, v)
}

// rejectedRows counts what a job has rejected where its figures do not say: it does not
// run, or has just begun to. nil where it cannot be told.
func (s *Server) rejectedRows(c echo.Context, j weir.Job) *int64 {
	page, err := s.deps.Service.Rejects(c.Request().Context(), string(j.ID), 1, "")
	if err != nil {
		return nil
	}
	n := int64(0)
	for _, count := range page.Counts {
		n += count.Rows
	}
	return &n
}

package server

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/planner"
	"weir/server/job"
)

// A Problem is how every error is answered (RFC 9457).
type Problem struct {
	Type   string  `json:"type" example:"about:blank"`
	Title  string  `json:"title" example:"Unprocessable Entity"`
	Status int     `json:"status" example:"422"`
	Detail string  `json:"detail" example:"line 1, column 8: unknown column n (did you mean m?)"`
	Errors []Fault `json:"errors,omitempty"`
} // @name Problem

// A Fault is one thing that is wrong with a request: a place in a script, or a field.
type Fault struct {
	Line    int    `json:"line,omitempty" example:"1"`
	Column  int    `json:"column,omitempty" example:"8"`
	Field   string `json:"field,omitempty" example:"parallelism"`
	Message string `json:"message" example:"unknown column n"`
	Hint    string `json:"hint,omitempty" example:"did you mean m?"`
	Snippet string `json:"snippet,omitempty"` // the line, and carets under the place
	Code    string `json:"code,omitempty" example:"name"`
} // @name Fault

// internal is all that a user hears of a fault of ours.
const internal = "the server could not answer because of a fault of its own; its log says more"

// A refusal is a request that the server does not carry out.
type refusal struct{ Problem }

// Error gives the detail.
func (r *refusal) Error() string { return r.Detail }

// refuse makes a refusal; without detail it is that of the faults.
func refuse(status int, detail string, faults ...Fault) error {
	if detail == "" {
		detail = describe(faults)
	}
	return &refusal{Problem{Status: status, Detail: detail, Errors: faults}}
}

// describe joins faults into a sentence.
func describe(faults []Fault) string {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = strings.TrimSpace(f.Field + " " + f.Message)
		if f.Hint != "" {
			texts[i] += " (" + f.Hint + ")"
		}
	}
	return strings.Join(texts, "; ")
}

// fail answers an error of a handler.
func (s *Server) fail(err error, c echo.Context) {
	r := c.Request()
	if c.Response().Committed || r.Context().Err() != nil {
		return
	}
	p := problemOf(err, r.Method)
	p.nameFields(err)
	if p.Status >= 500 {
		s.deps.Logger.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", p.Status, "err", withoutURL(err))
	}
	writeProblem(c.Response(), p)
}

// problemOf finds the answer to an error. Outside of POST, what is invalid is the
// request's form: 400.
func problemOf(err error, method string) Problem {
	var he *echo.HTTPError
	var ref *refusal
	var script *planner.Error
	var options *checkpoint.OptionsError
	switch {
	case errors.As(err, &ref):
		return ref.Problem
	case errors.As(err, &script):
		return scriptProblem(script)
	case errors.As(err, &options):
		p := Problem{Status: http.StatusUnprocessableEntity}
		for _, o := range options.Problems {
			p.Errors = append(p.Errors, Fault{Field: "checkpoint." + o.Field, Message: o.Message})
		}
		p.Detail = describe(p.Errors)
		return p
	case errors.As(err, &he):
		return httpProblem(he)
	case errors.Is(err, weir.ErrNotFound):
		return Problem{Status: http.StatusNotFound, Detail: said(err, weir.ErrNotFound) + " does not exist"}
	case errors.Is(err, job.ErrUnavailable):
		return Problem{Status: http.StatusServiceUnavailable, Detail: said(err, job.ErrUnavailable)}
	case errors.Is(err, job.ErrFull):
		return Problem{Status: http.StatusTooManyRequests, Detail: said(err, job.ErrFull)}
	case errors.Is(err, weir.ErrStale):
		return Problem{Status: http.StatusServiceUnavailable, Detail: "another server has just taken the job over: try again"}
	case unreachable(err):
		return Problem{Status: http.StatusServiceUnavailable, Detail: "what the answer needs cannot be reached just now: try again"}
	case errors.Is(err, weir.ErrConflict):
		return Problem{Status: http.StatusConflict, Detail: said(err, weir.ErrConflict)}
	case errors.Is(err, weir.ErrInvalid):
		status := http.StatusUnprocessableEntity
		if method != http.MethodPost {
			status = http.StatusBadRequest
		}
		return Problem{Status: status, Detail: said(err, weir.ErrInvalid)}
	}
	return Problem{Status: http.StatusInternalServerError, Detail: internal}
}

// nameFields says which fields of the request an error is about.
func (p *Problem) nameFields(err error) {
	var fields *job.FieldError
	if len(p.Errors) > 0 || p.Status >= 500 || !errors.As(err, &fields) {
		return
	}
	for _, f := range fields.Problems {
		message := strings.TrimPrefix(strings.TrimPrefix(p.Detail, f.Field), ":") // it reads on from the field
		p.Errors = append(p.Errors, Fault{Field: f.Field, Message: cmp.Or(f.Message, strings.TrimSpace(message))})
	}
}

// said is what an error says after the word of its sentinel.
func said(err, sentinel error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, sentinel.Error()+": "); ok {
		return after
	}
	return text
}

// unreachable reports whether an error is the metastore's or the network's silence.
func unreachable(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &ne)
}

// withoutURL is what the log says of an error: a URL that could not be read or reached
// is left out of it, as it may hold a password.
func withoutURL(err error) string {
	text := err.Error()
	var u *url.Error
	if errors.As(err, &u) && u.URL != "" {
		text = strings.ReplaceAll(text, u.Error(), u.Op+": "+u.Err.Error())
	}
	return text
}

func scriptProblem(e *planner.Error) Problem {
	p := Problem{Status: http.StatusUnprocessableEntity, Detail: e.Error()}
	for _, f := range e.Problems {
		p.Errors = append(p.Errors, Fault{Line: f.Line, Column: f.Column, Message: f.Message, Hint: f.Hint, Snippet: f.Snippet, Code: string(f.Code)})
	}
	return p
}

// httpProblem answers what the router refuses.
func httpProblem(e *echo.HTTPError) Problem {
	p := Problem{Status: e.Code, Detail: http.StatusText(e.Code)}
	switch e.Code {
	case http.StatusNotFound:
		p.Detail = "there is nothing at this path; /docs lists what there is"
	case http.StatusMethodNotAllowed:
		p.Detail = "this path does not take this method; the Allow header lists those it takes"
	}
	return p
}

// writeProblem answers p, filling in what follows from its status.
func writeProblem(w http.ResponseWriter, p Problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		panic("server: a problem cannot be encoded: " + err.Error()) // strings and numbers only
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	w.Write(body) //nolint:errcheck // the client may have gone
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

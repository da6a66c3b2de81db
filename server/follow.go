package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/server/job"
)

// Bounds of what one follower of a page costs, whatever the size of the table: of the
// time that reading it takes it rests several times as much, for an ordered page has the
// tasks look at all of their rows; large pages come less often, and so does the look at one
// that stays as it is.
const (
	restTimes   = 10
	restAtMost  = 30 * time.Second
	followBytes = 256 << 10 // per second
	quietAtMost = time.Second
)

// A follower reads a page of a job's result table again and again.
type follower struct {
	s     *Server
	name  string
	ask   job.ResultQuery
	exact bool

	job  weir.Job        // as it was before page was read
	page *job.ResultPage // the last one; nil: none yet
	body []byte          // the page as it was sent last
	pace pace
}

// streamRows sends a page of a job's result table whenever it has changed, until the job
// has ended.
func (s *Server) streamRows(c echo.Context, ask job.ResultQuery, exact bool) error {
	ctx, cancel := streamContext(c.Request())
	defer cancel()
	f := follower{s: s, name: param(c, "job"), ask: ask, exact: exact}
	j, err := s.deps.Service.Get(ctx, f.name)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.read(ctx, j); err != nil && !later(j, err) {
		return err // nothing is sent yet: an ordinary problem
	}
	out := newStream(c)
	for {
		took := time.Since(began)
		sent := f.put(out)
		if f.ended() {
			out.send("end", "", map[string]any{"status": f.job.Status})
			return nil
		}
		if !out.pause(ctx, f.pace.rest(s.opts.Poll, took, sent)) {
			return nil
		}
		began = time.Now()
		j, err := s.deps.Service.Get(ctx, f.name)
		if errors.Is(err, weir.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = f.read(ctx, j)
		}
		if err != nil {
			s.deps.Logger.Debug("rows not read, tried again", "job", f.name, "err", err)
		}
	}
}

// read reads the page of the job as it is, unless that comes from storage and the job is
// as it was the last time.
func (f *follower) read(ctx context.Context, j weir.Job) error {
	if f.page != nil && !f.page.AsOf.Live && j.Status == f.job.Status && j.Attempt == f.job.Attempt && j.Base == f.job.Base {
		return nil
	}
	page, err := f.s.deps.Service.Results(ctx, f.name, f.ask)
	if err == nil {
		f.job, f.page = j, page
	}
	return err
}

// ended reports whether the page is what the job left.
func (f *follower) ended() bool {
	return f.job.Status.Terminal() && f.page != nil && !f.page.AsOf.Live
}

// put adds the page to what is sent if it has changed, and gives its size then.
func (f *follower) put(out *stream) int {
	if f.page == nil {
		return 0
	}
	body, err := json.Marshal(viewResults(f.page, f.exact))
	if err != nil {
		panic(fmt.Sprintf("server: a page of results cannot be encoded: %v", err)) // a struct of ours
	}
	if bytes.Equal(body, f.body) {
		return 0
	}
	f.body = body
	out.putBody("rows", "", body)
	return len(body)
}

// A pace is how often a follower looks.
type pace struct {
	quiet time.Duration // the last rest without news; 0: there was some
}

// rest is how long to wait after a look that took so long and sent so many bytes.
func (p *pace) rest(poll, took time.Duration, sent int) time.Duration {
	p.quiet = min(max(2*p.quiet, poll), max(poll, quietAtMost))
	if sent > 0 {
		p.quiet = 0
	}
	return max(poll, p.quiet, min(restTimes*took, restAtMost), time.Duration(sent)*time.Second/followBytes)
}

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// pingEvery is how often a stream without news says that it lives.
const pingEvery = 15 * time.Second

// wantsStream reports whether a request asks for server-sent events.
func wantsStream(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
			return true
		}
	}
	return false
}

// A stream writes server-sent events.
type stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  bytes.Buffer
	sent time.Time
	err  error
}

// newStream begins the answer.
func newStream(c echo.Context) *stream {
	h := c.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	c.Response().WriteHeader(http.StatusOK)
	s := &stream{w: c.Response(), ctl: http.NewResponseController(c.Response().Writer)}
	s.buf.WriteString(": weir\n\n")
	if s.err = s.flush(); c.Request().Method == http.MethodHead {
		s.err = io.EOF // there is nothing but the header
	}
	return s
}

// put adds an event to those that the next flush sends.
func (s *stream) put(event, id string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("server: event %s cannot be encoded: %v", event, err)) // structs of ours
	}
	s.putBody(event, id, body)
}

// putBody is put for data that is encoded already, in one line.
func (s *stream) putBody(event, id string, body []byte) {
	if id != "" {
		fmt.Fprintf(&s.buf, "id: %s\n", id)
	}
	fmt.Fprintf(&s.buf, "event: %s\ndata: %s\n\n", event, body)
}

// flush sends what was put; the error says that the client has gone.
func (s *stream) flush() error {
	if s.err != nil || s.buf.Len() == 0 {
		return s.err
	}
	s.sent = time.Now()
	if _, s.err = s.w.Write(s.buf.Bytes()); s.err == nil {
		s.err = s.ctl.Flush()
	}
	s.buf.Reset()
	return s.err
}

// send sends one event.
func (s *stream) send(event, id string, data any) {
	s.put(event, id, data)
	s.flush() //nolint:errcheck // kept in err, which ends the next pause
}

// pause waits; false: the stream is over. It keeps a quiet connection alive.
func (s *stream) pause(ctx context.Context, d time.Duration) bool {
	if time.Since(s.sent) > pingEvery {
		s.buf.WriteString(": ping\n\n")
	}
	if s.flush() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

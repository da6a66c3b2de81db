package s3test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A Fault is what a Proxy does to a request. The zero value passes it on.
type Fault struct {
	Status int           // answered at once, with Code; the server is not asked
	Code   string        // such as SlowDown
	Reset  bool          // the connection closes before the server is asked
	Lost   bool          // the server does the work, then the connection closes without an answer
	Cut    int64         // the connection closes after so many bytes of the answer's body, if it is longer; < 0: before the first
	Stall  chan struct{} // as Cut, but the connection stays open and silent until this closes
}

// A Proxy stands before a server and harms chosen requests.
type Proxy struct {
	Address string
	mu      struct {
		sync.Mutex
		seen []string
	}
}

// Seen returns the requests so far: method, and the query's names where it has any.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.mu.seen...)
}

// StartProxy starts a proxy for the time of a test. choose is called once for each
// request, one at a time.
func StartProxy(t testing.TB, address string, choose func(r *http.Request) Fault) *Proxy {
	t.Helper()
	p := &Proxy{}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.mu.seen = append(p.mu.seen, name(r))
		fault := choose(r)
		p.mu.Unlock()
		pass(transport, address, w, r, fault)
	}))
	t.Cleanup(server.Close)
	p.Address = strings.TrimPrefix(server.URL, "http://")
	return p
}

func name(r *http.Request) string {
	for _, query := range []string{"uploads", "uploadId", "list-type"} {
		if r.URL.Query().Has(query) {
			return r.Method + " " + query
		}
	}
	return r.Method
}

// FailTimes returns a chooser that gives fault to the first n requests of a name, as Seen
// has them.
func FailTimes(n int, of string, fault Fault) func(*http.Request) Fault {
	return func(r *http.Request) Fault {
		if n > 0 && name(r) == of {
			n--
			return fault
		}
		return Fault{}
	}
}

func pass(transport http.RoundTripper, address string, w http.ResponseWriter, r *http.Request, fault Fault) {
	if fault.Status != 0 {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(fault.Status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test says</Message></Error>", fault.Code)
		return
	}
	if fault.Reset {
		panic(http.ErrAbortHandler)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", address, ""
	if r.ContentLength == 0 {
		out.Body = nil
	}
	resp, err := transport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	if fault.Lost {
		panic(http.ErrAbortHandler)
	}
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	if fault.Cut == 0 {
		_, _ = io.Copy(w, resp.Body)
		return
	}
	_, err = io.CopyN(w, resp.Body, max(fault.Cut, 0))
	if err != nil {
		return // shorter
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	if fault.Stall != nil {
		select {
		case <-fault.Stall:
		case <-r.Context().Done():
		}
	}
	panic(http.ErrAbortHandler)
}

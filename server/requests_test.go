package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir"
	"weir/checkpoint"
)

// TestRequests runs scripts of requests. A command is a method; its input is the path,
// then headers, then the body; the output is the answer. Further commands act as the
// job's machine does: run, checkpoint and fail.
func TestRequests(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/requests", func(t *testing.T, path string) {
		a := newAPI(t)
		fences := map[string]weir.Fence{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name string
			d.MaybeScanArgs(t, "job", &name)
			switch d.Cmd {
			case "run":
				fences[name] = a.run(t, name)
				return ""
			case "checkpoint":
				a.checkpoint(t, fences[name], "", nil)
				return ""
			case "savepoint":
				var savepoint string
				d.ScanArgs(t, "name", &savepoint)
				a.checkpoint(t, fences[name], savepoint, nil)
				return ""
			case "fail-checkpoint":
				a.checkpoint(t, fences[name], "", &weir.Failure{Reason: checkpoint.ReasonTimeout, Message: "agg/1 did not answer within 1m"})
				return ""
			case "status":
				var to string
				d.ScanArgs(t, "to", &to)
				var failure *weir.Failure
				if to == "FAILED" {
					failure = &weir.Failure{Reason: "row", Operator: "source", Message: "/data/a.csv, line 7: <b>not a number</b>"}
				}
				if err := a.store.SetStatus(t.Context(), fences[name], weir.Status(to), failure); err != nil {
					t.Fatal(err)
				}
				return ""
			}
			return render(t, a.serve(t, parseRequest(t, d)))
		})
	})
}

func parseRequest(t *testing.T, d *datadriven.TestData) *http.Request {
	t.Helper()
	lines := strings.Split(d.Input, "\n")
	target := lines[0]
	lines = lines[1:]
	header := http.Header{}
	for len(lines) > 0 {
		name, value, ok := strings.Cut(lines[0], ": ")
		if !ok || strings.HasPrefix(lines[0], "{") || strings.HasPrefix(lines[0], "[") {
			break
		}
		header.Set(name, value)
		lines = lines[1:]
	}
	body := strings.Join(lines, "\n")
	var size int
	if d.MaybeScanArgs(t, "size", &size); size > 0 {
		body = `{"sql":"` + strings.Repeat("x", size) + `"}`
	}
	var depth int
	if d.MaybeScanArgs(t, "depth", &depth); depth > 0 {
		body = `{"sql":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	r := httptest.NewRequestWithContext(t.Context(), d.Cmd, "http://localhost"+target, strings.NewReader(body))
	if body == "" {
		r.Body = nil
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if header.Get("Content-Type") == "none" {
		r.Header.Del("Content-Type")
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	return r
}

// masks hide what differs from run to run.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`job_[0-9a-f]{32}`), "JOB"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`"tag": "[0-9a-f]{8}"`), `"tag": "TAG"`},
	{regexp.MustCompile(`"attempt": "(\d+)-[0-9a-f]{8}"`), `"attempt": "$1-TAG"`},
}

// guarded makes sure that no browser takes an answer for more than it is.
func guarded(t testing.TB, res *http.Response) {
	t.Helper()
	policy := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'self'", "script-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !slices.Contains(strings.Split(policy, "; "), part) {
			t.Fatalf("the policy lacks %s: %s", part, policy)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY"} {
		if got := res.Header.Get(name); got != want {
			t.Fatalf("%s: %q", name, got)
		}
	}
}

func render(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", res.StatusCode, res.Header.Get("Content-Type"))
	for _, name := range []string{"Location", "Allow", "Retry-After", "Access-Control-Allow-Origin"} {
		if value := res.Header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	guarded(t, res)
	var pretty bytes.Buffer
	if json.Indent(&pretty, body, "", "  ") == nil {
		body = pretty.Bytes()
	}
	b.Write(body)
	text := strings.TrimRight(b.String(), "\n") + "\n"
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return strings.ReplaceAll(text, "\n\n", "\n.\n")
}

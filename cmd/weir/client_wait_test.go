package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A stop that a cancel or a failure came before has taken no savepoint: a script that goes on
// with it has to hear so.
func TestStopThatWasNone(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"STOPPED":  "",
		"FINISHED": "",
		"CANCELED": "job shop was canceled while it was being stopped: no savepoint was taken for the stop",
		"FAILED":   "job shop failed: no room",
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				now := "RUNNING"
				if r.Method == http.MethodPost {
					now = status
				}
				if _, err := fmt.Fprintf(w, `{"id":"job_1","name":"shop","status":%q,"failure":{"message":"no room"}}`, now); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(srv.Close)
			var out, said strings.Builder
			code := execute(t.Context(), []string{"job", "stop", "shop", "--server", srv.URL}, strings.NewReader(""), &out, &said)
			if want == "" && code == 0 && out.String() == "shop  "+status+"\n" {
				return
			}
			if code != 1 || said.String() != "weir: "+want+"\n" || out.Len() > 0 {
				t.Errorf("%d, %q, %q", code, out.String(), said.String())
			}
		})
	}
}

// An attempt that has begun by the time of the answer is the one that was asked for: nobody
// waits for one more.
func TestBegunByTheAnswer(t *testing.T) {
	t.Parallel()
	for _, first := range []struct {
		name     string
		answered int64 // the attempt in the answer
	}{{"begun already", 2}, {"begun later", 1}} {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Bool
			var status atomic.Value
			status.Store("RUNNING")
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				job := jobView{ID: "job_1", Name: "shop", Status: status.Load().(string), Attempt: 1}
				switch {
				case r.Method == http.MethodPost:
					asked.Store(true)
					job.Attempt = first.answered
				case asked.Load():
					job.Attempt = 2
				}
				if err := json.NewEncoder(w).Encode(job); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(srv.Close)
			c, err := newClient(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			if job, err := c.ask(t.Context(), "shop", "/restore", nil, begun); err != nil || job.Attempt != 2 {
				t.Errorf("attempt %d, %v", job.Attempt, err)
			}
			asked.Store(false)
			status.Store("FAILED")
			if _, err := c.ask(t.Context(), "shop", "/start", nil, begun); err == nil || err.Error() != "job shop failed" {
				t.Errorf("it failed at once: %v", err)
			}
		})
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

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
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				job := jobView{ID: "job_1", Name: "shop", Status: "RUNNING", Attempt: 1}
				switch {
				case r.Method == "POST":
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
		})
	}
}

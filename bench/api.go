package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An api is a server's.
type api struct{ url string }

// do sends a request and decodes the answer into out (nil: it is dropped). An answer
// that is no success is an error.
func (a *api) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %.500s", method, path, answer.Status, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

func (a *api) ready(ctx context.Context) (bool, error) {
	err := a.do(ctx, http.MethodGet, "/readyz", nil, nil)
	return err == nil, err
}

// A workerView is a worker as GET /v1/workers shows it.
type workerView struct {
	ID    string `json:"id"`
	PID   int    `json:"pid"`
	Tasks int    `json:"tasks"`
}

func (a *api) workers(ctx context.Context) ([]workerView, error) {
	var list struct {
		Workers []workerView `json:"workers"`
	}
	err := a.do(ctx, http.MethodGet, "/v1/workers", nil, &list)
	return list.Workers, err
}

// A jobView is what is needed of GET /v1/jobs/{job}.
type jobView struct {
	Status  string          `json:"status"`
	Attempt int64           `json:"attempt"`
	Failure json.RawMessage `json:"failure"`
	RowsIn  int64           `json:"rows_in"`
	RowsOut int64           `json:"rows_out"`
}

func (a *api) job(ctx context.Context, name string) (jobView, error) {
	var j jobView
	err := a.do(ctx, http.MethodGet, "/v1/jobs/"+name, nil, &j)
	return j, err
}

// submit makes a job of two subtasks per operator.
func (a *api) submit(ctx context.Context, name, sql string) error {
	return a.submitAt(ctx, name, sql, 2)
}

// submitAt makes a job of so many subtasks per operator.
func (a *api) submitAt(ctx context.Context, name, sql string, parallelism int) error {
	return a.do(ctx, http.MethodPost, "/v1/jobs", map[string]any{"name": name, "sql": sql, "parallelism": parallelism}, nil)
}

// awaitStatus waits until the job has a status.
func (a *api) awaitStatus(ctx context.Context, name, status string, limit time.Duration) error {
	return await(ctx, limit, "job "+name+" is "+status, func() (bool, error) {
		j, err := a.job(ctx, name)
		if err == nil && j.Status == "FAILED" {
			return false, fmt.Errorf("it failed: %s", j.Failure)
		}
		return j.Status == status, err
	})
}

// cancel ends a job, if it does not end by itself meanwhile, and waits until its tasks have ended.
func (a *api) cancel(ctx context.Context, name string) error {
	if err := a.do(ctx, http.MethodPost, "/v1/jobs/"+name+"/cancel", nil, nil); err != nil {
		return err
	}
	return await(ctx, 30*time.Second, "job "+name+" is canceled and its workers are free", func() (bool, error) {
		j, err := a.job(ctx, name)
		if err != nil || j.Status != "CANCELED" && j.Status != "FINISHED" {
			return false, err
		}
		all, err := a.workers(ctx)
		for _, w := range all {
			if w.Tasks > 0 {
				return false, err
			}
		}
		return true, err
	})
}

// An attemptView is a line of GET /v1/jobs/{job}/attempts.
type attemptView struct {
	Number       int64      `json:"number"`
	RestoredFrom string     `json:"restored_from"`
	StartedAt    time.Time  `json:"started_at"`
	RunningAt    *time.Time `json:"running_at"`
	EndedAt      *time.Time `json:"ended_at"`
	EndedBy      string     `json:"ended_by"`
}

// attempts gives them newest first.
func (a *api) attempts(ctx context.Context, name string) ([]attemptView, error) {
	var list struct {
		Attempts []attemptView `json:"attempts"`
	}
	err := a.do(ctx, http.MethodGet, "/v1/jobs/"+name+"/attempts", nil, &list)
	return list.Attempts, err
}

// An eventView is a line of GET /v1/jobs/{job}/events.
type eventView struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Message string    `json:"message"`
}

func (a *api) events(ctx context.Context, name string) ([]eventView, error) {
	var list struct {
		Events []eventView `json:"events"`
	}
	err := a.do(ctx, http.MethodGet, "/v1/jobs/"+name+"/events?order=desc&limit=200", nil, &list)
	return list.Events, err
}

// A checkpointView is a line of GET /v1/jobs/{job}/checkpoints.
type checkpointView struct {
	ID          int64     `json:"id"`
	Status      string    `json:"status"`
	TriggeredAt time.Time `json:"triggered_at"`
	DurationMS  float64   `json:"duration_ms"`
	StateBytes  int64     `json:"state_bytes"`
	NewBytes    int64     `json:"new_bytes"`
}

// A detailView is what is needed of GET /v1/jobs/{job}/checkpoints/{id}.
type detailView struct {
	Operators []struct {
		Name     string `json:"name"`
		Subtasks []struct {
			CutMS    float64 `json:"cut_ms"`
			UploadMS float64 `json:"upload_ms"`
			NewBytes int64   `json:"new_bytes"`
		} `json:"subtasks"`
	} `json:"operators"`
}

func (a *api) detail(ctx context.Context, name string, id int64) (detailView, error) {
	var d detailView
	err := a.do(ctx, http.MethodGet, fmt.Sprintf("/v1/jobs/%s/checkpoints/%d", name, id), nil, &d)
	return d, err
}

// checkpoints gives the newest ones first.
func (a *api) checkpoints(ctx context.Context, name string) ([]checkpointView, error) {
	var list struct {
		Checkpoints []checkpointView `json:"checkpoints"`
	}
	err := a.do(ctx, http.MethodGet, "/v1/jobs/"+name+"/checkpoints?limit=1000", nil, &list)
	return list.Checkpoints, err
}

// A resultPage is a job's whole result table, if it is small.
type resultPage struct {
	Rows []json.RawMessage `json:"rows"`
	AsOf struct {
		Checkpoint int64 `json:"checkpoint"`
		Live       bool  `json:"live"`
	} `json:"as_of"`
	Total int64  `json:"total"`
	Next  string `json:"next"`
}

func (a *api) results(ctx context.Context, name, query string) (resultPage, error) {
	var page resultPage
	err := a.do(ctx, http.MethodGet, "/v1/jobs/"+name+"/results?"+query, nil, &page)
	return page, err
}

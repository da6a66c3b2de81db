package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// await polls the job until done says so, and returns it as last seen.
func (c *client) await(ctx context.Context, job jobView, done func(jobView) bool) (jobView, error) {
	for !done(job) {
		if err := pause(ctx, followEvery/5); err != nil {
			return job, err
		}
		var now jobView
		err := c.do(ctx, "GET", jobPath(job.ID, ""), nil, &now)
		var p *problem
		switch {
		case err == nil:
			job = now
		case errors.As(err, &p) && p.Status < 500:
			return job, err
		}
	}
	return job, nil
}

func terminal(j jobView) bool {
	return j.Status == "FINISHED" || j.Status == "FAILED" || j.Status == "STOPPED" || j.Status == "CANCELED"
}

// A waiting waits for what was asked of a job, which was seen as before ahead of that.
type waiting func(ctx context.Context, c *client, before, job jobView) (jobView, error)

// ask asks something of a job and gives what it leads to a minute; the job goes on by
// itself.
func (c *client) ask(ctx context.Context, name, verb string, body any, wait waiting) (jobView, error) {
	var before jobView
	if err := c.do(ctx, "GET", jobPath(name, ""), nil, &before); err != nil {
		return before, err
	}
	job := before
	if err := c.do(ctx, "POST", jobPath(before.ID, verb), body, &job); err != nil {
		return job, err
	}
	limited, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	job, err := wait(limited, c, before, job)
	if limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("job %s is %s after %v; it goes on by itself", job.Name, job.Status, stopTimeout)
	}
	return job, err
}

// ending waits for the end of a job that was told to. A stop whose savepoint fails is
// taken back by the server.
func ending(ctx context.Context, c *client, _, job jobView) (jobView, error) {
	job, err := c.await(ctx, job, func(j jobView) bool { return terminal(j) || j.Desired == "running" })
	if err == nil && !terminal(job) {
		err = fmt.Errorf("job %s runs on: %s", job.Name, c.lastEvent(ctx, job))
	}
	return job, err
}

// stopping waits as ending does. A job that was canceled or failed meanwhile has not been
// stopped: the savepoint that was asked for is not there to go on from.
func stopping(ctx context.Context, c *client, before, job jobView) (jobView, error) {
	job, err := ending(ctx, c, before, job)
	switch {
	case err != nil:
		return job, err
	case job.Status == "CANCELED":
		return job, fmt.Errorf("job %s was canceled while it was being stopped: no savepoint was taken for the stop", job.Name)
	case job.Status == "FAILED":
		return job, jobFailed(job)
	}
	return job, nil
}

// begun waits until an attempt of a job has begun after it was seen as before. The answer
// to what was asked meanwhile may be of that attempt already. One that has failed by then
// is an error: it may not even have been built.
func begun(ctx context.Context, c *client, before, job jobView) (jobView, error) {
	job, err := c.await(ctx, job, func(j jobView) bool { return j.Attempt > before.Attempt })
	if err == nil && job.Status == "FAILED" {
		err = jobFailed(job)
	}
	return job, err
}

// lastEvent is the newest line of a job's history; empty where it cannot be read.
func (c *client) lastEvent(ctx context.Context, job jobView) string {
	events, err := c.events(ctx, job.ID)
	if err != nil || len(events) == 0 {
		return ""
	}
	return events[len(events)-1].Message
}

// An eventView is a line of a job's history.
type eventView struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Message string    `json:"message"`
}

// events reads a job's history, page by page.
func (c *client) events(ctx context.Context, job string) ([]eventView, error) {
	events := []eventView{}
	for after := int64(0); ; {
		var page struct {
			Events []eventView `json:"events"`
			Next   int64       `json:"next"`
		}
		if err := c.do(ctx, "GET", jobPath(job, fmt.Sprintf("/events?after=%d", after)), nil, &page); err != nil {
			return nil, err
		}
		events = append(events, page.Events...)
		if page.Next == 0 {
			return events, nil
		}
		after = page.Next
	}
}

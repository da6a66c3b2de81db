package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// defaultParallelism is that of a job that names none.
const defaultParallelism = 2

func (s *Service) submit(ctx context.Context, spec Spec) (weir.Job, error) {
	j, err := newJob(spec, s.now())
	if err != nil {
		return weir.Job{}, err
	}
	from, err := ParseFrom(spec.RestoreFrom)
	if err != nil {
		return weir.Job{}, inField("restore_from", err)
	}
	if from.Checkpoint != 0 && from.Job == "" {
		return weir.Job{}, inField("restore_from", fmt.Errorf("%w: restore_from %q: a new job has no checkpoints: write checkpoint:JOB/%d or savepoint:NAME", weir.ErrInvalid, spec.RestoreFrom, from.Checkpoint))
	}
	if !from.Latest && !from.Nothing {
		chosen, err := s.resolve(ctx, j, from)
		if err != nil {
			return weir.Job{}, inField("restore_from", err)
		}
		if err := s.checkStart(ctx, j, j.Parallelism, chosen, spec.AllowDuplicateOutput); err != nil {
			return weir.Job{}, err
		}
		j.Base = chosen.Ref
	}
	if err := s.room(ctx); err != nil {
		return s.before(ctx, spec.IdempotencyKey, err)
	}
	created, err := s.deps.Store.CreateJob(ctx, j, spec.IdempotencyKey)
	if err != nil {
		return weir.Job{}, err
	}
	s.wake()
	return created, nil
}

// room makes sure that one more job may run. Of several that come at once, a few more than
// that may be let in.
func (s *Service) room(ctx context.Context) error {
	over, err := s.deps.Store.Jobs(ctx, weir.JobFilter{Unsettled: true, Skip: s.opts.MaxJobs - 1, Limit: 1})
	if err == nil && len(over) > 0 {
		err = fmt.Errorf("%w: %d jobs of this cluster have not ended, as many as it takes: stop or cancel one, or start its servers with a larger --max-jobs", ErrFull, s.opts.MaxJobs)
	}
	return err
}

// before finds the job that the same request created before; there being none, why not holds.
func (s *Service) before(ctx context.Context, key string, whyNot error) (weir.Job, error) {
	if key == "" || !errors.Is(whyNot, ErrFull) {
		return weir.Job{}, whyNot
	}
	jobs, err := s.deps.Store.Jobs(ctx, weir.JobFilter{IdempotencyKey: key})
	if err != nil || len(jobs) == 0 {
		if err == nil {
			err = whyNot
		}
		return weir.Job{}, err
	}
	return jobs[0], nil
}

// newJob makes the row of a job from what its user gave.
func newJob(spec Spec, now time.Time) (weir.Job, error) {
	j := weir.Job{
		ID: weir.NewJobID(), Name: spec.Name, SQL: spec.SQL, OnRowError: spec.OnRowError, CreatedAt: now.UTC(),
		Parallelism: spec.Parallelism, MaxParallelism: spec.Graph.MaxParallelism,
		Desired: weir.DesiredRunning, Status: weir.StatusCreated,
	}
	if j.Name == "" {
		j.Name = "job-" + string(j.ID[len("job_"):][:8])
	}
	if !validName(j.Name) || len(j.Name) >= 4 && j.Name[:4] == "job_" {
		return j, inField("name", fmt.Errorf("%w: name %q: names match [a-z0-9][a-z0-9_-]{0,62} and do not begin with job_", weir.ErrInvalid, j.Name))
	}
	j.OnRowError = cmp.Or(j.OnRowError, "fail")
	if !slices.Contains([]string{"fail", "skip", "keep"}, j.OnRowError) {
		return j, inField("on_row_error", fmt.Errorf("%w: on_row_error %q: it is fail, skip or keep", weir.ErrInvalid, j.OnRowError))
	}
	if planned := cmp.Or(spec.Graph.OnRowError, "fail"); planned != j.OnRowError {
		return j, inField("on_row_error", fmt.Errorf("%w: on_row_error %q: the plan was made for %q", weir.ErrInvalid, j.OnRowError, planned))
	}
	if j.Parallelism == 0 {
		j.Parallelism = min(defaultParallelism, j.MaxParallelism)
	}
	if err := checkParallelism(j.Parallelism, j.MaxParallelism); err != nil {
		return j, err
	}
	options, err := checkpoint.ParseOptions(spec.Checkpoint)
	if err != nil {
		return j, err
	}
	restart, err := ParseRestart(spec.Restart)
	if err != nil {
		return j, err
	}
	for into, value := range map[*json.RawMessage]any{&j.Plan: spec.Graph, &j.Checkpoint: options, &j.Restart: restart} {
		if *into, err = json.Marshal(value); err != nil {
			return j, fmt.Errorf("job %q: %w", j.Name, err)
		}
	}
	return j, nil
}

func checkParallelism(n, most int) error {
	if n < 1 || n > most {
		return inField("parallelism", fmt.Errorf("%w: parallelism %d: it lies between 1 and max_parallelism, which is %d", weir.ErrInvalid, n, most))
	}
	return nil
}

// decodeGraph reads the graph in a job's row.
func decodeGraph(j weir.Job) (plan.Graph, error) {
	var g plan.Graph
	if err := json.Unmarshal(j.Plan, &g); err != nil {
		return g, fmt.Errorf("plan of job %q: %w", j.Name, err)
	}
	if g.Version != plan.Version {
		return g, fmt.Errorf("plan of job %q has version %d, this weir reads version %d", j.Name, g.Version, plan.Version)
	}
	return g, nil
}

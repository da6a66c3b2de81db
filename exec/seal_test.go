package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
	"weir/planner/plan"
)

// A sealing is an operator whose snapshots are durable once run has returned.
type sealing struct {
	exec.Operator
	run  func(weir.CheckpointID) error
	last weir.CheckpointID
}

func (s *sealing) Snapshot(id weir.CheckpointID) ([]json.RawMessage, error) {
	s.last = id
	return nil, nil
}

func (s *sealing) Seal() func() error {
	id := s.last
	return func() error { return s.run(id) }
}

// sealed has the local aggregates of a job seal by run.
func sealed(c *exectest.Config, run func(weir.CheckpointID) error) {
	c.Openers.Operator = func(ctx context.Context, s exec.Setup) (exec.Operator, error) {
		o, err := op.Open(ctx, s)
		if err != nil || s.Operator.Kind != plan.LocalAggregate {
			return o, err
		}
		return &sealing{Operator: o, run: run}, nil
	}
}

// TestSealIsAwaited: while a sink makes durable what it has written, rows and barriers go on,
// and no snapshot that names it is acknowledged, not a later one either. What was given up is
// made durable like all else.
func TestSealIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := config(1 << 20)
		c.Parallelism = 1
		stepper := &exectest.Stepper{}
		c.Openers.Source = stepper.Open(c.Openers.Source)
		goOnC := make(chan struct{})
		var runs []weir.CheckpointID
		sealed(&c, func(id weir.CheckpointID) error {
			runs = append(runs, id)
			<-goOnC
			return nil
		})
		j := exectest.Start(t, c)
		for id := range weir.CheckpointID(3) {
			stepper.Allow(5)
			if _, err := j.Begin(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if acks := j.Acks(id + 1); len(acks) != 1 || acks[0].Task.Chain != 1 { // the other chain had its rows and its barrier
				t.Errorf("checkpoint %d, while the first is made durable: %+v", id+1, acks)
			}
		}
		if got := j.Progress(1)[0]; got.Stage != checkpoint.StageUploading || got.Doing != "making durable what its sinks have written" {
			t.Errorf("the first: %+v", got)
		}
		j.Wanted(3, 3) // 1 and 2 have ended
		for want := 1; want <= 3; want++ {
			if len(runs) != want || runs[want-1] != weir.CheckpointID(want) {
				t.Fatalf("made durable, or being made: %v", runs)
			}
			if acks := j.Acks(3); len(acks) != 1 {
				t.Errorf("the third is acknowledged while %d is made durable", want)
			}
			goOnC <- struct{}{}
			synctest.Wait()
		}
		if _, err := j.Await(3); err != nil {
			t.Fatal(err)
		}
		if acks := j.Acks(2); len(acks) != 1 {
			t.Errorf("of the second, which was given up: %+v", acks)
		}
		j.Kill()
	})
}

// TestSealFails: what cannot be made durable declines the checkpoint, and fails the task of the
// sink that has written it.
func TestSealFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, reason, message string
		run                   func(weir.CheckpointID) error
	}{
		{"panic", exec.ReasonPanic, "local_aggregate(n): snapshot 1: panic: index out of range", func(weir.CheckpointID) error { panic("index out of range") }},
		{"error", exec.ReasonOperator, "local_aggregate(n): snapshot 1: no space left", func(weir.CheckpointID) error { return errors.New("no space left") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := config(100)
			c.Parallelism = 1
			sealed(&c, test.run)
			j := exectest.Start(t, c)
			if _, err := j.Finish(); err == nil {
				t.Error("checkpoint 1 was taken")
			}
			if err := j.Close(); err == nil {
				t.Error("its tasks ended well")
			}
			want := []weir.Failure{declined("local", weir.TaskID{}, test.message)}
			if diff := cmp.Diff(want, declines(j)); diff != "" {
				t.Errorf("declined (-want +got):\n%s", diff)
			}
			if f, restart := j.Failure(); f == nil || f.Reason != test.reason || f.Operator != "local" || f.Message != test.message || !restart {
				t.Errorf("failed: %+v, restart %v", f, restart)
			}
		})
	}
}

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
)

// A careless store lets every writer through.
type careless struct {
	*blob.Memory
	puts atomic.Int64
}

func (*careless) Conditional() bool { return false }

func (s *careless) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	s.puts.Add(1)
	return s.Put(ctx, key, r)
}

// agree has a subtask say what its worker's list is, and returns what counts.
func agree(ctx context.Context, blobs blob.Store, worker string, subtask int) (answer string, err error) {
	_, _ = exec.Build(ctx, exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "aaaaaaaa"}, Graph: counting(), Parallelism: 2,
		Tasks: []weir.TaskID{{Subtask: subtask}}, Network: exectest.NewNetwork(1, false), Blobs: blobs, Logger: slog.New(slog.DiscardHandler),
		Openers: exec.Openers{Operator: op.Open, Source: func(ctx context.Context, s exec.Setup) (exec.Source, error) {
			var all []byte
			all, err = s.Agree(ctx, "files", fmt.Appendf(nil, "%d on %s", s.Subtask, worker))
			answer = string(all)
			return nil, errors.New("enough")
		}},
	})
	return answer, err
}

// Where a store lets every writer through, subtasks that come at the same instant still go
// by one list: that of subtask 0.
func TestAgreeWithoutCondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := &careless{Memory: blob.NewMemory()}
		var answers [2]string
		var wg sync.WaitGroup
		begun := time.Now()
		for i, worker := range []string{"w1", "w2"} {
			wg.Go(func() {
				if i == 0 { // subtask 0 is the later one
					<-time.After(40 * time.Millisecond)
				}
				var err error
				if answers[i], err = agree(t.Context(), blobs, worker, i); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := fmt.Sprint(answers); got != "[0 on w1 0 on w1]" || blobs.puts.Load() != 1 {
			t.Errorf("%s, %d puts", got, blobs.puts.Load())
		}
		if took := time.Since(begun); took > 80*time.Millisecond {
			t.Errorf("waited %v for what was there after 40 ms", took)
		}
		// It is there: nobody waits.
		begun = time.Now()
		if got, err := agree(t.Context(), blobs, "w3", 1); err != nil || got != "0 on w1" || time.Since(begun) > 0 {
			t.Errorf("%s, %v after %v", got, err, time.Since(begun))
		}
	})
}

// A worker that has several subtasks opens subtask 0 first, whatever their order.
func TestAgreeOnOneWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var order []int
		_, err := exec.Build(t.Context(), exec.BuildConfig{
			Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "aaaaaaaa"}, Graph: counting(), Parallelism: 3,
			Tasks: []weir.TaskID{{Subtask: 2}, {Subtask: 1}, {Subtask: 0}}, Network: exectest.NewNetwork(1, false), Blobs: &careless{Memory: blob.NewMemory()}, Logger: slog.New(slog.DiscardHandler),
			Openers: exec.Openers{Operator: op.Open, Source: func(ctx context.Context, s exec.Setup) (exec.Source, error) {
				order = append(order, s.Subtask)
				if _, err := s.Agree(ctx, "files", nil); err != nil {
					return nil, err
				}
				return nil, errors.New("enough")
			}},
		})
		if fmt.Sprint(order) != "[0]" || err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("%v, %v", order, err)
		}
	})
}

// Subtask 0 does not come: the wait ends with its context, or at last by itself.
func TestAgreeInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := &careless{Memory: blob.NewMemory()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := agree(ctx, blobs, "w2", 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for subtask 0, which writes") {
			t.Error(err)
		}
		_, err := agree(t.Context(), blobs, "w2", 1)
		if err == nil || !strings.Contains(err.Error(), "subtask 0 has not written job_00000000000000000000000000000001/1-aaaaaaaa/") || !strings.Contains(err.Error(), "within 10m0s") {
			t.Error(err)
		}
	})
}

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
)

// C17: a snapshot that cannot be loaded stops the start, and the object is named.
func TestMissingObject(t *testing.T) {
	t.Parallel()
	c := config(20_000)
	memory := blob.NewMemory()
	c.Blobs = memory
	j := exectest.Start(t, c)
	s, err := j.Finish()
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	var object string
	for _, o := range s.Tasks[weir.TaskID{Chain: 1}].Operators {
		for _, h := range o.Keyed {
			if h.Object != "" {
				object = h.Object
			}
		}
	}
	if err := memory.Delete(context.Background(), object); object == "" || err != nil {
		t.Fatalf("delete %q: %v", object, err)
	}
	c.From = s
	_, err = exectest.Open(t, c)
	if !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), object) {
		t.Errorf("start without object %s: %v", object, err)
	}
}

// Subtasks of one source agree, also those of two workers; sources of another attempt
// and of a restored one do not hear of it.
func TestSubtasksAgree(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	answers := func(attempt int64, restored map[weir.TaskID]checkpoint.TaskSnapshot) (list []string) {
		for i := range 2 {
			id := weir.TaskID{Subtask: i}
			_, err := exec.Build(t.Context(), exec.BuildConfig{
				Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: attempt, Tag: "aaaaaaaa"}, Graph: counting(), Parallelism: 2,
				Tasks: []weir.TaskID{id}, Network: exectest.NewNetwork(1, false), Restored: restored, Blobs: blobs, Logger: slog.New(slog.DiscardHandler),
				Openers: exec.Openers{Operator: op.Open, Source: func(ctx context.Context, s exec.Setup) (exec.Source, error) {
					if s.Agree == nil {
						list = append(list, "none")
						return nil, errors.New("enough")
					}
					all, err := s.Agree(ctx, "files", fmt.Appendf(nil, "%d of %d", i, attempt))
					if err != nil {
						t.Error(err)
					}
					list = append(list, string(all))
					return nil, errors.New("enough")
				}},
			})
			if err == nil {
				t.Error("built")
			}
		}
		return list
	}
	got := append(answers(1, nil), answers(2, nil)...)
	got = append(got, answers(3, map[weir.TaskID]checkpoint.TaskSnapshot{{}: {}, {Subtask: 1}: {}})...)
	if want := []string{"0 of 1", "0 of 1", "0 of 2", "0 of 2", "none", "none"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Tasks are restored side by side; one that cannot be ends the others, and is what the
// error is about.
func TestRestoredSideBySide(t *testing.T) {
	t.Parallel()
	if runtime.GOMAXPROCS(0) < 2 {
		return // one at a time
	}
	c := config(20_000)
	memory := blob.NewMemory()
	c.Blobs = memory
	j := exectest.Start(t, c)
	s, err := j.Finish()
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	of := func(key string) int {
		return strings.Index("01", key[strings.LastIndex(key, "/")-1:strings.LastIndex(key, "/")])
	}
	var mu sync.Mutex
	asked, bothC := map[int]bool{}, make(chan struct{})
	c.From, c.Blobs = s, blob.NewFaulty(memory, func(call blob.Call) blob.Fault {
		mu.Lock()
		defer mu.Unlock()
		if call.Verb != "Get" {
			return blob.Fault{}
		}
		if asked[of(call.Key)] = true; len(asked) == 2 && call.Key != "" {
			select {
			case <-bothC:
			default:
				close(bothC)
			}
		}
		return blob.Fault{Wait: bothC}
	})
	j, err = exectest.Open(t, c)
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	broken := errors.New("storage is away")
	c.Blobs = blob.NewFaulty(memory, func(call blob.Call) blob.Fault {
		if call.Verb == "Get" && of(call.Key) == 1 {
			return blob.Fault{Before: broken}
		}
		return blob.Fault{Wait: make(chan struct{})}
	})
	if _, err := exectest.Open(t, c); !errors.Is(err, broken) || !strings.Contains(err.Error(), "/1") {
		t.Errorf("built: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	c := config(10)
	base := exec.BuildConfig{Graph: c.Graph, Parallelism: 2, Logger: slog.New(slog.DiscardHandler)}
	for _, test := range []struct {
		change func(*exec.BuildConfig)
		want   string
	}{
		{func(b *exec.BuildConfig) { b.Graph = nil }, "invalid: build without a graph"},
		{func(b *exec.BuildConfig) { b.Parallelism = 33 }, "invalid: build: parallelism 33 is not in 1…32 (max_parallelism)"},
		{
			func(b *exec.BuildConfig) { b.Tasks = []weir.TaskID{{Chain: 2}, {Subtask: 2}} },
			"invalid: build: task 2/0: the graph has 2 chains\ntask 0/2: the chain has 2 subtasks",
		},
		{func(b *exec.BuildConfig) {
			b.Tasks = []weir.TaskID{{Chain: 1}}
			b.Restored = map[weir.TaskID]checkpoint.TaskSnapshot{}
		}, "invalid: build: task 1/0: nothing to restore is given"},
	} {
		b := base
		test.change(&b)
		if _, err := exec.Build(context.Background(), b); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

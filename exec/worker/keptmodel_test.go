package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// Whatever happens to files, disk and storage, objects read as they are stored, copies
// stay within their bound, and files of no others are left.
func TestKeptModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const most = 8 * keptChunk
		r, stored := newKeptRig(t, most), map[string][]byte{}
		defer os.RemoveAll(r.dir)
		key := rapid.Custom(func(t *rapid.T) string {
			return stateKey(rapid.SampledFrom([]string{"job_a", "job_b"}).Draw(t, "job"), rapid.IntRange(1, 2).Draw(t, "cp"), rapid.IntRange(0, 1).Draw(t, "n"))
		})
		job, id := rapid.SampledFrom([]weir.JobID{"job_a", "job_b"}), rapid.IntRange(0, 3)
		next := 0
		actions := map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, size := key.Draw(t, "key"), rapid.SampledFrom([]int{0, 1, keptChunk - 1, keptChunk, keptChunk + 1, 3*keptChunk + 7, most, most + 1}).Draw(t, "size")
				next++
				data := bytes.Repeat([]byte{byte(next), byte(next >> 8), 7}, size/3+1)[:size]
				r.refuse = rapid.SampledFrom([]blob.Fault{{}, {}, {}, {}, {Before: io.ErrClosedPipe}, {After: io.ErrClosedPipe}}).Draw(t, "refuse")
				r.full = rapid.IntRange(0, 5).Draw(t, "full") == 0
				err := r.Put(context.Background(), k, bytes.NewReader(data))
				if (err != nil) != (r.refuse != blob.Fault{}) {
					t.Fatalf("put: %v", err)
				}
				if r.refuse.Before == nil {
					stored[k] = data // also where only the answer was lost
				}
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				offset := rapid.SampledFrom([]int64{0, 0, 0, 1, keptChunk - 1, keptChunk, 2*keptChunk + 1, 9 * keptChunk}).Draw(t, "offset")
				length := rapid.SampledFrom([]int64{-1, -1, -1, 0, 1, keptChunk, 2*keptChunk + 1, 9 * keptChunk}).Draw(t, "length")
				body, err := r.Get(context.Background(), k, offset, length)
				want, ok := stored[k]
				if !ok {
					if !errors.Is(err, weir.ErrNotFound) {
						t.Fatalf("get %s: %v", k, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want = want[min(offset, int64(len(want))):]
				if length >= 0 {
					want = want[:min(length, int64(len(want)))]
				}
				got, err := io.ReadAll(body)
				if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("get %s, %d bytes from %d: %d bytes, %v; want %d", k, length, offset, len(got), err, len(want))
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if err := r.Delete(context.Background(), k); err != nil {
					t.Fatal(err)
				}
				delete(stored, k)
			},
			"damage": func(t *rapid.T) {
				if k := key.Draw(t, "key"); r.find(k) != nil {
					how := rapid.SampledFrom([]string{"bit", "cut", "gone", "longer"}).Draw(t, "how")
					_ = damage[how](r.path(t, k), int64(rapid.IntRange(0, max(len(stored[k])-1, 0)).Draw(t, "at"))) // it may be gone
				}
			},
			"wanted": func(t *rapid.T) {
				n := id.Draw(t, "cp")
				r.wanted(checkpoint.Trigger{Job: job.Draw(t, "job"), Attempt: weir.AttemptID{Number: 1, Tag: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tag")}, Checkpoint: weir.CheckpointID(n), Pending: []weir.CheckpointID{weir.CheckpointID(n)}, Base: weir.CheckpointID(id.Draw(t, "base"))})
			},
			"look": func(*rapid.T) { r.look(nil) },
			"restart": func(*rapid.T) {
				r.files(t) // a clean-up that was under way
				r.restart(most)
			},
			"": func(t *rapid.T) {
				var sum int64
				var files []string
				for _, c := range r.mu.copies {
					sum, files = sum+c.room, append(files, c.path)
				}
				left := slices.DeleteFunc(r.files(t), func(path string) bool { return slices.Contains(files, path) })
				if sum != r.mu.bytes || sum > most || len(left) > 0 {
					t.Fatalf("copies of %d bytes, counted %d, bound %d; files of none: %v", sum, r.mu.bytes, most, left)
				}
			},
		}
		rt.Repeat(actions)
	})
}

// Tasks put and read, attempts end and triggers come, all at a time.
func TestKeptConcurrent(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 10*keptChunk)
	ctx, cancel := context.WithCancel(t.Context())
	var all, removing sync.WaitGroup
	removing.Go(func() { _ = r.run(ctx, func() []weir.JobID { return nil }) })
	for w := range 4 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 200 {
				key, data := stateKey("job_a", i+1, w), content(1+rnd.IntN(3*keptChunk))
				if err := r.Put(ctx, key, bytes.NewReader(data)); err != nil {
					t.Error(err)
				}
				other := stateKey("job_a", i+1-rnd.IntN(2), rnd.IntN(4))
				if body, err := r.Get(ctx, other, 0, -1); err == nil {
					got, err := io.ReadAll(body)
					if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, content(len(got))) {
						t.Errorf("%s: %d bytes, %v", other, len(got), err)
					}
				} else if !errors.Is(err, weir.ErrNotFound) {
					t.Error(err)
				}
				if rnd.IntN(4) == 0 {
					r.wanted(checkpoint.Trigger{Job: "job_a", Checkpoint: weir.CheckpointID(i + 1), Base: weir.CheckpointID(i)})
				}
				if rnd.IntN(20) == 0 {
					r.look([]weir.JobID{"job_b"})
				}
			}
		})
	}
	all.Wait()
	cancel()
	removing.Wait()
	if n := len(r.files(t)); n != len(r.mu.copies) || r.mu.bytes > r.most || strings.Contains(r.log.String(), "damaged") {
		t.Errorf("%d files, %d copies, %d bytes: %s", n, len(r.mu.copies), r.mu.bytes, r.log.String())
	}
}

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/deploy"
)

// A keptRig is a kept over storage in memory that counts its Gets.
type keptRig struct {
	*kept
	storage *blob.Faulty
	log     bytes.Buffer
	refuse  blob.Fault // of a Put
	full    bool       // the disk is
}

// A fataler is a testing.TB or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newKeptRig(t testing.TB, most int64) *keptRig {
	r := &keptRig{}
	r.storage = blob.NewFaulty(blob.NewMemory(), func(c blob.Call) blob.Fault {
		if c.Verb == "Put" {
			return r.refuse
		}
		return blob.Fault{}
	})
	dir, err := os.MkdirTemp(t.TempDir(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	r.live(dir, most)
	return r
}

// live begins a life of the worker over a folder.
func (r *keptRig) live(dir string, most int64) {
	r.kept = newKept(r.storage, dir, most, slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	r.open()
	r.create = func(path string) (io.WriteCloser, error) {
		f, err := createFile(path)
		if err == nil && r.full {
			return &fullDisk{f, keptChunk}, nil
		}
		return f, err
	}
}

// restart kills the life and begins another one, with another bound.
func (r *keptRig) restart(most int64) {
	_ = r.lock.Close() // as the system does it
	r.live(r.dir, most)
}

// A fullDisk has room for so many bytes.
type fullDisk struct {
	io.WriteCloser
	left int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return d.WriteCloser.Write(p)
}

func (r *keptRig) put(t fataler, key string, data []byte) {
	t.Helper()
	if err := r.Put(context.Background(), key, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

// get reads an object, and says where storage was asked to begin: -1: it was not.
func (r *keptRig) get(t fataler, key string) (data []byte, asked int) {
	t.Helper()
	before := len(r.storage.Calls())
	body, err := r.Get(context.Background(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	data, err = io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return data, len(r.storage.Calls()) - before
}

// files are those of the folder, after dropped ones have gone.
func (r *keptRig) files(t fataler) []string {
	t.Helper()
	r.mu.Lock()
	for _, path := range r.mu.dropped {
		_ = os.Remove(path)
	}
	r.mu.dropped = nil
	r.mu.Unlock()
	list, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(path string) bool { return filepath.Base(path) == keptLock })
}

func (r *keptRig) keys() []string {
	var keys []string
	for _, c := range r.mu.copies {
		keys = append(keys, c.key)
	}
	slices.Sort(keys)
	return keys
}

func (r *keptRig) path(t fataler, key string) string {
	t.Helper()
	c := r.find(key)
	if c == nil {
		t.Fatalf("no copy of %s", key)
	}
	return c.path
}

func stateKey(job string, id, n int) string {
	return checkpoint.StateKey(weir.JobID(job), weir.AttemptID{Number: 1, Tag: "x"}, "op", 0, weir.CheckpointID(id), n)
}

func content(n int) []byte {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = rnd.Read(b)
	return b
}

// damage does something to a file that no reader may be misled by.
var damage = map[string]func(path string, at int64) error{
	"bit": func(path string, at int64) error {
		b, err := os.ReadFile(path)
		if err != nil || at >= int64(len(b)) {
			return err
		}
		b[at] ^= 4
		return os.WriteFile(path, b, 0o600)
	},
	"cut": os.Truncate,
	"gone": func(path string, _ int64) error {
		return os.Remove(path)
	},
	"longer": func(path string, _ int64) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, append(b, 1), 0o600)
	},
}

// A damaged copy costs a line in the log and what is behind the damage, read from
// storage; it is read once.
func TestKeptDamaged(t *testing.T) {
	t.Parallel()
	data, key := content(2*keptChunk+100), stateKey("job_a", 1, 0)
	for _, tc := range []struct {
		what  string
		at    int64
		bytes int64 // read from the copy; -1: all
	}{
		{"bit", 0, 0},
		{"bit", keptChunk, keptChunk},
		{"bit", 2*keptChunk + 99, 2 * keptChunk},
		{"cut", 0, 0},
		{"cut", keptChunk, keptChunk},
		{"cut", 2*keptChunk + 99, 2 * keptChunk},
		{"gone", 0, 0},
		{"longer", 0, -1},
	} {
		t.Run(fmt.Sprintf("%s %d", tc.what, tc.at), func(t *testing.T) {
			t.Parallel()
			r := newKeptRig(t, 1<<20)
			r.put(t, key, data)
			if got, asked := r.get(t, key); !bytes.Equal(got, data) || asked != 0 {
				t.Fatalf("%d bytes as they were put: %v, after %d calls of storage", len(got), bytes.Equal(got, data), asked)
			}
			if err := damage[tc.what](r.path(t, key), tc.at); err != nil {
				t.Fatal(err)
			}
			body, err := r.Get(t.Context(), key, 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(body)
			if err = errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, as they were put: %v, %v", len(got), bytes.Equal(got, data), err)
			}
			if tc.bytes < 0 {
				if r.log.Len() > 0 || len(r.keys()) != 1 {
					t.Errorf("said %s", r.log.String())
				}
				return
			}
			if n := strings.Count(r.log.String(), "damaged"); n != 1 || len(r.keys()) != 0 || len(r.files(t)) != 0 {
				t.Errorf("said %d times, copies %v: %s", n, r.keys(), r.log.String())
			}
			if _, asked := r.get(t, key); asked != 1 || strings.Count(r.log.String(), "\n") != 1 {
				t.Errorf("then %d calls of storage: %s", asked, r.log.String())
			}
		})
	}
}

// A disk that is full ends copies, is told of once, and again after it had room.
func TestKeptDiskFull(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	for i, full := range []bool{true, true, false, true} {
		r.full = full
		key, data := stateKey("job_a", i+1, 0), content(2*keptChunk)
		r.put(t, key, data)
		if got, asked := r.get(t, key); !bytes.Equal(got, data) || (asked == 1) != full {
			t.Errorf("object %d: as it was put: %v, after %d calls of storage", i, bytes.Equal(got, data), asked)
		}
	}
	if text := r.log.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "no space left on device") != 2 {
		t.Errorf("said\n%s", text)
	}
	r.full = false
	if err := os.WriteFile(filepath.Join(r.dir, "5.part"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.put(t, stateKey("job_a", 8, 0), content(3))
	if text := r.log.String(); r.find(stateKey("job_a", 8, 0)) != nil || strings.Count(text, "\n") != 2 {
		t.Errorf("where a file is in the way: said\n%s", text)
	}
	r.dir = filepath.Join(r.path(t, stateKey("job_a", 3, 0)), "below") // no folder can be
	r.put(t, stateKey("job_a", 9, 0), content(3))
	if want := []string{stateKey("job_a", 3, 0)}; !cmp.Equal(r.keys(), want) || r.mu.bytes != r.mu.copies[0].room || r.mu.bytes < 2*keptChunk {
		t.Errorf("copies %v of %d bytes", r.keys(), r.mu.bytes)
	}
}

// What an object is and what comes of it decide whether a copy is kept, and until when.
func TestKeptWanted(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	all := func(job string, ids ...int) (keys []string) {
		for _, id := range ids {
			keys = append(keys, stateKey(job, id, 0))
		}
		slices.Sort(keys)
		return keys
	}
	expect := func(what string, keys ...string) {
		t.Helper()
		slices.Sort(keys)
		if got := r.keys(); !slices.Equal(got, keys) || len(r.files(t)) != len(keys) {
			t.Errorf("%s: copies %v, want %v, files %v", what, got, keys, r.files(t))
		}
	}
	for _, key := range []string{"job_a/1/manifest", "job_a/1-x/op-0/agreed-files", "control/default/1-x"} {
		r.put(t, key, content(10))
	}
	expect("no state")
	for _, key := range slices.Concat(all("job_a", 1, 2, 3, 4, 5), all("job_b", 1)) {
		r.put(t, key, content(10))
	}
	trigger := func(id, base weir.CheckpointID, pending ...weir.CheckpointID) {
		r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: weir.AttemptID{Number: 1, Tag: "x"}, Checkpoint: id, Base: base, Pending: pending})
	}
	trigger(4, 1, 3, 4)
	expect("a trigger", slices.Concat(all("job_a", 1, 3, 4, 5), all("job_b", 1))...)
	trigger(5, 0, 4, 5)
	expect("a savepoint's trigger", slices.Concat(all("job_a", 3, 4, 5), all("job_b", 1))...)
	trigger(4, 1, 3, 4)
	expect("one that comes late", slices.Concat(all("job_a", 3, 4, 5), all("job_b", 1))...)
	trigger(6, 3, 6)
	expect("a later trigger", slices.Concat(all("job_a", 3), all("job_b", 1))...)
	for range keptLooks + 1 {
		r.look([]weir.JobID{"job_a"})
	}
	expect("job_b is long gone", all("job_a", 3)...)
	for range keptLooks - 1 {
		r.look(nil)
	}
	r.look([]weir.JobID{"job_a"})
	for range keptLooks - 1 {
		r.look(nil)
	}
	expect("job_a was between two attempts", all("job_a", 3)...)
	r.look(nil)
	expect("both are long gone")
	if r.mu.bytes != 0 || r.log.Len() > 0 {
		t.Errorf("%d bytes: %s", r.mu.bytes, r.log.String())
	}
}

// Copies of what a job's state consists of stay, however old the checkpoint is that they were
// stored for.
func TestKeptNamed(t *testing.T) {
	t.Parallel()
	r, full := newKeptRig(t, 1<<20), "job_a/1-x/op-0/full-3"
	one, two, three := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0), stateKey("job_a", 3, 0)
	first, second := weir.AttemptID{Number: 1, Tag: "x"}, weir.AttemptID{Number: 2, Tag: "y"}
	task, other := weir.TaskID{Chain: 1}, weir.TaskID{Chain: 1, Subtask: 1}
	expect := func(what string, keys ...string) {
		t.Helper()
		slices.Sort(keys)
		if got := r.keys(); !slices.Equal(got, keys) {
			t.Errorf("%s: copies %v, want %v", what, got, keys)
		}
	}
	trigger := func(attempt weir.AttemptID, id, base weir.CheckpointID) {
		r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: attempt, Checkpoint: id, Base: base, Pending: []weir.CheckpointID{id}})
	}
	for _, key := range []string{one, two, three, full} {
		r.put(t, key, content(10))
	}
	r.named("job_a", first, task, []string{one, two})
	r.named("job_a", first, other, nil)
	trigger(first, 4, 2)
	expect("a delta over an older whole state, and a merged one in the making", one, two, full)
	r.named("job_a", first, task, []string{full})
	trigger(first, 5, 2)
	expect("the merged one in their place", full)
	r.put(t, two, content(10))
	r.named("job_a", second, other, []string{two})
	trigger(second, 6, 5)
	expect("another attempt", two)
	for range keptLooks {
		r.look(nil)
	}
	if expect("no attempt"); len(r.mu.names) > 0 {
		t.Error("names stay")
	}
}

// The store is as conditional as the one behind it.
func TestKeptConditional(t *testing.T) {
	t.Parallel()
	if !blob.Conditional(newKept(blob.NewMemory(), "", 0, nil)) || blob.Conditional(newKept(unconditional{}, "", 0, nil)) {
		t.Error("not as the store")
	}
}

type unconditional struct{ blob.Store }

func (unconditional) Conditional() bool { return false }

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

// A worker that was started anew finds the copies of its last life: what is whole, and nothing
// else; within its bound, the newest ones.
func TestKeptRestart(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	key := func(n int) string { return stateKey("job_a", n, 0) }
	sizes := []int{0, 1, keptChunk, 3*keptChunk + 100}
	for i, size := range sizes {
		r.put(t, key(i+1), content(size))
	}
	half := filepath.Join(r.dir, "9"+keptMaking)
	folder := filepath.Join(r.dir, "0a1b2c", "1")
	if err := errors.Join(os.WriteFile(half, content(100), 0o600), os.Mkdir(filepath.Dir(folder), 0o700), os.WriteFile(folder, nil, 0o600), os.WriteFile(filepath.Join(r.dir, "7"), content(70), 0o600)); err != nil {
		t.Fatal(err)
	}
	bytes0 := r.mu.bytes
	r.restart(1 << 20)
	if len(r.files(t)) != len(sizes) || len(r.keys()) != len(sizes) || r.mu.bytes != bytes0 {
		t.Fatalf("files %v, copies %v, %d bytes of %d", r.files(t), r.keys(), r.mu.bytes, bytes0)
	}
	for i, size := range sizes {
		if got, asked := r.get(t, key(i+1)); !bytes.Equal(got, content(size)) || asked != 0 {
			t.Errorf("object of %d bytes: as it was put: %v, after %d calls of storage", size, bytes.Equal(got, content(size)), asked)
		}
	}
	r.put(t, key(9), content(10)) // under a name that is free
	if want := []deploy.Kept{{Job: "job_a", Subtask: 0, Checkpoint: 9}}; !cmp.Equal(r.list(nil), want) || len(r.list([]weir.JobID{"job_a"})) > 0 {
		t.Errorf("told: %+v", r.list(nil))
	}
	r.restart(keptChunk * 4)
	if want := []string{key(4), key(9)}; !cmp.Equal(r.keys(), want) || len(r.files(t)) != 2 {
		t.Errorf("with less room: copies %v, files %v", r.keys(), r.files(t))
	}
	path := r.path(t, key(4))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 3*keptChunk + 100; at < len(whole); at++ { // its footer
		bad := slices.Clone(whole)
		bad[at] ^= 0x41
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := r.found(path); err == nil {
			t.Fatalf("byte %d of %d damaged: copy of %s", at, len(whole), c.key)
		}
		if err := os.WriteFile(path, whole[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := r.found(path); err == nil {
			t.Fatalf("cut at %d of %d: copy of %s", at, len(whole), c.key)
		}
	}
	r.restart(0)
	if len(r.files(t)) != 0 || r.mu.bytes != 0 || r.log.Len() > 0 {
		t.Errorf("with no room: %v, %d bytes: %s", r.files(t), r.mu.bytes, r.log.String())
	}
}

// Of what an earlier life stored stays what the tasks of the next attempt name; a job that
// does not run here any more has none after a while.
func TestKeptRestartWanted(t *testing.T) {
	t.Parallel()
	r, full := newKeptRig(t, 1<<20), "job_a/1-x/op-0/full-3"
	one, two, three := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0), stateKey("job_a", 3, 0)
	other := stateKey("job_b", 3, 0)
	for _, key := range []string{one, two, three, full, other} {
		r.put(t, key, content(10))
	}
	r.restart(1 << 20)
	second := weir.AttemptID{Number: 2, Tag: "y"}
	r.named("job_a", second, weir.TaskID{Chain: 1}, []string{one, three})
	fresh := checkpoint.StateKey("job_a", second, "op", 0, 4, 0)
	making := checkpoint.FullKey("job_a", second, "op", 0, 0)
	r.put(t, fresh, content(10))
	r.put(t, making, content(10))
	r.wanted(checkpoint.Trigger{Job: "job_a", Attempt: second, Checkpoint: 4, Base: 3, Pending: []weir.CheckpointID{4}})
	want := []string{one, three, other, fresh, making}
	if slices.Sort(want); !cmp.Equal(r.keys(), want) {
		t.Errorf("copies %v, want %v", r.keys(), want)
	}
	for range keptLooks {
		r.look([]weir.JobID{"job_a"})
	}
	if slices.Contains(r.keys(), other) || len(r.keys()) != 4 {
		t.Errorf("job_b does not run here: copies %v", r.keys())
	}
}

// Two workers over one folder, by mistake: the second keeps nothing and harms nothing, until
// the first has ended.
func TestKeptTwoLives(t *testing.T) {
	t.Parallel()
	r := newKeptRig(t, 1<<20)
	one, two := stateKey("job_a", 1, 0), stateKey("job_a", 2, 0)
	r.put(t, one, content(100))
	second := &keptRig{storage: r.storage}
	second.live(r.dir, 1<<20)
	second.put(t, two, content(200))
	if n := strings.Count(second.log.String(), "in use by another worker"); n != 1 || len(second.keys()) > 0 || len(r.files(t)) != 1 {
		t.Errorf("copies %v, files %v: %s", second.keys(), r.files(t), second.log.String())
	}
	if got, asked := r.get(t, one); !bytes.Equal(got, content(100)) || asked != 0 {
		t.Error("the first one's copy is gone")
	}
	r.shut()
	r.put(t, two, content(200))
	second.open()
	if got, asked := second.get(t, one); !bytes.Equal(got, content(100)) || asked != 0 || len(second.files(t)) != 1 {
		t.Errorf("then copies %v, files %v", second.keys(), second.files(t))
	}
}

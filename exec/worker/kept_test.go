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
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
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

// The store is as conditional as the one behind it.
func TestKeptConditional(t *testing.T) {
	t.Parallel()
	if !blob.Conditional(newKept(blob.NewMemory(), "", 0, nil)) || blob.Conditional(newKept(unconditional{}, "", 0, nil)) {
		t.Error("not as the store")
	}
}

type unconditional struct{ blob.Store }

func (unconditional) Conditional() bool { return false }

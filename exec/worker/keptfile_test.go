package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
)

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

// A file that is damaged where its footer's length is costs no memory: a life that begins is
// not to end by it.
func TestKeptFooterTooLong(t *testing.T) {
	t.Parallel()
	r, key := newKeptRig(t, 1<<30), stateKey("job_a", 1, 0)
	r.put(t, key, content(10))
	path := r.path(t, key)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	trailer := binary.LittleEndian.AppendUint32(make([]byte, 8), 1<<29)
	_, err = f.WriteAt(append(trailer, keptMagic...), 1<<30-int64(keptTrailer)) // most of it takes no room
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	before := allocated()
	if c, err := r.found(path); err == nil {
		t.Errorf("it is a copy of %s", c.key)
	}
	if n := allocated() - before; n > 1<<28 {
		t.Errorf("it took %d bytes of memory to see that it is none", n)
	}
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

package blob_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/blob/blobtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) blob.Store{
		"folder": func(t *testing.T) blob.Store { return openFolder(t, t.TempDir()) },
		"memory": func(*testing.T) blob.Store { return blob.NewMemory() },
		"faulty": func(*testing.T) blob.Store {
			return blob.NewFaulty(blob.NewMemory(), func(blob.Call) blob.Fault { return blob.Fault{} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobtest.Run(t, open)
		})
	}
}

func openFolder(t testing.TB, root string) *blob.Folder {
	t.Helper()
	s, err := blob.OpenFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	blocked := filepath.Join(dir, "blocked")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(blocked, 0o700),
		os.WriteFile(filepath.Join(blocked, ".weir~tmp"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Open("file://" + dir); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		url  string
		is   error
		says string
	}{
		{"file://" + dir + "/none", weir.ErrNotFound, "storage folder " + dir + "/none does not exist"},
		{"file://" + file, weir.ErrInvalid, "is a file, not a directory"},
		{"file://" + blocked, nil, "storage folder " + blocked + " cannot be written"},
		{"file://relative", weir.ErrInvalid, "not absolute"},
		{"file://", weir.ErrInvalid, "not absolute"},
		{dir, weir.ErrInvalid, "no URL"},
		{"gs://bucket", weir.ErrInvalid, "gs is not supported by this version"},
		{"azblob://bucket", weir.ErrInvalid, "azblob is not supported by this version"},
		{"ftp://host", weir.ErrInvalid, `scheme "ftp" is unknown`},
	} {
		_, err := blob.Open(c.url)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) || strings.ContainsAny(err.Error(), "\n@") {
			t.Errorf("%s: %v; want %q", c.url, err, c.says)
		}
	}
}

func TestFolderLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := openFolder(t, root)
	for _, key := range []string{"a/b/c", "a/b/d", "a/e"} {
		if err := s.PutIfAbsent(t.Context(), key, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		if err := s.PutIfAbsent(t.Context(), key, strings.NewReader("y")); !errors.Is(err, blob.ErrExists) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{".weir~tmp", "a", "a/b", "a/b/c", "a/b/d", "a/e"}, tree(t, root)); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"a/b/c", "a/b/d", "a/e"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{".weir~tmp"}, tree(t, root)); diff != "" {
		t.Error(diff)
	}
}

// TestFolderSweep: what a killed process left in the making goes once it is a day
// old (C19); what another process may be writing just now stays.
func TestFolderSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	openFolder(t, root)
	for name, age := range map[string]time.Duration{"put-old": 25 * time.Hour, "put-new": time.Hour} {
		file := filepath.Join(root, ".weir~tmp", name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	openFolder(t, root)
	if diff := cmp.Diff([]string{".weir~tmp", ".weir~tmp/put-new"}, tree(t, root)); diff != "" {
		t.Error(diff)
	}
}

// TestFolderAway: where the folder itself is gone, a disk that is not mounted, no
// object counts as missing, for a job would fail for good; and none is written into
// what is in its place.
func TestFolderAway(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(root string) error{
		"nothing":       func(string) error { return nil },
		"a file":        func(root string) error { return os.WriteFile(root, nil, 0o600) },
		"another place": func(root string) error { return os.Mkdir(root, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			s := openFolder(t, root)
			if err := s.Put(t.Context(), "a/b", strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Rename(root, root+".away"), place(root)); err != nil {
				t.Fatal(err)
			}
			_, getErr := s.Get(t.Context(), "a/b", 0, -1)
			_, statErr := s.Stat(t.Context(), "a/b")
			for _, err := range []error{
				getErr, statErr, s.Put(t.Context(), "a/c", strings.NewReader("y")), s.Delete(t.Context(), "a/b"),
				s.List(t.Context(), "a/", func(string, int64) bool { return true }),
			} {
				if err == nil || errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), "storage folder "+root+" is away") {
					t.Errorf("got %v", err)
				}
			}
			if err := errors.Join(os.RemoveAll(root), os.Rename(root+".away", root)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stat(t.Context(), "a/b"); err != nil {
				t.Errorf("it is back: %v", err)
			}
			if _, err := s.Stat(t.Context(), "a/c"); !errors.Is(err, weir.ErrNotFound) {
				t.Errorf("an object that was never put: %v", err)
			}
		})
	}
}

func TestFolderKeyBelowObject(t *testing.T) {
	t.Parallel()
	s := openFolder(t, t.TempDir())
	if err := s.Put(t.Context(), "a", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a/b", strings.NewReader("x")); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

func tree(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if path != root {
			name, _ := filepath.Rel(root, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestFaulty(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	inner := blob.NewMemory()
	s := blob.NewFaulty(inner, blob.FailTimes(1, "Put", "b", blob.Fault{After: lost}))
	if err := s.Put(t.Context(), "a", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
	if err := s.Put(t.Context(), "b", strings.NewReader("x")); !errors.Is(err, lost) {
		t.Error(err)
	}
	if _, err := inner.Stat(t.Context(), "b"); err != nil {
		t.Errorf("fails after the work, yet %v", err)
	}
	s = blob.NewFaulty(inner, blob.FailTimes(1, "Put", "c", blob.Fault{Before: lost}))
	if err := s.Put(t.Context(), "c", strings.NewReader("x")); !errors.Is(err, lost) {
		t.Error(err)
	}
	if _, err := inner.Stat(t.Context(), "c"); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("fails before the work, yet %v", err)
	}
	if diff := cmp.Diff([]blob.Call{{N: 1, Verb: "Put", Key: "c"}}, s.Calls()); diff != "" {
		t.Error(diff)
	}
	slow := blob.NewFaulty(inner, func(blob.Call) blob.Fault { return blob.Fault{Wait: make(chan struct{})} })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := slow.Put(ctx, "d", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

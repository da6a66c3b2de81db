package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint/blob"
	"weir/checkpoint/blob/s3test"
)

// TestProbe: every kind of store passes, and nothing stays.
func TestProbe(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	for name, s := range map[string]blob.Store{"memory": blob.NewMemory(), "folder": openFolder(t, t.TempDir()), "s3": server.Open(t, "probe/x")} {
		old, recent := fmt.Sprintf(".probe-%x-old", time.Now().Add(-25*time.Hour).Unix()), fmt.Sprintf(".probe-%x-new", time.Now().Unix())
		for _, key := range []string{old, recent, "job/1"} {
			if err := s.Put(t.Context(), key, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		warnings, err := blob.Probe(t.Context(), s)
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
		var left []string
		if err := s.List(t.Context(), "", func(key string, _ int64) bool { left = append(left, key); return true }); err != nil {
			t.Fatal(err)
		}
		if len(left) != 2 || left[0] != recent {
			t.Errorf("%s: left are %v", name, left)
		}
	}
}

// TestProbeFails: the sentence says which verb failed, and the probe's object goes.
func TestProbeFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for verb, says := range map[string]string{
		"Put": "cannot write: broken", "Get": "cannot read what it has written: broken", "List": "cannot list: broken",
		"PutIfAbsent": "cannot put if absent: broken", "Delete": "cannot delete: broken",
	} {
		inner := blob.NewMemory()
		_, err := blob.Probe(t.Context(), blob.NewFaulty(inner, blob.FailTimes(1, verb, "", blob.Fault{Before: broken})))
		if !matches(err, "storage probe: "+says) || !errors.Is(err, broken) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := inner.List(t.Context(), "", func(key string, _ int64) bool { t.Errorf("%s: %s is left", verb, key); return true }); err != nil {
			t.Fatal(err)
		}
	}
	cut := blob.NewFaulty(blob.NewMemory(), blob.FailTimes(1, "Get", "", blob.Fault{Cut: 3}))
	if _, err := blob.Probe(t.Context(), cut); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := blob.NewFaulty(blob.NewMemory(), blob.FailTimes(1, "Put", "", blob.Fault{Delay: time.Hour}))
		began := time.Now()
		if _, err := blob.Probe(t.Context(), slow); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Second {
			t.Errorf("slow: %v after %v", err, time.Since(began))
		}
	})
}

// A careless store ignores If-None-Match, as some do.
type careless struct {
	mu      sync.Mutex
	objects map[string][]byte
	meta    map[string]string
	status  int // of conditional puts; 0: as others
}

func (c *careless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, there := c.objects[r.URL.Path]
	switch {
	case r.URL.Query().Has("uploads"):
		fmt.Fprint(w, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
	case r.URL.Query().Has("list-type"):
		fmt.Fprint(w, "<ListBucketResult>")
		for path, data := range c.objects {
			if key := strings.TrimPrefix(path, "/weir/"); strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", key, len(data))
			}
		}
		fmt.Fprint(w, "</ListBucketResult>")
	case r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "" && c.status != 0:
		w.WriteHeader(c.status)
		fmt.Fprint(w, "<Error><Code>NotImplemented</Code></Error>")
	case r.Method == http.MethodPut:
		c.objects[r.URL.Path], _ = io.ReadAll(r.Body)
		c.meta[r.URL.Path] = r.Header.Get("X-Amz-Meta-Weir-Put")
	case r.Method == http.MethodDelete:
		delete(c.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("X-Amz-Meta-Weir-Put", c.meta[r.URL.Path])
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(data))
	}
}

// TestProbeWithoutCondition: a store without conditional puts is refused, unless the URL
// accepts that; then existing objects are looked for first.
func TestProbeWithoutCondition(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, http.StatusNotImplemented} {
		store := httptest.NewServer(&careless{objects: map[string][]byte{}, meta: map[string]string{}, status: status})
		t.Cleanup(store.Close)
		url := s3test.URL(strings.TrimPrefix(store.URL, "http://"), "weir/p", s3test.Credentials(t, "a", "b", ""))
		s, err := blob.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := blob.Probe(t.Context(), s); !matches(err, "(ignores If-None-Match|no conditional put).* take .*add conditional_put=false") {
			t.Errorf("got %v", err)
		}
		if s, err = blob.Open(url + "&conditional_put=false"); err != nil {
			t.Fatal(err)
		}
		warnings, err := blob.Probe(t.Context(), s)
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "may replace a manifest") || blob.Conditional(s) {
			t.Errorf("%v, %v", warnings, err)
		}
		if err := s.PutIfAbsent(t.Context(), "k", strings.NewReader("one")); err != nil {
			t.Error(err)
		}
		if err := s.PutIfAbsent(t.Context(), "k", strings.NewReader("two")); !errors.Is(err, blob.ErrExists) {
			t.Error(err)
		}
		if got := content(t, s, "k"); got != "one" {
			t.Errorf("got %q", got)
		}
	}
}

// TestFaultyTime: an answer that comes too late hides that the work was done.
func TestFaultyTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := blob.NewMemory()
		s := blob.NewFaulty(inner, blob.FailTimes(1, "Put", "", blob.Fault{Late: time.Minute}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Put(ctx, "k", strings.NewReader("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := inner.Stat(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	})
}

// TestFolderHints: what a disk refuses is said with what to do.
func TestFolderHints(t *testing.T) {
	t.Parallel()
	for errno, says := range map[syscall.Errno]string{
		syscall.ENOSPC: "disk is full; make room", syscall.EDQUOT: "quota is used up", syscall.EROFS: "mounted read-only", syscall.EACCES: "may not write there",
	} {
		if err := blob.Explain(&os.PathError{Op: "write", Path: "/x", Err: errno}); !matches(err, "write /x: .*: .*"+says) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

// TestFolderUnfinished: what a killed process was writing is found.
func TestFolderUnfinished(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := openFolder(t, root)
	if err := os.WriteFile(filepath.Join(root, ".weir~tmp", "put-1"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	found, err := s.Unfinished(t.Context(), soon)
	if err != nil || len(found) != 1 || found[0].ID != "put-1" {
		t.Fatalf("%v, %v", found, err)
	}
	for range 2 {
		if err := s.Abandon(t.Context(), found[0]); err != nil {
			t.Error(err)
		}
	}
	if found, err := s.Unfinished(t.Context(), soon); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

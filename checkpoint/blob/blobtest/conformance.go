// Package blobtest is the conformance suite of blob.Store: every implementation
// passes it.
package blobtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint/blob"
)

// Run checks that the stores open returns, each of them empty, keep the contract.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s blob.Store)
	}{
		{"put and get", putAndGet},
		{"ranges", ranges},
		{"absent objects", absent},
		{"put if absent", putIfAbsent},
		{"one of many writers wins", race},
		{"list is in key order", list},
		{"list stops", listStops},
		{"delete twice", deleteTwice},
		{"delete and put beside each other", deleteBesidePut},
		{"failed put leaves nothing", failedPut},
		{"failed put leaves the old object", failedPutKeeps},
		{"cancelled", cancelled},
		{"keys", keys},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

func putAndGet(t *testing.T, s blob.Store) {
	for _, want := range []string{"", "one", strings.Repeat("0123456789", 100_000), "replaced"} {
		put(t, s, "a/b/c-1", want)
		if got := get(t, s, "a/b/c-1", 0, -1); got != want {
			t.Fatalf("got %d bytes, want %d", len(got), len(want))
		}
		if size, err := s.Stat(t.Context(), "a/b/c-1"); err != nil || size != int64(len(want)) {
			t.Fatalf("stat: %d, %v; want %d", size, err, len(want))
		}
	}
}

func ranges(t *testing.T, s blob.Store) {
	put(t, s, "k", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 3, "012"}, {7, 3, "789"}, {7, -1, "789"}, {7, 100, "789"}, {10, -1, ""}, {11, 5, ""}, {4, 0, ""}} {
		if got := get(t, s, "k", c.offset, c.length); got != c.want {
			t.Errorf("[%d,+%d): got %q, want %q", c.offset, c.length, got, c.want)
		}
	}
	if _, err := s.Get(t.Context(), "k", -1, 1); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("negative offset: %v, want ErrInvalid", err)
	}
}

func absent(t *testing.T, s blob.Store) {
	put(t, s, "a/b", "x")
	for _, key := range []string{"nothing", "a", "a/b/c", "a/c"} {
		if _, err := s.Get(t.Context(), key, 0, -1); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), key) {
			t.Errorf("get %s: %v, want ErrNotFound naming it", key, err)
		}
		if _, err := s.Stat(t.Context(), key); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), key) {
			t.Errorf("stat %s: %v, want ErrNotFound naming it", key, err)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if got := get(t, s, "a/b", 0, -1); got != "x" {
		t.Errorf("a/b is %q after deleting its neighbours", got)
	}
}

func putIfAbsent(t *testing.T, s blob.Store) {
	if err := s.PutIfAbsent(t.Context(), "d/k", strings.NewReader("first")); err != nil {
		t.Fatal(err)
	}
	if err := s.PutIfAbsent(t.Context(), "d/k", strings.NewReader("second")); !errors.Is(err, blob.ErrExists) {
		t.Fatalf("second put: %v, want ErrExists", err)
	}
	if got := get(t, s, "d/k", 0, -1); got != "first" {
		t.Fatalf("got %q, want the first", got)
	}
}

func race(t *testing.T, s blob.Store) {
	const writers = 8
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			errs[i] = s.PutIfAbsent(t.Context(), "r/k", strings.NewReader(fmt.Sprint(i)))
		})
	}
	wg.Wait()
	winner := get(t, s, "r/k", 0, -1)
	for i, err := range errs {
		if won := fmt.Sprint(i) == winner; won != (err == nil) || !won && !errors.Is(err, blob.ErrExists) {
			t.Errorf("writer %d: %v, and the object is %s's", i, err, winner)
		}
	}
}

func list(t *testing.T, s blob.Store) {
	for _, key := range []string{"j/a/1", "j/a-b", "j/a.b", "j/a0", "j/B", "i/x", "j/a/0/z", "k"} {
		put(t, s, key, key)
	}
	for prefix, want := range map[string][]string{
		"":     {"i/x", "j/B", "j/a-b", "j/a.b", "j/a/0/z", "j/a/1", "j/a0", "k"},
		"j/":   {"j/B", "j/a-b", "j/a.b", "j/a/0/z", "j/a/1", "j/a0"},
		"j/a":  {"j/a-b", "j/a.b", "j/a/0/z", "j/a/1", "j/a0"},
		"j/a/": {"j/a/0/z", "j/a/1"},
		"k":    {"k"},
		"none": nil,
		"x/y/": nil,
	} {
		if diff := cmp.Diff(want, keysOf(t, s, prefix)); diff != "" {
			t.Errorf("list %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func listStops(t *testing.T, s blob.Store) {
	for i := range 5 {
		put(t, s, fmt.Sprintf("d%d/k", i), "x")
	}
	n := 0
	err := s.List(t.Context(), "", func(string, int64) bool { n++; return n < 2 })
	if err != nil || n != 2 {
		t.Fatalf("%d calls, %v; want 2", n, err)
	}
}

func deleteTwice(t *testing.T, s blob.Store) {
	put(t, s, "a/b/c", "x")
	put(t, s, "a/d", "x")
	for range 2 {
		if err := s.Delete(t.Context(), "a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a/d"}, keysOf(t, s, "")); diff != "" {
		t.Fatal(diff)
	}
}

func deleteBesidePut(t *testing.T, s blob.Store) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				key := fmt.Sprintf("p/q/r/%d-%d", w, i)
				if err := s.Put(t.Context(), key, strings.NewReader("x")); err != nil {
					t.Errorf("put %s: %v", key, err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Errorf("delete %s: %v", key, err)
				}
			}
		})
	}
	wg.Wait()
	if got := keysOf(t, s, ""); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// breaking is a reader that fails after its text.
type breaking struct {
	r     io.Reader
	atEnd func() error
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.atEnd()
	}
	return n, err
}

func failedPut(t *testing.T, s blob.Store) {
	broken := errors.New("broken")
	for _, put := range []func(context.Context, string, io.Reader) error{s.Put, s.PutIfAbsent} {
		err := put(t.Context(), "x/y", &breaking{strings.NewReader("half"), func() error { return broken }})
		if !errors.Is(err, broken) {
			t.Errorf("put: %v, want the reader's error", err)
		}
	}
	if got := keysOf(t, s, ""); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

func failedPutKeeps(t *testing.T, s blob.Store) {
	put(t, s, "x/y", "old")
	err := s.Put(t.Context(), "x/y", &breaking{strings.NewReader("half"), func() error { return io.ErrUnexpectedEOF }})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("put: %v", err)
	}
	if got := get(t, s, "x/y", 0, -1); got != "old" {
		t.Errorf("got %q", got)
	}
}

func cancelled(t *testing.T, s blob.Store) {
	put(t, s, "k", "x")
	for name, f := range map[string]func(ctx context.Context, cancel func()) error{
		"put": func(ctx context.Context, cancel func()) error {
			return s.Put(ctx, "new", &breaking{strings.NewReader("half"), func() error { cancel(); return io.EOF }})
		},
		"put if absent": func(ctx context.Context, cancel func()) error {
			return s.PutIfAbsent(ctx, "new", &breaking{strings.NewReader("half"), func() error { cancel(); return io.EOF }})
		},
		"get": func(ctx context.Context, cancel func()) error {
			cancel()
			_, err := s.Get(ctx, "k", 0, -1)
			return err
		},
		"read": func(ctx context.Context, cancel func()) error {
			r, err := s.Get(ctx, "k", 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			cancel()
			_, err = io.ReadAll(r)
			return err
		},
		"stat": func(ctx context.Context, cancel func()) error {
			cancel()
			_, err := s.Stat(ctx, "k")
			return err
		},
		"list": func(ctx context.Context, cancel func()) error {
			cancel()
			return s.List(ctx, "", func(string, int64) bool { return true })
		},
		"delete": func(ctx context.Context, cancel func()) error {
			cancel()
			return s.Delete(ctx, "k")
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if err := f(ctx, cancel); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
		cancel()
	}
	if diff := cmp.Diff([]string{"k"}, keysOf(t, s, "")); diff != "" {
		t.Error(diff)
	}
}

func keys(t *testing.T, s blob.Store) {
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a b", "a~b", "ä", `a\b`, strings.Repeat("a", 2000)} {
		_, getErr := s.Get(t.Context(), key, 0, -1)
		_, statErr := s.Stat(t.Context(), key)
		for verb, err := range map[string]error{
			"put":           s.Put(t.Context(), key, strings.NewReader("x")),
			"put if absent": s.PutIfAbsent(t.Context(), key, strings.NewReader("x")),
			"get":           getErr,
			"stat":          statErr,
			"delete":        s.Delete(t.Context(), key),
		} {
			if !errors.Is(err, weir.ErrInvalid) {
				t.Errorf("%s %q: %v, want ErrInvalid", verb, key, err)
			}
		}
	}
	for _, prefix := range []string{"/", "a//", "../", "a b"} {
		err := s.List(t.Context(), prefix, func(string, int64) bool { return true })
		if !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("list %q: %v, want ErrInvalid", prefix, err)
		}
	}
}

func put(t *testing.T, s blob.Store, key, data string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s blob.Store, key string, offset, length int64) string {
	t.Helper()
	r, err := s.Get(t.Context(), key, offset, length)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func keysOf(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	var found []string
	err := s.List(t.Context(), prefix, func(key string, _ int64) bool { found = append(found, key); return true })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

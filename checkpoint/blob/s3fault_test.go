package blob_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/blob/s3test"
)

// behind opens a store behind a proxy that harms requests.
func behind(t *testing.T, server *s3test.Server, choose func(*http.Request) s3test.Fault) (*blob.S3, *s3test.Proxy) {
	t.Helper()
	proxy := s3test.StartProxy(t, server.Address, choose)
	s, err := blob.Open(s3test.URL(proxy.Address, "weir/"+strings.ToLower(rand.Text()), server.Credentials(t)))
	if err != nil {
		t.Fatal(err)
	}
	s3 := s.(*blob.S3)
	s3.Impatient(time.Millisecond, 2*time.Second)
	return s3, proxy
}

func count(list []string, of string) (n int) {
	for _, s := range list {
		if s == of {
			n++
		}
	}
	return n
}

func content(t *testing.T, s blob.Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key, 0, -1)
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

// TestS3Faults: what the network and the store do to requests that then succeed.
func TestS3Faults(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	big := strings.Repeat("0123456789abcdef", 9<<16) // two parts
	for _, c := range []struct {
		name  string
		of    string
		fault s3test.Fault
		times int
		parts bool
	}{
		{"slow down", "PUT", s3test.Fault{Status: 503, Code: "SlowDown"}, 3, false},
		{"internal error", "PUT", s3test.Fault{Status: 500, Code: "InternalError"}, 2, false},
		{"reset", "PUT", s3test.Fault{Reset: true}, 2, false},
		{"answer lost", "PUT", s3test.Fault{Lost: true}, 2, false},
		{"conflict of conditions", "PUT", s3test.Fault{Status: 409, Code: "ConditionalRequestConflict"}, 2, false},
		{"begin reset", "POST uploads", s3test.Fault{Reset: true}, 1, true},
		{"part reset", "PUT uploadId", s3test.Fault{Reset: true}, 2, true},
		{"part's answer lost", "PUT uploadId", s3test.Fault{Lost: true}, 2, true},
		{"completion slow", "POST uploadId", s3test.Fault{Status: 503, Code: "SlowDown"}, 2, true},
		{"completion's answer lost", "POST uploadId", s3test.Fault{Lost: true}, 1, true},
	} {
		for _, absent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, if absent %v", c.name, absent), func(t *testing.T) {
				t.Parallel()
				s, proxy := behind(t, server, s3test.FailTimes(c.times, c.of, c.fault))
				put, data := s.Put, "one"
				if absent {
					put = s.PutIfAbsent
				}
				if c.parts {
					data = big
				}
				if err := put(t.Context(), "a/k", strings.NewReader(data)); err != nil {
					t.Fatal(err)
				}
				if content(t, s, "a/k") != data {
					t.Error("other bytes came back")
				}
				if n := count(proxy.Seen(), c.of); n < c.times+1 {
					t.Errorf("%d requests %s: %v", n, c.of, proxy.Seen())
				}
				if err := s.PutIfAbsent(t.Context(), "a/k", strings.NewReader(data)); !errors.Is(err, blob.ErrExists) {
					t.Errorf("put by another, of the same bytes: %v", err)
				}
			})
		}
	}
}

// TestS3BrokenBody: a body that breaks, or stands still, is gone on with where it
// broke; one that never comes is an error and no short object.
func TestS3BrokenBody(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	data := strings.Repeat("0123456789abcdef", 1<<14)
	stall := make(chan struct{})
	t.Cleanup(func() { close(stall) })
	for name, fault := range map[string]s3test.Fault{"cut": {Cut: 50_000}, "stalled": {Cut: 50_000, Stall: stall}, "lost": {Lost: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy := behind(t, server, s3test.FailTimes(3, "GET", fault))
			s.Impatient(time.Millisecond, 300*time.Millisecond)
			if err := s.Put(t.Context(), "k", strings.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			r, err := s.Get(t.Context(), "k", 10, 200_000)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if err != nil || string(got) != data[10:200_010] {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if n := count(proxy.Seen(), "GET"); n < 4 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		s, _ := behind(t, server, s3test.FailTimes(1000, "GET", s3test.Fault{Cut: -1}))
		if err := s.Put(t.Context(), "some/key", strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "some/key", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "some/key") || len(got) != 0 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("replaced meanwhile", func(t *testing.T) {
		t.Parallel()
		var s *blob.S3
		first := true
		s, _ = behind(t, server, func(r *http.Request) s3test.Fault {
			if r.Method != http.MethodGet || !first {
				return s3test.Fault{}
			}
			first = false
			return s3test.Fault{Cut: 50_000}
		})
		if err := s.Put(t.Context(), "k", strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "k", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := s.Put(t.Context(), "k", strings.NewReader(strings.ToUpper(data))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "replaced while it was read") {
			t.Errorf("got %v", err)
		}
	})
}

// TestS3Refusals: errors name verb, key and place, the status, and what to do; never a
// secret.
func TestS3Refusals(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	skewed := s3test.StartProxy(t, server.Address, func(*http.Request) s3test.Fault {
		return s3test.Fault{Status: 403, Code: "RequestTimeTooSkewed"}
	})
	denied := s3test.StartProxy(t, server.Address, func(*http.Request) s3test.Fault {
		return s3test.Fault{Status: 403, Code: "AccessDenied"}
	})
	full := s3test.StartProxy(t, server.Address, func(*http.Request) s3test.Fault {
		return s3test.Fault{Status: 507, Code: "XMinioStorageFull"}
	})
	good := server.Credentials(t)
	for name, c := range map[string]struct{ url, put, list, stat string }{
		"bucket missing": {server.URL("nothing/p", good), "404 NoSuchBucket.*create bucket nothing", "NoSuchBucket", "NoSuchBucket"},
		"unknown key":    {server.URL("weir/p", s3test.Credentials(t, "nobody", "S3cr-x", "")), "check AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"},
		"wrong secret":   {server.URL("weir/p", s3test.Credentials(t, s3test.AccessKey, "S3cr-x", "")), "SignatureDoesNotMatch.*check AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch", "SignatureDoesNotMatch"},
		"wrong region":   {strings.Replace(server.URL("weir/p", good), s3test.Region, "us-west-7", 1), "region", "region", "region"},
		"clock":          {s3test.URL(skewed.Address, "weir/p", good), "clocks.*differ", "clocks", "clocks"},
		"denied":         {s3test.URL(denied.Address, "weir/p", good), `need s3:PutObject on arn:aws:s3:::weir/p/\*`, "need s3:ListBucket on arn:aws:s3:::weir", "s3:GetObject"},
		"full":           {s3test.URL(full.Address, "weir/p", good), "507 XMinioStorageFull.*make room", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := blob.Open(c.url)
			if err != nil {
				t.Fatal(err)
			}
			_, statErr := s.Stat(t.Context(), "a/k")
			listErr := s.List(t.Context(), "a/", func(string, int64) bool { return true })
			_, probeErr := blob.Probe(t.Context(), s)
			check := func(err error, verb, want string) {
				t.Helper()
				if err == nil || errors.Is(err, weir.ErrNotFound) || !matches(err, verb) || !matches(err, want) || matches(err, "(?i)s3cr|\n") || !matches(err, "weir|nothing") {
					t.Errorf("%s: %v\nwant %s", verb, err, want)
				}
			}
			check(s.Put(t.Context(), "a/k", strings.NewReader("x")), "put object a/k in s3://", c.put)
			check(probeErr, "storage probe: cannot write", c.put)
			check(listErr, "list objects a/ in s3://", c.list)
			check(statErr, "stat object a/k", c.stat)
		})
	}
}

// TestS3ExpiredToken: a token that has expired is read anew from its file, once.
func TestS3ExpiredToken(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	expired := s3test.Credentials(t, s3test.AccessKey, s3test.SecretKey, "old-T0ken")
	proxy := s3test.StartProxy(t, server.Address, func(r *http.Request) s3test.Fault {
		if r.Header.Get("X-Amz-Security-Token") != "" {
			return s3test.Fault{Status: 400, Code: "ExpiredToken"}
		}
		return s3test.Fault{}
	})
	s, err := blob.Open(s3test.URL(proxy.Address, "weir/t", expired))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Put(t.Context(), "k", strings.NewReader("x"))
	if !matches(err, "400 ExpiredToken.*get a new one") || matches(err, "T0ken") || len(proxy.Seen()) != 2 {
		t.Errorf("%v after %v", err, proxy.Seen())
	}
	_, file, _ := strings.Cut(expired, "=")
	renewed := "[default]\naws_access_key_id = " + s3test.AccessKey + "\naws_secret_access_key = " + s3test.SecretKey + "\n"
	if err := os.WriteFile(file, []byte(renewed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "k", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
}

// TestS3FailedUpload: a put in parts that fails or is cancelled leaves none; what a
// killed process left is found and removed.
func TestS3FailedUpload(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	deny := false
	s, proxy := behind(t, server, func(r *http.Request) s3test.Fault {
		if deny && r.Method == http.MethodDelete {
			return s3test.Fault{Status: 403, Code: "AccessDenied"}
		}
		return s3test.Fault{}
	})
	soon := time.Now().Add(time.Hour)
	unfinished := func(n int) []blob.Upload {
		t.Helper()
		found, err := s.Unfinished(t.Context(), soon)
		if err != nil || len(found) != n {
			t.Fatalf("unfinished: %v, %v; want %d", found, err, n)
		}
		return found
	}
	long := strings.NewReader(strings.Repeat("x", 20<<20))
	broken := errors.New("broken")
	err := s.Put(t.Context(), "a/k", io.MultiReader(io.LimitReader(long, 17<<20), failing{broken}))
	if !errors.Is(err, broken) || count(proxy.Seen(), "DELETE uploadId") != 1 {
		t.Fatalf("%v after %v", err, proxy.Seen())
	}
	unfinished(0)
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Put(ctx, "a/k", io.MultiReader(strings.NewReader(strings.Repeat("x", 17<<20)), calling{cancel}))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	unfinished(0)
	deny = true
	err = s.Put(t.Context(), "a/k", io.MultiReader(strings.NewReader(strings.Repeat("x", 17<<20)), failing{broken}))
	if !errors.Is(err, broken) || !matches(err, "s3:AbortMultipartUpload") {
		t.Fatal(err)
	}
	deny = false
	left := unfinished(1)
	if left[0].Key != "a/k" || left[0].Began.IsZero() {
		t.Errorf("%+v", left[0])
	}
	if none, err := s.Unfinished(t.Context(), time.Now().Add(-time.Hour)); err != nil || len(none) != 0 {
		t.Errorf("an hour ago: %v, %v", none, err)
	}
	for range 2 {
		if err := s.Abandon(t.Context(), left[0]); err != nil {
			t.Fatal(err)
		}
	}
	unfinished(0)
	if _, err := s.Stat(t.Context(), "a/k"); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("an object is there: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type calling struct{ f func() }

func (c calling) Read([]byte) (int, error) { c.f(); return 0, io.EOF }

// TestS3Sizes: around the borders of what is put at once and of parts, from readers
// of unknown length that give little at a time.
func TestS3Sizes(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t).Open(t, "sizes")
	const part = 8 << 20
	data := bytes.Repeat([]byte("0123456789abcdef!"), 3*part/17)
	for _, size := range []int{1 << 20, 1<<20 + 1, part, part + 1, 2*part - 1, 2 * part, 2*part + 1} {
		if err := s.Put(t.Context(), "k", io.LimitReader(little{bytes.NewReader(data)}, int64(size))); err != nil {
			t.Fatal(err)
		}
		if got := content(t, s, "k"); got != string(data[:size]) {
			t.Errorf("%d bytes: %d came back, or others", size, len(got))
		}
	}
}

type little struct{ r io.Reader }

func (l little) Read(p []byte) (int, error) { return l.r.Read(p[:min(len(p), 100_003)]) }

// TestS3Away: a store that is away for good is an error once the tries are used up, and
// at once when the context ends.
func TestS3Away(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	store := server.Open(t, "away").(*blob.S3)
	store.Impatient(time.Millisecond, time.Second)
	server.Stop()
	err := store.Put(t.Context(), "a/k", strings.NewReader("x"))
	if !matches(err, "put object a/k in s3://weir/away: "+server.Address+".*refused") {
		t.Error(err)
	}
	store.Impatient(time.Hour, time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := store.Delete(ctx, "a/k"); !errors.Is(err, context.DeadlineExceeded) || !matches(err, "refused") {
		t.Error(err)
	}
	store.Impatient(time.Millisecond, time.Second)
	server.Restart(t)
	if err := store.Put(t.Context(), "a/k", strings.NewReader("x")); err != nil {
		t.Error(err)
	}
}

// TestS3ListPages: lists of more than a page, in order, with what is not ours left out.
func TestS3ListPages(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	dir := server.Dir + "/weir/pages/j"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 45 {
		key := fmt.Sprintf("j/%d", i)
		want = append(want, key)
		if err := os.WriteFile(server.Dir+"/weir/pages/"+key, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/not~ours", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	_, proxy := behind(t, server, s3test.FailTimes(2, "GET list-type", s3test.Fault{Cut: 100}))
	store, err := blob.Open(s3test.URL(proxy.Address, "weir/pages", server.Credentials(t)))
	if err != nil {
		t.Fatal(err)
	}
	store.(*blob.S3).Paged(20)
	var got []string
	if err := store.List(t.Context(), "j/", func(key string, size int64) bool { got = append(got, key); return size == 1 }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	if n := count(proxy.Seen(), "GET list-type"); n != 5 {
		t.Errorf("%d requests", n)
	}
}

package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"weir"
)

const (
	tries     = 8                      // of a call, the first included
	firstWait = 100 * time.Millisecond // before the second, doubled from then on, half of it by chance
	mostWait  = 3 * time.Second
	answer    = 10 * time.Second // for an answer, and for a body's next bytes
	perMiB    = time.Second      // more, for each MiB sent
)

// An S3 keeps each object in a bucket of a store that speaks the S3 protocol.
type S3 struct {
	conf     s3Config
	host     string
	core     *minio.Core
	creds    *credentials.Credentials
	first    time.Duration // firstWait, and
	answer   time.Duration // answer; shorter in tests
	whole    int           // objects up to this size are put in one piece
	pageSize int
	bufferC  chan []byte // of parts; nil: not made yet
	// unconditional is set where the store ignores If-None-Match.
	unconditional atomic.Bool
}

// openS3 makes the store; nothing is asked of it yet.
func openS3(raw string, env func(string) string) (*S3, error) {
	conf, err := parseS3(raw, env)
	if err != nil {
		return nil, err
	}
	creds, err := newCredentials(conf, env)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(conf.endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("storage s3://%s: %w", conf.bucket, err)
	}
	transport.MaxIdleConnsPerHost = 2 * buffers
	return newS3(conf, creds, transport)
}

func newS3(conf s3Config, creds *credentials.Credentials, transport http.RoundTripper) (*S3, error) {
	lookup := minio.BucketLookupAuto
	switch conf.pathStyle {
	case "true":
		lookup = minio.BucketLookupPath
	case "false":
		lookup = minio.BucketLookupDNS
	}
	core, err := minio.NewCore(conf.endpoint.Host, &minio.Options{
		Creds: creds, Secure: conf.endpoint.Scheme == "https", Region: conf.region, BucketLookup: lookup, Transport: transport,
		MaxRetries: 1, // ours know what a lost answer means
	})
	if err != nil {
		return nil, fmt.Errorf("%w: storage s3://%s: endpoint %s: %w", weir.ErrInvalid, conf.bucket, conf.endpoint.Host, err)
	}
	s := &S3{
		conf: conf, host: conf.endpoint.Host, core: core, creds: creds,
		first: firstWait, answer: answer, whole: partSize, pageSize: pageSize, bufferC: make(chan []byte, buffers),
	}
	for range buffers {
		s.bufferC <- nil
	}
	return s, nil
}

// place names the store in errors.
func (s *S3) place() string {
	return strings.TrimSuffix("s3://"+s.conf.bucket+"/"+s.conf.prefix, "/")
}

// Conditional says what the URL does, whatever the store can do: all processes go by it.
func (s *S3) Conditional() bool { return s.conf.conditional }

// object is the name of a key in the bucket.
func (s *S3) object(key string) string { return s.conf.prefix + key }

func (s *S3) check(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if n := len(s.object(key)); n > maxKey {
		return fmt.Errorf("%w: object key of %d bytes, with the prefix, is longer than %d", weir.ErrInvalid, n, maxKey)
	}
	return nil
}

// call does f until it succeeds, fails for good, or ctx ends. f is one request, which
// bounds its own time.
func (s *S3) call(ctx context.Context, verb, key string, f func() error) error {
	var last *s3Error
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return interrupted(verb, key, err, last)
		}
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return interrupted(verb, key, ctx.Err(), last)
		}
		last = s.explain(verb, key, err)
		if try == 1 && strings.HasPrefix(last.code, "ExpiredToken") {
			s.creds.Expire() // a file or a role may have a new one
			last.retry = true
		} else if strings.HasPrefix(last.code, "ExpiredToken") {
			last.retry = false
		}
		if !last.retry || try == tries {
			return last
		}
		pause(ctx, s.first, try)
	}
}

// interrupted is the error of a call that its context ended.
func interrupted(verb, key string, err error, last *s3Error) error {
	if last != nil {
		return fmt.Errorf("%w: %w", last, err)
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}

// pause waits before the next try: half of a doubling time, and up to as much again by
// chance, so that many clients do not come back together.
func pause(ctx context.Context, first time.Duration, try int) {
	wait := min(first<<(try-1), mostWait) / 2
	t := time.NewTimer(wait + rand.N(wait))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// within does f with a deadline of its own.
func within(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	return f(ctx)
}

// Stat implements Store.
func (s *S3) Stat(ctx context.Context, key string) (int64, error) {
	info, err := s.stat(ctx, key)
	return info.Size, err
}

func (s *S3) stat(ctx context.Context, key string) (info minio.ObjectInfo, err error) {
	if err := s.check(key); err != nil {
		return info, err
	}
	err = s.call(ctx, verbStat, key, func() error {
		return within(ctx, s.answer, func(ctx context.Context) error {
			var err error
			if info, err = s.core.StatObject(ctx, s.conf.bucket, s.object(key), minio.StatObjectOptions{}); err != nil {
				return s.reason(ctx, key, err)
			}
			return nil
		})
	})
	return info, s.found(key, err)
}

// reason asks again with GET for what HEAD refused: an answer to HEAD has no body that
// would say whether the object is missing or its bucket.
func (s *S3) reason(ctx context.Context, key string, err error) error {
	if resp := minio.ToErrorResponse(err); resp.StatusCode < 400 || resp.StatusCode >= 500 {
		return err
	}
	body, _, _, getErr := s.core.GetObject(ctx, s.conf.bucket, s.object(key), minio.GetObjectOptions{})
	if getErr == nil {
		_ = body.Close()
		return err
	}
	return getErr
}

// found makes "no such key" ErrNotFound. A bucket that is missing says nothing about
// its objects.
func (s *S3) found(key string, err error) error {
	if code := codeOf(err); code == "NoSuchKey" || code == "NotFound" {
		return fmt.Errorf("object %s in %s: %w", key, s.place(), weir.ErrNotFound)
	}
	return err
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := s.check(key); err != nil {
		return err
	}
	err := s.found(key, s.call(ctx, verbDelete, key, func() error {
		return within(ctx, s.answer, func(ctx context.Context) error {
			return s.core.RemoveObject(ctx, s.conf.bucket, s.object(key), minio.RemoveObjectOptions{})
		})
	}))
	if errors.Is(err, weir.ErrNotFound) {
		return nil
	}
	return err
}

// Get implements Store.
func (s *S3) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(key, offset); err != nil {
		return nil, err
	}
	if err := s.check(key); err != nil {
		return nil, err
	}
	if length == 0 {
		_, err := s.stat(ctx, key)
		return io.NopCloser(strings.NewReader("")), err
	}
	b := &s3Body{s: s, ctx: ctx, key: key, offset: offset, left: length}
	if err := b.open(); err != nil {
		return nil, err
	}
	return b, nil
}

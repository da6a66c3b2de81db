package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"weir"
)

const (
	smallSize = 1 << 20 // objects up to this size have a buffer of their own
	partSize  = 8 << 20 // objects up to this size are put at once, larger ones in equal parts, which some stores ask for
	maxParts  = 10_000
	buffers   = 8 // of partSize that all puts of a process share
	// putID is metadata that says which put wrote an object.
	putID = "weir-put"
	// abortTimeout bounds the clearing up after a put that failed.
	abortTimeout = 15 * time.Second
)

// A write is one Put.
type write struct {
	key    string
	absent bool
	id     string
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, write{key: key}, r)
}

// PutIfAbsent implements Store.
func (s *S3) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, write{key: key, absent: true}, r)
}

func (s *S3) put(ctx context.Context, w write, r io.Reader) error {
	if err := s.check(w.key); err != nil {
		return err
	}
	if w.absent && s.unconditional.Load() {
		if _, err := s.stat(ctx, w.key); !errors.Is(err, weir.ErrNotFound) {
			if err == nil {
				err = ErrExists
			}
			return fmt.Errorf("put object %s: %w", w.key, err)
		}
		w.absent = false
	}
	w.id = rand.Text()
	parts := &splitter{s: s, r: contextReader{ctx, r}}
	defer parts.release()
	first, last, err := parts.next(ctx)
	if err != nil {
		return fmt.Errorf("put object %s: %w", w.key, err)
	}
	if last && len(first) <= s.whole {
		return s.putWhole(ctx, w, first)
	}
	return s.putParts(ctx, w, parts, first, last)
}

// options are those of the requests that make the object appear.
func (w write) options() minio.PutObjectOptions {
	opts := minio.PutObjectOptions{
		ContentType: "application/octet-stream", UserMetadata: map[string]string{putID: w.id},
		DisableContentSha256: true, // not piece by piece: each request signs the sum of its body
	}
	if w.absent {
		opts.SetMatchETagExcept("*")
	}
	return opts
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// sending is the time that a request with a body may take.
func (s *S3) sending(data []byte) time.Duration {
	return s.answer + perMiB*time.Duration(len(data)>>20)
}

func (s *S3) putWhole(ctx context.Context, w write, data []byte) error {
	sha := sum(data)
	err := s.call(ctx, verbPut, w.key, func() error {
		return within(ctx, s.sending(data), func(ctx context.Context) error {
			_, err := s.core.PutObject(ctx, s.conf.bucket, s.object(w.key), bytes.NewReader(data), int64(len(data)), "", sha, w.options())
			return err
		})
	})
	return s.settle(ctx, w, err)
}

// settle says what a refusal means. An earlier try of this put may have been done
// though its answer was lost: the object then has this put's id.
func (s *S3) settle(ctx context.Context, w write, err error) error {
	code := codeOf(err)
	if code != "PreconditionFailed" && code != "NoSuchUpload" {
		return err
	}
	own, statErr := s.ownPut(ctx, w.key, w.id)
	switch {
	case statErr == nil && own:
		return nil
	case statErr == nil && w.absent, code == "PreconditionFailed" && errors.Is(statErr, weir.ErrNotFound):
		return fmt.Errorf("put object %s: %w", w.key, ErrExists) // or did when it was asked
	case statErr != nil && code == "PreconditionFailed":
		return fmt.Errorf("put object %s: it exists; whose it is cannot be told: %w", w.key, statErr)
	}
	return err
}

// putParts uploads an object of several parts. Nothing of it shows until it is complete.
func (s *S3) putParts(ctx context.Context, w write, parts *splitter, data []byte, last bool) error {
	var upload string
	err := s.call(ctx, verbPut, w.key, func() error {
		return within(ctx, s.answer, func(ctx context.Context) (err error) {
			begin := write{id: w.id} // the condition is that of the end
			upload, err = s.core.NewMultipartUpload(ctx, s.conf.bucket, s.object(w.key), begin.options())
			return err
		})
	})
	if err != nil {
		return err
	}
	err = s.fillUpload(ctx, w, upload, parts, data, last)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		if e := s.abort(ctx, w.key, upload); e != nil {
			return fmt.Errorf("%w; and its parts stay until they are a day old: %w", err, e)
		}
	}
	return err
}

func (s *S3) fillUpload(ctx context.Context, w write, upload string, parts *splitter, data []byte, last bool) error {
	var done []minio.CompletePart
	for n := 1; ; n++ {
		if n > maxParts {
			return fmt.Errorf("%w: put object %s in %s: it is larger than %d parts of %d MiB", weir.ErrInvalid, w.key, s.place(), maxParts, partSize>>20)
		}
		part, err := s.putPart(ctx, w, upload, n, data)
		if err != nil {
			return err
		}
		done = append(done, part)
		if last {
			break
		}
		if data, last, err = parts.next(ctx); err != nil {
			return fmt.Errorf("put object %s: %w", w.key, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put object %s: %w", w.key, err)
	}
	err := s.call(ctx, verbPut, w.key, func() error {
		return within(ctx, 6*s.answer, func(ctx context.Context) error { // the store may put the parts together first
			_, err := s.core.CompleteMultipartUpload(ctx, s.conf.bucket, s.object(w.key), upload, done, w.options())
			return err
		})
	})
	return s.settle(ctx, w, err)
}

func (s *S3) putPart(ctx context.Context, w write, upload string, n int, data []byte) (part minio.CompletePart, err error) {
	opts := minio.PutObjectPartOptions{Sha256Hex: sum(data), DisableContentSha256: true}
	err = s.call(ctx, verbPut, w.key, func() error {
		return within(ctx, s.sending(data), func(ctx context.Context) error {
			p, err := s.core.PutObjectPart(ctx, s.conf.bucket, s.object(w.key), upload, n, bytes.NewReader(data), int64(len(data)), opts)
			part = minio.CompletePart{PartNumber: n, ETag: p.ETag}
			return err
		})
	})
	return part, err
}

// abort removes the parts of an upload.
func (s *S3) abort(ctx context.Context, key, upload string) error {
	err := s.call(ctx, verbAbort, key, func() error {
		return within(ctx, s.answer, func(ctx context.Context) error {
			return s.core.AbortMultipartUpload(ctx, s.conf.bucket, s.object(key), upload)
		})
	})
	if codeOf(err) == "NoSuchUpload" {
		return nil
	}
	return err
}

// A splitter reads an object part by part. Small objects have a buffer of their own
// size; larger ones wait for one of those that all puts share, so memory is bounded.
type splitter struct {
	s      *S3
	r      io.Reader
	buf    []byte // the shared buffer, if we hold one
	ahead  []byte // read already: what the next part begins with
	shared bool
}

// next returns the next part and whether it is the last one. It is valid until the next
// call.
func (p *splitter) next(ctx context.Context) (part []byte, last bool, err error) {
	if !p.shared {
		var small bytes.Buffer
		if _, err := io.CopyN(&small, p.r, smallSize+1); errors.Is(err, io.EOF) {
			return small.Bytes(), true, ctx.Err()
		} else if err != nil {
			return nil, false, err
		}
		select {
		case p.buf = <-p.s.bufferC:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
		p.shared, p.ahead = true, small.Bytes()
		if p.buf == nil {
			p.buf = make([]byte, partSize+1) // one byte more tells whether there are more
		}
	}
	n := copy(p.buf, p.ahead)
	for n < len(p.buf) {
		more, err := p.r.Read(p.buf[n:])
		n += more
		if errors.Is(err, io.EOF) {
			return p.buf[:n], true, ctx.Err()
		}
		if err != nil {
			return nil, false, err
		}
	}
	p.ahead = p.buf[partSize:]
	return p.buf[:partSize], false, nil
}

// release gives the buffer back.
func (p *splitter) release() {
	if p.shared {
		p.s.bufferC <- p.buf
		p.shared = false
	}
}

package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// An s3Body is the body of a Get. Where the connection breaks, or brings nothing for too
// long, the rest is asked for again, of the same version of the object; a body that ends
// early is never taken for a whole one.
type s3Body struct {
	s       *S3
	ctx     context.Context
	key     string
	offset  int64 // of the next byte
	left    int64 // still to come; < 0: to the end, until an answer says how much that is
	etag    string
	resumed int // times that nothing came before it broke again

	body   io.ReadCloser // nil: to be opened
	cancel context.CancelCauseFunc
	watch  *time.Timer // ends the request when it stands still
}

// open asks for what is left.
func (b *s3Body) open() error {
	err := b.s.call(b.ctx, verbGet, b.key, b.request)
	switch codeOf(err) {
	case "InvalidRange": // from the end, or from behind it: nothing is there
		b.body, b.left = http.NoBody, 0
		return nil
	case "PreconditionFailed":
		return fmt.Errorf("get object %s in %s: it was replaced while it was read", b.key, b.s.place())
	}
	return b.s.found(b.key, err)
}

func (b *s3Body) request() error {
	var opts minio.GetObjectOptions
	if b.left >= 0 && b.left <= math.MaxInt64-b.offset {
		if err := opts.SetRange(b.offset, b.offset+b.left-1); err != nil {
			return err
		}
	} else if b.offset > 0 {
		if err := opts.SetRange(b.offset, 0); err != nil {
			return err
		}
	}
	if b.etag != "" {
		if err := opts.SetMatchETag(b.etag); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	watch := time.AfterFunc(b.s.answer, func() { cancel(errSlow) })
	body, info, header, err := b.s.core.GetObject(ctx, b.s.conf.bucket, b.s.object(b.key), opts)
	watch.Stop()
	if err != nil {
		cancel(nil)
		return err
	}
	if b.offset > 0 && header.Get("Content-Range") == "" {
		cancel(nil)
		return errors.Join(fmt.Errorf("the store answers with the whole object where %d bytes were to be left out", b.offset), body.Close())
	}
	if header.Get("Content-Length") != "" {
		b.left = info.Size
	}
	b.body, b.cancel, b.watch, b.etag = body, cancel, watch, info.ETag
	return nil
}

// Read implements io.Reader.
func (b *s3Body) Read(p []byte) (int, error) {
	for {
		if err := b.ctx.Err(); err != nil {
			return 0, fmt.Errorf("get object %s: %w", b.key, err)
		}
		if b.left == 0 {
			return 0, io.EOF
		}
		if b.body == nil {
			if err := b.open(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := b.read(p)
		b.offset += int64(n)
		if b.left > 0 {
			b.left -= int64(n)
		}
		if n > 0 {
			b.resumed = 0
		}
		switch {
		case err == nil || b.left == 0:
			return n, nil
		case errors.Is(err, io.EOF) && b.left < 0:
			return n, io.EOF
		case b.ctx.Err() != nil:
			return n, fmt.Errorf("get object %s: %w", b.key, b.ctx.Err())
		case b.resumed == tries:
			return n, fmt.Errorf("get object %s in %s: the answer ends %d bytes early, %d times: %w", b.key, b.s.place(), b.left, tries, io.ErrUnexpectedEOF)
		}
		b.close()
		if n > 0 {
			return n, nil
		}
		b.resumed++
		pause(b.ctx, b.s.first, b.resumed)
	}
}

// read reads from the connection, for as long as something comes.
func (b *s3Body) read(p []byte) (int, error) {
	if b.watch == nil {
		return b.body.Read(p)
	}
	b.watch.Reset(b.s.answer)
	defer b.watch.Stop()
	return b.body.Read(p)
}

func (b *s3Body) close() {
	if b.body == nil {
		return
	}
	if b.cancel != nil {
		b.cancel(nil) // the rest of a body is not waited for
	}
	_ = b.body.Close()
	b.body = nil
}

// Close implements io.Closer.
func (b *s3Body) Close() error {
	b.close()
	b.left = 0
	return nil
}

// ownPut reports whether the object at key was written by the put with this id.
func (s *S3) ownPut(ctx context.Context, key, id string) (bool, error) {
	info, err := s.stat(ctx, key)
	if err != nil {
		return false, err
	}
	for name, value := range info.UserMetadata {
		if strings.EqualFold(name, putID) {
			return value == id, nil
		}
	}
	return false, nil
}

package worker

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/zeebo/xxh3"
)

// A keptReader reads an object, or a part of it, from its copy, chunk by chunk, and from storage
// what cannot be read there.
type keptReader struct {
	ctx    context.Context
	c      *keptCopy
	file   *os.File
	at     int64 // of the object, what is read next
	end    int64 // where it ends
	buf    []byte
	unread []byte // of the chunk in buf
	failed error
	rest   io.ReadCloser // from storage; nil: nothing has failed
}

// Read implements io.Reader.
func (r *keptReader) Read(p []byte) (int, error) {
	if len(r.unread) == 0 && r.rest == nil {
		if r.at == r.end {
			return 0, io.EOF
		}
		if r.failed = r.next(); r.failed != nil {
			if err := r.turn(); err != nil {
				return 0, err
			}
		}
	}
	if r.rest != nil {
		return r.rest.Read(p)
	}
	n := copy(p, r.unread)
	r.unread, r.at = r.unread[n:], r.at+int64(n)
	return n, nil
}

// next reads a chunk and checks it.
func (r *keptReader) next() error {
	n := r.at / keptChunk
	from := n * keptChunk
	size := min(keptChunk, r.c.size-from)
	if r.buf == nil {
		r.buf = make([]byte, size, min(keptChunk, r.c.size))
	}
	r.buf = r.buf[:size]
	if _, err := r.file.ReadAt(r.buf, from); err != nil {
		return err
	}
	if xxh3.Hash(r.buf) != r.c.sums[n] {
		return errors.New("its checksum does not match")
	}
	r.unread = r.buf[r.at-from : min(size, r.end-from)]
	return nil
}

// turn goes on with storage and drops the copy, which failed.
func (r *keptReader) turn() (err error) {
	k := r.c.of
	if k.drop(func(c *keptCopy) bool { return c == r.c }) { // it was not dropped beside us
		k.log.Warn("copy of the state is damaged, read from storage", "job", r.c.job, "cp", r.c.id, "err", r.failed)
	}
	length := r.end - r.at
	if r.end == r.c.size {
		length = -1 // as storage has it
	}
	r.rest, err = k.Store.Get(r.ctx, r.c.key, r.at, length)
	return err
}

// Close implements io.Closer.
func (r *keptReader) Close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	if r.rest != nil {
		err = errors.Join(err, r.rest.Close())
	}
	return err
}

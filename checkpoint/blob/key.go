package blob

import (
	"context"
	"fmt"
	"io"
	"strings"

	"weir"
)

// maxKey is the longest key every object store takes.
const maxKey = 1024

// CheckKey says what is wrong with an object key, as weir.ErrInvalid.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: object key is empty", weir.ErrInvalid)
	}
	if len(key) > maxKey {
		return fmt.Errorf("%w: object key of %d bytes is longer than %d", weir.ErrInvalid, len(key), maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || !plain(segment) {
			return fmt.Errorf("%w: object key %q: segment %q is not a name of [A-Za-z0-9._-]", weir.ErrInvalid, key, segment)
		}
	}
	return nil
}

// checkPrefix is CheckKey for List: the last segment may be cut anywhere.
func checkPrefix(prefix string) error {
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		if err := CheckKey(prefix[:i]); err != nil {
			return err
		}
		prefix = prefix[i+1:]
	}
	if !plain(prefix) {
		return fmt.Errorf("%w: object prefix %q is not made of [A-Za-z0-9._-]", weir.ErrInvalid, prefix)
	}
	return nil
}

func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func checkRange(key string, offset int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%w: object %s: offset %d is negative", weir.ErrInvalid, key, offset)
	}
	return nil
}

func notFound(key string) error { return fmt.Errorf("object %s: %w", key, weir.ErrNotFound) }

// A contextReader ends with its context's error.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

type readCloser struct {
	io.Reader
	io.Closer
}

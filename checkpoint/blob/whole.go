package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"weir"
)

// Whole is a Store for whoever writes and reads small objects as a whole.
type Whole struct{ Store Store }

// Put writes an object.
func (w Whole) Put(ctx context.Context, key string, data []byte) error {
	return w.Store.Put(ctx, key, bytes.NewReader(data))
}

// Get reads an object, of which it refuses more than most bytes.
func (w Whole) Get(ctx context.Context, key string, most int64) (data []byte, err error) {
	r, err := w.Store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(r, most+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%w: get %s: it has more than %d bytes", weir.ErrInvalid, key, most)
	}
	return data, nil
}

// Delete removes an object; one that is not there is no error.
func (w Whole) Delete(ctx context.Context, key string) error { return w.Store.Delete(ctx, key) }

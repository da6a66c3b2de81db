package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// agreement is Setup.Agree of an operator: of the answers of its subtasks, the first to
// reach the object store counts for all of them.
func (c *BuildConfig) agreement(op weir.OperatorID) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, name string, mine []byte) ([]byte, error) {
		key := checkpoint.AgreedKey(c.Job, c.Attempt, op, name)
		err := c.Blobs.PutIfAbsent(ctx, key, bytes.NewReader(mine))
		if !errors.Is(err, blob.ErrExists) {
			return mine, err
		}
		r, err := c.Blobs.Get(ctx, key, 0, -1)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		return data, nil
	}
}

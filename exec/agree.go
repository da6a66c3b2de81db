package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

const (
	// agreeWithin bounds how long a subtask waits for what the first one says. That one may
	// be behind other sources of its worker that look through large files; where its worker
	// dies the attempt ends, and with it the wait.
	agreeWithin = 10 * time.Minute
	// It is looked for again after agreeFirst, doubled from then on up to agreeMost.
	agreeFirst = 2 * time.Millisecond
	agreeMost  = 250 * time.Millisecond
)

// agreement is Setup.Agree of an operator's subtask: of the answers of all subtasks one
// counts. It is the first to reach the object store, which lets one writer through; where
// the store may let several through, it is that of subtask 0, for which the others wait.
func (c *BuildConfig) agreement(op weir.OperatorID, subtask int) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, name string, mine []byte) ([]byte, error) {
		key := checkpoint.AgreedKey(c.Job, c.Attempt, op, name)
		if subtask > 0 && !blob.Conditional(c.Blobs) {
			return c.awaitAgreed(ctx, key)
		}
		err := c.Blobs.PutIfAbsent(ctx, key, bytes.NewReader(mine))
		if !errors.Is(err, blob.ErrExists) {
			return mine, err
		}
		return c.agreed(ctx, key)
	}
}

func (c *BuildConfig) agreed(ctx context.Context, key string) ([]byte, error) {
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

// awaitAgreed waits for what subtask 0 says.
func (c *BuildConfig) awaitAgreed(ctx context.Context, key string) ([]byte, error) {
	late := time.NewTimer(agreeWithin)
	defer late.Stop()
	for pause := agreeFirst; ; pause = min(2*pause, agreeMost) {
		data, err := c.agreed(ctx, key)
		if !errors.Is(err, weir.ErrNotFound) {
			return data, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, fmt.Errorf("wait for subtask 0, which writes %s: %w", key, ctx.Err())
		case <-late.C:
			again.Stop()
			return nil, fmt.Errorf("subtask 0 has not written %s within %v, and the others go by it: see what its worker is at", key, agreeWithin)
		}
	}
}

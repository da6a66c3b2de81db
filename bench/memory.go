package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

// memoryBench measures what a key takes: the memory of all processes of weir up with a
// job that counts so many keys, less that with one key.
type memoryBench struct {
	keys    int64
	seconds int
}

func (b *memoryBench) flags(f *flag.FlagSet) {
	f.Int64Var(&b.keys, "keys", 20_000_000, "keys")
	f.IntVar(&b.seconds, "seconds", 20, "of looking, once all keys are there and in a checkpoint")
}

type memoryFigures struct {
	Keys   int64   `json:"keys"`
	Full   int64   `json:"bytes"`
	Empty  int64   `json:"bytes_of_empty_job"`
	PerKey float64 `json:"bytes_per_key"`
}

func (b *memoryBench) run(ctx context.Context, c common) (any, string, error) {
	f := memoryFigures{Keys: b.keys}
	var err error
	if f.Empty, err = b.job(ctx, c, 1); err != nil {
		return nil, "", err
	}
	if f.Full, err = b.job(ctx, c, b.keys); err != nil {
		return nil, "", err
	}
	f.PerKey = float64(f.Full-f.Empty) / float64(b.keys)
	return f, "| keys | memory of all processes, MiB | with one key | bytes per key | target |\n|---|---|---|---|---|\n" +
		fmt.Sprintf("| %s | %.0f | %.0f | %.1f | < 48 |\n", amount(f.Keys), mebibytes(f.Full), mebibytes(f.Empty), f.PerKey), nil
}

// keep is a job that has read so many keys and waits for more.
func keep(keys int64) string {
	return fmt.Sprintf(`CREATE TABLE many (user_id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.user_id.kind' = 'sequence');
CREATE TABLE more (user_id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1', 'fields.user_id.min' = '0', 'fields.user_id.max' = '0');
CREATE TABLE nowhere (user_id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT user_id, COUNT(*) AS n FROM (SELECT user_id FROM many UNION ALL SELECT user_id FROM more) AS u GROUP BY user_id;`, keys)
}

// job runs it and returns the memory once it has settled.
func (b *memoryBench) job(ctx context.Context, c common, keys int64) (int64, error) {
	u, err := launchUp(ctx, c.weir, os.TempDir(), 2, 4)
	if err != nil {
		return 0, err
	}
	defer u.end()
	const name = "memory"
	if err := u.api.submit(ctx, name, keep(keys)); err != nil {
		return 0, err
	}
	err = await(ctx, 5*time.Minute, "all rows are read", func() (bool, error) {
		j, err := u.api.job(ctx, name)
		return j.RowsIn >= keys, err
	})
	if err != nil {
		return 0, err
	}
	full := time.Now()
	w := &windowed{&cluster{api: u.api}, name}
	err = await(ctx, 2*time.Minute, "two checkpoints after that", func() (bool, error) {
		list, err := w.completed(ctx, full)
		return len(list) >= 2, err
	})
	if err != nil {
		return 0, err
	}
	return settled(ctx, u.cmd.Process.Pid, time.Duration(b.seconds)*time.Second)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ownCPU is the processor time that the bench itself has taken.
func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loop runs a loop and checks its answer.
func (b *speedBench) loop(l limit, in input) (sample, error) {
	began := ownCPU()
	tally, took, err := l.count(in.files)
	if err != nil {
		return sample{}, err
	}
	s := sample{Rows: int64(b.rows * in.copies), Seconds: took.Seconds(), CPU: (ownCPU() - began).Seconds()}
	return s, tally.check(l.query, b.want, in.copies)
}

// copyAlone reads the files and writes as many bytes as Weir has written of them, in two goroutines.
func (b *speedBench) copyAlone(in input, flush bool) (sample, error) {
	const goroutines = 2
	var bytesIn int64
	for _, name := range in.files {
		info, err := os.Stat(name)
		if err != nil {
			return sample{}, err
		}
		bytesIn += info.Size()
	}
	share := float64(in.written) / float64(bytesIn)
	cpu, began := ownCPU(), time.Now()
	errs := make([]error, goroutines)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = copyPart(in.files, i, goroutines, share, filepath.Join(b.inbox, fmt.Sprintf("copy-%d", i)), flush)
		})
	}
	group.Wait()
	s := sample{Rows: int64(b.rows * in.copies), Seconds: time.Since(began).Seconds(), CPU: (ownCPU() - cpu).Seconds()}
	return s, errors.Join(errs...)
}

// copyPart reads the i-th part of each file and writes a share of its bytes, which it may flush to disk at the end.
func copyPart(files []string, i, parts int, share float64, to string, flush bool) (wrote int64, err error) {
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer os.Remove(to) //nolint:errcheck // its folder is removed
	defer out.Close()
	buf := make([]byte, blockSize)
	var read int64
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		info, err := f.Stat()
		if err != nil {
			return 0, errors.Join(err, f.Close())
		}
		from, to := info.Size()*int64(i)/int64(parts), info.Size()*int64(i+1)/int64(parts)
		for part := io.NewSectionReader(f, from, to-from); err == nil; {
			var n int
			n, err = part.Read(buf)
			read += int64(n)
			due := int64(float64(read)*share) - wrote
			wrote += due
			if _, errWrite := out.Write(buf[:due]); errWrite != nil {
				err = errWrite
			}
		}
		if err = errors.Join(err, f.Close()); !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	if flush {
		return wrote, out.Sync()
	}
	return wrote, nil
}

// weirRun runs the work's job on Weir, in processes of its own, and checks the answer: from the first row to
// the last, the start of weir up apart.
func (b *speedBench) weirRun(ctx context.Context, w work, in *input, workers int) (s sample, err error) {
	u, err := launchUp(ctx, b.weir, b.dir, workers, 2/workers)
	if err != nil {
		return s, err
	}
	defer u.end()
	out := filepath.Join(b.inbox, "out")
	if w.target == "csv" {
		if err := os.Mkdir(out, 0o755); err != nil {
			return s, err
		}
		defer os.RemoveAll(out) //nolint:errcheck // its folder is removed, too
	}
	s.Rows = int64(b.rows * in.copies)
	before, err := usageOf(u.cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	const name = "speed"
	if err := u.api.submit(ctx, name, w.script(in.dir, out, int(s.Rows))); err != nil {
		return s, err
	}
	after, peak, err := untilFinished(ctx, u, name)
	if err != nil {
		return s, err
	}
	s.CPU, s.Memory = (after.cpu - before.cpu).Seconds(), peak
	list, err := u.api.attempts(ctx, name)
	if err != nil {
		return s, err
	}
	if len(list) != 1 || list[0].EndedAt == nil {
		return s, fmt.Errorf("the job did not run through: attempts %+v", list)
	}
	s.Seconds = list[0].EndedAt.Sub(list[0].StartedAt).Seconds()
	return s, b.check(ctx, u.api, name, w, in, out)
}

// untilFinished waits for the end of a job, and says what the processes had taken then, and the most memory
// that they had at once.
func untilFinished(ctx context.Context, u *upProcess, name string) (now usage, peak int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for polls := 0; ; polls++ {
		j, err := u.api.job(ctx, name)
		if err != nil {
			return now, peak, err
		}
		if j.Status == "FAILED" || j.Status == "CANCELED" {
			return now, peak, fmt.Errorf("it is %s: %s", j.Status, j.Failure)
		}
		if finished := j.Status == "FINISHED"; finished || polls%20 == 0 {
			if now, err = usageOf(u.cmd.Process.Pid); err != nil {
				return now, peak, err
			}
			if peak = max(peak, now.memory); finished {
				return now, peak, nil
			}
		}
		if err := pause(ctx, 25*time.Millisecond); err != nil {
			return now, peak, err
		}
	}
}

// check compares the job's answer with the generator's.
func (b *speedBench) check(ctx context.Context, a *api, name string, w work, in *input, out string) error {
	switch {
	case w.target == "csv":
		return checkWritten(out, in, w.wantedRows(b.want).times(in.copies))
	case w.target != "":
		return b.checkTaken(ctx, a, name, w, in)
	case w.query == "behavior":
		got := map[string]int64{}
		err := a.eachResult(ctx, name, func(r resultRow) { got[r.Behavior] = r.N })
		if err != nil {
			return err
		}
		return sameCounts(got, b.want.behaviors, in.copies)
	case w.format == "":
		return b.checkMade(ctx, a, name, in)
	}
	users := userCheck{want: b.want, copies: in.copies}
	if err := a.eachResult(ctx, name, func(r resultRow) { users.add(r.User, r.N) }); err != nil {
		return err
	}
	return users.done()
}

// A resultRow is one of a result.
type resultRow struct {
	User     int64  `json:"user_id"`
	Behavior string `json:"behavior"`
	N        int64  `json:"n"`
}

// eachResult reads all pages of a result.
func (a *api) eachResult(ctx context.Context, name string, row func(resultRow)) error {
	for query := "limit=10000"; ; {
		page, err := a.results(ctx, name, query)
		if err != nil {
			return err
		}
		for _, raw := range page.Rows {
			var r resultRow
			if err := json.Unmarshal(raw, &r); err != nil {
				return err
			}
			row(r)
		}
		if page.Next == "" {
			return nil
		}
		query = "limit=10000&cursor=" + page.Next
	}
}

// checkMade checks the counts of a datagen's rows: all are there, and each user has as many as in the first run.
func (b *speedBench) checkMade(ctx context.Context, a *api, name string, in *input) error {
	var rows int64
	var sum written
	err := a.eachResult(ctx, name, func(r resultRow) {
		rows += r.N
		sum.add(r.User, strconv.FormatInt(r.N, 10))
	})
	if err != nil {
		return err
	}
	if rows != int64(b.rows*in.copies) {
		return fmt.Errorf("%d rows are counted, of %d", rows, b.rows*in.copies)
	}
	if b.made == nil {
		b.made = map[int]written{}
	}
	if before, ok := b.made[in.copies]; ok && before != sum {
		return errors.New("the counts of users are not those of the run before")
	}
	b.made[in.copies] = sum
	return nil
}

// checkTaken checks how many rows the job has read and what it has given to a target that keeps none of them.
func (b *speedBench) checkTaken(ctx context.Context, a *api, name string, w work, in *input) error {
	j, err := a.job(ctx, name)
	if err != nil {
		return err
	}
	if j.RowsIn != int64(b.rows*in.copies) {
		return fmt.Errorf("it has read %d rows of %d", j.RowsIn, b.rows*in.copies)
	}
	if want := w.wantedRows(b.want); want != nil && j.RowsOut != int64(want.times(in.copies).rows) {
		return fmt.Errorf("it has given %d rows to the target, of %d", j.RowsOut, want.times(in.copies).rows)
	}
	return nil
}

// checkWritten compares the rows of a folder's files, and notes how many bytes they are.
func checkWritten(dir string, in *input, want written) error {
	files, err := filepath.Glob(filepath.Join(dir, "part-*.csv"))
	if err != nil {
		return err
	}
	var got written
	in.written = 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, blockSize), blockSize)
		for lines.Scan() {
			user, behavior, _ := bytes.Cut(lines.Bytes(), []byte(","))
			n, err := strconv.ParseInt(string(user), 10, 64)
			if err != nil {
				return errors.Join(err, f.Close())
			}
			got.add(n, string(behavior))
			in.written += int64(len(lines.Bytes()) + 1)
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return err
		}
	}
	if got != want {
		return fmt.Errorf("%d files have %d rows of sum %x, not %d of %x", len(files), got.rows, got.sum, want.rows, want.sum)
	}
	return nil
}

package exec_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"weir/checkpoint"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/exec/state"
)

// spilling gives a job so small a budget that next to nothing stays in memory. The disk is
// to be closed.
func spilling(t *testing.T, c *exectest.Config, fs vfs.FS) *state.Disk {
	t.Helper()
	d, err := state.NewDisk("spill", state.DiskOptions{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	c.Options = exec.Options{Disk: d, Budget: state.NewBudget(1)}
	return d
}

// left checks that nothing that ended tasks had is kept, and closes the disk.
func left(t *testing.T, c exectest.Config, d *state.Disk, fs vfs.FS) {
	t.Helper()
	if n := c.Options.Budget.Used(); n != 0 {
		t.Errorf("%d bytes of the budget are used by nobody", n)
	}
	names, err := fs.List("spill")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "db-") {
			t.Errorf("%s is left in the folder for spilled state", name)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// State that does not fit in memory gives the same answer: over checkpoints, kills,
// restores at other parallelisms, and at the end.
func TestSpilledState(t *testing.T) {
	t.Parallel()
	c, fs := config(3000), vfs.NewMem()
	d := spilling(t, &c, fs)
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(c.Openers.Source)
	moved(t, &c, stepper, 3, 2, 3, 1, 5)
	if groups, rows := finish(t, exectest.Start(t, c)); groups != 3000 || rows != 3000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
	left(t, c, d, fs)
}

// Without checkpoints, what has changed is spilled all the same, and the one at the end has
// all of it; so have those that come after many were declined.
func TestSpilledWithoutCheckpoints(t *testing.T) {
	t.Parallel()
	c, fs := config(5000), vfs.NewMem()
	d := spilling(t, &c, fs)
	j := exectest.Start(t, c)
	s, err := j.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for i, n := range []int{3, 1} {
		c.From, c.Parallelism, c.Attempt = s, n, int64(i+2)
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 5000 || rows != 5000 {
			t.Errorf("parallelism %d: %d groups, %d of them counted once", n, groups, rows)
		}
	}
	left(t, c, d, fs)
}

// Storage that hangs holds checkpoints up, and not the rows: what changes meanwhile lies on disk.
func TestSpilledWhileStorageHangs(t *testing.T) {
	t.Parallel()
	c, fs, storage := config(10_000), vfs.NewMem(), slowFor(1, 2, 3)
	d := spilling(t, &c, fs)
	c.Blobs = storage
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(c.Openers.Source)
	j := exectest.Start(t, c)
	for i := range 3 {
		stepper.Allow(20)
		if id, err := j.Begin(); err != nil || int(id) != i+1 {
			t.Fatal(id, err)
		}
	}
	stepper.Allow(1 << 30)
	waitFor(t, func() bool {
		in := int64(0)
		for _, s := range j.Stats() {
			in += s.RowsIn * int64(s.Task.Chain)
		}
		return in == 10_000
	})
	for _, goOnC := range storage.waits {
		close(goOnC)
	}
	if groups, rows := finish(t, j); groups != 10_000 || rows != 10_000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
	left(t, c, d, fs)
}

// The rows of a final aggregate come all at once, behind its last batch.
func TestSpilledFinalRows(t *testing.T) {
	t.Parallel()
	c, fs := config(5000), vfs.NewMem()
	d := spilling(t, &c, fs)
	c.Graph.Chains[1].Operators[0].Aggregate.Final = true
	if groups, rows := finish(t, exectest.Start(t, c)); groups != 5000 || rows != 5000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
	left(t, c, d, fs)
}

// A disk that fails ends the job with an error that says what and where; the next attempt,
// with one that works, goes on from the checkpoint.
func TestSpillFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileReadAt, errorfs.OpCreate} {
		c := config(3000)
		stepper := &exectest.Stepper{}
		c.Openers.Source = stepper.Open(c.Openers.Source)
		fails := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			own := strings.Contains(op.Path, "table-") || strings.Contains(op.Path, "run-") // the rest is Pebble's, which may end for good
			if op.Kind == kind && (own || kind == errorfs.OpFileReadAt) {
				return errorfs.ErrInjected
			}
			return nil
		})}
		good := vfs.NewMem()
		d := spilling(t, &c, errorfs.Wrap(good, fails))
		j := exectest.Start(t, c)
		stepper.Allow(5)
		s, err := j.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		fails.On()
		stepper.Allow(1 << 30)
		if _, err = j.Finish(); err == nil {
			t.Fatalf("%v: the job has finished", kind)
		}
		j.Abandon()
		f, restart := j.Failure()
		if f == nil || !restart || f.Reason != exec.ReasonSpill || !strings.Contains(f.Message, "the folder spill for state that does not fit in memory") {
			t.Errorf("%v: %+v", kind, f)
		}
		fails.Off()
		c.From, c.Attempt = s, 2
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 3000 || rows != 3000 {
			t.Errorf("%v: %d groups, %d of them counted once", kind, groups, rows)
		}
		left(t, c, d, good)
	}
}

// An again gives the same numbers again and again.
type again struct{ exec.Source }

// Next implements exec.Source.
func (s again) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	b, poll, until, err := s.Source.Next(ctx)
	if b != nil {
		for i := range b.Columns[0].Ints {
			b.Columns[0].Ints[i] %= 2000
		}
	}
	return b, poll, until, err
}

// A disk that fails while state is restored is an error of the task that says so, and leaves
// nothing behind.
func TestSpillFailsRestore(t *testing.T) {
	t.Parallel()
	c := config(20_000)
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		src, err := exectest.Numbers(1<<20, 64, func(int) string { return "" })(ctx, s)
		return again{src}, err
	})
	fails := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && !strings.Contains(op.Path, "table-") { // what is written is read too
			return errorfs.ErrInjected
		}
		return nil
	})}
	d := spilling(t, &c, errorfs.Wrap(vfs.NewMem(), fails))
	j := exectest.Start(t, c)
	var under checkpoint.Trigger
	rows := int64(0)
	for _, n := range []int{40, 5} {
		stepper.Allow(n)
		rows += 2 * 64 * int64(n)
		waitFor(t, func() bool {
			in := int64(0)
			for _, s := range j.Stats() {
				in += s.RowsIn * int64(1-s.Task.Chain)
			}
			return in >= rows
		})
		id, err := j.BeginAs(under)
		if err != nil {
			t.Fatal(err)
		}
		if c.From, err = j.Await(id); err != nil {
			t.Fatal(err)
		}
		under.Base = id
	}
	j.Kill()
	fails.On()
	c.Attempt = 2
	j, err := exectest.Open(t, c)
	if err == nil || !strings.Contains(err.Error(), "the folder spill for state that does not fit in memory") || strings.Contains(err.Error(), "panic") {
		t.Errorf("restored: %v", err)
	}
	if j != nil {
		j.Kill()
	}
	if n := c.Options.Budget.Used(); n != 0 {
		t.Errorf("%d bytes of the budget are used by nobody", n)
	}
	_ = d.Close() // it has failed
}

// A task without rows to work off gives memory back too, when there is less of it.
func TestSpillIdle(t *testing.T) {
	t.Parallel()
	c, fs := config(1<<20), vfs.NewMem()
	d := spilling(t, &c, fs)
	c.Options.Budget.SetLimit(1 << 30)
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(c.Openers.Source)
	j := exectest.Start(t, c)
	stepper.Allow(200)
	waitFor(t, func() bool { return c.Options.Budget.Used() > 1<<20 })
	if _, err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	c.Options.Budget.SetLimit(512 << 10)
	waitFor(t, func() bool {
		j.Relax()
		return !c.Options.Budget.Over()
	})
	j.Kill()
	left(t, c, d, fs)
}

// A rotten is a file system that gives back other bytes than were written, of files of runs.
type rotten struct {
	vfs.FS
	on *atomic.Bool
}

type rottenFile struct{ vfs.File }

// Open implements vfs.FS.
func (r rotten) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := r.FS.Open(name, o...)
	if err != nil || !r.on.Load() || !strings.Contains(name, "run-") {
		return f, err
	}
	return rottenFile{f}, nil
}

// ReadAt implements vfs.File.
func (f rottenFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if n > 0 {
		p[n/2] ^= 1
	}
	return n, err
}

// What a disk has damaged of changes that lie there is never stored as a part of a checkpoint: the
// task ends, and begins again from one that is whole.
func TestSpilledRunDamaged(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	c := config(6000)
	d := spilling(t, &c, rotten{vfs.NewMem(), &on})
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(c.Openers.Source)
	j := exectest.Start(t, c)
	stepper.Allow(5)
	s, err := j.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	stepper.Allow(5)
	s2, err := j.Checkpoint()
	if err == nil {
		whole(t, c, s2)
		t.Fatal("a checkpoint of damaged changes completed")
	}
	waitFor(t, func() bool { f, _ := j.Failure(); return f != nil })
	f, restart := j.Failure()
	if !restart || f.Reason != exec.ReasonSpill || !strings.Contains(f.Message, "the folder spill for state that does not fit in memory: read: run-") {
		t.Errorf("%+v", f)
	}
	j.Abandon()
	on.Store(false)
	stepper.Allow(1 << 30)
	c.From, c.Attempt = s, 2
	if groups, rows := finish(t, exectest.Start(t, c)); groups != 6000 || rows != 6000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

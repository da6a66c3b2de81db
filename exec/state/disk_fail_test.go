package state

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"weir/exec/batch"
)

// scratchFolder is the folder of the disks here: errors must name it.
const scratchFolder = "a-folder-for-scratch"

// A spiller is a store that spills, and what it must hold.
type spiller struct {
	*Store
	want map[int64]uint64
}

func newSpiller(d *Disk) *spiller {
	return &spiller{New(Options{MaxParallelism: testGroups, Disk: d}), map[int64]uint64{}}
}

func (s *spiller) numbers() *Table { return s.Table("numbers", Layout{Key: IntKey, Words: 1}) }

// set writes numbers, and has a run made of them.
func (s *spiller) set(from, to int64) error {
	for x := from; x < to; x++ {
		putNumber(s.numbers(), x, uint64(x*x))
		s.want[x] = uint64(x * x)
	}
	s.Cut().Run()
	return nil
}

// spill spills what it can; numbers that were deleted go with it.
func (s *spiller) spill(n int) error {
	_, err := s.numbers().spill(n)
	return err
}

// find looks numbers up, and deletes every third that it finds.
func (s *spiller) find(from, to int64) error {
	for x := from; x < to; x++ {
		v, there := s.want[x]
		slot, ok := s.numbers().Find(batch.HashInt(x), appendIntKey(nil, x, false))
		if ok != there || ok && s.numbers().ReadWords(slot)[0] != v {
			return fmt.Errorf("WRONG: %d is there: %v, want %d (%v)", x, ok, v, there)
		}
		if ok && x%3 == 0 {
			s.numbers().Delete(slot)
			delete(s.want, x)
		}
	}
	return nil
}

// read reads all there is.
func (s *spiller) read() error {
	left := maps.Clone(s.want)
	for e := range s.numbers().Ranked(0) {
		x, _, _ := intKey(e.Key)
		if v, ok := left[x]; !ok || e.Words[0] != v {
			return fmt.Errorf("WRONG: %d has %d, want %d (%v)", x, e.Words[0], v, ok)
		}
		delete(left, x)
	}
	if len(left) > 0 {
		return fmt.Errorf("WRONG: %d of %d entries are not read", len(left), len(s.want))
	}
	return nil
}

// script is what two stores of a disk do. Each that fails does no more.
func script(d *Disk) (failed []error) {
	a, b := newSpiller(d), newSpiller(d)
	ends := map[*spiller]error{}
	do := func(s *spiller, f func() error) {
		if ends[s] != nil {
			return
		}
		if ends[s] = guarded(f); ends[s] != nil {
			failed = append(failed, ends[s])
		}
	}
	for round := range int64(2) {
		for _, s := range []*spiller{a, b} {
			from := round * 150
			do(s, func() error { return s.set(from, from+200) })
			do(s, func() error { return s.spill(150) })
			do(s, func() error { return s.find(from-50, from+80) })
			do(s, s.read)
		}
	}
	for _, s := range []*spiller{a, b} {
		if err := s.Close(); err != nil && ends[s] == nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// guarded gives the error that a table has panicked with.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				panic(p)
			}
		}
	}()
	return f()
}

// within does what must not hang.
func within(t *testing.T, f func()) {
	t.Helper()
	doneC := make(chan struct{})
	go func() {
		defer close(doneC)
		f()
	}()
	select {
	case <-doneC:
	case <-time.After(2 * time.Minute):
		t.Fatal("it hangs")
	}
}

// A faulty file system fails from an operation on, or at it alone.
type faulty struct {
	mu       sync.Mutex
	n        int
	at       int // 0: never
	once     bool
	injected int
	seen     func(errorfs.Op)
}

func (f *faulty) over(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.n++
		if f.seen != nil {
			f.seen(op)
		}
		if f.at == 0 || f.n < f.at || f.once && f.n > f.at {
			return nil
		}
		f.injected++
		return fmt.Errorf("%w at operation %d", errorfs.ErrInjected, f.n)
	}))
}

// Whatever operation on files fails, from then on or once: nothing that is read is wrong, who
// cannot go on has an error that names the folder, and nothing hangs. What stays then are the
// goroutines of a database that Pebble has given up, and no other.
//
//nolint:paralleltest // it counts goroutines
func TestEveryOperationFails(t *testing.T) {
	n := failingAt(t, 0, false)
	step := max(n/8, 1)
	if os.Getenv("WEIR_LONG") != "" {
		step = 1
	}
	t.Logf("%d operations", n)
	for at := 1 + rand.IntN(step); at <= n; at += step {
		failingAt(t, at, at/step%2 == 0)
		if step == 1 {
			failingAt(t, at, at%2 != 0)
		}
	}
}

// failingAt lets an operation fail, and those behind it unless it is to be once, and returns
// how many there were.
func failingAt(t *testing.T, at int, once bool) int {
	f, ignore, before := &faulty{at: at, once: once}, goleak.IgnoreCurrent(), stuck()
	var failed []error
	within(t, func() {
		d, err := NewDisk(scratchFolder, DiskOptions{FS: f.over(vfs.NewMem())})
		if err != nil {
			failed = append(failed, err)
			return
		}
		failed = append(failed, script(d)...)
		if err := d.Close(); err != nil {
			failed = append(failed, err)
		}
	})
	for _, err := range failed {
		wellSaid(t, at, once, err)
	}
	if stuck() == before {
		if err := goleak.Find(ignore, goleak.IgnoreTopFunction(granter)); err != nil {
			t.Errorf("at %d (once: %v): %v", at, once, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.injected == 0 && len(failed) > 0 {
		t.Errorf("nothing was to fail: %v", failed)
	}
	return f.n
}

// granter is what Pebble leaves where it cannot open a database.
const granter = "github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"

// stuck is the number of goroutines that databases have given up on.
func stuck() int {
	stacks := make([]byte, 1<<21)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*diskLogger).Fatalf(")
}

// wellSaid checks an error of a disk that was told to fail.
func wellSaid(t *testing.T, at int, once bool, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), scratchFolder) || strings.Contains(err.Error(), "WRONG") {
		t.Errorf("at %d (once: %v): %v", at, once, err)
	}
}

// At whatever operation the machine stops, with whatever was written and not synced: what is left
// of a disk is no hindrance, and nothing of it is there.
func TestDiskAfterACrash(t *testing.T) {
	t.Parallel()
	fs, random := vfs.NewCrashableMem(), rand.New(rand.NewPCG(1, 2))
	var left []*vfs.MemFS
	f := &faulty{}
	step := 25
	if os.Getenv("WEIR_LONG") != "" {
		step = 1
	}
	f.seen = func(errorfs.Op) {
		if f.n%step == 0 {
			left = append(left, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[random.IntN(3)], RNG: random}))
		}
	}
	d, err := NewDisk(scratchFolder, DiskOptions{FS: f.over(fs)})
	if err != nil {
		t.Fatal(err)
	}
	if failed := script(d); len(failed) > 0 {
		t.Fatal(failed)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Logf("%d crashes", len(left))
	for i, fs := range left {
		d, err := NewDisk(scratchFolder, DiskOptions{FS: fs})
		if err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		if files, err := fs.List(scratchFolder); err == nil && len(files) > 0 {
			t.Errorf("crash %d: left in the folder: %v", i, files)
		}
		s := newSpiller(d)
		if err := errors.Join(s.set(0, 100), s.spill(50), s.find(0, 100), s.read(), s.Close(), d.Close()); err != nil {
			t.Errorf("crash %d: %v", i, err)
		}
	}
}

// A byte of what was spilled is another one: whatever is read is right, or an error that names
// the folder; never another value, and nothing hangs.
func TestDamageOnDiskIsNoticed(t *testing.T) {
	t.Parallel()
	noticed, size := 0, 1<<20 // until it is known
	step := 500
	if os.Getenv("WEIR_LONG") != "" {
		step = 3
	}
	for at := rand.IntN(step); at < size; at += step {
		within(t, func() {
			fs := vfs.NewMem()
			d, err := NewDisk(scratchFolder, DiskOptions{FS: fs, Cache: 1})
			if err != nil {
				t.Error(err)
				return
			}
			s := newSpiller(d)
			if err := errors.Join(s.set(0, 300), s.spill(300)); err != nil {
				t.Error(err)
				return
			}
			data := table(t, fs)
			size = len(data)
			data[at] ^= 1 << (at % 8)
			found := []error{guarded(s.read)}
			for x := int64(0); x < 300; x += 40 {
				found = append(found, guarded(func() error { return s.find(x, x+1) }))
			}
			for _, err := range found {
				if err != nil {
					noticed++
					wellSaid(t, at, true, err)
				}
			}
			_ = d.Close()
		})
	}
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d bytes, %d errors", size, noticed)
}

// table finds the one table that was spilled.
func table(t *testing.T, fs *vfs.MemFS) []byte {
	dirs, err := fs.List(scratchFolder)
	if err != nil {
		t.Error(err)
	}
	for _, dir := range append(dirs, "") {
		dir = fs.PathJoin(scratchFolder, dir)
		names, _ := fs.List(dir) // or it is a file
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
		if i < 0 {
			continue
		}
		data, err := fs.UnsafeGetFileDataBuffer(fs.PathJoin(dir, names[i]))
		if err != nil {
			t.Error(err)
		}
		return data
	}
	t.Error("nothing was spilled")
	return make([]byte, 1)
}

// A read of all entries in the midst of which another read fails is closed: the disk's end, which
// would find it open, is not that of the process.
func TestReadWithinReadFails(t *testing.T) {
	t.Parallel()
	for at, done := 1+rand.IntN(3), false; !done; at += 3 {
		f := &faulty{}
		d, err := NewDisk(scratchFolder, DiskOptions{FS: f.over(vfs.NewMem()), Cache: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := newSpiller(d)
		if err := errors.Join(s.set(0, 3000), s.spill(3000)); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		f.at, f.once = f.n+at, true
		f.mu.Unlock()
		if err = guarded(func() error { s.numbers().Pin(); return nil }); err != nil {
			wellSaid(t, at, true, err)
		}
		_ = s.Close() // whose lookup has failed
		if err := d.Close(); err != nil {
			wellSaid(t, at, true, err)
		}
		f.mu.Lock()
		done = f.injected == 0
		f.mu.Unlock()
	}
}

// A store that outlives its disk reads no more, and closes as others do.
func TestClosedDisk(t *testing.T) {
	t.Parallel()
	disk, err := NewDisk(t.TempDir(), DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Disk: disk, Budget: NewBudget(1 << 16)})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	for x := range int64(20_000) {
		putNumber(table, x, 1)
	}
	s.Cut().Run()
	if err := s.Relax(); err != nil || !table.isCold() {
		t.Fatalf("spilled %v, %v", table.isCold(), err)
	}
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if failed, ok := recover().(*DiskError); !ok || !strings.Contains(failed.Error(), "it is closed") {
				t.Errorf("%v", failed)
			}
		}()
		for range table.Entries() {
			continue
		}
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

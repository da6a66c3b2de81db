package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/deploy"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestSnapshots: what was read lately stays open, within bounds, for a while; what
// cannot be loaded is tried again.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Unix(1000, 0)
	clock := func() time.Time { return now }
	blobs := blob.NewMemory()
	store := state.New(state.Options{MaxParallelism: 8})
	store.Table("rows", state.Layout{Words: 1, Blob: true}).Upsert(1, []byte("key"))
	var handles []checkpoint.Handle
	for _, p := range store.Cut().Run() {
		handles = append(handles, p.Handle("", false))
	}
	result := plan.Operator{Kind: plan.Result, Result: &plan.ResultSpec{}}
	named := func(name string, handles []checkpoint.Handle) deploy.Snapshot {
		result.Name = name
		return deploy.Snapshot{Operator: result, MaxParallelism: 8, Handles: handles}
	}
	var s snapshots
	open := func(from deploy.Snapshot) (*op.Stored, error) {
		_, err := s.read(ctx, blobs, from, clock, exec.Query{})
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mu.open[len(s.mu.open)-1].stored, err
	}
	gone := named("gone", []checkpoint.Handle{{Object: "a/gone", Size: 1, KeyGroups: weir.KeyGroupRange{End: 8}}})
	for range 2 {
		if _, err := open(gone); !errors.Is(err, weir.ErrNotFound) {
			t.Errorf("a missing object: %v", err)
		}
	}
	first, err := open(named("0", handles))
	if err != nil {
		t.Fatal(err)
	}
	expire := func() {
		t.Helper()
		if err := s.expire(now); err != nil {
			t.Error(err)
		}
	}
	same := func(want bool, why string) {
		t.Helper()
		if again, err := open(named("0", handles)); err != nil || (again == first) != want {
			t.Errorf("%s: the same %v, %v", why, again == first, err)
		} else {
			first = again
		}
	}
	same(true, "read again")
	now = now.Add(snapshotIdle - 1)
	expire()
	same(true, "not idle for long enough")
	now = now.Add(snapshotIdle - 1)
	expire()
	same(true, "used since")
	now = now.Add(snapshotIdle)
	expire()
	same(false, "idle")
	for _, name := range []string{"1", "2", "3"} {
		if _, err := open(named(name, handles)); err != nil {
			t.Fatal(err)
		}
	}
	same(true, "among the last four")
	for _, name := range []string{"1", "2", "3", "4"} {
		if _, err := open(named(name, handles)); err != nil {
			t.Fatal(err)
		}
	}
	same(false, "four others since")
	large := named("large", []checkpoint.Handle{{Object: "a/gone", Size: snapshotBytes + 1, KeyGroups: weir.KeyGroupRange{End: 8}}})
	if _, err := s.use(large, now); err != nil || len(s.mu.open) != 1 {
		t.Errorf("%d are open with a large one: %v", len(s.mu.open), err)
	}
}

// TestSnapshotsAtOnce: what is loaded at a time is within the bound too, unless it is one alone.
func TestSnapshotsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOnC := make(chan struct{})
		blobs := blob.NewFaulty(blob.NewMemory(), func(blob.Call) blob.Fault { return blob.Fault{Wait: goOnC} })
		s := snapshots{most: 100}
		var all sync.WaitGroup
		for i, size := range []int64{60, 1000, 40, 50} {
			key := fmt.Sprintf("a/%d", i)
			all.Go(func() {
				from := deploy.Snapshot{MaxParallelism: 8, Handles: []checkpoint.Handle{{Object: key, Size: size, KeyGroups: weir.KeyGroupRange{End: 8}}}}
				if _, err := s.read(t.Context(), blobs, from, time.Now, exec.Query{}); !errors.Is(err, weir.ErrNotFound) {
					t.Errorf("%s: %v", key, err)
				}
			})
			synctest.Wait()
		}
		if n := len(blobs.Calls()); n != 1 {
			t.Errorf("%d are loaded at a time", n)
		}
		close(goOnC)
		all.Wait()
		if n := len(blobs.Calls()); n != 4 {
			t.Errorf("%d were loaded", n)
		}
	})
}

// TestSnapshotsSpill: a result larger than the memory for state is read all the same, page by
// page, by several at a time; what it had on disk goes with it.
func TestSnapshotsSpill(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	from := numbersIn(rows)
	disk, err := state.NewDisk(t.TempDir(), state.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshots{disk: disk, budget: state.NewBudget(1 << 20)}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			found, q := map[string]bool{}, exec.Query{Limit: 7_000}
			for {
				page, err := s.read(t.Context(), blob.NewMemory(), from, time.Now, q)
				if err != nil || page.Total != rows {
					t.Errorf("total %d, %v", page.Total, err)
					return
				}
				for _, r := range page.Rows {
					found[string(r.JSON)] = true
				}
				if !page.More {
					break
				}
				q.After = page.Rows[len(page.Rows)-1].Sort
			}
			if len(found) != rows {
				t.Errorf("%d rows of %d", len(found), rows)
			}
		})
	}
	all.Wait()
	if spilled, _ := disk.Size(); spilled == 0 {
		t.Error("all of it is in memory")
	}
	if err := s.close(); err != nil || s.budget.Used() != 0 {
		t.Errorf("%d bytes stay: %v", s.budget.Used(), err)
	}
	if err := disk.Close(); err != nil {
		t.Error(err)
	}
}

// numbersIn is a snapshot of a result of so many numbers.
func numbersIn(rows int64) deploy.Snapshot {
	result := plan.Operator{
		Kind: plan.Result, Name: "Result", Schema: []plan.Column{{Name: "n", Type: expr.Type{Kind: expr.BigInt}}},
		Result: &plan.ResultSpec{Keys: []int{0}, Show: []int{0}},
	}
	store, columns := state.New(state.Options{MaxParallelism: 8}), exec.Layout(result.Schema)
	table := store.Table("rows", state.Layout{Key: state.KeyOf(columns), Words: 1, Blob: true})
	for n := range rows {
		b := batch.New(columns, 1)
		b.Columns[0].AppendInt(n)
		b.EndRow(batch.Insert)
		var hash [1]uint64
		batch.HashRows(b, []int{0}, hash[:])
		key := batch.EncodeKey(nil, b, []int{0}, 0)
		slot, _ := table.Upsert(hash[0], key)
		table.Words(slot)[0] = 1
		table.SetBlob(slot, key)
	}
	from := deploy.Snapshot{Operator: result, Input: result.Schema, MaxParallelism: 8}
	for _, p := range store.Cut().Run() {
		from.Handles = append(from.Handles, p.Handle("", false))
	}
	return from
}

// Whatever cannot be read from disk, be it while a snapshot is loaded, is an error, and is loaded
// anew the next time.
func TestSnapshotsOfAFailingDisk(t *testing.T) {
	t.Parallel()
	const rows = 10_000
	from := numbersIn(rows)
	from.Operator.Result.Multiset = true // whose rows are counted as it is loaded
	var left atomic.Int64                // reads until one fails
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && left.Add(-1) < 0 {
			return errorfs.ErrInjected
		}
		return nil
	}))
	for at, done := int64(0), false; !done; at += 5 {
		disk, err := state.NewDisk("spill", state.DiskOptions{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		s := snapshots{disk: disk, budget: state.NewBudget(1 << 18)}
		read := func() (exec.Page, error) {
			return s.read(t.Context(), blob.NewMemory(), from, time.Now, exec.Query{Limit: 1})
		}
		left.Store(at)
		_, err = read()
		var failed *state.DiskError
		if done = err == nil; !done && !errors.As(err, &failed) {
			t.Errorf("after %d reads: %v", at, err)
		}
		if used := s.budget.Used(); !done && used != 0 {
			t.Errorf("after %d reads %d bytes stay", at, used)
		}
		left.Store(1 << 40)
		if page, err := read(); err != nil || page.Total != rows {
			t.Errorf("after %d reads, then %d rows, %v", at, page.Total, err)
		}
		if err := errors.Join(s.close(), disk.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A snapshot of an older version, all of which counts as changed once it is restored, is spilled like
// others.
func TestSnapshotsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	from := numbersIn(rows)
	old := state.New(state.Options{MaxParallelism: 8})
	if _, err := old.Restore(t.Context(), nil, from.Handles); err != nil {
		t.Fatal(err)
	}
	from.Handles = []checkpoint.Handle{version1(old.Table("rows", state.Layout{Key: state.IntKey, Words: 1, Blob: true}))}
	disk, err := state.NewDisk("spill", state.DiskOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshots{disk: disk, budget: state.NewBudget(1 << 20)}
	page, err := s.read(t.Context(), blob.NewMemory(), from, time.Now, exec.Query{Limit: 1})
	if err != nil || page.Total != rows {
		t.Errorf("%d rows, %v", page.Total, err)
	}
	if spilled, _ := disk.Size(); spilled == 0 {
		t.Error("all of it is in memory")
	}
	if err := errors.Join(s.close(), disk.Close()); err != nil {
		t.Error(err)
	}
}

// version1 is a table as version 1 wrote it.
func version1(rows *state.Table) checkpoint.Handle {
	const groups = 8
	le := binary.LittleEndian
	var hashes, sizes, keys, words, lengths, blobs []byte
	for e := range rows.Entries() {
		hashes, sizes = le.AppendUint64(hashes, e.Hash), le.AppendUint32(sizes, uint32(2+len(e.Key)))
		keys = append(binary.BigEndian.AppendUint16(keys, uint16(weir.KeyGroupOf(e.Hash, groups))), e.Key...)
		words = le.AppendUint64(words, e.Words[0])
		lengths, blobs = le.AppendUint32(lengths, uint32(len(e.Blob))), append(blobs, e.Blob...)
	}
	n := uint64(rows.Len())
	header := append(le.AppendUint32(le.AppendUint32(nil, groups), 1), 1)
	header = append(le.AppendUint64(header, n), "rows"...)
	data := []byte("WRST\x01")
	for i, payload := range [][]byte{header, slices.Concat(le.AppendUint32(nil, uint32(n)), hashes, sizes, keys, words, lengths, blobs), le.AppendUint64(nil, n)} {
		kind := byte(i + 1)
		data = le.AppendUint32(append(data, kind), uint32(len(payload)))
		data = append(le.AppendUint64(data, xxh3.HashSeed(payload, uint64(kind))), payload...)
	}
	return checkpoint.Handle{Inline: data, Size: int64(len(data)), Checksum: xxh3.Hash(data), KeyGroups: weir.KeyGroupRange{End: groups}}
}

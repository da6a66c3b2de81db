package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/blob/s3test"
	"weir/exec/batch"
	"weir/exec/state"
)

// restoreBench measures how long the tasks of an attempt take to have their state again.
type restoreBench struct {
	runs   int
	keys   int64
	deltas int
	dirty  int64
}

func (b *restoreBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.runs, "runs", 7, "restores of each kind")
	f.Int64Var(&b.keys, "keys", 5_000_000, "keys, over all subtasks")
	f.IntVar(&b.deltas, "deltas", 20, "deltas over a whole state")
	f.Int64Var(&b.dirty, "dirty", 100_000, "keys of each")
}

// restoreFigures are those of one kind of restore.
type restoreFigures struct {
	From    string    `json:"from"`
	State   string    `json:"state"`
	Was     int       `json:"was"` // subtasks
	Is      int       `json:"is"`
	Bytes   int64     `json:"bytes"`
	Seconds []float64 `json:"seconds"`
	CPU     []float64 `json:"cpu_seconds"` // of this process

	store   blob.Store
	handles [][]checkpoint.Handle // of each subtask
}

func (b *restoreBench) run(ctx context.Context, c common) (_ any, _ string, err error) {
	dir, err := os.MkdirTemp(c.dir, "restore-")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stores, stop, err := restoreStores(dir)
	if err != nil {
		return nil, "", err
	}
	defer stop()
	var all []*restoreFigures
	for _, was := range []int{2, 4} {
		for _, whole := range []bool{true, false} {
			kinds, err := b.prepare(ctx, stores, was, whole)
			if err != nil {
				return nil, "", err
			}
			all = append(all, kinds...)
		}
	}
	for range b.runs {
		for _, f := range all {
			runtime.GC()
			began, used := time.Now(), cpuSeconds()
			n, err := f.restore(ctx)
			f.CPU = append(f.CPU, cpuSeconds()-used)
			if f.Seconds = append(f.Seconds, time.Since(began).Seconds()); err != nil {
				return nil, "", err
			}
			if n != b.keys {
				return nil, "", fmt.Errorf("%d keys of %d are back", n, b.keys)
			}
		}
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%d counts by BIGINT, %d CPUs, %s\n\n| from | state | subtasks | MiB | seconds, median | least | most | target | of a processor |\n|---|---|---|---|---|---|---|---|---|\n", b.keys, runtime.NumCPU(), runtime.Version())
	for _, f := range all {
		target := "< 1.5"
		if f.Was == f.Is {
			target = map[bool]string{true: "< 0.5", false: "< 1"}[f.From == "files"]
		}
		fmt.Fprintf(&w, "| %s | %s | %d → %d | %.0f | %.2f | %.2f | %.2f | %s | %.2f |\n", f.From, f.State, f.Was, f.Is, float64(f.Bytes)/(1<<20), median(f.Seconds), quantile(f.Seconds, 0), quantile(f.Seconds, 1), target, median(f.CPU))
	}
	return all, w.String(), nil
}

// restoreStores opens a folder and an S3 server.
func restoreStores(dir string) (stores map[string]blob.Store, stop func(), err error) {
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return nil, nil, err
	}
	folder, err := blob.OpenFolder(files)
	if err != nil {
		return nil, nil, err
	}
	s3, err := s3test.Run(dir)
	if err != nil {
		return nil, nil, err
	}
	text := "[default]\naws_access_key_id = " + s3test.AccessKey + "\naws_secret_access_key = " + s3test.SecretKey + "\n"
	credentials := filepath.Join(dir, "credentials")
	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		s3.Stop()
		return nil, nil, err
	}
	fetched, err := blob.Open(s3.URL("weir/restore", "credentials="+credentials))
	if err != nil {
		s3.Stop()
		return nil, nil, err
	}
	return map[string]blob.Store{"files": folder, "S3": fetched}, s3.Stop, nil
}

// prepare stores the state of so many subtasks, and gives the restores of it to be measured.
func (b *restoreBench) prepare(ctx context.Context, stores map[string]blob.Store, was int, whole bool) ([]*restoreFigures, error) {
	name := "one whole run"
	if !whole {
		name = fmt.Sprintf("and %d deltas of %d keys", b.deltas, b.dirty)
	}
	var list []*restoreFigures
	for _, from := range []string{"files", "S3"} {
		for _, is := range []int{2, 4} {
			if is == 2 || was == 2 {
				list = append(list, &restoreFigures{From: from, State: name, Was: was, Is: is, store: stores[from], handles: make([][]checkpoint.Handle, was)})
			}
		}
	}
	for subtask := range was {
		handles, pieces := b.runsOf(subtask, was, whole)
		for i, h := range handles {
			for _, s := range stores {
				if h.Object == "" {
					break
				}
				if err := s.Put(ctx, h.Object, bytes.NewReader(pieces[i])); err != nil {
					return nil, err
				}
			}
		}
		for _, f := range list {
			f.handles[subtask] = handles
			for _, h := range handles {
				f.Bytes += h.Size
			}
		}
	}
	return list, nil
}

// runsOf makes the pieces of a subtask's state.
func (b *restoreBench) runsOf(subtask, was int, whole bool) (handles []checkpoint.Handle, data [][]byte) {
	groups := weir.KeyGroupsOf(subtask, was, weir.DefaultMaxParallelism)
	s := state.New(state.Options{KeyGroups: groups})
	table := s.Table("groups", state.Layout{Key: state.IntKey, Words: 1})
	count := func(from, to int64) {
		key := []byte{byte(batch.Ints), 0, 0, 0, 0, 0, 0, 0, 0}
		for k := from; k < to; k++ {
			hash := batch.HashInt(k)
			if groups.Contains(weir.KeyGroupOf(hash, weir.DefaultMaxParallelism)) {
				binary.BigEndian.PutUint64(key[1:], batch.EncodeIntKey(k))
				slot, _ := table.Upsert(hash, key)
				table.Words(slot)[0] += uint64(k%100) + 1
			}
		}
	}
	store := func(id int, delta bool) {
		for i, p := range s.Cut().Run() {
			name := ""
			if len(p.Data) > state.InlineLimit {
				name = fmt.Sprintf("job_1/1-a/of%d-%d/%d-%d%d", was, subtask, id+1, truth(whole), i)
			}
			handles, data = append(handles, p.Handle(name, delta)), append(data, p.Data)
		}
	}
	count(0, b.keys)
	store(0, false)
	for d := range int64(b.deltas) {
		if !whole {
			count(d*b.dirty, (d+1)*b.dirty)
			store(int(d)+1, true)
		}
	}
	return handles, data
}

// cpuSeconds is the time of processors that this process has taken.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// restore restores all subtasks, as an attempt on one worker does, and returns how many keys
// they have.
func (f *restoreFigures) restore(ctx context.Context) (int64, error) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	counts := make([]int64, f.Is)
	for subtask := range f.Is {
		g.Go(func() error {
			groups := weir.KeyGroupsOf(subtask, f.Is, weir.DefaultMaxParallelism)
			var handles []checkpoint.Handle
			for _, old := range f.handles {
				for _, h := range old {
					if h, ok := h.Trim(groups); ok {
						handles = append(handles, h)
					}
				}
			}
			s := state.New(state.Options{KeyGroups: groups})
			_, err := s.Restore(ctx, f.store, handles)
			counts[subtask] = int64(s.Len())
			return errors.Join(err, s.Close())
		})
	}
	err := g.Wait()
	var n int64
	for _, c := range counts {
		n += c
	}
	return n, err
}

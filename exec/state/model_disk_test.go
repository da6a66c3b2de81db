package state

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
)

// A world is what the jobs of a model test share, one after the other: a disk, and the count
// of what has happened.
type world struct {
	seen  map[string]int
	fulls int
	disk  *modelDisk
}

// A modelDisk is a disk that fails when it is told to.
type modelDisk struct {
	*Disk
	fails    atomic.Int64 // operations until all fail; 0: none does
	injected atomic.Int64 // failures so far
}

func newModelDisk() (*modelDisk, error) {
	d := &modelDisk{}
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(errorfs.Op) error {
		if d.fails.Load() == 0 || d.fails.Load() > 1 && d.fails.Add(-1) > 1 {
			return nil
		}
		d.injected.Add(1)
		return errorfs.ErrInjected
	}))
	var err error
	d.Disk, err = NewDisk("scratch", DiskOptions{FS: fs})
	return d, err
}

// renew gives the world another disk.
func (w *world) renew(t rapid.TB) {
	w.shut(t)
	var err error
	if w.disk, err = newModelDisk(); err != nil {
		t.Fatal(err)
	}
}

// shut closes the disk: one that has failed, too.
func (w *world) shut(t rapid.TB) {
	if w.disk == nil {
		return
	}
	if err := w.disk.Close(); err != nil && w.disk.injected.Load() == 0 {
		t.Error(err)
	}
}

// failDisk makes the disk fail, sooner or later.
func (j *job) failDisk() {
	if j.keys < modelKeys && j.below(8) == 0 {
		j.disk.fails.Store(int64(rapid.IntRange(1, 60).Draw(j.T, "operations")) + 1)
	}
}

// A diskFailure is what the disk has failed with.
type diskFailure struct{ error }

// may ends what is done where an error is one that the disk was told to give.
func (j *job) may(err error) {
	if err == nil {
		return
	}
	if j.disk.injected.Load() == 0 {
		j.Fatal(err)
	}
	panic(diskFailure{err})
}

// tries does something, and reports whether the disk failed at it, as it was told to. Such
// an error says what has failed.
func (j *job) tries(f func()) (failed bool) {
	defer func() {
		p := recover()
		err, ok := p.(error)
		if p != nil && (!ok || j.disk.injected.Load() == 0) {
			panic(p)
		}
		if failed = p != nil; failed && !strings.Contains(err.Error(), j.disk.dir) {
			j.Fatalf("an error that does not say what has failed: %v", err)
		}
	}()
	f()
	return false
}

func isDirty(err error) bool { return errors.Is(err, ErrDirty) }

// old makes a snapshot as version 1 wrote it, and what it holds.
func (j *job) old() (handles []checkpoint.Handle) {
	j.count("started from version 1")
	for k := range modelTables() {
		of := &modelTables()[k]
		for n := range j.below(min(j.keys, 500)) + 1 {
			v := modelValue{hash: of.keys[n].hash}
			for i := range of.layout.Words {
				v.words[i] = uint64(n) * 0x9e3779b97f4a7c15 >> (8 * (n % 8))
			}
			if of.layout.Blob {
				v.blob = strings.Repeat("old", n%50)
			}
			j.want[k][of.keys[n].key] = v
		}
	}
	for _, groups := range []weir.KeyGroupRange{{End: 5}, {Start: 5, End: testGroups}} {
		var blocks [][]byte
		all := 0
		for k := range modelTables() {
			of, n := &modelTables()[k], 0
			var hashes, sizes, keys, words, lengths, blobs []byte
			for _, key := range of.keys {
				v, ok := j.want[k][key.key]
				g := weir.KeyGroupOf(key.hash, testGroups)
				if !ok || !groups.Contains(g) {
					continue
				}
				n++
				hashes = binary.LittleEndian.AppendUint64(hashes, v.hash)
				sizes = binary.LittleEndian.AppendUint32(sizes, uint32(2+len(key.key)))
				keys = append(binary.BigEndian.AppendUint16(keys, uint16(g)), key.key...)
				for i := range of.layout.Words {
					words = binary.LittleEndian.AppendUint64(words, v.words[i])
				}
				if of.layout.Blob {
					lengths, blobs = binary.LittleEndian.AppendUint32(lengths, uint32(len(v.blob))), append(blobs, v.blob...)
				}
			}
			header := binary.LittleEndian.AppendUint32([]byte{blockTable}, testGroups)
			header = append(binary.LittleEndian.AppendUint32(header, uint32(of.layout.Words)), byte(truth(of.layout.Blob)))
			header = append(binary.LittleEndian.AppendUint64(header, uint64(n)), of.name...)
			entries := binary.LittleEndian.AppendUint32([]byte{blockEntries}, uint32(n))
			blocks = append(blocks, header, slices.Concat(entries, hashes, sizes, keys, words, lengths, blobs))
			all += n
		}
		data := sealed(append(blocks, binary.LittleEndian.AppendUint64([]byte{blockEnd}, uint64(all)))...).Inline
		data[len(magic)] = 1
		h := handleOf(data)
		h.KeyGroups = groups
		handles = append(handles, h)
	}
	return handles
}

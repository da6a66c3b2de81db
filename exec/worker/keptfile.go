package worker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/zeebo/xxh3"
)

// A file of a copy tells what it is: behind the object's bytes comes a footer, little-endian.
//
//	key: length (2), bytes; size of the object (8); checksum of each chunk of it (8 each)
//	xxh3 of the footer so far (8), its length (4), "WKC1"
//
// It has a name of its own, a number, only once it is whole. Nothing is synced: what a machine
// that went down has lost of a file shows by its checksums.
const (
	keptMagic   = "WKC1"
	keptTrailer = 8 + 4 + len(keptMagic)
	keptLock    = "lock"
)

func (c *keptCopy) footer() []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(c.key)))
	b = binary.LittleEndian.AppendUint64(append(b, c.key...), uint64(c.size))
	for _, sum := range c.sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	n := len(b)
	b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
	return append(binary.LittleEndian.AppendUint32(b, uint32(n)), keptMagic...)
}

// mostFooter bounds the footer of a file of a size: so much memory is read into.
func mostFooter(room int64) int64 { return 2 + math.MaxUint16 + 8 + (room/keptChunk+1)*8 }

var errNoCopy = errors.New("it is no copy of state, or not a whole one")

// found reads what a file says of itself. Of the object's bytes it reads none.
func (k *kept) found(path string) (*keptCopy, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	room := info.Size()
	trailer := make([]byte, keptTrailer)
	if room < int64(keptTrailer) || !info.Mode().IsRegular() {
		return nil, errNoCopy
	}
	if _, err := f.ReadAt(trailer, room-int64(keptTrailer)); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(trailer[8:]))
	if string(trailer[12:]) != keptMagic || n > min(room-int64(keptTrailer), mostFooter(room)) {
		return nil, errNoCopy
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, room-int64(keptTrailer)-n); err != nil {
		return nil, err
	}
	if xxh3.Hash(b) != binary.LittleEndian.Uint64(trailer) {
		return nil, errNoCopy
	}
	return k.parse(b, path, room)
}

// parse reads a footer whose checksum is right.
func (k *kept) parse(b []byte, path string, room int64) (*keptCopy, error) {
	if len(b) < 2 || len(b) < 2+int(binary.LittleEndian.Uint16(b))+8 {
		return nil, errNoCopy
	}
	n := int(binary.LittleEndian.Uint16(b))
	c := k.copyOf(string(b[2 : 2+n]))
	if c == nil {
		return nil, errNoCopy
	}
	sums := b[2+n+8:]
	c.path, c.room, c.size = path, room, int64(binary.LittleEndian.Uint64(b[2+n:]))
	if c.size != room-int64(len(b)+keptTrailer) || int64(len(sums)) != (c.size+keptChunk-1)/keptChunk*8 {
		return nil, errNoCopy
	}
	for ; len(sums) > 0; sums = sums[8:] {
		c.sums = append(c.sums, binary.LittleEndian.Uint64(sums))
	}
	return c, nil
}

// open takes the folder for this process, unless it is its own already, and finds the copies that
// earlier lives of the worker left there. Where another process has it, there are no copies
// until that one has ended.
func (k *kept) open() {
	if k.lock != nil || k.dir == "" {
		return
	}
	if _, err := os.Stat(k.dir); k.most <= 0 && err != nil {
		return // none are kept, and none were
	}
	if err := k.take(); err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !k.mu.failing {
			k.mu.failing = true
			k.log.Warn("no copies of the state are kept, storage has it", "err", err)
		}
		return
	}
	found, made := k.survey()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.opened, k.mu.failing, k.mu.made = true, false, max(k.mu.made, made)
	for _, c := range found {
		k.mu.copies, k.mu.bytes = append(k.mu.copies, c), k.mu.bytes+c.room
	}
	for k.mu.bytes > k.most && len(k.mu.copies) > 0 {
		oldest := k.mu.copies[0]
		k.dropLocked(func(c *keptCopy) bool { return c == oldest })
	}
	if len(found) > 0 {
		k.log.Info("copies of the state were found", "copies", len(k.mu.copies), "bytes", k.mu.bytes)
	}
}

// take locks the folder; the system drops the lock with the process.
func (k *kept) take() error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(k.dir, keptLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("folder %s is in use by another worker; give each its own --data: %w", k.dir, err), f.Close())
	}
	k.lock = f
	return nil
}

// survey looks at the files in the folder: copies, the oldest first, and the highest number. All
// else, such as halves of files, is removed.
func (k *kept) survey() (found []*keptCopy, made int) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		k.log.Warn("copies of the state are not found", "err", err)
	}
	var files []int
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		switch {
		case e.Name() == keptLock:
		case err != nil || number <= 0 || e.IsDir() || strings.HasPrefix(e.Name(), "0"):
			_ = os.RemoveAll(filepath.Join(k.dir, e.Name())) // it takes room, no more
		default:
			files = append(files, number)
		}
	}
	slices.SortFunc(files, func(a, b int) int { return cmp.Compare(b, a) })
	seen := map[string]bool{}
	for i, number := range files {
		made = max(made, number)
		path := filepath.Join(k.dir, strconv.Itoa(number))
		var c *keptCopy
		if i < keptMost {
			c, _ = k.found(path) // whatever is wrong with it
		}
		if c == nil || seen[c.key] {
			_ = os.RemoveAll(path)
			continue
		}
		seen[c.key] = true
		found = append(found, c)
	}
	slices.Reverse(found)
	return found, made
}

// shut gives the folder back; the copies stay for the next life.
func (k *kept) shut() {
	if k.lock == nil {
		return
	}
	k.mu.Lock()
	k.mu.opened, k.mu.copies, k.mu.bytes = false, nil, 0
	k.mu.Unlock()
	k.clear()
	_ = k.lock.Close()
	k.lock = nil
}

package sink

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir"
	"weir/exec"
)

// sealedAge is how long sealed files that no known snapshot names are kept: a
// savepoint may name them.
const sealedAge = 7 * 24 * time.Hour

// A folder is a sink's target. All names are of files directly in it; links cannot
// lead out of it.
type folder struct {
	path  string // as the table names it
	root  *os.Root
	marks map[string]weir.CheckpointID // the markers that this sink has made, by prefix
}

// openFolder opens the folder at path, below one of roots, and makes it if need be.
func openFolder(roots []string, path string) (*folder, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: option 'path' is missing", weir.ErrInvalid)
	}
	place, err := exec.Locate(roots, path)
	if err != nil {
		return nil, err
	}
	base, err := os.OpenRoot(place.Root)
	if err != nil {
		return nil, exec.FileError("open", place.Root, err)
	}
	defer func() { _ = base.Close() }()
	if err := makeFolder(base, place.Name); err != nil {
		return nil, exec.FileError("make folder", path, err)
	}
	root, err := base.OpenRoot(place.Name)
	if err != nil {
		if info, stat := base.Stat(place.Name); stat == nil && !info.IsDir() {
			return nil, fmt.Errorf("%w: path %s is a file; a sink needs a folder", weir.ErrInvalid, path)
		}
		return nil, exec.FileError("open folder", path, err)
	}
	return &folder{path: path, root: root, marks: map[string]weir.CheckpointID{}}, nil
}

// makeFolder makes name and the folders above it, durably.
func makeFolder(base *os.Root, name string) error {
	_, err := base.Stat(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := base.MkdirAll(name, 0o755); err != nil {
		return err
	}
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if err := syncFolder(base, dir); err != nil || dir == "." {
			return err
		}
	}
}

// syncFolder makes the names in a folder durable.
func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	return errors.Join(err, dir.Close())
}

func (f *folder) sync() error {
	if err := syncFolder(f.root, "."); err != nil {
		return fmt.Errorf("flush folder %s: %w", f.path, err)
	}
	return nil
}

// clean removes what older attempts of the writer's sink have left: files that were
// only begun, sealed ones that are old and not among the restored segments, and
// markers that others supersede. What a restored segment names stays, and its own marker:
// it tells whether the segment was published (link).
func (f *folder) clean(w writer, restored []segment, now time.Time) error {
	named := make(map[string]bool, 2*len(restored))
	for i := range restored {
		s := &restored[i]
		named[s.Temp], named[markerName(markerPrefix(s.Job, s.Operator, s.Subtask), s.Barrier)] = true, true
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return exec.FileError("read folder", f.path, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		attempt, sealed, ok := w.leftover(e.Name())
		if !ok || attempt.Number >= w.attempt.Number || named[e.Name()] {
			continue
		}
		if sealed {
			info, err := e.Info()
			if err != nil || now.Sub(info.ModTime()) < sealedAge {
				continue
			}
		}
		if err := f.remove(e.Name()); err != nil {
			return err
		}
	}
	for _, name := range oldMarkers(w, names) {
		if named[name] {
			continue
		}
		if err := f.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file, if it is there.
func (f *folder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", filepath.Join(f.path, name), err)
	}
	return nil
}

// has makes sure that another job's segment is in the folder, or was published there.
func (f *folder) has(s *segment) error {
	for _, name := range []string{s.Temp, s.Final} {
		if _, err := f.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if marked, err := f.marked(s); marked || err != nil {
		return err
	}
	return fmt.Errorf("%w: what it starts from holds %v, rows that job %s sealed in another folder: neither %s nor %s is in %s; "+
		"write to the folder of that job, or copy one of the two here first, under its name", weir.ErrInvalid, s, s.Job, s.Temp, s.Final, f.path)
}

// publish gives a sealed segment its final name, unless it has it already. The name is
// durable after sync; the sealed file is still there and may then be removed.
func (f *folder) publish(s *segment) error {
	temp, final := filepath.Join(f.path, s.Temp), filepath.Join(f.path, s.Final)
	info, err := f.root.Lstat(s.Temp)
	switch {
	case err == nil && info.Size() != s.Bytes:
		return fmt.Errorf("%v: %s has %d bytes instead of %d: it was damaged", s, temp, info.Size(), s.Bytes)
	case err == nil:
		err = f.link(s)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return f.verify(s)
	case errors.Is(err, fs.ErrNotExist):
		if err := f.verify(s); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if marked, err := f.marked(s); marked || err != nil {
			return err
		}
		marker := filepath.Join(f.path, markerName(markerPrefix(s.Job, s.Operator, s.Subtask), s.Barrier))
		return fmt.Errorf("%w: %v: its rows are lost: neither %s nor %s exists; bring one of them back or, to go on without its rows, make an empty file %s",
			weir.ErrNotFound, s, temp, final, marker)
	}
	return fmt.Errorf("%v: publish %s as %s: %w", s, temp, final, err)
}

// link publishes a sealed segment, unless its own marker says that this has been done: a
// sink may have ended before it let go of the sealed file, and a reader may have moved
// the published one away since. A higher marker says nothing here: until all sinks have
// confirmed a commit, the files of others may be ahead.
func (f *folder) link(s *segment) error {
	if _, err := f.root.Lstat(markerName(markerPrefix(s.Job, s.Operator, s.Subtask), s.Barrier)); err == nil {
		if _, err := f.root.Lstat(s.Final); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return f.root.Link(s.Temp, s.Final)
}

// verify checks that the published file is the segment.
func (f *folder) verify(s *segment) error {
	final := filepath.Join(f.path, s.Final)
	file, err := f.root.Open(s.Final)
	if err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	defer file.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(sum, file)
	if err != nil {
		return fmt.Errorf("%v: read %s: %w", s, final, err)
	}
	if got := fmt.Sprintf("%08x", sum.Sum32()); n != s.Bytes || !strings.EqualFold(got, s.Checksum) {
		return fmt.Errorf("%w: %v: %s exists with other content (%d bytes, checksum %s, instead of %d bytes, %s); move it away to go on",
			weir.ErrConflict, s, final, n, got, s.Bytes, s.Checksum)
	}
	return nil
}

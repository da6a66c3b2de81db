package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir"
	"weir/exec"
)

// An input is one file of a table, as it was when the table was opened.
type input struct {
	Path  string `json:"path"` // as the table's path leads to it
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"` // nanoseconds since 1970
}

// list finds the files that a table's path names: a file, the files directly in a
// folder, or what a pattern matches; in ascending order. Names that begin with a dot
// are not found in folders or by patterns. All must lie below one of roots.
func list(roots []string, path string) ([]input, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: option 'path' is missing", weir.ErrInvalid)
	}
	if strings.ContainsAny(path, `*?[`) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return listPattern(roots, path)
		}
	}
	info, err := stat(roots, path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return inputs(roots, []string{path}, false)
	}
	place, err := exec.Locate(roots, path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(place.Path())
	if err != nil {
		return nil, exec.FileError("read folder", path, err)
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(path, e.Name()))
	}
	return inputs(roots, paths, true)
}

// listPattern lists what a pattern matches, once the folder in front of the pattern
// is known to be below a root.
func listPattern(roots []string, pattern string) ([]input, error) {
	fixed := filepath.Dir(pattern[:strings.IndexAny(pattern, `*?[`)] + "x")
	if _, err := exec.Locate(roots, fixed); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w: path %s is not a pattern that can match: %w", weir.ErrInvalid, pattern, err)
	}
	found, err := inputs(roots, paths, true)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: no file matches path %s", weir.ErrNotFound, pattern)
	}
	return found, err
}

// inputs looks at the files; found ones may be hidden or folders, and are then left out.
func inputs(roots []string, paths []string, found bool) ([]input, error) {
	var files []input
	for _, path := range paths {
		if found && strings.HasPrefix(filepath.Base(path), ".") {
			continue
		}
		info, err := stat(roots, path)
		if err != nil {
			return nil, err
		}
		if found && info.IsDir() {
			continue
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s is not a regular file", weir.ErrInvalid, path)
		}
		files = append(files, input{Path: filepath.Clean(path), Size: info.Size(), Mtime: info.ModTime().UnixNano()})
	}
	slices.SortFunc(files, func(a, b input) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

// stat looks at what a path leads to, below a root.
func stat(roots []string, path string) (fs.FileInfo, error) {
	place, err := exec.Locate(roots, path)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(place.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no file or folder at path %s", weir.ErrNotFound, path)
	}
	if err != nil {
		return nil, exec.FileError("look at", path, err)
	}
	return info, nil
}

// open opens a file below a root for reading, and refuses it when it is no longer
// what it was when the table was opened.
func (in input) open(roots []string) (*os.File, error) {
	place, err := exec.Locate(roots, in.Path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return nil, exec.FileError("open", in.Path, err)
	}
	defer func() { _ = root.Close() }()
	file, err := root.Open(place.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: file %s is gone", weir.ErrInvalid, in.Path)
	}
	if err != nil {
		return nil, exec.FileError("open", in.Path, err)
	}
	if err := in.unchanged(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// unchanged checks an open file's size and time of modification.
func (in input) unchanged(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("look at %s: %w", in.Path, err)
	}
	if info.Size() == in.Size && info.ModTime().UnixNano() == in.Mtime {
		return nil
	}
	difference := fmt.Sprintf("%d bytes then, %d now", in.Size, info.Size())
	if info.Size() == in.Size {
		difference = fmt.Sprintf("of %s then, of %s now", modified(time.Unix(0, in.Mtime)), modified(info.ModTime()))
	}
	return fmt.Errorf("%w: file %s has changed since the job began to read it (%s); its rows would be counted wrongly: put the old file back, or start the job from nothing",
		weir.ErrInvalid, in.Path, difference)
}

func modified(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

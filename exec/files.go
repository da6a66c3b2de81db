package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir"
)

// A Place is a path below one of the roots that file connectors may use. Both parts
// are free of links as of Locate; opening Name through os.OpenRoot(Root) keeps it so.
type Place struct {
	Root string
	Name string // relative to Root; "." is the root itself
}

// Path gives the whole path.
func (p Place) Path() string { return filepath.Join(p.Root, p.Name) }

// Locate finds where path leads once links are followed, and the root below which
// that lies. A relative path is taken from the current folder. What does not exist
// yet is located by the part that does. A path outside all roots is ErrInvalid.
func Locate(roots []string, path string) (Place, error) {
	if len(roots) == 0 {
		return Place{}, fmt.Errorf("%w: path %s: no folder is open to file connectors here; name one with --files", weir.ErrInvalid, path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Place{}, fmt.Errorf("path %s: %w", path, err)
	}
	target, err := followLinks(absolute)
	if err != nil {
		return Place{}, FileError("path", path, err)
	}
	for _, root := range roots {
		base, err := filepath.Abs(root)
		if err != nil {
			continue
		}
		if base, err = filepath.EvalSymlinks(base); err != nil {
			continue // a root that does not exist holds nothing
		}
		if name, err := filepath.Rel(base, target); err == nil && filepath.IsLocal(name) {
			return Place{Root: base, Name: name}, nil
		}
	}
	return Place{}, fmt.Errorf("%w: path %s leads to %s, which is not below %s; allow it with --files", weir.ErrInvalid, path, target, strings.Join(roots, " or "))
}

// FileError words an error of the file system by the path that the user knows. What the
// user of this process may not do is ErrInvalid: trying again does not help.
func FileError(what, path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %s %s: %w for the worker's user", weir.ErrInvalid, what, path, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// refused reports whether err is FileError's of a missing permission.
func refused(err error) bool {
	return errors.Is(err, weir.ErrInvalid) && errors.Is(err, fs.ErrPermission)
}

// followLinks resolves the links in the part of an absolute path that exists.
func followLinks(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return target, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("%w: %s is a link that leads nowhere", weir.ErrInvalid, path)
	} else if err == nil { // made meanwhile, by another subtask of a sink
		return followLinks(path)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	if target, err = followLinks(parent); err != nil {
		return "", err
	}
	return filepath.Join(target, filepath.Base(path)), nil
}

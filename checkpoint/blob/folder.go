package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir"
	"weir/checkpoint/killpoint"
)

const (
	// tempDir holds objects in the making; no key can name it, '~' is no key character.
	tempDir = ".weir~tmp"
	// races bounds how often a put makes its directories again because a concurrent
	// delete removed them as empty.
	races = 100
)

// A Folder keeps each object in a file below its root. Several processes may use one
// root at the same time.
type Folder struct{ root string }

// OpenFolder returns the store below root, a directory that exists and can be written.
func OpenFolder(root string) (*Folder, error) {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("storage folder %s does not exist; create it or name another: %w", root, weir.ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("storage folder %s: %w", root, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: storage folder %s is a file, not a directory", weir.ErrInvalid, root)
	}
	s := &Folder{root: root}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("storage folder %s cannot be written: %w", root, explain(err))
	}
	s.sweep(time.Now().Add(-leftAfter))
	return s, nil
}

// prepare makes the hidden directory and sees that files can be made there.
func (s *Folder) prepare() error {
	if err := os.Mkdir(s.temp(), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(s.temp(), "probe-")
	if err != nil {
		return err
	}
	_ = syncDir(filepath.Dir(s.root)) // where the root is new; it may be nobody's to read
	return errors.Join(f.Close(), os.Remove(f.Name()), syncDir(s.root))
}

// sweep removes what killed processes left in the making. It does what it can: a
// file that stays costs space only.
func (s *Folder) sweep(before time.Time) {
	left, err := s.Unfinished(context.Background(), before)
	if err != nil {
		return
	}
	for _, u := range left {
		_ = s.Abandon(context.Background(), u)
	}
}

// Unfinished implements Cleaner: files in the making.
func (s *Folder) Unfinished(ctx context.Context, before time.Time) ([]Upload, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.temp())
	if missing(err) {
		return nil, s.away()
	}
	if err != nil {
		return nil, fmt.Errorf("list unfinished objects: %w", err)
	}
	var found []Upload
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			found = append(found, Upload{ID: e.Name(), Began: info.ModTime()})
		}
	}
	return found, nil
}

// Abandon implements Cleaner.
func (s *Folder) Abandon(_ context.Context, u Upload) error {
	if err := os.Remove(filepath.Join(s.temp(), filepath.Base(u.ID))); err != nil && !missing(err) {
		return fmt.Errorf("remove unfinished object: %w", err)
	}
	return nil
}

func (s *Folder) temp() string           { return filepath.Join(s.root, tempDir) }
func (s *Folder) file(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

// Put implements Store.
func (s *Folder) Put(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, key, r, os.Rename)
}

// PutIfAbsent implements Store.
func (s *Folder) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, key, r, os.Link)
}

func (s *Folder) put(ctx context.Context, key string, r io.Reader, publish func(from, to string) error) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	temp, err := s.write(ctx, r)
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, explain(err))
	}
	defer func() { _ = os.Remove(temp) }() // after a rename there is nothing to remove
	killpoint.Here("within-put")
	err = s.publish(temp, key, publish)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("put object %s: %w", key, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, explain(err))
	}
	return nil
}

// write puts the bytes of r into a synced file in the hidden directory.
func (s *Folder) write(ctx context.Context, r io.Reader) (name string, err error) {
	f, err := os.CreateTemp(s.temp(), "put-")
	if missing(err) {
		return "", s.away()
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = io.Copy(f, contextReader{ctx, r})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	return f.Name(), errors.Join(err, f.Close())
}

// publish gives the file its key's name and syncs the directories above it. All of
// them, each time: another process may have made one and died before it had synced it;
// and one that is synced already costs next to nothing.
func (s *Folder) publish(temp, key string, publish func(from, to string) error) error {
	to := s.file(key)
	for try := 1; ; try++ {
		if err := s.mkdir(path.Dir(key)); err != nil {
			return err
		}
		err := publish(temp, to)
		if errors.Is(err, fs.ErrNotExist) && try < races {
			continue // a delete took the directory, which was empty
		}
		if err != nil {
			return err
		}
		break
	}
	for dir := path.Dir(key); ; dir = path.Dir(dir) {
		if err := syncDir(s.file(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // what does not exist was deleted, and the object with it
		}
		if dir == "." {
			return nil
		}
	}
}

// mkdir makes the directory of a key, and never the root.
func (s *Folder) mkdir(dir string) error {
	for try := 1; dir != "."; try++ {
		err := os.Mkdir(s.file(dir), 0o777)
		if errors.Is(err, fs.ErrNotExist) && try < races {
			if err := s.mkdir(path.Dir(dir)); err != nil {
				return err
			}
			continue
		}
		info, e := os.Stat(s.file(dir))
		switch {
		case errors.Is(err, fs.ErrExist) && e == nil && info.IsDir():
			return nil
		case errors.Is(err, fs.ErrExist) && errors.Is(e, fs.ErrNotExist) && try < races:
			continue // a delete took it meanwhile
		case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("%w: key %s is an object or below one, not a folder", weir.ErrInvalid, dir)
		}
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements Store.
func (s *Folder) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := errors.Join(checkRange(key, offset), ctx.Err()); err != nil {
		return nil, err
	}
	f, err := os.Open(s.file(key))
	if err == nil {
		if info, e := f.Stat(); e != nil || info.IsDir() {
			err = errors.Join(fs.ErrNotExist, e, f.Close())
		}
	}
	if missing(err) {
		return nil, s.notFound(key)
	}
	if err != nil {
		return nil, fmt.Errorf("get object %s: %w", key, err)
	}
	if length < 0 {
		length = 1<<63 - 1 - offset
	}
	return readCloser{contextReader{ctx, io.NewSectionReader(f, offset, length)}, f}, nil
}

// Stat implements Store.
func (s *Folder) Stat(ctx context.Context, key string) (int64, error) {
	if err := errors.Join(CheckKey(key), ctx.Err()); err != nil {
		return 0, err
	}
	info, err := os.Stat(s.file(key))
	if missing(err) || err == nil && info.IsDir() {
		return 0, s.notFound(key)
	}
	if err != nil {
		return 0, fmt.Errorf("stat object %s: %w", key, err)
	}
	return info.Size(), nil
}

// List implements Store.
func (s *Folder) List(ctx context.Context, prefix string, f func(key string, size int64) bool) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	dir := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		dir = prefix[:i]
	}
	_, err := s.walk(ctx, dir, prefix, f)
	if err == nil && !s.there() {
		err = s.away()
	}
	if err != nil {
		return fmt.Errorf("list objects %s: %w", prefix, err)
	}
	return nil
}

// walk calls f for the objects below dir in key order; it returns false when f did.
func (s *Folder) walk(ctx context.Context, dir, prefix string, f func(string, int64) bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	entries, err := os.ReadDir(s.file(dir))
	if missing(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// In key order a directory stands where its name with the slash does.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		key := path.Join(dir, e.Name())
		more := true
		switch {
		case !plain(e.Name()):
		case e.IsDir():
			if below := key + "/"; strings.HasPrefix(below, prefix) || strings.HasPrefix(prefix, below) {
				more, err = s.walk(ctx, key, prefix, f)
			}
		case strings.HasPrefix(key, prefix):
			info, e := e.Info()
			if missing(e) {
				continue // deleted meanwhile
			}
			if err = e; err == nil {
				more = f(key, info.Size())
			}
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// Delete implements Store. Directories left empty go too.
func (s *Folder) Delete(ctx context.Context, key string) error {
	if err := errors.Join(CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	file := s.file(key)
	if info, err := os.Lstat(file); missing(err) && !s.there() {
		return fmt.Errorf("delete object %s: %w", key, s.away())
	} else if missing(err) || err == nil && info.IsDir() {
		return nil
	}
	if err := os.Remove(file); err != nil && !missing(err) {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	s.prune(path.Dir(key))
	return nil
}

// prune removes a directory, if it is empty, and those above it that it leaves empty.
func (s *Folder) prune(dir string) {
	for dir != "." && os.Remove(s.file(dir)) == nil {
		dir = path.Dir(dir)
	}
}

// there reports whether the root is the folder that was opened: it has our directory
// of temporary files. A disk that is not mounted leaves another one in its place, which
// says nothing about objects and must not get any.
func (s *Folder) there() bool {
	info, err := os.Stat(s.temp())
	return err == nil && info.IsDir()
}

// away is no weir.ErrNotFound: the objects may be there once the folder is back.
func (s *Folder) away() error {
	return fmt.Errorf("storage folder %s is away: it has no directory %s; mount it again, or restart weir if that was deleted", s.root, tempDir)
}

// notFound says that there is no such object, if the folder itself is there.
func (s *Folder) notFound(key string) error {
	if !s.there() {
		return fmt.Errorf("object %s: %w", key, s.away())
	}
	return notFound(key)
}

// missing reports whether err says that there is no such file; ENOTDIR says so too.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// explain adds what to do about a disk's refusal.
func explain(err error) error {
	var hint string
	switch {
	case errors.Is(err, syscall.ENOSPC):
		hint = "the disk is full; make room"
	case errors.Is(err, syscall.EDQUOT):
		hint = "the quota is used up; make room, or raise it"
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is mounted read-only; mount it writable, or name another folder"
	case errors.Is(err, fs.ErrPermission):
		hint = fmt.Sprintf("user %d may not write there; change the folder's owner or mode", os.Geteuid())
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

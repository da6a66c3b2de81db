package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"weir"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	open, secret := filepath.Join(base, "open"), filepath.Join(base, "secret")
	for _, dir := range []string{filepath.Join(open, "in"), secret} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"away": secret, "inner": filepath.Join(open, "in"), "dangling": filepath.Join(base, "gone")} {
		if err := os.Symlink(target, filepath.Join(open, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		open: ".", open + "/in": "in", open + "/new/deep": "new/deep", open + "/inner/x": "in/x",
		open + "/../secret": "", open + "/away": "", open + "/away/new": "", open + "/dangling": "", secret: "", open + "er": "",
	} {
		place, err := Locate([]string{filepath.Join(base, "missing"), open}, path)
		switch {
		case want == "" && !errors.Is(err, weir.ErrInvalid):
			t.Errorf("%s: located %+v, %v; want ErrInvalid", path, place, err)
		case want != "" && (err != nil || place != Place{Root: open, Name: want}):
			t.Errorf("%s: located %+v, %v; want %s", path, place, err, want)
		}
	}
	if _, err := Locate(nil, open); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("without roots: %v", err)
	}
}

func TestFileError(t *testing.T) {
	t.Parallel()
	denied := FileError("open", "/data/a.csv", &fs.PathError{Op: "openat", Path: "data/a.csv", Err: syscall.EACCES})
	if got, want := Message(denied), "open /data/a.csv: permission denied for the worker's user"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	busy := FileError("open", "/data/a.csv", &fs.PathError{Op: "openat", Path: "data/a.csv", Err: syscall.EMFILE})
	if got, want := Message(busy), "open /data/a.csv: too many open files"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	task := &Task{}
	if task.taskError(denied).Restart || !task.taskError(busy).Restart || !task.taskError(syscall.EACCES).Restart {
		t.Error("a missing permission of a table's file ends the job, nothing else does")
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("%w: table s: %w", weir.ErrInvalid, fmt.Errorf("%w: no file matches path invalid: x", weir.ErrNotFound))
	if got, want := Message(err), "table s: no file matches path invalid: x"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

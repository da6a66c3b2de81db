package exec

import (
	"errors"
	"os"
	"path/filepath"
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

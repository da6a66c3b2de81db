package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLineCounter: in any order of files and offsets the line is what LineOf counts.
func TestLineCounter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bodies := map[string]string{
		filepath.Join(dir, "a"): strings.Repeat("x\n", 100_000),
		filepath.Join(dir, "b"): strings.Repeat("\n", 10) + "no line feed",
	}
	for path, body := range bodies {
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := lineCounter{roots: []string{dir}}
		defer c.close()
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			path := filepath.Join(dir, rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "file"))
			offset := rapid.IntRange(0, len(bodies[path])).Draw(t, "offset")
			want := int64(strings.Count(bodies[path][:offset], "\n")) + 1
			if got := c.at(path, int64(offset)); got != want {
				t.Fatalf("%s:%d is in line %d, not %d", path, offset, want, got)
			}
		}
		if c.at(filepath.Join(dir, "gone"), 1) != 0 || c.at(filepath.Join(dir, "b"), 1000) != 0 || c.at("/etc/hostname", 0) != 0 {
			t.Fatal("a line of a file that cannot be read")
		}
	})
}

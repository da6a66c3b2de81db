package sink

import (
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// The subtasks of a sink, in several processes, make its folder at the same moment: none
// fails because another one was faster.
func TestFolderMadeTogether(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 60 {
		path := filepath.Join(root, "a", string(rune('a'+i%26)), "deep", string(rune('0'+i/26)))
		var g errgroup.Group
		for range 4 {
			g.Go(func() error {
				f, err := openFolder([]string{root}, path)
				if err != nil {
					return err
				}
				return f.root.Close()
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

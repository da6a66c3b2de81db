package web_test

import (
	"io/fs"
	"testing"

	"weir/web"
)

// A build leaves nothing of the one before: the binary would carry it along.
func TestOneBuild(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"assets/index-*.js", "assets/index-*.css"} {
		if names, err := fs.Glob(web.Files(), pattern); err != nil || len(names) > 1 {
			t.Errorf("dist holds %v of more builds than one, %v: make build builds it afresh", names, err)
		}
	}
}

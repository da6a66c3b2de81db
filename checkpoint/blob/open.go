package blob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir"
)

// Open returns the store that a URL names: file:///DIR or s3://BUCKET/PREFIX. Other
// schemes are refused by name.
func Open(url string) (Store, error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return nil, fmt.Errorf("%w: storage %q is no URL; give file:///DIR or s3://BUCKET/PREFIX", weir.ErrInvalid, url)
	}
	switch scheme {
	case "file":
		if rest == "" || !filepath.IsAbs(rest) {
			return nil, fmt.Errorf("%w: storage %q: the folder is not absolute; give file:///DIR", weir.ErrInvalid, url)
		}
		return OpenFolder(rest)
	case "s3":
		return openS3(url, os.Getenv)
	case "gs", "azblob":
		return nil, fmt.Errorf("%w: storage %s://…: %s is not supported by this version; give file:///DIR or s3://BUCKET/PREFIX", weir.ErrInvalid, scheme, scheme)
	}
	return nil, fmt.Errorf("%w: storage: scheme %q is unknown; give file:///DIR or s3://BUCKET/PREFIX", weir.ErrInvalid, scheme)
}

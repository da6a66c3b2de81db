// Package web embeds the dashboard as the build leaves it in dist. Before a build
// dist holds a placeholder page only, so that the Go code compiles without Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the dashboard's files: index.html, assets/… and swagger/… once
// built, placeholder.html always.
func Files() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

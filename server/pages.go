package server

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/openapi"
)

// getDocument answers the OpenAPI document.
func (s *Server) getDocument(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/json", openapi.Document())
}

const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Weir API</title>
<link rel="icon" href="/favicon.svg">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const docsStart = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#ui", deepLinking: true, tryItOutEnabled: true });
`

const docsAbsent = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Weir API</title></head>
<body><p>This binary was built without Swagger UI: <code>make build</code> puts it in. The document itself is at <a href="/openapi.json">/openapi.json</a>.</p></body>
</html>
`

// getDocs answers the page of Swagger UI.
func (s *Server) getDocs(c echo.Context) error {
	if _, err := fs.Stat(s.opts.Files, "swagger/swagger-ui-bundle.js"); err != nil {
		return c.HTML(http.StatusOK, docsAbsent)
	}
	return c.HTML(http.StatusOK, docsPage)
}

// getDocsFile answers a file of Swagger UI.
func (s *Server) getDocsFile(c echo.Context) error {
	name := param(c, "file")
	if name == "start.js" {
		return c.Blob(http.StatusOK, "text/javascript; charset=utf-8", []byte(docsStart))
	}
	if name == "" {
		return s.getDocs(c)
	}
	if !fs.ValidPath(name) || strings.Contains(name, "/") || !serveFile(c.Response(), c.Request(), s.opts.Files, "swagger/"+name) {
		return echo.ErrNotFound
	}
	return nil
}

// dashboard serves the dashboard's files; every other path is a page of it, which its
// own router shows.
func (s *Server) dashboard() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, Problem{Status: http.StatusMethodNotAllowed, Detail: "only the paths below /v1 take " + quoted(r.Method)})
			return
		}
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		if strings.HasPrefix(name, "assets/") {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // their names have a hash
		}
		if name != "" && fs.ValidPath(name) && serveFile(w, r, s.opts.Files, name) {
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		if path.Ext(name) != "" && !strings.HasPrefix(name, "jobs/") || !acceptsPage(r) {
			writeProblem(w, Problem{Status: http.StatusNotFound, Detail: "there is nothing at this path; / is the dashboard, /docs the API"})
			return
		}
		if !serveFile(w, r, s.opts.Files, "index.html") && !serveFile(w, r, s.opts.Files, "placeholder.html") {
			writeProblem(w, Problem{Status: http.StatusNotFound, Detail: "this binary was built without the dashboard; /docs is the API"})
		}
	})
}

func acceptsPage(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, "text/html") || strings.Contains(accept, "*/*")
}

// serveFile answers a file; false: there is none.
func serveFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	if err != nil || info.IsDir() {
		return false
	}
	body, err := fs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(body))
	return true
}

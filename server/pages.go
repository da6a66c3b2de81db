package server

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strconv"
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

// dashboard serves the dashboard's files and its pages. To a browser any other path
// is the dashboard too, which says that there is no such page.
func (s *Server) dashboard() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, Problem{Status: http.StatusMethodNotAllowed, Detail: "only the paths below /v1 take " + quoted(r.Method)})
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name != "" && fs.ValidPath(name) {
			if strings.HasPrefix(name, "assets/") {
				w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // their names have a hash
			}
			if serveFile(w, r, s.opts.Files, name) {
				return
			}
		}
		w.Header().Set("Cache-Control", "no-cache")
		status := http.StatusOK
		if !isPage(r.URL.Path) {
			status = http.StatusNotFound
		}
		if !acceptsPage(r, status) {
			writeProblem(w, Problem{Status: http.StatusNotFound, Detail: "there is nothing at this path; / is the dashboard, /docs the API"})
			return
		}
		s.page(w, r, status)
	})
}

// isPage reports whether the dashboard's router has a page at a path.
func isPage(urlPath string) bool {
	name := strings.TrimSuffix(strings.TrimPrefix(urlPath, "/"), "/")
	switch name {
	case "", "sql", "savepoints", "tables", "workers":
		return true
	}
	job, ok := strings.CutPrefix(name, "jobs/")
	return ok && job != "" && job != "." && job != ".." && !strings.Contains(job, "/")
}

// acceptsPage reports whether a request may be answered with HTML. Where there is no
// page only a browser's, which names it, may.
func acceptsPage(r *http.Request, status int) bool {
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "text/html") {
		return true
	}
	return status == http.StatusOK && (accept == "" || strings.Contains(accept, "*/*"))
}

// page answers the dashboard, whose router shows what the path names.
func (s *Server) page(w http.ResponseWriter, r *http.Request, status int) {
	body, err := fs.ReadFile(s.opts.Files, "index.html")
	if err != nil {
		body, err = fs.ReadFile(s.opts.Files, "placeholder.html")
	}
	if err != nil {
		writeProblem(w, Problem{Status: http.StatusNotFound, Detail: "this binary was built without the dashboard; /docs is the API"})
		return
	}
	if status == http.StatusOK {
		http.ServeContent(w, r, "index.html", time.Time{}, bytes.NewReader(body))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client may have gone
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

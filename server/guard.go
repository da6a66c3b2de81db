package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"weir"
)

// guard refuses what a foreign web page could have a browser send: requests by a name
// that may be made to point here (DNS rebinding), and requests of another origin.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY") // frame-ancestors, for what does not know it
		h.Set("Content-Security-Policy", "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "+
			"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		if why := s.foreign(r); why != "" {
			writeProblem(w, Problem{Status: http.StatusForbidden, Detail: why})
			return
		}
		if !isText(r.URL.Path) {
			writeProblem(w, Problem{Status: http.StatusBadRequest, Detail: "the path is not UTF-8 text"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign says why a request is refused, or nothing.
func (s *Server) foreign(r *http.Request) string {
	if !s.knownHost(r.Host) {
		return "this server is not known as " + quoted(r.Host) + ": use localhost or its IP address"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) || u.Scheme != "http" && u.Scheme != "https" {
			return "a page of " + quoted(origin) + " may not use this server"
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default:
		// Following a link to the dashboard is no request of the other page.
		link := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && !strings.HasPrefix(r.URL.Path, "/v1")
		if !link {
			return "a page of another site may not use this server (Sec-Fetch-Site: " + site + ")"
		}
	}
	return ""
}

// knownHost reports whether a Host header names this server: an address or localhost,
// which no stranger's DNS can point here, or a name that it was given.
func (s *Server) knownHost(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(s.opts.Hosts, func(h string) bool { return h == "*" || strings.EqualFold(h, host) })
}

// isText reports whether s can be a name anywhere.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func quoted(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return "“" + strings.ToValidUTF8(s, "�") + "”"
}

// recovering answers for a handler that panicked; the stack goes to the log.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(p)
			}
			s.deps.Logger.Error("request handler failed", "method", r.Method, "path", r.URL.Path, "err", p, "stack", string(debug.Stack()))
			writeProblem(w, Problem{Status: http.StatusInternalServerError, Detail: internal})
		}()
		next.ServeHTTP(w, r)
	})
}

// validName reports whether s is what jobs and savepoints may be called.
func validName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '_' || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// validJobName is validName for jobs, whose ids must not look like names.
func validJobName(s string) bool { return validName(s) && !strings.HasPrefix(s, "job_") }

// refText names a snapshot as users write it, seen from a job.
func refText(of weir.JobID, ref weir.SnapshotRef) string {
	switch {
	case ref.IsZero():
		return "nothing"
	case ref.Job == of:
		return "checkpoint:" + itoa(int64(ref.Checkpoint))
	}
	return "checkpoint:" + string(ref.Job) + "/" + itoa(int64(ref.Checkpoint))
}

package transport

import (
	"fmt"
	"strings"

	"weir"
)

// checkSchemes refuses a URL of something else than NATS, which the client library would
// take for one. opts.URL need not parse.
func checkSchemes(opts Options) error {
	for one := range strings.SplitSeq(opts.URL, ",") {
		name, rest, ok := strings.Cut(strings.TrimSpace(one), "://")
		if !ok || strings.Contains(name, "@") { // nats:// by itself, or the end of a password that holds a comma
			continue
		}
		switch strings.ToLower(name) {
		case "nats", "tls", "ws", "wss":
			continue
		}
		right := "nats"
		switch strings.ToLower(name) {
		case "https":
			right = "tls"
		}
		if _, host, ok := cutLast(rest, "@"); ok {
			rest = host
		}
		return fmt.Errorf("%w: NATS at %s%s: %s:// is not how NATS is spoken to: write %s://%s (nats:// or tls://; ws:// or wss:// where it listens for websockets)",
			weir.ErrInvalid, redacted(opts.URL), opts.Security.Names.in("URL"), name, right, rest)
	}
	return nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// redacted leaves out of a list of URLs who the user is: a password, or a token. It
// need not parse, and a password may hold a comma.
func redacted(urls string) string {
	all := strings.Split(urls, ",")
	last := len(all) // the part that names the user's host
	for i := len(all) - 1; i >= 0; i-- {
		one := all[i]
		if at := strings.LastIndex(one, "@"); at >= 0 {
			last = i
			all[i] = scheme(one[:at]) + one[at+1:]
		} else if last < len(all) && !plainHost(one) { // the beginning of a user with a comma
			all[i] = scheme(one) + all[last][strings.Index(all[last], "://")+3:]
			all = append(all[:i+1], all[last+1:]...)
			last = len(all)
		}
	}
	return strings.Join(all, ",")
}

// scheme is that of a URL, or of the beginning of one.
func scheme(one string) string {
	name, _, ok := strings.Cut(one, "://")
	if !ok {
		name = "nats"
	}
	return strings.TrimSpace(name) + "://"
}

// plainHost reports whether a URL names a port, or nothing that may be a secret.
func plainHost(one string) bool {
	_, address, ok := strings.Cut(one, "://")
	if !ok {
		address = one
	}
	_, port, ok := strings.Cut(address, ":")
	return !ok || strings.Trim(port, "0123456789") == ""
}

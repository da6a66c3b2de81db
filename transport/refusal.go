package transport

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// advice says what is wrong with a connection that was not made, and what to do.
func (c *complaints) advice(err error) string {
	in := c.who.Names.in
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	text := err.Error()
	switch {
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAccountAuthExpired):
		return "the credentials" + in("CredsFile") + " have expired: give new ones"
	case errors.Is(err, nats.ErrAuthRevoked):
		return "the credentials" + in("CredsFile") + " were revoked: give new ones"
	case errors.Is(err, nats.ErrAuthorization):
		fields := c.who.set("User", "Password", "PasswordFile", "Token", "TokenFile", "NKeyFile", "CredsFile")
		if len(fields) == 0 {
			fields = []string{"URL", "User", "PasswordFile", "TokenFile", "NKeyFile", "CredsFile"}
		}
		return "the server does not take these credentials, or wants some: check user, password, token, nkey or creds" + in(fields...) + " against its configuration"
	case errors.Is(err, nats.ErrNkeysNotSupported):
		return "the server has no user with an nkey or a JWT" + in(c.who.set("NKeyFile", "CredsFile")...) + ": use another way, or configure it"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "TLS is asked for (a CA, a certificate or tls://), and the server offers none: configure it there, or leave it out here" + in("CAFile", "CertFile", "URL")
	case errors.Is(err, nats.ErrSecureConnRequired):
		return "the server wants TLS: give the CA file of its certificate" + in("CAFile")
	case errors.As(err, &unknown):
		return "the server's certificate is signed by nobody who is trusted here: give the CA file it was signed with" + in("CAFile")
	case errors.As(err, &name):
		return "the server's certificate is for another name: connect by a name that it holds, or issue one for this address" + in("URL")
	case errors.As(err, &invalid):
		return "the server's certificate is not valid (expired, or not for a server): renew it"
	case strings.Contains(text, "certificate required"), strings.Contains(text, "tls: bad certificate"), strings.Contains(text, "unknown certificate authority"), strings.Contains(text, "tls: unknown certificate"), strings.Contains(text, "closed by remote after TLS handshake"):
		return "the server verifies clients and does not take this one's certificate: give a certificate and key that are signed by the CA it trusts" + in("CertFile", "KeyFile")
	}
	return "is it running, and is the URL right?" + in("URL")
}

// unwelcome reports an error that no try soon will mend by itself.
func unwelcome(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// complainEvery is how often the same complaint is logged.
const complainEvery = 30 * time.Second

// complaintsKept bounds what is remembered as said.
const complaintsKept = 256

// complaints log each thing once in a while, however often it happens: a connection
// that is refused tries several times a second.
type complaints struct {
	log *slog.Logger
	who Security // who connects

	mu struct {
		sync.Mutex
		said map[string]time.Time
	}
}

func newComplaints(log *slog.Logger, who Security) *complaints {
	c := &complaints{log: log, who: who}
	c.mu.said = map[string]time.Time{}
	return c
}

// steady leaves out of an error what differs from try to try: the port at our end.
func steady(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if _, to, ok := strings.Cut(w, "->"); ok {
			words[i] = to
		}
	}
	return strings.Join(words, " ")
}

// due reports whether text is to be said now.
func (c *complaints) due(text string, now time.Time) bool {
	text = steady(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, said := c.mu.said[text]; said && now.Sub(at) < complainEvery {
		return false
	}
	if len(c.mu.said) >= complaintsKept {
		clear(c.mu.said)
	}
	c.mu.said[text] = now
	return true
}

// refused logs that NATS took no connection.
func (c *complaints) refused(err error) {
	if c.due(err.Error(), time.Now()) {
		c.log.Error("nats refuses the connection; it is tried again", "err", err, "advice", c.advice(err))
	}
}

// denied logs that a user may not use a subject.
func (c *complaints) denied(err error) {
	verb, subject := violation(err)
	if c.due(verb+" "+subject, time.Now()) {
		c.log.Error("nats forbids a subject to this user; its permissions have to allow it (docs/nats.md)", "may_not", verb, "subject", subject)
	}
}

// violation reads who may not do what out of what the NATS server says.
func violation(err error) (verb, subject string) {
	text := err.Error()
	verb = "publish"
	if strings.Contains(text, "for Subscription") {
		verb = "subscribe"
	}
	_, rest, _ := strings.Cut(text, `"`)
	subject, _, _ = strings.Cut(rest, `"`)
	return verb, subject
}

// errDenied says that a subject is forbidden.
func errDenied(subject string) error {
	return fmt.Errorf("NATS forbids this user to publish to %s: allow it in its permissions (docs/nats.md)", subject)
}

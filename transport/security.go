package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
)

// Security says whom to trust as a NATS server, and as whom to connect. Files are read
// anew for each connection, so what was rotated counts from the next one on (but the
// key of an nkey: there the process has to be started again). The zero value is
// a connection without TLS, unless the server wants it, as whom the URL says.
type Security struct {
	CAFile            string // PEM: signed the servers' certificates; "": the system's
	CertFile, KeyFile string // PEM: this process, for servers that verify clients

	// One way at most of saying who connects.
	User         string // with Password or PasswordFile
	Password     string
	PasswordFile string
	Token        string
	TokenFile    string
	NKeyFile     string // holds the seed of a user
	CredsFile    string // JWT and seed of a user, as nsc writes them

	Names Names // of these fields, and of Options.URL, for errors
}

// validate reports everything that contradicts itself or cannot be read.
func (s Security) validate() error {
	errs := append(s.contradictions(), s.unreadable()...)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: NATS: %w", weir.ErrInvalid, errors.Join(errs...))
}

func (s Security) contradictions() []error {
	var errs []error
	in := s.Names.in
	if (s.CertFile == "") != (s.KeyFile == "") {
		errs = append(errs, fmt.Errorf("a client certificate and its key go together%s: give both files, or none", in("CertFile", "KeyFile")))
	}
	if s.Password != "" && s.PasswordFile != "" {
		errs = append(errs, fmt.Errorf("a password and a password file are given%s: choose one", in("Password", "PasswordFile")))
	}
	if s.Token != "" && s.TokenFile != "" {
		errs = append(errs, fmt.Errorf("a token and a token file are given%s: choose one", in("Token", "TokenFile")))
	}
	password := s.Password != "" || s.PasswordFile != ""
	if s.User != "" && !password {
		errs = append(errs, fmt.Errorf("user %q%s has no password: give a password file%s", s.User, in("User"), in("PasswordFile")))
	}
	if s.User == "" && password {
		errs = append(errs, fmt.Errorf("a password is given%s, but no user%s", in(s.set("Password", "PasswordFile")...), in("User")))
	}
	if ways := s.ways(); len(ways) > 1 {
		errs = append(errs, fmt.Errorf("%s are given: one way of saying who connects is enough, choose one", strings.Join(ways, " and ")))
	}
	return errs
}

// set leaves out the fields that are empty.
func (s Security) set(fields ...string) []string {
	values := map[string]string{
		"User": s.User, "Password": s.Password, "PasswordFile": s.PasswordFile, "Token": s.Token, "TokenFile": s.TokenFile,
		"NKeyFile": s.NKeyFile, "CredsFile": s.CredsFile,
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return values[f] == "" })
}

// ways names the ways in which s says who connects.
func (s Security) ways() []string {
	var ways []string
	for _, w := range []struct {
		name   string
		fields []string
	}{
		{"a user and password", []string{"User", "Password", "PasswordFile"}},
		{"a token", []string{"Token", "TokenFile"}},
		{"an nkey file", []string{"NKeyFile"}},
		{"a creds file", []string{"CredsFile"}},
	} {
		if given := s.set(w.fields...); len(given) > 0 {
			ways = append(ways, w.name+s.Names.in(given...))
		}
	}
	return ways
}

// unreadable tries every file, as a connection does later.
func (s Security) unreadable() []error {
	var errs []error
	for _, f := range []struct {
		field, path string
		check       func() error
	}{
		{"CAFile", s.CAFile, func() error { _, err := authorities(s.CAFile); return err }},
		{"PasswordFile", s.PasswordFile, func() error { _, err := secret("password", s.PasswordFile); return err }},
		{"TokenFile", s.TokenFile, func() error { _, err := secret("token", s.TokenFile); return err }},
		{"NKeyFile", s.NKeyFile, func() error { _, err := nkeyOption(s.NKeyFile); return err }},
		{"CredsFile", s.CredsFile, func() error { return checkCreds(s.CredsFile, time.Now()) }},
	} {
		if f.path == "" {
			continue
		}
		if err := f.check(); err != nil {
			errs = append(errs, s.Names.about(err, f.field))
		}
	}
	if s.CertFile != "" && s.KeyFile != "" {
		if _, err := clientCertificate(s.CertFile, s.KeyFile, time.Now()); err != nil {
			errs = append(errs, s.Names.about(err, "CertFile", "KeyFile"))
		}
	}
	return errs
}

// exposed warns of secrets that every user of this machine may read.
func (s Security) exposed(log *slog.Logger) {
	for _, path := range []string{s.PasswordFile, s.TokenFile, s.NKeyFile, s.CredsFile, s.KeyFile} {
		if info, err := os.Stat(path); path != "" && err == nil && info.Mode().Perm()&0o004 != 0 {
			log.Warn("every user of this machine may read a secret: chmod o-r", "file", path)
		}
	}
}

// options give a connection its security.
func (s Security) options(say *complaints) ([]nats.Option, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	var opts []nats.Option
	if s.CAFile != "" || s.CertFile != "" {
		opts = append(opts, s.tls())
	}
	switch {
	case s.User != "":
		password := reread(say, "password", s.PasswordFile, s.Password)
		opts = append(opts, nats.UserInfoHandler(func() (string, string) { return s.User, password() }))
	case s.Token != "" || s.TokenFile != "":
		opts = append(opts, nats.TokenHandler(reread(say, "token", s.TokenFile, s.Token)))
	case s.NKeyFile != "":
		opt, err := nkeyOption(s.NKeyFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, opt)
	case s.CredsFile != "":
		opts = append(opts, nats.UserCredentials(s.CredsFile))
	}
	return opts, nil
}

func (s Security) tls() nats.Option {
	var cert nats.TLSCertHandler
	var ca nats.RootCAsHandler
	if s.CertFile != "" {
		cert = func() (tls.Certificate, error) { return clientCertificate(s.CertFile, s.KeyFile, time.Now()) }
	}
	if s.CAFile != "" {
		ca = func() (*x509.CertPool, error) { return authorities(s.CAFile) }
	}
	return nats.ClientTLSConfig(cert, ca)
}

// reread returns a function that reads a secret for each connection. Where the file
// cannot be read in the middle of a rotation, the last value serves.
func reread(say *complaints, what, path, value string) func() string {
	var mu sync.Mutex
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if path != "" {
			now, err := secret(what, path)
			if err != nil {
				if say.due(err.Error(), time.Now()) {
					say.log.Warn("nats: the last value read is used once more", "err", err)
				}
				return value
			}
			value = now
		}
		return value
	}
}

// secret reads a file of one line.
func secret(what, path string) (string, error) {
	b, err := read(what+" file", path)
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(b), "\r\n")
	switch {
	case line == "":
		return "", fmt.Errorf("%s file %s is empty", what, path)
	case strings.ContainsAny(line, "\r\n"):
		return "", fmt.Errorf("%s file %s has several lines: want the %s alone", what, path, what)
	}
	return line, nil
}

func read(what, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	var failed *fs.PathError
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %s does not exist", what, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s %s: this process (user id %d) may not read it: change its owner or mode", what, path, os.Geteuid())
	case errors.As(err, &failed):
		err = failed.Err
	}
	return nil, fmt.Errorf("%s %s: %w", what, path, err)
}

func authorities(path string) (*x509.CertPool, error) {
	b, err := read("CA file", path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("CA file %s holds no certificate in PEM", path)
	}
	return pool, nil
}

func clientCertificate(certFile, keyFile string, now time.Time) (tls.Certificate, error) {
	certPEM, err := read("client certificate", certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := read("client key", keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	if block, _ := pem.Decode(certPEM); block == nil {
		return tls.Certificate{}, fmt.Errorf("client certificate %s is no PEM", certFile)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("client certificate %s and key %s do not fit together: %w", certFile, keyFile, err)
	}
	switch {
	case now.After(pair.Leaf.NotAfter):
		return tls.Certificate{}, fmt.Errorf("client certificate %s expired at %s: renew it", certFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return tls.Certificate{}, fmt.Errorf("client certificate %s is valid from %s on: is this machine's clock right?", certFile, pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return pair, nil
}

// nkeyOption says nothing of what the file holds, should it be something else.
func nkeyOption(path string) (nats.Option, error) {
	if _, err := read("nkey file", path); err != nil {
		return nil, err
	}
	opt, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, fmt.Errorf("nkey file %s holds no seed of a user: want a line that begins with SU", path)
	}
	return opt, nil
}

// checkCreds tells a creds file that will not do before a server does.
func checkCreds(path string, now time.Time) error {
	b, err := read("creds file", path)
	if err != nil {
		return err
	}
	wrong := fmt.Errorf("creds file %s does not hold the JWT and the seed of a user: want what nsc generate creds writes", path)
	token, ok := section(b, "NATS USER JWT")
	if _, seeded := section(b, "USER NKEY SEED"); !ok || !seeded {
		return wrong
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return wrong
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &c) != nil {
		return wrong
	}
	if end := time.Unix(c.Expires, 0); c.Expires != 0 && now.After(end) {
		return fmt.Errorf("creds file %s expired at %s: make new ones", path, end.UTC().Format(time.RFC3339))
	}
	return nil
}

// section is the text between the lines BEGIN name and END name.
func section(b []byte, name string) (string, bool) {
	_, rest, ok := bytes.Cut(b, []byte("BEGIN "+name))
	if !ok {
		return "", false
	}
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	text, _, ok := bytes.Cut(rest, []byte("---"))
	return strings.TrimSpace(string(text)), ok
}

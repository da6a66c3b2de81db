package transport_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// secret is every password and token that is right; what is wrong begins with it too.
const secret = "S3cret-of-weir"

// A diary keeps what is logged. No secret may be in it when its test ends.
type diary struct {
	mu struct {
		sync.Mutex
		text bytes.Buffer
	}
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.text.String()
}

func (d *diary) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newDiary checks at the end of the test that nobody wrote a secret down.
func newDiary(t *testing.T, secrets ...string) *diary {
	t.Helper()
	d := &diary{}
	t.Cleanup(func() { silent(t, d.String(), secrets...) })
	return d
}

func silent(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, s := range append(secrets, secret, "PRIVATE KEY") {
		if strings.Contains(text, s) {
			t.Errorf("%q is in\n%s", s, text)
		}
	}
}

// guarded starts a NATS server of those options.
func guarded(t *testing.T, opts server.Options) (url string, ns *server.Server) {
	t.Helper()
	opts.NoLog = true
	if opts.TLSConfig != nil {
		opts.TLS, opts.TLSTimeout = true, transporttest.Patience.Seconds()
	}
	opts.AuthTimeout = transporttest.Patience.Seconds()
	ns = natsServer(t, opts)
	return "nats://" + ns.Addr().String(), ns
}

// file writes a file that only its owner may read.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// enter tries to connect and expects what err says; "": it works.
func enter(t *testing.T, url string, s transport.Security, want string) {
	t.Helper()
	d := newDiary(t)
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: s, Log: d.log()})
	if err == nil {
		defer c.Close()
		serve(t, c, "life", echo)
		pinged(t, c, "life")
	}
	switch {
	case want == "" && err != nil:
		t.Errorf("%v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %s", err, want)
	case err != nil:
		silent(t, err.Error())
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, other := transporttest.NewAuthority(t), transporttest.NewAuthority(t)
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	cert, key := ours.Client(t, "weir", later)
	foreignCert, foreignKey := other.Client(t, "weir", later)
	oldCert, oldKey := ours.Client(t, "old", before)
	verify := func(c *tls.Config) *tls.Config {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		return c
	}
	plain := ours.Server(t, "127.0.0.1", later)
	strict := verify(ours.Server(t, "127.0.0.1", later))
	for name, c := range map[string]struct {
		server *tls.Config
		client transport.Security
		want   string
	}{
		"the CA that signed":             {plain, transport.Security{CAFile: ours.File}, ""},
		"another CA":                     {plain, transport.Security{CAFile: other.File}, "signed by nobody who is trusted here"},
		"no CA where TLS is wanted":      {plain, transport.Security{}, "give the CA file it was signed with"},
		"a CA where TLS is not there":    {nil, transport.Security{CAFile: ours.File}, "the server offers none"},
		"a certificate for a name":       {ours.Server(t, "nats.example", later), transport.Security{CAFile: ours.File}, "for another name"},
		"a certificate that expired":     {ours.Server(t, "127.0.0.1", before), transport.Security{CAFile: ours.File}, "is not valid (expired"},
		"a client without certificate":   {strict, transport.Security{CAFile: ours.File}, "does not take this one's certificate"},
		"a client of the CA":             {strict, transport.Security{CAFile: ours.File, CertFile: cert, KeyFile: key}, ""},
		"a client of another CA":         {strict, transport.Security{CAFile: ours.File, CertFile: foreignCert, KeyFile: foreignKey}, "does not take this one's certificate"},
		"a client that need not show":    {plain, transport.Security{CAFile: ours.File, CertFile: cert, KeyFile: key}, ""},
		"a client whose paper expired":   {strict, transport.Security{CAFile: ours.File, CertFile: oldCert, KeyFile: oldKey}, "expired at"},
		"a certificate with a wrong key": {strict, transport.Security{CAFile: ours.File, CertFile: cert, KeyFile: foreignKey}, "do not fit together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := guarded(t, server.Options{TLSConfig: c.server, TLSVerify: c.server == strict})
			enter(t, url, c.client, c.want)
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	seed, public := nkey(t)
	otherSeed, _ := nkey(t)
	op := newOperator(t)
	wrong := "check user, password, token, nkey or creds"
	user := server.Options{Username: "weir", Password: secret}
	token := server.Options{Authorization: secret}
	keys := server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}
	for name, c := range map[string]struct {
		server server.Options
		client transport.Security
		want   string
	}{
		"password":                  {user, transport.Security{User: "weir", Password: secret}, ""},
		"password file":             {user, transport.Security{User: "weir", PasswordFile: file(t, secret+"\n")}, ""},
		"password file of Windows":  {user, transport.Security{User: "weir", PasswordFile: file(t, secret+"\r\n")}, ""},
		"wrong password":            {user, transport.Security{User: "weir", PasswordFile: file(t, secret+"2")}, wrong},
		"wrong user":                {user, transport.Security{User: "bob", PasswordFile: file(t, secret)}, wrong},
		"nobody":                    {user, transport.Security{}, wrong},
		"token":                     {token, transport.Security{Token: secret}, ""},
		"token file":                {token, transport.Security{TokenFile: file(t, secret+"\n")}, ""},
		"wrong token":               {token, transport.Security{TokenFile: file(t, secret+"2")}, wrong},
		"nkey":                      {keys, transport.Security{NKeyFile: file(t, seed)}, ""},
		"another nkey":              {keys, transport.Security{NKeyFile: file(t, otherSeed)}, wrong},
		"nkey where there are none": {server.Options{}, transport.Security{NKeyFile: file(t, seed)}, "has no user with an nkey"},
		"creds":                     {op.options, transport.Security{CredsFile: op.creds(t, op.account, time.Time{})}, ""},
		"creds of another account":  {op.options, transport.Security{CredsFile: op.creds(t, op.stranger, time.Time{})}, wrong},
		"creds that expired":        {op.options, transport.Security{CredsFile: op.creds(t, op.account, time.Now().Add(-time.Minute))}, "expired at"},
		"nobody among creds":        {op.options, transport.Security{}, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := guarded(t, c.server)
			enter(t, url, c.client, c.want)
		})
	}
	t.Run("in the URL", func(t *testing.T) {
		t.Parallel()
		url, _ := guarded(t, user)
		at := strings.TrimPrefix(url, "nats://")
		enter(t, "nats://weir:"+secret+"@"+at, transport.Security{}, "")
		enter(t, "nats://weir:"+secret+"2@"+at, transport.Security{}, wrong)
		enter(t, "nats://weir:"+secret+"@"+at, transport.Security{User: "weir", Password: secret}, "choose one")
	})
}

// TestContradictions: what cannot be meant is refused before anybody is asked, by name.
func TestContradictions(t *testing.T) {
	t.Parallel()
	good := file(t, secret)
	none := filepath.Join(t.TempDir(), "none")
	cert, key := transporttest.NewAuthority(t).Client(t, "weir", time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		s    transport.Security
		want []string
	}{
		"certificate without key":   {transport.Security{CertFile: cert}, []string{"go together"}},
		"key without certificate":   {transport.Security{KeyFile: key}, []string{"go together"}},
		"two passwords":             {transport.Security{User: "u", Password: secret, PasswordFile: good}, []string{"a password and a password file"}},
		"two tokens":                {transport.Security{Token: secret, TokenFile: good}, []string{"a token and a token file"}},
		"user without password":     {transport.Security{User: "u"}, []string{`user "u" has no password`}},
		"password without user":     {transport.Security{PasswordFile: good}, []string{"but no user"}},
		"several ways":              {transport.Security{User: "u", Password: secret, Token: secret, NKeyFile: good}, []string{"a user and password and a token and an nkey file", "holds no seed of a user"}},
		"all that is wrong at once": {transport.Security{CAFile: none, PasswordFile: none, KeyFile: key}, []string{"CA file " + none + " does not exist", "password file " + none + " does not exist", "go together", "but no user"}},
		"empty file":                {transport.Security{TokenFile: file(t, "\n")}, []string{"is empty"}},
		"several lines":             {transport.Security{TokenFile: file(t, secret+"\n"+secret)}, []string{"has several lines: want the token alone"}},
		"a folder":                  {transport.Security{TokenFile: t.TempDir()}, []string{"is a directory"}},
		"no PEM":                    {transport.Security{CAFile: good}, []string{"holds no certificate in PEM"}},
		"no certificate":            {transport.Security{CertFile: good, KeyFile: key}, []string{"is no PEM"}},
		"no seed":                   {transport.Security{NKeyFile: good}, []string{"want a line that begins with SU"}},
		"no creds":                  {transport.Security{CredsFile: good}, []string{"want what nsc generate creds writes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transport.OpenNetwork(t.Context(), transport.Options{URL: "nats://127.0.0.1:1", Name: "test", Security: c.s, Log: newDiary(t).log()})
			if !errors.Is(err, weir.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			silent(t, err.Error())
		})
	}
}

// TestSchemes: what is no URL of NATS is refused, and says how to write it.
func TestSchemes(t *testing.T) {
	t.Parallel()
	names := transport.Names{"URL": "--nats"}
	for url, want := range map[string]string{
		"http://nats-1:4222":  "NATS at http://nats-1:4222 (--nats): http:// is not how NATS is spoken to: write nats://nats-1:4222 (",
		"https://nats-1:4222": "write tls://nats-1:4222 (",
		"nats://nats-1:4222,redis://bob:" + secret + "@nats-2:4222": "redis:// is not how NATS is spoken to: write nats://nats-2:4222 (",
		"ftp://" + secret + "@nats-1:4222":                          "NATS at ftp://nats-1:4222 (--nats): ftp:// is not",
	} {
		_, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: transport.Security{Names: names}})
		if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
		silent(t, err.Error())
	}
	url, ns := guarded(t, server.Options{Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: true}})
	enter(t, strings.ToUpper(url[:4])+url[4:], transport.Security{}, "")
	enter(t, " "+url, transport.Security{}, "")
	enter(t, strings.TrimPrefix(url, "nats://"), transport.Security{}, "")
	enter(t, ns.WebsocketURL(), transport.Security{}, "")
}

// TestNames: errors say by which flags or variables their cause was given.
func TestNames(t *testing.T) {
	t.Parallel()
	names := transport.Names{
		"URL": "--nats", "User": "--nats-user", "Password": "WEIR_NATS_PASSWORD", "PasswordFile": "--nats-password-file", "Token": "WEIR_NATS_TOKEN",
		"TokenFile": "--nats-token-file from WEIR_NATS_TOKEN_FILE", "CAFile": "--nats-ca", "CertFile": "--nats-cert", "KeyFile": "--nats-key", "NKeyFile": "--nats-nkey-file", "CredsFile": "--nats-creds",
	}
	guardedURL, _ := guarded(t, server.Options{Authorization: secret})
	tlsURL, _ := guarded(t, server.Options{TLSConfig: transporttest.NewAuthority(t).Server(t, "127.0.0.1", time.Now().Add(time.Hour))})
	good, none := file(t, secret), filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		url  string
		s    transport.Security
		want string
	}{
		"a file that is not there": {"", transport.Security{TokenFile: none}, "--nats-token-file from WEIR_NATS_TOKEN_FILE: token file " + none + " does not exist"},
		"a key alone":              {"", transport.Security{KeyFile: none}, "go together (--nats-cert, --nats-key)"},
		"two ways":                 {"", transport.Security{Token: secret, CredsFile: good}, "a token (WEIR_NATS_TOKEN) and a creds file (--nats-creds) are given"},
		"a password without user":  {"", transport.Security{Password: secret}, "a password is given (WEIR_NATS_PASSWORD), but no user (--nats-user)"},
		"a user without password":  {"", transport.Security{User: "u"}, `user "u" (--nats-user) has no password: give a password file (--nats-password-file)`},
		"a URL that says who":      {"nats://bob:" + secret + "@h:1", transport.Security{TokenFile: good}, "the URL (--nats) says who connects, and so does a token (--nats-token-file from WEIR_NATS_TOKEN_FILE)"},
		"a URL that is none":       {"nats://h:x", transport.Security{}, "NATS at nats://h:x (--nats): this is no URL"},
		"nobody there":             {"nats://127.0.0.1:1", transport.Security{}, "is the URL right? (--nats)"},
		"wrong token":              {guardedURL, transport.Security{Token: secret + "2"}, "creds (WEIR_NATS_TOKEN) against"},
		"no credentials":           {guardedURL, transport.Security{}, "creds (--nats, --nats-user, --nats-password-file, --nats-token-file from WEIR_NATS_TOKEN_FILE, --nats-nkey-file, --nats-creds) against"},
		"no CA":                    {tlsURL, transport.Security{}, "give the CA file it was signed with (--nats-ca)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.s.Names = names
			enter(t, cmp.Or(c.url, "nats://127.0.0.1:1"), c.s, c.want)
		})
	}
}

// TestExposed: a secret that everybody may read is used, and complained of once.
func TestExposed(t *testing.T) {
	t.Parallel()
	url, _ := guarded(t, server.Options{Authorization: secret})
	path := file(t, secret)
	for mode, says := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		d := newDiary(t)
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: transport.Security{TokenFile: path}, Log: d.log()})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if mode == 0o644 { // the other connection of a process
			run(t, transport.Options{URL: url, Name: "test", Security: transport.Security{TokenFile: path}, Log: d.log()})
		}
		if got := strings.Count(d.String(), "chmod o-r"); got != says {
			t.Errorf("mode %o: %s", mode, d)
		}
	}
}

// TestRotation: a server takes another password from now on, then the file holds it too.
// The client is refused, says so, tries on, and is back without being started again.
func TestRotation(t *testing.T) {
	t.Parallel()
	const first, second = secret + "-1", secret + "-2"
	url, ns := guarded(t, server.Options{Username: "weir", Password: first})
	_, port, err := net.SplitHostPort(ns.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	changed := &server.Options{Host: "127.0.0.1", NoSigs: true, NoLog: true, Username: "weir"}
	if changed.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	path := file(t, first)
	d := newDiary(t)
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: transport.Security{User: "weir", PasswordFile: path}, Log: d.log()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	serve(t, c, "life", echo)
	pinged(t, c, "life")
	changed.Password = second
	if err := ns.ReloadOptions(changed); err != nil {
		t.Fatal(err)
	}
	transporttest.Until(t, "the client is refused", func() bool { return strings.Contains(d.String(), "nats refuses the connection; it is tried again") })
	if err := os.Remove(path); err != nil { // in the middle of being replaced
		t.Fatal(err)
	}
	transporttest.Until(t, "the file is missed", func() bool { return strings.Contains(d.String(), "the last value read is used once more") })
	if err := os.WriteFile(path, []byte(second+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	transporttest.Until(t, "the client is back", c.Connected)
	pinged(t, c, "life")
	transporttest.Until(t, "it says that it is back", func() bool { return strings.Contains(d.String(), "nats connection is back") })
}

// TestRefusedQuietly: a connection that fails many times a second, each time from another
// port, is complained of now and then.
func TestRefusedQuietly(t *testing.T) {
	t.Parallel()
	digits := regexp.MustCompile(`[0-9]+`)
	url, ns := guarded(t, server.Options{})
	d := newDiary(t)
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Log: d.log()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ns.Shutdown()
	ns.WaitForShutdown()
	l, err := net.Listen("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	triedC, began := make(chan struct{}), time.Now()
	background(t, func(context.Context) error {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return nil //nolint:nilerr // it was closed
			}
			// Greeted, and reset when it has said who it is.
			if _, err := conn.Write([]byte("INFO {\"max_payload\":1048576}\r\n")); err == nil {
				_, _ = conn.Read(make([]byte, 1024))
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
			if n == 10 {
				close(triedC)
			}
		}
	})
	t.Cleanup(func() { l.Close() })
	select {
	case <-triedC:
	case <-time.After(transporttest.Patience):
		t.Fatal("it tries no more")
	}
	said := map[string]int{}
	for _, line := range strings.Split(d.String(), "\n") {
		if _, why, ok := strings.Cut(line, "cannot be reached"); ok {
			said[digits.ReplaceAllString(why, "#")]++
		}
	}
	most := 1 + int(time.Since(began)/(20*time.Second)) // every 30 s
	for why, times := range said {
		if times > most {
			t.Errorf("said %d times: %s\n%s", times, why, d)
		}
	}
	if !strings.Contains(d.String(), "is it running, and is the URL right?") {
		t.Errorf("no advice in\n%s", d)
	}
}

// TestOutageIsSaidOnce: however many NATS servers there are, a connection has one line for
// an outage that goes on, beside those for its beginning and its end.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	cluster := transporttest.StartCluster(t, 3)
	d := newDiary(t)
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: cluster.URLs(), Name: "test", Log: d.log()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for outage := 1; outage <= 2; outage++ {
		held := -1
		transporttest.Until(t, "one has the connection", func() bool { held = cluster.Holder(t, "test control"); return held >= 0 })
		for i := range 3 {
			if i != held {
				cluster.Stop(i)
			}
		}
		cluster.Stop(held) // the last one: there is one outage
		transporttest.Until(t, "it is said", func() bool { return strings.Count(d.String(), "cannot be reached") == outage })
		tried := strings.Count(d.String(), "cannot be reached")
		for i := range 3 {
			cluster.Start(t, i)
		}
		transporttest.Until(t, "it is back", c.Connected)
		transporttest.Until(t, "that is said", func() bool { return strings.Count(d.String(), "nats connection is back") >= outage })
		if n := strings.Count(d.String(), "cannot be reached"); n != tried {
			t.Errorf("said %d times in outage %d\n%s", n, outage, d)
		}
	}
}

package transport_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"weir/transport"
	"weir/transport/transporttest"
)

// nkey makes a user's key.
func nkey(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return parts(t, pair)
}

func parts(t *testing.T, pair nkeys.KeyPair) (seed, public string) {
	t.Helper()
	s, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return string(s), public
}

// An operator signs an account, which signs users, as nsc does; options are those of a
// server that trusts it. It knows nothing of stranger.
type operator struct {
	account, stranger nkeys.KeyPair
	options           server.Options
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	pair, err := nkeys.CreateOperator()
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{}
	_, public := parts(t, pair)
	signed, err := jwt.NewOperatorClaims(public).Encode(pair)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeOperatorClaims(signed)
	if err != nil {
		t.Fatal(err)
	}
	if o.account, err = nkeys.CreateAccount(); err != nil {
		t.Fatal(err)
	}
	if o.stranger, err = nkeys.CreateAccount(); err != nil {
		t.Fatal(err)
	}
	_, public = parts(t, o.account)
	account, err := jwt.NewAccountClaims(public).Encode(pair)
	if err != nil {
		t.Fatal(err)
	}
	known := &server.MemAccResolver{}
	if err := known.Store(public, account); err != nil {
		t.Fatal(err)
	}
	o.options = server.Options{TrustedOperators: []*jwt.OperatorClaims{claims}, AccountResolver: known}
	return o
}

// creds writes the creds file of a new user of an account.
func (o *operator) creds(t *testing.T, account nkeys.KeyPair, expires time.Time) string {
	t.Helper()
	seed, public := nkey(t)
	claims := jwt.NewUserClaims(public)
	if !expires.IsZero() {
		claims.Expires = expires.Unix()
	}
	signed, err := claims.Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	b, err := jwt.FormatUserConfig(signed, []byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(b))
}

// TestCredsExpire: creds expire while a client is connected, and are replaced then.
func TestCredsExpire(t *testing.T) {
	t.Parallel()
	op := newOperator(t)
	url, _ := guarded(t, op.options)
	path := op.creds(t, op.account, time.Now().Add(3*time.Second)) // to the second
	d := newDiary(t, "eyJ", "SUA")
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: transport.Security{CredsFile: path}, Log: d.log()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	serve(t, c, "life", echo)
	pinged(t, c, "life")
	transporttest.Until(t, "the client is refused", func() bool { return strings.Contains(d.String(), "nats refuses the connection") })
	b, err := os.ReadFile(op.creds(t, op.account, time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	transporttest.Until(t, "the client is back", c.Connected)
	pinged(t, c, "life")
}

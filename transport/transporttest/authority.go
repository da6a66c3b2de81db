package transporttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates of one test.
type Authority struct {
	File string // its certificate, PEM

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one, whose files end with the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der := sign(t, a.cert, a.cert, a.key, a.key)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

// Server is the TLS of a server that listens on host (a name, or an IP address) until the
// certificate expires. It trusts clients of this authority.
func (a *Authority) Server(t testing.TB, host string, expires time.Time) *tls.Config {
	t.Helper()
	key := newKey(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{sign(t, a.host(host, expires), a.cert, key, a.key)}, PrivateKey: key}},
		ClientCAs:    trusted,
	}
}

// Host writes such a certificate and its key. It serves a client too, as those of servers
// that call each other do.
func (a *Authority) Host(t testing.TB, host string, expires time.Time) (certFile, keyFile string) {
	t.Helper()
	return a.pair(t, "host-"+host, a.host(host, expires))
}

// Client writes a client's certificate and its key.
func (a *Authority) Client(t testing.TB, name string, expires time.Time) (certFile, keyFile string) {
	t.Helper()
	return a.pair(t, name, &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: name}, NotBefore: a.cert.NotBefore, NotAfter: expires,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// host describes the certificate of a name or an IP address.
func (a *Authority) host(host string, expires time.Time) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: a.cert.NotBefore, NotAfter: expires,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	return template
}

// pair signs a certificate and writes it and its key.
func (a *Authority) pair(t testing.TB, name string, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", sign(t, template, a.cert, key, a.key)), a.write(t, name+".key", "EC PRIVATE KEY", der)
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &of.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

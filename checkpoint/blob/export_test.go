package blob

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"
)

// AlwaysParts has every object that is not empty uploaded in parts.
func (s *S3) AlwaysParts() { s.whole = 0 }

// Paged asks for so many keys at once.
func (s *S3) Paged(n int) { s.pageSize = n }

// Impatient waits less before the next try, and for answers.
func (s *S3) Impatient(first, answer time.Duration) { s.first, s.answer = first, answer }

// OpenS3At is Open with every connection going to one address, whatever the host's name.
func OpenS3At(raw, address string) (*S3, error) {
	conf, err := parseS3(raw, os.Getenv)
	if err != nil {
		return nil, err
	}
	creds, err := newCredentials(conf, os.Getenv)
	if err != nil {
		return nil, err
	}
	return newS3(conf, creds, &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
}

// OpenS3With is Open with an environment of its own.
func OpenS3With(raw string, environment map[string]string) (*S3, error) {
	return openS3(raw, func(name string) string { return environment[name] })
}

// Explain adds what to do about a disk's refusal.
func Explain(err error) error { return explain(err) }

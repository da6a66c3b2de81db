package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestNATSFlagsAreNamed: what is wrong with how NATS is reached names the flag, and the
// variable if it came from there. All of these are usage errors.
func TestNATSFlagsAreNamed(t *testing.T) {
	storage := "file://" + t.TempDir()
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"a scheme":                {[]string{"--nats", "http://nats-1:4222"}, nil, "(--nats): http:// is not how NATS is spoken to: write nats://nats-1:4222"},
		"a scheme of a variable":  {nil, map[string]string{"WEIR_NATS": "http://nats-1:4222"}, "(--nats from WEIR_NATS): http:// is not"},
		"a file":                  {[]string{"--nats", "nats://h:1", "--nats-creds", "/none"}, nil, "--nats-creds: creds file /none does not exist"},
		"a file of a variable":    {[]string{"--nats", "nats://h:1"}, map[string]string{"WEIR_NATS_TOKEN_FILE": "/none"}, "--nats-token-file from WEIR_NATS_TOKEN_FILE: token file /none does not exist"},
		"a secret in a variable":  {[]string{"--nats", "nats://h:1", "--nats-nkey-file", "/none"}, map[string]string{"WEIR_NATS_TOKEN": "s3cret"}, "a token (WEIR_NATS_TOKEN) and an nkey file (--nats-nkey-file) are given"},
		"a password without user": {[]string{"--nats", "nats://h:1"}, map[string]string{"WEIR_NATS_PASSWORD": "s3cret"}, "a password is given (WEIR_NATS_PASSWORD), but no user (--nats-user)"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var out, errs bytes.Buffer
			code := execute(t.Context(), append([]string{"worker", "--id", "w", "--data", t.TempDir(), "--storage", storage}, c.args...), strings.NewReader(""), &out, &errs)
			if code != 2 || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d: %s; want %s", code, errs.String(), c.want)
			}
			if strings.Contains(errs.String(), "s3cret") {
				t.Error("the secret is said")
			}
		})
	}
}

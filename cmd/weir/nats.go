package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"weir"
	"weir/transport"
)

// natsConfig says how a server or a worker reaches NATS.
type natsConfig struct {
	url      string
	security transport.Security
}

// natsFlags adds the flags of NATS. Secrets come from files or from the environment:
// what is on a command line, everybody on the machine can read.
func natsFlags(f *pflag.FlagSet, conf *natsConfig) {
	s := &conf.security
	f.StringVar(&conf.url, "nats", "", "nats://HOST:PORT or tls://HOST:PORT, several with commas")
	f.StringVar(&s.CAFile, "nats-ca", "", "file of the CA that signed the NATS servers' certificates")
	f.StringVar(&s.CertFile, "nats-cert", "", "file of the client certificate, for NATS servers that verify clients")
	f.StringVar(&s.KeyFile, "nats-key", "", "file of the client certificate's key")
	f.StringVar(&s.User, "nats-user", "", "user at NATS; its password from --nats-password-file or WEIR_NATS_PASSWORD")
	f.StringVar(&s.PasswordFile, "nats-password-file", "", "file of the user's password, read for each connection")
	f.StringVar(&s.TokenFile, "nats-token-file", "", "file of a token, read for each connection (or the token in WEIR_NATS_TOKEN)")
	f.StringVar(&s.NKeyFile, "nats-nkey-file", "", "file of an nkey's seed")
	f.StringVar(&s.CredsFile, "nats-creds", "", "file of credentials (JWT and seed), read for each connection")
}

// options are those of transport, with the secrets of the environment; weir up has its
// own.
func (conf natsConfig) options(o transport.Options) transport.Options {
	o.URL, o.Security = conf.url, conf.security
	if s := &o.Security; s.Token == "" {
		s.Password, s.Token = os.Getenv("WEIR_NATS_PASSWORD"), os.Getenv("WEIR_NATS_TOKEN")
	}
	return o
}

// natsUsage makes a wrong combination of flags, or a file that cannot be used, a usage
// error.
func natsUsage(err error) error {
	if errors.Is(err, weir.ErrInvalid) {
		return fmt.Errorf("%s: %w", plain(err), errUsage)
	}
	return err
}

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
	flags    *pflag.FlagSet // that set it; nil: weir up has its own
}

// natsFields are the flags that have fields of transport.Security, and the URL.
func natsFields() map[string]string {
	return map[string]string{
		"URL": "nats", "CAFile": "nats-ca", "CertFile": "nats-cert", "KeyFile": "nats-key", "User": "nats-user",
		"PasswordFile": "nats-password-file", "TokenFile": "nats-token-file", "NKeyFile": "nats-nkey-file", "CredsFile": "nats-creds",
	}
}

// The environment has these two secrets themselves, which no flag has.
const (
	passwordVar = "WEIR_NATS_PASSWORD"
	tokenVar    = "WEIR_NATS_TOKEN"
)

// natsFlags adds the flags of NATS. Secrets come from files or from the environment:
// what is on a command line, everybody on the machine can read.
func natsFlags(f *pflag.FlagSet, conf *natsConfig) {
	s := &conf.security
	conf.flags = f
	f.StringVar(&conf.url, "nats", "", "nats://HOST:PORT or tls://HOST:PORT, several with commas")
	f.StringVar(&s.CAFile, "nats-ca", "", "file of the CA that signed the NATS servers' certificates")
	f.StringVar(&s.CertFile, "nats-cert", "", "file of the client certificate, for NATS servers that verify clients")
	f.StringVar(&s.KeyFile, "nats-key", "", "file of the client certificate's key")
	f.StringVar(&s.User, "nats-user", "", "user at NATS; its password from --nats-password-file or "+passwordVar)
	f.StringVar(&s.PasswordFile, "nats-password-file", "", "file of the user's password, read for each connection")
	f.StringVar(&s.TokenFile, "nats-token-file", "", "file of a token, read for each connection (or the token in "+tokenVar+")")
	f.StringVar(&s.NKeyFile, "nats-nkey-file", "", "file of an nkey's seed")
	f.StringVar(&s.CredsFile, "nats-creds", "", "file of credentials (JWT and seed), read for each connection")
}

// options are those of transport, with the secrets of the environment, and with the names
// of the flags, or of the variables that they came from; weir up has its own.
func (conf natsConfig) options(o transport.Options) transport.Options {
	o.URL, o.Security = conf.url, conf.security
	if conf.flags == nil {
		return o
	}
	s := &o.Security
	s.Password, s.Token = os.Getenv(passwordVar), os.Getenv(tokenVar)
	s.Names = transport.Names{"Password": passwordVar, "Token": tokenVar}
	for field, flag := range natsFields() {
		s.Names[field] = flagName(conf.flags.Lookup(flag))
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

package blob

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"weir"
)

// roleTimeout bounds one question for the credentials of this machine's role.
const roleTimeout = 5 * time.Second

// errCredentials marks that no request could be signed.
var errCredentials = errors.New("no credentials")

// newCredentials says where the credentials come from: the file that the URL names, the
// environment, the file of the AWS tools, this machine's role; the first that is there.
func newCredentials(c s3Config, env func(string) string) (*credentials.Credentials, error) {
	if c.credentials != "" {
		return fileCredentials(c.credentials, c.profile)
	}
	if c.profile == "" {
		for _, prefix := range []string{"WEIR_STORAGE_", "AWS_"} {
			id, secret := env(prefix+"ACCESS_KEY_ID"), env(prefix+"SECRET_ACCESS_KEY")
			if id == "" && secret == "" {
				continue
			}
			if id == "" || secret == "" {
				return nil, fmt.Errorf("%w: storage s3://%s: of %sACCESS_KEY_ID and %sSECRET_ACCESS_KEY only one is set; set both", weir.ErrInvalid, c.bucket, prefix, prefix)
			}
			return named(&credentials.Static{Value: credentials.Value{
				AccessKeyID: id, SecretAccessKey: secret, SessionToken: env(prefix + "SESSION_TOKEN"), SignerType: credentials.SignatureV4,
			}}, "the environment ("+prefix+"ACCESS_KEY_ID)"), nil
		}
	}
	if file := env("AWS_SHARED_CREDENTIALS_FILE"); file != "" {
		return fileCredentials(file, c.profile)
	}
	home, _ := os.UserHomeDir()
	if file := filepath.Join(home, ".aws", "credentials"); c.profile != "" || readable(file) == nil {
		return fileCredentials(file, c.profile)
	}
	return named(&credentials.IAM{Client: &http.Client{Timeout: roleTimeout}},
		"this machine's role (the environment has no AWS_ACCESS_KEY_ID, and there is no file ~/.aws/credentials)"), nil
}

// fileCredentials reads a file in the format of the AWS tools.
func fileCredentials(file, profile string) (*credentials.Credentials, error) {
	if err := readable(file); err != nil {
		return nil, fmt.Errorf("storage: credentials file: %w", err)
	}
	name := "file " + file
	if profile != "" {
		name += ", profile " + profile
	}
	return named(&credentials.FileAWSCredentials{Filename: file, Profile: profile}, name), nil
}

func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return f.Close()
}

// A namedProvider says in its errors where credentials were looked for, and nothing
// of what was found there.
type namedProvider struct {
	credentials.Provider
	name string
}

func named(p credentials.Provider, name string) *credentials.Credentials {
	return credentials.New(&namedProvider{p, name})
}

// RetrieveWithCredContext implements credentials.Provider.
func (p *namedProvider) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	return p.checked(p.Provider.RetrieveWithCredContext(cc))
}

// Retrieve implements credentials.Provider.
func (p *namedProvider) Retrieve() (credentials.Value, error) {
	return p.checked(p.Provider.Retrieve()) //nolint:staticcheck // the interface has it
}

func (p *namedProvider) checked(v credentials.Value, err error) (credentials.Value, error) {
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return v, fmt.Errorf("%w in %s", errCredentials, p.name)
	}
	return v, nil
}

package blob_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/checkpoint/blob"
	"weir/checkpoint/blob/blobtest"
	"weir/checkpoint/blob/s3test"
)

func TestS3Conformance(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	prefix := numbered()
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		blobtest.Run(t, func(t *testing.T) blob.Store { return server.Open(t, prefix()) })
	})
	t.Run("in parts", func(t *testing.T) {
		t.Parallel()
		blobtest.Run(t, func(t *testing.T) blob.Store {
			s := server.Open(t, prefix())
			s.(*blob.S3).AlwaysParts()
			return s
		})
	})
}

// numbered returns prefixes that no other test of the server has.
func numbered() func() string {
	var n atomic.Int64
	return func() string { return "p" + strconv.FormatInt(n.Add(1), 10) + "/q" }
}

func matches(err error, pattern string) bool {
	return err != nil && regexp.MustCompile(pattern).MatchString(err.Error())
}

// TestS3VirtualHost: the bucket is part of the host's name.
func TestS3VirtualHost(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	prefix := numbered()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s, err := blob.OpenS3At("s3://weir/"+prefix()+"?region="+s3test.Region+"&endpoint=http://"+s3test.Domain+"&path_style=false&"+server.Credentials(t), server.Address)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// TestS3Addresses: how requests are addressed, for Amazon and for others.
func TestS3Addresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want string }{
		{"s3://bucket/p?region=eu-central-1&endpoint=http://minio:9000", "http://minio:9000/bucket/p/k"},
		{"s3://bucket/p?region=eu-central-1&endpoint=http://minio:9000&path_style=false", "http://bucket.minio:9000/p/k"},
		{"s3://bucket?endpoint=http://s3.eu-central-1.amazonaws.com&region=eu-central-1", "http://bucket.s3.dualstack.eu-central-1.amazonaws.com/k"},
		{"s3://bucket?endpoint=http://s3.eu-central-1.amazonaws.com&region=eu-central-1&path_style=true", "http://s3.dualstack.eu-central-1.amazonaws.com/bucket/k"},
	} {
		gotC := make(chan string, 100)
		there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			gotC <- "http://" + r.Host + r.URL.Path
		}))
		s, err := blob.OpenS3At(c.url+"&"+s3test.Credentials(t, "a", "b", ""), strings.TrimPrefix(there.URL, "http://"))
		if err == nil {
			err = s.Put(t.Context(), "k", strings.NewReader("x"))
		}
		there.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		if got := <-gotC; got != c.want {
			t.Errorf("%s: %s, want %s", c.url, got, c.want)
		}
	}
}

// TestS3URL: what an s3:// URL may say; a secret in it is refused and not repeated.
func TestS3URL(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "S3cr"}
	for _, c := range []struct{ url, says string }{
		{"s3://bucket?region=eu-central-1", ""},
		{"s3://bucket/a/b/?region=eu-central-1&path_style=auto&conditional_put=true", ""},
		{"s3://bucket?endpoint=https://acc.r2.cloudflarestorage.com", ""},
		{"s3://bucket", "told the bucket's region: add \\?region="},
		{"s3://", `"" is no bucket name`},
		{"s3://Bucket_1?region=x", "no bucket name"},
		{"s3://key:S3cr@bucket?region=x", "credentials do not belong into a URL"},
		{"s3://bucket?region=x&secret_access_key=S3cr", "credentials do not belong into a URL .parameter secret_access_key"},
		{"s3://bucket?region=x&endpoint=http://k:S3cr@h", "credentials do not belong into a URL .in the endpoint"},
		{"s3://bucket?regoin=x", `parameter "regoin" is unknown, did you mean region\?`},
		{"s3://bucket?pathstyle=x", `did you mean path_style\?`},
		{"s3://bucket?zzz=x", `parameter "zzz" is unknown; known are region, endpoint`},
		{"s3://bucket?region=x&region=y", "region is given 2 times"},
		{"s3://bucket?region=", "with a value"},
		{"s3://bucket?region=x&path_style=yes", "path_style is true, false or auto"},
		{"s3://bucket?region=x&endpoint=minio:9000", "endpoint is http://HOST:PORT"},
		{"s3://bucket?region=x&endpoint=http://h/path", "endpoint is http://HOST:PORT"},
		{"s3://bucket/a//b?region=x", "the prefix of storage"},
		{"s3://bucket?region=x&credentials=/none/credentials", "credentials file: open /none/credentials"},
		{"s3://bucket?region=%zz&token=S3cr", "no list of name=value"},
	} {
		_, err := blob.OpenS3With(c.url, environment)
		if c.says == "" && err != nil || c.says != "" && !matches(err, c.says) || matches(err, "S3cr") {
			t.Errorf("%s: %v; want %q", c.url, err, c.says)
		}
	}
}

// TestS3Credentials: where they come from, in which order, and what is said without.
func TestS3Credentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = from-file\naws_secret_access_key = s\n[other]\naws_access_key_id = from-profile\naws_secret_access_key = s\n"
	broken := file + ".broken"
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(broken, []byte("[default]\nS3cr without equals\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":"from-role","SecretAccessKey":"s","Token":"t","Expiration":"%s"}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer role.Close()
	gotC := make(chan string, 100)
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { gotC <- r.Header.Get("Authorization") }))
	defer there.Close()
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		name, more string
		env        map[string]string
		want       string // the access key, or the error
	}{
		{"weir's", "", map[string]string{"WEIR_STORAGE_ACCESS_KEY_ID": "of-weir", "WEIR_STORAGE_SECRET_ACCESS_KEY": "s", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "s"}, "of-weir"},
		{"amazon's", "", map[string]string{"AWS_ACCESS_KEY_ID": "of-aws", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SHARED_CREDENTIALS_FILE": file}, "of-aws"},
		{"half", "", map[string]string{"AWS_ACCESS_KEY_ID": "of-aws"}, "only one is set"},
		{"file of the environment", "", map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "from-file"},
		{"file of the URL", "&credentials=" + file, map[string]string{"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "s"}, "from-file"},
		{"profile", "&profile=other&credentials=" + file, nil, "from-profile"},
		{"no such profile", "&profile=none&credentials=" + file, nil, "no credentials in file .*, profile none: set AWS_ACCESS_KEY_ID"},
		{"broken file", "&credentials=" + broken, nil, "no credentials in file"},
		{"role", "", nil, "from-role"},
	} {
		if c.name == "role" { // the library asks the process's environment
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
		}
		s, err := blob.OpenS3With("s3://bucket?region=x1&endpoint="+there.URL+c.more, c.env)
		if err == nil {
			err = s.Put(t.Context(), "k", strings.NewReader("x"))
		}
		got := ""
		if err == nil {
			got = <-gotC
		}
		if !strings.Contains(got, "Credential="+c.want+"/") && !matches(err, c.want) || matches(err, "S3cr") {
			t.Errorf("%s: %q, %v; want %s", c.name, got, err, c.want)
		}
	}
}

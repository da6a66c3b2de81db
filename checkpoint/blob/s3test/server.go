// Package s3test runs an S3 server for tests: versitygw, a process of its own over a
// temporary folder.
//
//	s3 := s3test.Start(t)
//	url := s3.URL("weir/prefix", s3.Credentials(t))    // for --storage
//
// The program is built once, from the version in tools/go.mod, into the user's cache
// folder. It ends with the test, and with the test's process, however that ends.
package s3test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/checkpoint/blob"
)

// The credentials, the region and the domain of every server.
const (
	AccessKey = "weir-test-access"
	SecretKey = "weir-test-S3cr3t"
	Region    = "eu-test-1"
	Domain    = "s3.test"
)

// A Server is a running S3 server. A bucket is a folder below Dir.
type Server struct {
	Dir     string
	Address string // host:port

	health string // a path that this server alone answers
	cmd    *exec.Cmd
	stdin  io.Closer
	log    string
}

// Start starts a server for the time of a test. Bucket "weir" is there.
func Start(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	s, err := Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Run starts a server over a folder, with the bucket "weir" in it.
func Run(dir string) (*Server, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s := &Server{Dir: filepath.Join(dir, "buckets"), log: filepath.Join(dir, "versitygw.log")}
		if err := os.MkdirAll(filepath.Join(s.Dir, "weir"), 0o755); err != nil {
			return nil, err
		}
		if s.Address, err = freeAddress(); err != nil {
			return nil, err
		}
		s.health = "/health-" + rand.Text()
		if err = s.start(program); err == nil {
			return s, nil
		}
		s.Stop()
		if try == 5 { // another process may take the port between
			return nil, err
		}
	}
}

// freeAddress picks a port below those that connections and other tests' listeners are
// given by chance.
func freeAddress() (string, error) {
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+mathrand.IntN(12_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		if try == 100 {
			return "", err
		}
	}
}

// start runs the program below a shell that ends it when our end of its standard input
// closes.
func (s *Server) start(program string) error {
	const script = `"$@" </dev/null & trap 'kill -9 $!; wait' EXIT; cat >/dev/null`
	s.cmd = exec.Command("/bin/sh", "-c", script, "sh", program, "--port", s.Address,
		"--access", AccessKey, "--secret", SecretKey, "--region", Region, "--virtual-domain", Domain, "--keep-alive", "--quiet", "--health", s.health, "posix", s.Dir)
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the test first
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	return s.ready()
}

// ready waits until the server answers, this one and not another process at its port.
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			log, _ := os.ReadFile(s.log)
			return fmt.Errorf("versitygw does not answer at %s: %w\n%s", s.Address, err, log)
		}
	}
}

// ask asks the server whether it is there.
func (s *Server) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+s.health, nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("somebody answers with %s", resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// Stop ends the server; its folder stays.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Restart starts the server again after Stop, at the same address, over the same folder.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	program, err := Program()
	if err == nil {
		err = s.start(program)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// URL is the storage URL of a bucket and prefix, with more parameters: name=value.
func (s *Server) URL(place string, more ...string) string {
	return URL(s.Address, place, more...)
}

// URL is the storage URL of a server, or a proxy before it, at an address.
func URL(address, place string, more ...string) string {
	return "s3://" + place + "?" + strings.Join(append([]string{"region=" + Region, "endpoint=http://" + address}, more...), "&")
}

// Credentials writes a credentials file and returns the URL parameter that names it, for
// tests that share their process's environment with others.
func (s *Server) Credentials(t testing.TB) string { return Credentials(t, AccessKey, SecretKey, "") }

// Credentials writes a credentials file with any content.
func Credentials(t testing.TB, access, secret, token string) string {
	t.Helper()
	text := "[default]\naws_access_key_id = " + access + "\naws_secret_access_key = " + secret + "\n"
	if token != "" {
		text += "aws_session_token = " + token + "\n"
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "credentials=" + file
}

// Open opens a store below a prefix of the bucket "weir".
func (s *Server) Open(t testing.TB, prefix string, more ...string) blob.Store {
	t.Helper()
	store, err := blob.Open(s.URL("weir/"+prefix, append(more, s.Credentials(t))...))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var versionLine = regexp.MustCompile(`(?m)^\s+github\.com/versity/versitygw (v\S+)`)

// Program is the path of the server's program, which is built if it is not there yet. One
// process builds, others wait for it.
func Program() (string, error) {
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("s3test: where its source lies is not known")
	}
	root := filepath.Join(filepath.Dir(self), "..", "..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "tools", "go.mod"))
	if err != nil {
		return "", err
	}
	version := versionLine.FindSubmatch(mod)
	if version == nil {
		return "", errors.New("tools/go.mod does not require github.com/versity/versitygw")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "weir-test")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(cache, "versitygw-"+string(version[1])+"-"+runtime.GOARCH)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, build(root, program)
}

func build(root, program string) error {
	lock, err := os.Create(program + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(program); err == nil {
		return nil // by another one, meanwhile
	}
	cmd := exec.Command("go", "build", "-modfile=tools/go.mod", "-trimpath", "-ldflags=-s -w", "-o", program+".new", "github.com/versity/versitygw/cmd/versitygw")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build versitygw: %w\n%s", err, out)
	}
	return os.Rename(program+".new", program)
}

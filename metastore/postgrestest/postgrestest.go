// Package postgrestest runs a PostgreSQL server for tests: one cluster per test
// binary, in a temporary folder, reached by a Unix socket there, one database per
// test. It is made for speed: nothing is ever synced to disk.
//
//	func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }
//	url := postgrestest.Database(t)
//
// The server is Debian's package postgresql, started as user postgres where the
// tests run as root. A machine without it fails the tests with the line that mends it.
// It ends with the test binary, however that ends.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a running PostgreSQL server.
type Cluster struct {
	dir  string
	cmd  *exec.Cmd
	next atomic.Int64
}

// Start makes a cluster in a temporary folder and starts its server.
func Start() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if err := c.start(bin); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// binaries finds the newest server installed.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("no PostgreSQL server in /usr/lib/postgresql: install postgresql: apt-get install postgresql")
	}
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(found[len(found)-1]), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // not a number: the oldest
	return n
}

func (c *Cluster) start(bin string) error {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() == 0 { // PostgreSQL refuses root
		u, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("no user postgres: install postgresql: apt-get install postgresql: %w", err)
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uerr, gerr, os.Chown(c.dir, int(uid), int(gid))); err != nil {
			return err
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(c.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, c.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	c.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", c.dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200", "-c", "shared_buffers=32MB")
	c.cmd.SysProcAttr, c.cmd.Dir = attr, c.dir
	log := &bytes.Buffer{}
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		c.cmd = nil
		return err
	}
	if err := c.ready(); err != nil {
		return errors.Join(err, c.Stop(), fmt.Errorf("its log:\n%s", log))
	}
	return nil
}

// ready waits until the server answers.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// Stop ends the server and removes its folder.
func (c *Cluster) Stop() error {
	if c.cmd != nil {
		c.cmd.Process.Signal(syscall.SIGQUIT) // at once: nothing is worth keeping
		c.cmd.Wait()
		c.cmd = nil
	}
	return os.RemoveAll(c.dir)
}

// Socket is the path of the server's Unix socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// URL is how a client reaches a database of the cluster.
func (c *Cluster) URL(database string) string {
	return "postgres://postgres@/" + database + "?" + url.Values{"host": {c.dir}, "port": {"5432"}}.Encode()
}

// Create makes an empty database and returns its URL.
func (c *Cluster) Create(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("test%d", c.next.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return c.URL(name), nil
}

// shared is the cluster of a test binary, which Main sets before any test runs.
var shared *Cluster

// Main starts a cluster, runs the tests of a binary and stops it; TestMain returns
// its value to os.Exit. Without PostgreSQL no test runs and the value is 1.
func Main(m *testing.M) int {
	runtime.LockOSThread() // the server dies with the thread that started it
	c, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgrestest:", err)
		return 1
	}
	shared = c
	code := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "postgrestest:", err)
		return max(code, 1)
	}
	return code
}

// Database makes an empty database in the cluster that Main started.
func Database(t testing.TB) string {
	t.Helper()
	if shared == nil {
		t.Fatal("postgrestest: TestMain must call postgrestest.Main")
	}
	u, err := shared.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Socket is the Unix socket of the cluster that Main started.
func Socket() string { return shared.Socket() }

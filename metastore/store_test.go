package metastore_test

import (
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir"
	"weir/metastore"
	"weir/metastore/metastoretest"
	"weir/metastore/postgrestest"
)

func TestMain(m *testing.M) {
	if os.Getenv("WEIR_LONG") == "" { // SQLite under the race detector takes its time
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	os.Exit(postgrestest.Main(m))
}

// open migrates the empty database at url and opens it.
func open(t testing.TB, url string) *metastore.Store {
	t.Helper()
	if _, err := metastore.Migrate(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s, err := metastore.Open(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "weir #1.db") }

func TestSQLite(t *testing.T) {
	t.Parallel()
	metastoretest.Run(t, func(t *testing.T) metastoretest.Store { return open(t, sqliteURL(t)) })
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	metastoretest.Run(t, func(t *testing.T) metastoretest.Store { return open(t, postgrestest.Database(t)) })
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"sqlite": sqliteURL(t), "postgres": postgrestest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			_, err := metastore.Open(t.Context(), url, metastore.Options{})
			if !errors.Is(err, weir.ErrInvalid) || !strings.HasSuffix(err.Error(), "run weir migrate") {
				t.Fatalf("an empty database: %v", err)
			}
			done := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := metastore.Migrate(t.Context(), url, metastore.Options{})
					done <- err
				}()
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			applied, err := metastore.Migrate(t.Context(), url, metastore.Options{})
			if err != nil || len(applied) != 0 {
				t.Fatalf("migrated again: %v, %v", applied, err)
			}
			s, err := metastore.Open(t.Context(), url, metastore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPasswordsAreNotShown: an error names where the metastore was looked for, never
// the password.
func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:S3cr@127.0.0.1:1/db", "postgres://u:S3cr%40t@127.0.0.1:1/db", "postgres://u@127.0.0.1:1/db?password=S3cr", "postgres://u:S3cr@127.0.0.1:bad/db",
		"postgres://u:S3cr%zz@127.0.0.1/db", "postgres://u:S3cr@[::1/db", "postgres://u:S3cr x@h/db", "postgres://u:S3cr@127.0.0.1:1/db?sslmode=x", "postgres://u:S3@cr@127.0.0.1:1/db",
		"mysql://u:S3cr@127.0.0.1/db", "host=127.0.0.1 password=S3cr", "host=a password=S3cr:t",
	} {
		if _, err := metastore.Open(t.Context(), url, metastore.Options{}); err == nil || strings.Contains(err.Error(), "S3") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, url := range map[string]string{
		"nobody listens": "postgres://me:secret@" + closed.Addr().String() + "/weir",
		"no answer":      "postgres://me:secret@" + silent.Addr().String() + "/weir?sslmode=disable",
		"no folder":      "sqlite:" + filepath.Join(t.TempDir(), "missing", "weir.db"),
		"no file":        "sqlite:" + t.TempDir(),
		"no path":        "sqlite:",
		"bad URL":        "postgres://me:secret@host:port/weir",
		"other scheme":   "mysql://me:secret@host/weir",
		"nothing":        "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := metastore.Open(t.Context(), url, metastore.Options{ConnectTimeout: 500 * time.Millisecond})
			if err == nil {
				t.Fatal("opened")
			}
			t.Log(err)
			if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") || time.Since(start) > 4*time.Second { // it is 5 s unless told otherwise
				t.Fatalf("not one clear line in time: %v after %v", err, time.Since(start))
			}
		})
	}
}

package transport_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"weir/transport"
	"weir/transport/transporttest"
)

// natsConf is the configuration that operators are given.
const natsConf = "../deploy/nats.conf"

// readNATSConf has the NATS server's own parser read that file as it is, below lines that
// define its variables.
func readNATSConf(t testing.TB, definitions string) *server.Options {
	t.Helper()
	text, err := os.ReadFile(natsConf)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, append([]byte(definitions), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// TestPermissions: the lists of deploy/nats.conf let each user say and hear what this
// package has it say and hear, nothing else, and nothing of another cluster.
func TestPermissions(t *testing.T) {
	t.Parallel()
	opts := readNATSConf(t, definitions(t))
	own, foreign := transport.AllSpoken(t, ""), transport.AllSpoken(t, "other")
	used := map[string]bool{}
	for _, u := range opts.Users {
		may := func(list []string, subject string) bool {
			ok := false
			for _, entry := range list {
				if server.SubjectMatchesFilter(subject, entry) {
					used[u.Username+" "+entry], ok = true, true
				}
			}
			return ok
		}
		p := u.Permissions
		for _, s := range own {
			if got, want := !strings.ContainsAny(s.Subject, "*>") && may(p.Publish.Allow, s.Subject), slices.Contains(s.Publish, u.Username); got != want {
				t.Errorf("%s may publish %s: %v", u.Username, s.Subject, got)
			}
			if got, want := may(p.Subscribe.Allow, s.Subject), slices.Contains(s.Subscribe, u.Username); got != want {
				t.Errorf("%s may subscribe %s: %v", u.Username, s.Subject, got)
			}
		}
		for _, s := range foreign {
			if may(p.Publish.Allow, s.Subject) || may(p.Subscribe.Allow, s.Subject) {
				t.Errorf("%s may use %s", u.Username, s.Subject)
			}
		}
		for _, entry := range slices.Concat(p.Publish.Allow, p.Subscribe.Allow) {
			if !used[u.Username+" "+entry] {
				t.Errorf("%s does not need %s", u.Username, entry)
			}
		}
		if p.Response != nil {
			t.Errorf("%s may answer whatever it is asked, where it is told to", u.Username)
		}
		if a := u.Account.GetName(); a != "WEIR" {
			t.Errorf("%s is in account %s", u.Username, a)
		}
	}
	if len(opts.Users) != 3 {
		t.Errorf("%d users", len(opts.Users))
	}
}

// TestPermissionsDocumented: the page has every entry of the lists.
func TestPermissionsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range readNATSConf(t, definitions(t)).Users {
		for _, entry := range slices.Concat(u.Permissions.Publish.Allow, u.Permissions.Subscribe.Allow) {
			if short := "`" + strings.TrimPrefix(entry, "weir.default.") + "`"; !strings.Contains(string(page), short) {
				t.Errorf("the page does not speak of %s", short)
			}
		}
	}
}

// TestPermissionsComplete: no way to make a subject is missing from the test above.
func TestPermissionsComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "subject.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		if recv, ok := f.Recv.List[0].Type.(*ast.Ident); ok && recv.Name == "subjects" {
			methods[f.Name.Name] = true
		}
	}
	for _, part := range []string{"dataOf", "acksOf", "place"} { // these begin subjects
		if !methods[part] {
			t.Errorf("no method %s", part)
		}
		delete(methods, part)
	}
	tested := map[string]bool{}
	for _, s := range transport.AllSpoken(t, "") {
		tested[s.Method] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(methods)), slices.Sorted(maps.Keys(tested))); diff != "" {
		t.Errorf("-subject.go +tested:\n%s", diff)
	}
}

// definitions are some that will do where no server is started: the files are there.
func definitions(t testing.TB) string {
	t.Helper()
	ca := transporttest.NewAuthority(t)
	cert, key := ca.Host(t, "127.0.0.1", time.Now().Add(time.Hour))
	return `NATS_NAME = "nats-1"
NATS_CERT = "` + cert + `"
NATS_KEY = "` + key + `"
NATS_CA = "` + ca.File + `"
NATS_ROUTES = []
NATS_ROUTE_PASSWORD = "r"
NATS_WEIR_SERVER = "s"
NATS_WEIR_WORKER = "w"
NATS_WEIR_WORKER_1 = "w1"
`
}

// TestNATSConfEnvironment: the file alone, with its variables in the environment.
func TestNATSConfEnvironment(t *testing.T) {
	ca := transporttest.NewAuthority(t)
	cert, key := ca.Host(t, "127.0.0.1", time.Now().Add(time.Hour))
	const hash = "$2a$04$MM79DG/4uDiAqJhDwouqCeozQvKQK5zpeuPvvJ2TUWEm8/QaFlRWi"
	for name, value := range map[string]string{
		"NATS_NAME": "nats-1", "NATS_CERT": cert, "NATS_KEY": key, "NATS_CA": ca.File,
		"NATS_ROUTES": `["tls://route:8e3@nats-2:6222", "tls://route:8e3@nats-3:6222"]`, "NATS_ROUTE_PASSWORD": `"8e3"`,
		"NATS_WEIR_SERVER": `"` + hash + `"`, "NATS_WEIR_WORKER": `"12"`, "NATS_WEIR_WORKER_1": `"1k"`,
	} {
		t.Setenv(name, value)
	}
	opts := readNATSConf(t, "")
	got := map[string]string{"name": opts.ServerName, "route": opts.Cluster.Password}
	for _, u := range opts.Users {
		got[u.Username] = u.Password
	}
	for i, r := range opts.Routes {
		got["route "+string(rune('1'+i))] = r.String()
	}
	want := map[string]string{
		"name": "nats-1", "route": "8e3", "server": hash, "worker": "12", "worker-1": "1k",
		"route 1": "tls://route:8e3@nats-2:6222", "route 2": "tls://route:8e3@nats-3:6222",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if opts.MaxPayload != 1<<20 || opts.MaxPending != transport.ServerPending || opts.PingInterval != 5*time.Second || opts.TLSConfig == nil || opts.Cluster.TLSConfig == nil {
		t.Errorf("max_payload %d, max_pending %d, ping_interval %v", opts.MaxPayload, opts.MaxPending, opts.PingInterval)
	}
}

package transport

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

	"weir"
)

// natsConf is the configuration that operators are given.
const natsConf = "../deploy/nats.conf"

// ReadNATSConf has the NATS server's own parser read that file as it is, below lines that
// define its variables.
func ReadNATSConf(t testing.TB, definitions string) *server.Options {
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

// A spoken is a subject of this package as it is used: who of the users in the
// configuration may publish on it, who may subscribe to it. "worker" stands for any
// worker, "worker-1" for that one alone.
type spoken struct {
	method             string // of subjects
	subject            string
	publish, subscribe []string
}

func allSpoken(t testing.TB, cluster string) []spoken {
	t.Helper()
	s, err := newSubjects(cluster)
	if err != nil {
		t.Fatal(err)
	}
	job, attempt := weir.NewJobID(), weir.NewAttemptID(1)
	ch := weir.ChannelID{Edge: 3, From: weir.TaskID{Chain: 1, Subtask: 2}, To: weir.TaskID{Chain: 4, Subtask: 5}}
	const one, other, srv = weir.WorkerID("worker-1"), weir.WorkerID("worker-2"), weir.WorkerID("server-1")
	servers, workers, all := []string{"server"}, []string{"worker", "worker-1"}, []string{"server", "worker", "worker-1"}
	shared := []string{"worker"} // the user that can be any worker
	return []spoken{
		{"data", s.data(job, attempt, ch), workers, workers},
		{"dataTo", s.dataTo(job, attempt, ch.To), nil, workers},
		{"acks", s.acks(job, attempt, ch), workers, workers},
		{"acksTo", s.acksTo(job, attempt, ch.From), nil, workers},

		{"command", s.command(one, "deploy"), servers, workers},
		{"command", s.command(one, "read"), all, workers},
		{"command", s.command(one, "*"), nil, workers},
		{"command", s.command(one.Life("x"), "deploy"), servers, workers},
		{"command", s.command(one.Life("x"), "read"), servers, workers},
		{"command", s.command(one.Life("x"), "*"), nil, workers},
		{"command", s.command(other, "deploy"), servers, shared},
		{"command", s.command(other, "read"), all, shared},
		{"command", s.command(other, "*"), nil, shared},
		{"command", s.command(other.Life("x"), "read"), servers, shared},
		{"command", s.command(other.Life("x"), "*"), nil, shared},
		{"command", s.command(srv, "trigger"), servers, servers},
		{"command", s.command(srv, "*"), nil, servers},
		{"command", s.command(srv.Life("x"), "trigger"), nil, servers}, // servers are listened to so, and not asked
		{"command", s.command(srv.Life("x"), "*"), nil, servers},
		{"ping", s.ping(one), servers, workers},
		{"ping", s.ping(other), servers, shared},
		{"ping", s.ping(srv), nil, servers},
		{"report", s.report(), workers, servers},
		{"heartbeat", s.heartbeat(), workers, servers},

		{"inbox", s.inbox(one, "x") + ">", nil, workers},
		{"inbox", s.inbox(other, "x") + ">", nil, shared},
		{"inbox", s.inbox("", "x") + ">", nil, servers},
		{"from", s.inbox(one, "x") + s.from(one.Life("y")) + ".1", workers, workers},
		{"from", s.inbox(one, "x") + s.from(other) + ".1", shared, workers},
		{"from", s.inbox(one, "x") + s.from("") + ".1", servers, workers},
		{"from", s.inbox(other, "x") + s.from(one) + ".1", workers, shared},
		{"from", s.inbox(other, "x") + s.from("") + ".1", servers, shared},
		{"from", s.inbox("", "x") + s.from(one) + ".1", workers, servers},
		{"from", s.inbox("", "x") + s.from(other) + ".1", shared, servers},
		{"from", s.inbox("", "x") + s.from(srv) + ".1", servers, servers},
	}
}

// TestPermissions: the lists of deploy/nats.conf let each user say and hear what this
// package has it say and hear, nothing else, and nothing of another cluster.
func TestPermissions(t *testing.T) {
	t.Parallel()
	opts := ReadNATSConf(t, definitions(t))
	own, foreign := allSpoken(t, ""), allSpoken(t, "other")
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
			if got, want := !strings.ContainsAny(s.subject, "*>") && may(p.Publish.Allow, s.subject), slices.Contains(s.publish, u.Username); got != want {
				t.Errorf("%s may publish %s: %v", u.Username, s.subject, got)
			}
			if got, want := may(p.Subscribe.Allow, s.subject), slices.Contains(s.subscribe, u.Username); got != want {
				t.Errorf("%s may subscribe %s: %v", u.Username, s.subject, got)
			}
		}
		for _, s := range foreign {
			if may(p.Publish.Allow, s.subject) || may(p.Subscribe.Allow, s.subject) {
				t.Errorf("%s may use %s", u.Username, s.subject)
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
	for _, u := range ReadNATSConf(t, definitions(t)).Users {
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
	for _, s := range allSpoken(t, "") {
		tested[s.method] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(methods)), slices.Sorted(maps.Keys(tested))); diff != "" {
		t.Errorf("-subject.go +tested:\n%s", diff)
	}
}

// definitions are some that will do where no server is started: the files are there.
func definitions(t testing.TB) string {
	t.Helper()
	c := NewCertificates(t)
	return `NATS_NAME = "nats-1"
NATS_CERT = "` + c.CertFile + `"
NATS_KEY = "` + c.KeyFile + `"
NATS_CA = "` + c.CAFile + `"
NATS_ROUTES = []
NATS_ROUTE_PASSWORD = "r"
NATS_WEIR_SERVER = "s"
NATS_WEIR_WORKER = "w"
NATS_WEIR_WORKER_1 = "w1"
`
}

// TestNATSConfEnvironment: the file alone, with its variables in the environment.
func TestNATSConfEnvironment(t *testing.T) {
	c := NewCertificates(t)
	const hash = "$2a$04$MM79DG/4uDiAqJhDwouqCeozQvKQK5zpeuPvvJ2TUWEm8/QaFlRWi"
	for name, value := range map[string]string{
		"NATS_NAME": "nats-1", "NATS_CERT": c.CertFile, "NATS_KEY": c.KeyFile, "NATS_CA": c.CAFile,
		"NATS_ROUTES": `["tls://route:8e3@nats-2:6222", "tls://route:8e3@nats-3:6222"]`, "NATS_ROUTE_PASSWORD": `"8e3"`,
		"NATS_WEIR_SERVER": `"` + hash + `"`, "NATS_WEIR_WORKER": `"12"`, "NATS_WEIR_WORKER_1": `"1k"`,
	} {
		t.Setenv(name, value)
	}
	opts := ReadNATSConf(t, "")
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
	if opts.MaxPayload != 1<<20 || opts.MaxPending != serverPending || opts.PingInterval != 5*time.Second || opts.TLSConfig == nil || opts.Cluster.TLSConfig == nil {
		t.Errorf("max_payload %d, max_pending %d, ping_interval %v", opts.MaxPayload, opts.MaxPending, opts.PingInterval)
	}
}

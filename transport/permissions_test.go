package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// A secured is NATS servers as deploy/nats.conf has them. Its users' passwords are their
// names, but the server's.
type secured struct {
	ca      *transporttest.Authority
	servers []*server.Server
}

// The server's password, as it is and as a configuration has it.
const (
	serverPassword = "of the server"
	serverHash     = "$2a$04$MM79DG/4uDiAqJhDwouqCeozQvKQK5zpeuPvvJ2TUWEm8/QaFlRWi"
)

// startSecured starts n servers on the bytes of the file, and two kinds of users more,
// which all are in the account of the file's: "all" may do everything, and each
// "foreign NAME" is what NAME is, of the cluster "other".
func startSecured(t testing.TB, n int) *secured {
	t.Helper()
	s := &secured{ca: transporttest.NewAuthority(t)}
	cert, key := s.ca.Host(t, "127.0.0.1", time.Now().Add(time.Hour))
	routes := []string{}
	for i := range n {
		opts := readNATSConf(t, fmt.Sprintf("NATS_NAME = \"nats-%d\"\nNATS_CERT = %q\nNATS_KEY = %q\nNATS_CA = %q\nNATS_ROUTES = [%s]\n"+
			"NATS_ROUTE_PASSWORD = \"ofRoutes\"\nNATS_WEIR_SERVER = %q\nNATS_WEIR_WORKER = \"worker\"\nNATS_WEIR_WORKER_1 = \"worker-1\"\n",
			i+1, cert, key, s.ca.File, strings.Join(routes, ", "), serverHash))
		opts.Host, opts.Port, opts.Cluster.Host, opts.Cluster.Port = "127.0.0.1", server.RANDOM_PORT, "127.0.0.1", server.RANDOM_PORT
		opts.NoSigs, opts.NoLog = true, true
		for _, u := range slices.Clone(opts.Users) {
			opts.Users = append(opts.Users, foreign(u))
		}
		opts.Users = append(opts.Users, &server.User{Username: "all", Password: "all", Account: opts.Users[0].Account})
		ns, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		ns.Start()
		t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
		if !ns.ReadyForConnections(transporttest.Patience) {
			t.Fatal("nats is not ready")
		}
		s.servers = append(s.servers, ns)
		routes = append(routes, fmt.Sprintf(`"tls://route:ofRoutes@127.0.0.1:%d"`, ns.ClusterAddr().Port))
	}
	transporttest.Until(t, "the servers know each other", func() bool {
		return !slices.ContainsFunc(s.servers, func(ns *server.Server) bool { return n > 1 && ns.NumRoutes() == 0 })
	})
	return s
}

// foreign is a user of another cluster in the same account.
func foreign(u *server.User) *server.User {
	move := func(p *server.SubjectPermission) *server.SubjectPermission {
		moved := &server.SubjectPermission{}
		for _, entry := range p.Allow {
			moved.Allow = append(moved.Allow, strings.Replace(entry, "weir.default.", "weir.other.", 1))
		}
		return moved
	}
	name := "foreign " + u.Username
	return &server.User{Username: name, Password: name, Account: u.Account, Permissions: &server.Permissions{
		Publish: move(u.Permissions.Publish), Subscribe: move(u.Permissions.Subscribe),
	}}
}

func (s *secured) url(i int) string {
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.servers[i].Addr().(*net.TCPAddr).Port))
}

// as are the options of a process that connects to server i as user.
func (s *secured) as(user string, i int, worker weir.WorkerID, log *slog.Logger) transport.Options {
	return transport.Options{URL: s.url(i), Name: "test", Worker: worker, Log: log, Security: transport.Security{
		CAFile: s.ca.File, User: user, Password: passwordOf(user),
	}}
}

func passwordOf(user string) string {
	if user == "server" {
		return serverPassword
	}
	return user
}

// A record is a log that several goroutines write.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// A station is a process: its connections, and what it has heard.
type station struct {
	control *transport.Control
	network *transport.Network
	beatC   chan string
	reportC chan string
}

func openStation(t testing.TB, opts transport.Options) *station {
	t.Helper()
	st := &station{beatC: make(chan string, 64), reportC: make(chan string, 64)}
	var err error
	if st.control, err = transport.OpenControl(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.control.Close)
	if st.network, err = transport.OpenNetwork(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	background(t, st.network.Run)
	return st
}

// tell puts what was heard where the test looks, unless it looks no more.
func tell(c chan string, what string) {
	select {
	case c <- what:
	default:
	}
}

// serveAs takes commands; the answer to one names it.
func (st *station) serveAs(t testing.TB, name weir.WorkerID) {
	background(t, func(ctx context.Context) error {
		return st.control.Serve(ctx, name, "life-of-"+string(name), func(_ context.Context, kind string, _ []byte) ([]byte, error) {
			return json.Marshal(string(name) + " did " + kind)
		})
	})
}

func (st *station) listen(t testing.TB) {
	background(t, func(ctx context.Context) error {
		return st.control.ServeReports(ctx, func(_ context.Context, kind string, body []byte) ([]byte, error) {
			tell(st.reportC, kind+string(body))
			return body, nil
		})
	})
	background(t, func(ctx context.Context) error {
		return st.control.Heartbeats(ctx, func(body []byte) { tell(st.beatC, string(body)) })
	})
}

// ask is a Request that waits for somebody to listen.
func (st *station) ask(t testing.TB, name weir.WorkerID, kind string) {
	t.Helper()
	place, _, _ := strings.Cut(string(name), "@")
	for ctx := bounded(t); ; {
		got, err := st.control.Request(ctx, name, kind, nil)
		if errors.Is(err, weir.ErrNotFound) {
			continue
		}
		if want := fmt.Sprintf("%q", place+" did "+kind); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, want)
		}
		return
	}
}

// TestPermitted: servers and workers that connect to a cluster of NATS servers as users of
// deploy/nats.conf do all that they have to, and are refused nothing.
func TestPermitted(t *testing.T) {
	t.Parallel()
	s, said := startSecured(t, 2), &record{}
	log := slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	one, two := openStation(t, s.as("worker-1", 0, "worker-1", log)), openStation(t, s.as("worker", 1, "worker-2", log))
	lead, follower := openStation(t, s.as("server", 1, "", log)), openStation(t, s.as("server", 0, "", log))
	one.serveAs(t, "worker-1")
	two.serveAs(t, "worker-2")
	lead.serveAs(t, "server-1")
	lead.listen(t)
	follower.listen(t)

	for _, w := range []weir.WorkerID{"worker-1", "worker-2"} {
		lead.ask(t, w, "deploy")
		lead.ask(t, w.Life("life-of-"+string(w)), "deploy")
		follower.ask(t, w, "results")
		if life, err := lead.control.Ping(bounded(t), w); err != nil || life != "life-of-"+string(w) {
			t.Errorf("ping: %q, %v", life, err)
		}
	}
	follower.ask(t, "server-1", "trigger")
	one.ask(t, "worker-2", "read")
	two.ask(t, "worker-1", "read")

	for name, w := range map[string]*station{"one": one, "two": two} {
		body := []byte(fmt.Sprintf("%q", name))
		if got, err := w.control.Publish(bounded(t), "failed", body); err != nil || !bytes.Equal(got, body) {
			t.Errorf("report of %s: %s, %v", name, got, err)
		}
		for _, srv := range []*station{lead, follower} {
			hears(t, srv.reportC, "failed"+string(body), func() {})
			hears(t, srv.beatC, string(body), func() {
				if err := w.control.Heartbeat(t.Context(), body); err != nil {
					t.Errorf("heartbeat of %s: %v", name, err)
				}
			})
		}
	}

	d, err := transporttest.OpenDuplex(one.network, two.network, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(bounded(t), transporttest.NewTraffic(7, 500, 100_000, false), nil); err != nil {
		t.Error(err)
	}
	if text := said.String(); strings.Contains(text, "forbids") || strings.Contains(text, "level=ERROR") {
		t.Errorf("complaints:\n%s", text)
	}
}

// hears waits until want was heard, and says it again from time to time.
func hears(t testing.TB, c <-chan string, want string, say func()) {
	t.Helper()
	ctx, again := bounded(t), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	say()
	for {
		select {
		case got := <-c:
			if got == want {
				return
			}
		case <-again.C:
			say()
		case <-ctx.Done():
			t.Fatalf("%s was not heard", want)
		}
	}
}

// A client is a plain NATS client, of which the server's refusals are known.
type client struct {
	*nats.Conn
	name     string
	refusedC chan string
}

func (s *secured) client(t testing.TB, user string) *client {
	t.Helper()
	c := &client{name: user, refusedC: make(chan string, 16)}
	var err error
	c.Conn, err = nats.Connect(s.url(0), nats.UserInfo(user, passwordOf(user)), nats.RootCAs(s.ca.File),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { tell(c.refusedC, err.Error()) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (c *client) say(t testing.TB, subject, text string) {
	t.Helper()
	if err := c.Publish(subject, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// refused waits for the server's word that this client may not do so.
func (c *client) refused(t testing.TB, verb, subject string) {
	t.Helper()
	if err := c.FlushTimeout(transporttest.Patience); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-c.refusedC:
		if want := fmt.Sprintf("Permissions Violation for %s %q", verb, subject); !strings.Contains(got, want) {
			t.Errorf("want %s, got %s", want, got)
		}
	case <-bounded(t).Done():
		t.Fatalf("nothing refused: %s %s", verb, subject)
	}
}

// receive takes the next message of a subscription.
func receive(t testing.TB, sub *nats.Subscription) *nats.Msg {
	t.Helper()
	m, err := sub.NextMsgWithContext(bounded(t))
	if err != nil {
		t.Fatalf("%s: %v", sub.Subject, err)
	}
	return m
}

func listenTo(t testing.TB, c *client, subject string) *nats.Subscription {
	t.Helper()
	sub, err := c.SubscribeSync(subject)
	if err == nil {
		err = c.FlushTimeout(transporttest.Patience)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// forbidden is what each user is refused: to publish on a subject, and to subscribe, with
// a subject whose messages it would have heard.
func forbidden() map[string]struct {
	publish   []string
	subscribe [][2]string
} {
	type list = struct {
		publish   []string
		subscribe [][2]string
	}
	commands := []string{
		"w.worker-2.command.deploy", "w.worker-2.command.stop", "w.worker-1.command.deploy", "w.worker-2.life.x.deploy",
		"w.worker-2.life.x.read", "w.worker-2.ping", "s.server-1.command.checkpoint", "s.server-1.life.x.checkpoint", "s.server-1.ping",
		"i.w.worker-2.x.1", "i.w.worker-1.x.1", "i.s.x.1", "i.s.x.s.1", "i.w.worker-2.x.s.1",
	}
	servers := [][2]string{
		{"s.report", "s.report"},
		{"s.heartbeat", "s.heartbeat"},
		{"s.>", "s.report"},
		{"*.report", "s.report"},
		{"i.s.>", "i.s.x.1"},
		{">", "s.heartbeat"},
		{"s.server-1.command.*", "s.server-1.command.checkpoint"},
	}
	neighbours := [][2]string{
		{"w.worker-2.command.*", "w.worker-2.command.deploy"},
		{"w.*.command.*", "w.worker-2.command.deploy"},
		{"w.worker-2.life.x.*", "w.worker-2.life.x.stop"},
		{"w.>", "w.worker-2.ping"},
		{"i.w.worker-2.>", "i.w.worker-2.x.1"},
		{"i.w.*.x.1", "i.w.worker-2.x.1"},
		{"i.>", "i.w.worker-2.x.1"},
	}
	workers := []string{"d.job.1.4_5.1_2", "k.job.1.1_2.4_5", "s.report", "s.heartbeat"}
	everywhere := [][2]string{
		{"d.>", "d.job.1.4_5.1_2"}, {"k.>", "k.job.1.1_2.4_5"}, {"w.>", "w.worker-1.command.deploy"}, {"w.worker-1.command.*", "w.worker-1.command.read"}, {"i.w.>", "i.w.worker-1.x.1"},
	}
	others := []string{"i.s.x.w.worker-2.1", "i.w.worker-2.x.w.worker-2.1", "i.w.worker-1.x.w.worker-2.1"} // their answers
	all := slices.Concat(commands, workers, others, []string{"w.worker-1.command.read", "i.s.x.w.worker-1.1", "i.s.x.s.1", "anything"})
	return map[string]list{
		"worker-1":         {slices.Concat(commands, others), slices.Concat(servers, neighbours)},
		"worker":           {commands, servers},
		"server":           {slices.Concat(workers, []string{"s.server-1.life.x.checkpoint", "s.server-1.ping", "i.s.x.1", "i.w.worker-1.x.1", "i.s.x.w.worker-1.1"}), everywhere},
		"foreign worker-1": {all, slices.Concat(servers, neighbours, everywhere)},
		"foreign worker":   {all, slices.Concat(servers, neighbours, everywhere)},
		"foreign server":   {all, slices.Concat(servers, neighbours, everywhere)},
	}
}

// TestForbidden: what a user may not say is heard by nobody, and what it may not hear it
// does not. Beside each attempt stands somebody who may.
func TestForbidden(t *testing.T) {
	t.Parallel()
	s := startSecured(t, 1)
	for user, f := range forbidden() {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			it, witness := s.client(t, user), s.client(t, "all")
			for _, name := range f.publish {
				cannotPublish(t, it, witness, "weir.default."+name)
			}
			for _, pair := range f.subscribe {
				cannotSubscribe(t, it, witness, "weir.default."+pair[0], "weir.default."+pair[1])
			}
			for _, subject := range []string{"weir.>", ">", "weir.*.s.report", "*.default.s.report"} {
				cannotSubscribe(t, it, witness, subject, "weir.default.s.report")
			}
			for _, subject := range []string{"orders.new", "weir.third.s.report", "weir.third.w.worker-1.command.read"} {
				cannotPublish(t, it, witness, subject)
			}
			if _, err := it.SubscribeSync("$SYS.>"); err != nil {
				t.Fatal(err)
			}
			it.refused(t, "Subscription to", "$SYS.>")
		})
	}
}

func cannotPublish(t *testing.T, it, witness *client, subject string) {
	t.Helper()
	sub := listenTo(t, witness, subject)
	it.say(t, subject, "forbidden")
	it.refused(t, "Publish to", subject)
	witness.say(t, subject, "permitted beside "+it.name)
	for { // other tests speak there too
		m := receive(t, sub)
		if string(m.Data) == "permitted beside "+it.name {
			break // what came before it on this server would have been heard before it
		}
		if string(m.Data) == "forbidden" {
			t.Errorf("%s was published", subject)
		}
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Error(err)
	}
}

func cannotSubscribe(t *testing.T, it, witness *client, subject, example string) {
	t.Helper()
	heard, err := it.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	it.refused(t, "Subscription to", subject)
	sub := listenTo(t, witness, subject)
	witness.say(t, example, "secret")
	for { // other tests speak there too
		if m := receive(t, sub); m.Subject == example {
			break
		}
	}
	if err := it.FlushTimeout(transporttest.Patience); err != nil {
		t.Fatal(err)
	}
	if n, _, err := heard.Pending(); n > 0 || err != nil {
		t.Errorf("%s: %d messages heard, %v", subject, n, err)
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Error(err)
	}
}

// TestForbiddenAnswers: a worker answers in its own name, and only whoever asks so. A message
// that it sends to itself, and that wants an answer elsewhere, gives it no leave.
func TestForbiddenAnswers(t *testing.T) {
	t.Parallel()
	s := startSecured(t, 1)
	worker, witness := s.client(t, "worker-1"), s.client(t, "all")
	asked := listenTo(t, worker, "weir.default.w.worker-1.command.*")
	rows := listenTo(t, worker, "weir.default.d.>")
	const inbox = "weir.default.i.s.life.w.worker-1.1"
	answers := listenTo(t, witness, "weir.default.i.>")
	srv := s.client(t, "server")
	if err := srv.PublishRequest("weir.default.w.worker-1.command.deploy", inbox, nil); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, asked).Respond([]byte("the answer")); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, answers); m.Subject != inbox || string(m.Data) != "the answer" {
		t.Errorf("%s: %s", m.Subject, m.Data)
	}
	for _, elsewhere := range []string{"weir.default.w.worker-2.command.stop", "weir.default.i.s.life.w.worker-2.1", "weir.other.s.report", "orders.new"} {
		if err := worker.PublishRequest("weir.default.d.job.1.4_5.1_2", elsewhere, nil); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, rows).Respond([]byte("forbidden")); err != nil {
			t.Fatal(err)
		}
		worker.refused(t, "Publish to", elsewhere)
	}
	if n, _, err := answers.Pending(); n > 0 || err != nil {
		t.Errorf("%d answers more, %v", n, err)
	}
}

// TestForbiddenIsSaid: a process with another one's user says which subject it may not use.
func TestForbiddenIsSaid(t *testing.T) {
	t.Parallel()
	s, said := startSecured(t, 1), &record{}
	log := slog.New(slog.NewTextHandler(said, nil))
	st := openStation(t, s.as("worker-1", 0, "worker-2", log))
	st.serveAs(t, "worker-2")
	for _, want := range []string{"may_not=subscribe subject=weir.default.w.worker-2.ping", "may_not=subscribe subject=weir.default.w.worker-2.command.*"} {
		transporttest.Until(t, want, func() bool { return strings.Contains(said.String(), want) })
	}
	_, err := st.control.Request(bounded(t), "worker-3", "deploy", nil)
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "forbids this user to publish to weir.default.w.worker-3.command.deploy") {
		t.Errorf("request: %v", err)
	}
	transporttest.Until(t, "it offers itself to nobody, since it would hear no command", func() bool {
		err := st.control.Heartbeat(t.Context(), nil)
		return err != nil && strings.Contains(err.Error(), "forbids this user to subscribe to weir.default.")
	})
}

// TestForbiddenIsMended: a worker that may not hear its commands does so once its user may,
// and so does a server that may not say them; nobody is started again.
func TestForbiddenIsMended(t *testing.T) {
	t.Parallel()
	users := func(subscribe, publish string, port int) server.Options {
		own := &server.SubjectPermission{Allow: []string{"weir.>"}}
		return server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, AuthTimeout: 60, Users: []*server.User{
			{Username: "server", Password: "server", Permissions: &server.Permissions{Subscribe: own, Publish: &server.SubjectPermission{Allow: []string{publish}}}},
			{Username: "worker", Password: "worker", Permissions: &server.Permissions{Publish: own, Subscribe: &server.SubjectPermission{Allow: []string{subscribe}}}},
		}}
	}
	url, ns := guarded(t, users("weir.default.i.>", "weir.default.i.>", 0))
	open := func(user string, log *slog.Logger) *transport.Control {
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: user, Log: log, Security: transport.Security{User: user, Password: user}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	said := &record{}
	worker, lead := open("worker", slog.New(slog.NewTextHandler(said, nil))), open("server", nil)
	serve(t, worker, "life", echo)
	transporttest.Until(t, "it sends no heartbeats", func() bool { return worker.Heartbeat(t.Context(), nil) != nil })
	if _, err := lead.Request(bounded(t), testWorker, "x", []byte("1")); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a command that is forbidden: %v", err)
	}
	mended := users("weir.>", "weir.>", ns.Addr().(*net.TCPAddr).Port)
	if err := ns.ReloadOptions(&mended); err != nil {
		t.Fatal(err)
	}
	transporttest.Until(t, "it hears a command", func() bool {
		_, err := lead.Request(bounded(t), testWorker, "x", []byte("1"))
		return err == nil
	})
	transporttest.Until(t, "it sends heartbeats", func() bool { return worker.Heartbeat(t.Context(), nil) == nil })
	if strings.Contains(said.String(), "nats connection") {
		t.Errorf("its user need not know of connections:\n%s", said)
	}
}

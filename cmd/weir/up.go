package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/transport"
)

const (
	restartFirst = 100 * time.Millisecond // before a worker is started again that has died twice, then doubled
	restartMost  = 5 * time.Second
	steadyAfter  = 10 * time.Second // a worker that lived this long starts again at once
	// childGrace is for a worker to end by itself, which takes it moments. Only who hangs in
	// storage or in a sink's target takes longer; somebody at a terminal waits for this
	// process, and a kill loses nothing: its output is taken up or removed by the next
	// attempt, and parts of an upload are found by a check of storage.
	childGrace   = 3 * time.Second
	readyTimeout = 30 * time.Second
)

// upOptions are the flags of weir up.
type upOptions struct {
	data     string
	storage  string // "": a folder below data
	listen   string
	workers  int
	slots    int
	demo     bool
	insecure bool
	files    []string
	logLevel string
	memory   byteSize // of all processes
	share    int64    // of it, each worker's; 0: nobody knows
	history  checkpoint.Thinning
	maxJobs  int
	// quiet says nothing when ready: weir run is the one who speaks.
	quiet bool
}

func newUp() *cobra.Command {
	o := upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "run everything on this machine, from nothing",
		Long:  "Up runs a server with NATS and SQLite embedded, and workers as processes of their own, over a data folder.",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.files) == 0 {
				o.files = []string{"."}
			}
			return up(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "weir-data", "the folder that keeps everything")
	f.StringVar(&o.storage, "storage", "", storageHelp+" (default: a folder below --data)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7420", "where the API and the dashboard listen; port 0: any")
	f.IntVar(&o.workers, "workers", 2, "worker processes")
	f.IntVar(&o.slots, "slots", 4, "slots per worker")
	f.BoolVar(&o.demo, "demo", false, "have the unbounded demo table user_behavior")
	f.BoolVar(&o.insecure, "insecure", false, "listen on an address other than loopback, without tokens")
	f.StringArrayVar(&o.files, "files", nil, "a folder that file tables may use (default: the current one)")
	memoryFlag(f, &o.memory, "the limit of the control group, or half of the machine's, for all processes")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	historyFlags(f, &o.history)
	jobsFlag(f, &o.maxJobs)
	return cmd
}

// validate checks the flags and makes the paths absolute, since workers are started
// elsewhere.
func (o *upOptions) validate() error {
	if o.workers < 1 || o.slots < 1 {
		return fmt.Errorf("--workers and --slots are at least 1 (they are %d and %d): %w", o.workers, o.slots, errUsage)
	}
	if o.maxJobs < 1 {
		return errMaxJobs
	}
	var err error
	if o.data, err = filepath.Abs(o.data); err != nil {
		return err
	}
	if o.storage == "" {
		o.storage = "file://" + filepath.Join(o.data, "objects")
	}
	o.files, err = roots(o.files)
	return err
}

// roots makes the folders of --files absolute; each has to exist.
func roots(files []string) ([]string, error) {
	out := make([]string, len(files))
	for i, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--files %s: not a folder", f)
		}
		out[i] = abs
	}
	return out, nil
}

// up runs everything until ctx ends. ready is called with the server's address once
// jobs can be submitted and every worker is there.
func up(ctx context.Context, o upOptions, stdout, stderr io.Writer, ready func(url string)) error {
	began := time.Now()
	if err := o.validate(); err != nil {
		return err
	}
	log, err := newLogger(stderr, o.logLevel)
	if err != nil {
		return err
	}
	if err := o.divideMemory(log); err != nil {
		return err
	}
	if err := os.MkdirAll(o.data, 0o755); err != nil {
		return err
	}
	unlock, err := lock(o.data)
	if err != nil {
		return err
	}
	defer unlock()
	listener, err := listen(o.listen, o.insecure)
	if err != nil {
		return err
	}
	defer listener.Close()
	// Every user of this machine reaches the port: only who has the token gets in.
	token := rand.Text()
	nats, err := transport.StartServer(ctx, transport.ServerOptions{Token: token, Log: log})
	if err != nil {
		return err
	}
	defer nats.Stop()

	conf := o.server(natsConfig{url: nats.URL(), security: transport.Security{Token: token}})
	s, err := openServer(ctx, conf, log)
	if err != nil {
		return err
	}
	defer s.close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.run(ctx, listener) })
	for i := range o.workers {
		c := child{id: weir.WorkerID("worker-" + strconv.Itoa(i+1)), conf: conf, up: o, stderr: stderr, log: log, exited: s.workerExited}
		g.Go(func() error { return c.run(ctx) })
	}
	g.Go(func() error {
		if err := o.awaitWorkers(ctx, s); err != nil || ctx.Err() != nil {
			return err
		}
		url := "http://" + listener.Addr().String()
		if !o.quiet {
			//nolint:errcheck // it serves, whether its line is read or not
			fmt.Fprintf(stdout, "weir is ready: %s (API at %s/docs), %d workers with %d slots each, data in %s, after %d ms\n",
				url, url, o.workers, o.slots, o.data, time.Since(began).Milliseconds())
		}
		if ready != nil {
			ready(url)
		}
		return nil
	})
	return g.Wait()
}

// divideMemory gives the workers and this process their parts of the memory.
func (o *upOptions) divideMemory(log *slog.Logger) error {
	found, err := findMemory(o.memory, os.DirFS("/"), upPart)
	if err != nil {
		log.Warn("the limit on memory is not known for sure", "err", err)
	}
	server, share, err := divideUp(found, o.workers)
	if err != nil {
		return err
	}
	o.share = share
	limitHeap(server, log)
	return nil
}

// server is the configuration of the server, all of it in the data folder, unless objects
// are to be elsewhere.
func (o upOptions) server(nats natsConfig) serverConfig {
	return serverConfig{
		metastore: "sqlite:" + filepath.Join(o.data, "weir.db"),
		nats:      nats,
		storage:   o.storage,
		migrate:   true,
		alone:     true, // the lock on the data folder says so
		demo:      o.demo,
		checkPath: located(o.files),
		history:   o.history,
		maxJobs:   o.maxJobs,
	}
}

// awaitWorkers returns once the workers are there, or ctx has ended.
func (o upOptions) awaitWorkers(ctx context.Context, s *controlPlane) error {
	waitCtx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.awaitWorkers(waitCtx, o.workers); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the workers did not come up within %v: %w", readyTimeout, err)
	}
	return nil
}

// newLogger makes the logger of a process: one line of text per record.
func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q is none of debug, info, warn, error: %w", level, errUsage)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}

// listen opens the API's address. Without tokens only loopback is safe.
func listen(address string, insecure bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %q is not HOST:PORT: %w", address, errUsage)
	}
	if ip := net.ParseIP(host); !insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--listen %s is not a loopback address: anybody who reaches it could run jobs; pass --insecure if that is meant", address)
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process; choose another address with --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return l, nil
}

// lock takes the data folder for this process.
func lock(data string) (unlock func(), err error) {
	unlock, err = lockFile(filepath.Join(data, "lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("data folder %s is in use by another weir process; choose another with --data", data)
	}
	return unlock, err
}

// lockFile takes a file for this process; the system drops the lock with it.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// A child is a worker process of weir up: started, and started again when it dies.
type child struct {
	id     weir.WorkerID
	conf   serverConfig
	up     upOptions
	stderr io.Writer
	log    *slog.Logger
	exited func(weir.WorkerID)
}

func (c *child) run(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for wait := time.Duration(0); ; wait = min(max(2*wait, restartFirst), restartMost) {
		began := time.Now()
		err := c.once(ctx, self)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		c.exited(c.id)
		c.log.Warn("worker exited; starting it again", "worker", c.id, "err", err)
		if time.Since(began) > steadyAfter {
			wait = 0
		}
		if pause(ctx, wait) != nil {
			return nil //nolint:nilerr // it was told to end
		}
	}
}

// once runs the process to its end. The child watches its standard input: when this
// process dies, however it does, the pipe closes and the child ends too.
func (c *child) once(ctx context.Context, self string) error {
	args := []string{
		"worker", "--id", string(c.id), "--nats", c.conf.nats.url, "--storage", c.conf.storage,
		"--slots", strconv.Itoa(c.up.slots), "--data", filepath.Join(c.up.data, string(c.id)),
		"--log-level", c.up.logLevel, "--exit-with-stdin",
	}
	if c.up.share > 0 {
		args = append(args, "--memory", strconv.FormatInt(c.up.share, 10))
	}
	for _, f := range c.up.files {
		args = append(args, "--files", f)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = c.stderr
	cmd.Env = childEnv(os.Environ(), c.conf.nats.security.Token)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to handle, in order
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer pipe.Close()
	return cmd.Run()
}

// childEnv is the environment of a worker of ours: the token of the NATS server within
// this process, and nothing that is meant for another one.
func childEnv(env []string, token string) []string {
	env = slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "WEIR_NATS") || strings.HasPrefix(v, "WEIR_MEMORY=") || strings.HasPrefix(v, "WEIR_CLUSTER=")
	})
	return append(env, "WEIR_NATS_TOKEN="+token)
}

// alone is a server that weir run started for itself.
type alone struct {
	url    string
	folder string
	cancel context.CancelFunc
	done   chan error
}

// aloneSlots is room for any parallelism: what the script SETs is not known yet, and a
// slot that is not used costs nothing.
const aloneSlots = 1 << 15

// startAlone starts everything in a temporary folder.
func startAlone(files []string, stderr io.Writer) (*alone, error) {
	if len(files) == 0 {
		files = []string{"/"}
	}
	folder, err := os.MkdirTemp("", "weir-run-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &alone{folder: folder, cancel: cancel, done: make(chan error, 1)}
	o := upOptions{data: folder, listen: "127.0.0.1:0", workers: 1, slots: aloneSlots, files: files, logLevel: "error", maxJobs: 1, quiet: true}
	readyC := make(chan string, 1)
	go func() { a.done <- up(ctx, o, io.Discard, stderr, func(url string) { readyC <- url }) }()
	select {
	case a.url = <-readyC:
		return a, nil
	case err := <-a.done:
		a.done <- nil
		a.stop()
		return nil, err
	}
}

// stop ends everything and removes the folder.
func (a *alone) stop() {
	a.cancel()
	<-a.done               //nolint:errcheck // cancelled, or startAlone has returned it
	os.RemoveAll(a.folder) //nolint:errcheck // a temporary folder
}

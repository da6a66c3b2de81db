package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/transport"
)

// A process is one of ours. It dies with the bench, however that ends.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader // its standard output
	log   *tailBuffer
	done  chan struct{}
	err   error // once done
}

// A tailBuffer keeps the last of what is written to it.
type tailBuffer struct {
	mu struct {
		sync.Mutex
		b []byte
	}
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.b = append(t.mu.b, p...)
	if over := len(t.mu.b) - 8<<10; over > 0 {
		t.mu.b = append(t.mu.b[:0], t.mu.b[over:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.mu.b)
}

// start runs a program until ctx ends: then it is told to end, and what it is asked for
// by line fails.
func start(ctx context.Context, name, program string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.CommandContext(ctx, program, args...), log: &tailBuffer{}, done: make(chan struct{})}
	endInOrder(p.cmd)
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.lines = w, bufio.NewReader(out)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, out.Close(), w.Close())
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), out.Close(), w.Close())
	}
	w.Close() // the child has it
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// toEnd is how long a process that was told to end may take.
const toEnd = 5 * time.Second

// endInOrder has the end of a command's context tell it to end, and kill it later.
func endInOrder(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = toEnd
}

// startSelf runs the bench itself as one of its helping processes.
func startSelf(ctx context.Context, name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, name, self, args...)
}

// line reads the next line of its output.
func (p *process) line() (string, error) {
	text, err := p.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s said nothing more: %w\n%s", p.name, err, p.log)
	}
	return strings.TrimSpace(text), nil
}

// read reads the next line of its output as JSON.
func (p *process) read(v any) error {
	text, err := p.line()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}

// kill is kill -9, and waits until the process is gone.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may be gone
	<-p.done
}

// stop ends it in order, or else by force.
func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may be gone
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(toEnd):
		p.kill()
	}
}

// pause waits, or ends with ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await asks every 5 ms until it is so.
func await(ctx context.Context, limit time.Duration, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		ok, err := so()
		if err == nil && ok {
			return nil
		}
		if err != nil {
			last = err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("waited %v for: %s: %w", limit, what, errors.Join(err, last))
		}
	}
}

// runNATS is a NATS server by itself: it prints its address, and ends with its input.
func runNATS(ctx context.Context) error {
	s, err := transport.StartServer(ctx, transport.ServerOptions{})
	if err != nil {
		return err
	}
	defer s.Stop()
	if _, err := fmt.Println(s.URL()); err != nil {
		return err
	}
	return untilInputEnds(ctx)
}

// untilInputEnds returns when standard input closes, or ctx ends.
func untilInputEnds(ctx context.Context) error {
	endC := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end will do
		close(endC)
	}()
	select {
	case <-endC:
	case <-ctx.Done():
	}
	return nil
}

// startNATS starts a NATS server in its own process.
func startNATS(ctx context.Context) (*process, string, error) {
	p, err := startSelf(ctx, "NATS server", "nats")
	if err != nil {
		return nil, "", err
	}
	url, err := p.line()
	if err != nil {
		p.kill()
		return nil, "", err
	}
	return p, url, nil
}

// A cluster is a server, NATS and workers as an operator would run them, each a process.
type cluster struct {
	dir, url, storage string // url: of NATS
	api               *api
	nats, server      *process
	workers           map[string]*process
	profile           string // of the workers to come; "": none
}

// startCluster starts a cluster of the binary in a temporary folder, without workers yet.
func startCluster(ctx context.Context, weir string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, storage: "file://" + filepath.Join(dir, "objects"), workers: map[string]*process{}}
	if err := c.start(ctx, weir); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, weir string) error {
	metastore := "sqlite:" + filepath.Join(c.dir, "weir.db")
	if out, err := exec.CommandContext(ctx, weir, "migrate", "--metastore", metastore).CombinedOutput(); err != nil {
		return fmt.Errorf("weir migrate: %w\n%s", err, bytes.TrimSpace(out))
	}
	var err error
	if c.nats, c.url, err = startNATS(ctx); err != nil {
		return err
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	c.server, err = start(ctx, "weir server", weir, "server", "--metastore", metastore, "--nats", c.url, "--storage", c.storage, "--listen", listen, "--log-level", "warn")
	if err != nil {
		return err
	}
	c.api = &api{url: "http://" + listen}
	return await(ctx, 20*time.Second, "the server is ready", func() (bool, error) { return c.api.ready(ctx) })
}

// startWorker starts a worker of the bench and waits until the server hears it.
func (c *cluster) startWorker(ctx context.Context, id string, slots int) error {
	p, err := startSelf(ctx, "worker "+id, "worker", "-id", id, "-nats", c.url, "-storage", c.storage, "-slots", fmt.Sprint(slots), "-profile", c.profile)
	if err != nil {
		return err
	}
	c.workers[id] = p
	return await(ctx, 20*time.Second, "worker "+id+" is heard", func() (bool, error) {
		all, err := c.api.workers(ctx)
		for _, w := range all {
			if w.ID == id && w.PID == p.cmd.Process.Pid {
				return true, nil
			}
		}
		return false, err
	})
}

// stop ends everything and removes the folder.
func (c *cluster) stop() {
	for _, p := range c.workers { // their order does not matter
		p.stop()
	}
	for _, p := range []*process{c.server, c.nats} {
		if p != nil {
			p.stop()
		}
	}
	os.RemoveAll(c.dir) //nolint:errcheck // a temporary folder
}

// freeAddress returns a loopback address that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startUp starts weir up in a temporary folder and returns how to talk to it and to end it.
func startUp(ctx context.Context, weir, files string, workers, slots int) (*api, func(), error) {
	u, err := launchUp(ctx, weir, files, workers, slots)
	if err != nil {
		return nil, nil, err
	}
	return u.api, u.end, nil
}

// An upProcess is a weir up with its folder.
type upProcess struct {
	*process
	api *api
	dir string
}

// end ends it and removes the folder.
func (u *upProcess) end() {
	u.stop()
	os.RemoveAll(u.dir) //nolint:errcheck // a temporary folder
}

// launchUp starts weir up in a temporary folder; further are further arguments.
func launchUp(ctx context.Context, weir, files string, workers, slots int, further ...string) (*upProcess, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	args := []string{"up", "--data", dir, "--listen", "127.0.0.1:0", "--workers", fmt.Sprint(workers), "--slots", fmt.Sprint(slots), "--files", files, "--log-level", "error"}
	p, err := start(ctx, "weir up", weir, append(args, further...)...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	u := &upProcess{process: p, dir: dir}
	text, err := p.line()
	_, rest, _ := strings.Cut(text, "http://")
	address, _, found := strings.Cut(rest, " ")
	if err == nil && !found {
		err = fmt.Errorf("weir up did not say where it listens: %s", text)
	}
	if err != nil {
		u.end()
		return nil, err
	}
	u.api = &api{url: "http://" + address}
	return u, nil
}

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/metastore/postgrestest"
	"weir/transport"
)

// role says what a child of the test binary, which is the test binary itself, does
// instead of testing.
const role = "WEIR_E2E_ROLE"

func TestMain(m *testing.M) {
	what, argument, _ := strings.Cut(os.Getenv(role), " ")
	switch what {
	case "":
		os.Exit(postgrestest.Main(m))
	case "nats": // a NATS server at the address
		os.Exit(serveNATS(argument))
	case "relay": // what comes in by descriptor 3 goes to the address
		l, err := net.FileListener(os.NewFile(3, "listener"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		relay(l, "tcp", argument)
	}
}

func serveNATS(address string) int {
	host, port, _ := net.SplitHostPort(address)
	number, err := strconv.Atoi(port)
	if err == nil {
		var ns *transport.Server
		if ns, err = transport.StartServer(context.Background(), transport.ServerOptions{Host: host, Port: number}); err == nil {
			defer ns.Stop()
			stopC := make(chan os.Signal, 1)
			signal.Notify(stopC, syscall.SIGTERM)
			<-stopC
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// relay passes connections on to another address until l is closed.
func relay(l net.Listener, network, address string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.DialTimeout(network, address, time.Second)
			if err != nil {
				return
			}
			defer out.Close()
			go func() {
				io.Copy(out, in)
				out.Close()
			}()
			io.Copy(in, out)
		}()
	}
}

// own is a command that runs this test binary in a role.
func own(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), role+"="+what)
	return cmd
}

// Hosts are machines as far as the network goes: namespaces, each with one link to the
// switch. Nothing has a name outside, and all of it goes with the process that holds it,
// which goes with the test binary: runs do not meet, and a killed one leaves nothing.
type hosts struct {
	t     *testing.T
	hub   string            // the switch's namespace
	names []string          // in the order of their addresses
	inner map[string]string // the namespace of each
}

// startHosts makes a machine of each name.
func startHosts(t *testing.T, names ...string) *hosts {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: needs root")
	}
	h := &hosts{t: t, names: names, inner: map[string]string{}}
	h.hub, _ = h.namespace("the switch")
	wiring := "link add sw type bridge\nlink set sw up\n"
	for i, name := range names {
		inner, pid := h.namespace("host " + name)
		h.inner[name] = inner
		wiring += fmt.Sprintf("link add p%d type veth peer name eth0 netns %d\nlink set p%d master sw up\n", i, pid, i)
	}
	h.run(h.hub, wiring, "ip", "-batch", "-")
	for _, name := range names {
		h.run(h.inner[name], fmt.Sprintf("link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n", h.address(name)), "ip", "-batch", "-")
	}
	return h
}

// namespace makes one, which lives as long as a process that only waits.
func (h *hosts) namespace(what string) (path string, pid int) {
	h.t.Helper()
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	if err := holder.Start(); err != nil {
		if os.Getenv("CI") != "true" {
			h.t.Skipf("not run: needs root, and leave to make network namespaces: %v", err)
		}
		h.t.Fatalf("a network namespace for %s: %v", what, err)
	}
	h.t.Cleanup(func() {
		holder.Process.Kill()
		holder.Wait()
	})
	return fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid), holder.Process.Pid
}

func (h *hosts) address(name string) string {
	return fmt.Sprintf("10.77.0.%d", 1+slices.Index(h.names, name))
}

// run runs a command in a namespace.
func (h *hosts) run(namespace, stdin string, args ...string) {
	h.t.Helper()
	cmd := within(namespace, exec.Command(args[0], args[1:]...))
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, &out)
	}
}

// within is the command in a network namespace.
func within(namespace string, cmd *exec.Cmd) *exec.Cmd {
	c := exec.Command("nsenter", append([]string{"--net=" + namespace, "--", cmd.Path}, cmd.Args[1:]...)...)
	c.Env, c.Dir, c.ExtraFiles = cmd.Env, cmd.Dir, cmd.ExtraFiles
	return c
}

// cut takes the link of a host down, and mend brings it up again.
func (h *hosts) cut(name string)  { h.link(name, "down") }
func (h *hosts) mend(name string) { h.link(name, "up") }

func (h *hosts) link(name, to string) {
	h.t.Helper()
	h.t.Logf("the link of %s is %s", name, to)
	h.run(h.hub, "", "ip", "link", "set", fmt.Sprint("p", slices.Index(h.names, name)), to)
}

// lose has a host lose packets of one way, in ("input") or out ("output"): all that a
// rule of nftables is true of; "" is true of all. Of both ways, it is called twice.
func (h *hosts) lose(name, way, which string) {
	h.t.Helper()
	h.t.Logf("%s loses its %s", name, way)
	side := map[string]string{"input": "iifname", "output": "oifname"}[way]
	h.run(h.inner[name], fmt.Sprintf("add table inet loss\nadd chain inet loss %s { type filter hook %[1]s priority 0; }\nadd rule inet loss %[1]s %s eth0 %s drop\n", way, side, which), "nft", "-f", "-")
}

// keep ends lose.
func (h *hosts) keep(name string) {
	h.t.Helper()
	h.t.Logf("%s loses nothing", name)
	h.run(h.inner[name], "", "nft", "delete", "table", "inet", "loss")
}

// outside leads an address of this machine to one that only the host reaches.
func (h *hosts) outside(name, inside string) string {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	cmd := own(h.t, "relay "+inside)
	cmd.ExtraFiles = []*os.File{f}
	startCommand(h.t, "relay", "", within(h.inner[name], cmd))
	return l.Addr().String()
}

func bash(script string) *exec.Cmd { return exec.Command("bash", "-c", script) }

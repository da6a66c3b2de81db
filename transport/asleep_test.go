package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// asleepVar makes this test binary a worker that TestWorkerAsleep puts to sleep. Its
// value is the URL of NATS and the job.
const asleepVar = "WEIR_TEST_ASLEEP"

const (
	asleepFrames = 6000
	asleepSeed   = 7
)

// asleepMain is that worker: it sends and receives, and says on its output when it has
// begun and how it ended.
func asleepMain(args string) int {
	url, job, _ := strings.Cut(args, " ")
	ctx, cancel := context.WithTimeout(context.Background(), 3*transporttest.Patience)
	defer cancel()
	n, err := transport.OpenNetwork(ctx, transport.Options{URL: url, Name: "asleep"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ranC := make(chan error, 1)
	runCtx, stop := context.WithCancel(ctx)
	go func() { ranC <- n.Run(runCtx) }()
	err = asleepWork(ctx, n, weir.JobID(job))
	fmt.Println("ended:", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // the parent has heard all: what is unacknowledged would be lost with us
	stop()
	<-ranC
	return 0
}

func asleepWork(ctx context.Context, n *transport.Network, job weir.JobID) error {
	end, err := openAsleep(n, job, true)
	if err != nil {
		return err
	}
	return runAsleep(ctx, end, func(i int) {
		if i == asleepFrames/10 {
			fmt.Println("begun")
		}
	})
}

// openAsleep opens the ends of one of the two workers.
func openAsleep(n *transport.Network, job weir.JobID, child bool) (transporttest.End, error) {
	there := transporttest.Channel()
	back := weir.ChannelID{Edge: there.Edge, From: there.To, To: there.From}
	if child {
		there, back = back, there
	}
	end := transporttest.End{WakeC: make(chan struct{}, 1)}
	attempt := weir.AttemptID{Number: 1, Tag: "a51ee900"}
	var err error
	if end.In, err = n.Inbound(job, attempt, back, false, end.WakeC); err != nil {
		return end, err
	}
	end.Out, err = n.Outbound(job, attempt, there, false, nil)
	return end, err
}

func runAsleep(ctx context.Context, end transporttest.End, each func(int)) error {
	tr := transporttest.NewTraffic(asleepSeed, asleepFrames, 64<<10, false)
	sentC := make(chan error, 1)
	go func() { sentC <- tr.Send(ctx, end.Out, nil) }()
	if err := tr.Receive(ctx, end.In, end.WakeC, each); err != nil {
		return err
	}
	return <-sentC
}

// TestWorkerAsleep: a worker stops in the middle, longer than any timer of a channel and,
// with WEIR_LONG, than NATS waits for it. When it wakes up, all arrives.
func TestWorkerAsleep(t *testing.T) {
	t.Parallel()
	nap := time.Second
	if long() {
		nap = 20 * time.Second // NATS gives up writing to a client after 10 s
	}
	url := startServer(t).URL()
	n, job := network(t, url), weir.NewJobID()
	child := exec.CommandContext(t.Context(), os.Args[0]) // this very program
	child.Env = append(os.Environ(), asleepVar+"="+url+" "+string(job))
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	end, err := openAsleep(n, job, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*transporttest.Patience)
	defer cancel()
	doneC := make(chan error, 1)
	go func() { doneC <- runAsleep(ctx, end, nil) }()
	if !lines.Scan() || lines.Text() != "begun" {
		t.Fatalf("the worker says %q", lines.Text())
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(nap)
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-doneC; err != nil {
		t.Errorf("%v\n%+v", err, n.Stats())
	}
	if !lines.Scan() || lines.Text() != "ended: <nil>" {
		t.Errorf("the worker says %q", lines.Text())
	}
	stdin.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%+v", n.Stats())
}

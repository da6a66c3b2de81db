package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
	"weir/transport"
)

// channelBench sends frames of several sizes through a channel and as plain messages,
// from one process to another over the same NATS server, which is a third.
type channelBench struct {
	runs int
	size int // 0: all
}

func (b *channelBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.runs, "runs", 7, "interleaved pairs of runs")
	f.IntVar(&b.size, "size", 0, "measure frames of this many bytes alone")
}

// channelFigures are those of one size.
type channelFigures struct {
	Size   int `json:"size"`
	Frames int `json:"frames"`
	Lost   int `json:"plain_lost"` // messages that NATS dropped
	comparison
}

// largestFrame is what the tasks' outputs send at most: a frame with its header stays
// below 256 KiB.
const largestFrame = 256<<10 - 1<<10

func (b *channelBench) run(ctx context.Context, _ common) (any, string, error) {
	server, url, err := startNATS(ctx)
	if err != nil {
		return nil, "", err
	}
	defer server.stop()
	sizes := []int{256, 4 << 10, 64 << 10, largestFrame}
	if b.size > 0 {
		sizes = []int{b.size}
	}
	var all []channelFigures
	for _, size := range sizes {
		f := channelFigures{Size: size, Frames: max(min(512<<20/size, 1_000_000), 2000)}
		f.comparison, err = compared(fmt.Sprintf("channel: %d bytes", size), b.runs, func() (float64, error) {
			got, err := passFrames(ctx, url, "channel", size, f.Frames) // all of them, or an error
			return got.rate(), err
		}, func() (float64, error) {
			got, err := passFrames(ctx, url, "plain", size, f.Frames)
			f.Lost += f.Frames - got.Frames
			return got.rate(), err
		})
		if err != nil {
			return nil, "", err
		}
		all = append(all, f)
	}
	return all, showChannel(all), nil
}

func showChannel(all []channelFigures) string {
	var w strings.Builder
	w.WriteString("| frames of | channel, MB/s (min, max) | plain NATS, MB/s (min, max) | ratio | target |\n|---|---|---|---|---|\n")
	for _, f := range all {
		target := "≥ 0.80"
		if f.Size < 4<<10 {
			target = "–"
		}
		fmt.Fprintf(&w, "| %d B | %s | %s |\n", f.Size, f.columns("%.0f"), target)
	}
	for _, f := range all {
		if f.Lost > 0 {
			fmt.Fprintf(&w, "\nPlain NATS lost %d messages of %d B over all runs.\n", f.Lost, f.Size)
		}
	}
	return w.String()
}

// passed is what the receiving end saw: Bytes arrived within Nanos after the first frame.
type passed struct {
	Frames int   `json:"frames"`
	Bytes  int64 `json:"bytes"`
	Nanos  int64 `json:"nanos"`
}

func (p passed) rate() float64 { return float64(p.Bytes) / (float64(p.Nanos) / 1e9) }

// passFrames runs a pair of ends.
func passFrames(ctx context.Context, url, kind string, size, frames int) (passed, error) {
	args := []string{"-kind", kind, "-url", url, "-size", fmt.Sprint(size), "-frames", fmt.Sprint(frames), "-job", string(weir.NewJobID())}
	receiver, err := startSelf(ctx, "receiving end", append([]string{"end", "-receive"}, args...)...)
	if err != nil {
		return passed{}, err
	}
	defer receiver.stop()
	if _, err := receiver.line(); err != nil { // it is ready
		return passed{}, err
	}
	sender, err := startSelf(ctx, "sending end", append([]string{"end"}, args...)...)
	if err != nil {
		return passed{}, err
	}
	defer sender.stop()
	var got passed
	if err := receiver.read(&got); err != nil {
		return passed{}, fmt.Errorf("%w; the sending end: %s", err, sender.log)
	}
	if got.Frames < 2 || kind == "channel" && got.Frames != frames {
		return got, fmt.Errorf("%d of %d frames arrived; the sending end: %s", got.Frames, frames, sender.log)
	}
	return got, ctx.Err()
}

// An end is one end of a pair, in a process of its own.
type end struct {
	kind, url, job string
	receive        bool
	size, frames   int
}

func runEnd(ctx context.Context, args []string) error {
	var e end
	f := flag.NewFlagSet("bench end", flag.ContinueOnError)
	f.StringVar(&e.kind, "kind", "channel", "channel or plain")
	f.StringVar(&e.url, "url", "", "of the NATS server")
	f.StringVar(&e.job, "job", "", "names the pair")
	f.BoolVar(&e.receive, "receive", false, "receive")
	f.IntVar(&e.size, "size", 4096, "bytes of a frame")
	f.IntVar(&e.frames, "frames", 1000, "frames")
	if err := f.Parse(args); err != nil {
		return err
	}
	if e.kind == "channel" {
		return e.channel(ctx)
	}
	return e.plain(ctx)
}

// say prints a line for the bench.
func say(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(b, '\n'))
	return err
}

func (e end) channel(ctx context.Context) error {
	n, err := transport.OpenNetwork(ctx, transport.Options{URL: e.url, Name: "bench"})
	if err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(ctx)
	ranC := make(chan error, 1)
	go func() { ranC <- n.Run(runCtx) }()
	ch := weir.ChannelID{From: weir.TaskID{Chain: 0}, To: weir.TaskID{Chain: 1}}
	attempt := weir.AttemptID{Number: 1, Tag: "00000001"}
	if e.receive {
		err = e.receiveFrames(ctx, n, attempt, ch)
	} else {
		err = e.sendFrames(ctx, n, attempt, ch)
	}
	if err == nil {
		err = untilInputEnds(ctx) // what is under way still wants its acknowledgements
	}
	cancel()
	return errors.Join(err, <-ranC)
}

func (e end) sendFrames(ctx context.Context, n *transport.Network, attempt weir.AttemptID, ch weir.ChannelID) error {
	out, err := n.Outbound(weir.JobID(e.job), attempt, ch, false, nil)
	if err != nil {
		return err
	}
	payload := make([]byte, e.size)
	for range e.frames {
		if err := out.Send(ctx, weir.Frame{Kind: weir.FrameRecords, Bytes: payload, Size: e.size}); err != nil {
			return err
		}
	}
	return out.Close()
}

func (e end) receiveFrames(ctx context.Context, n *transport.Network, attempt weir.AttemptID, ch weir.ChannelID) error {
	wakeC := make(chan struct{}, 1)
	in, err := n.Inbound(weir.JobID(e.job), attempt, ch, false, wakeC)
	if err != nil {
		return err
	}
	if err := say("ready"); err != nil {
		return err
	}
	var got passed
	var began time.Time
	for got.Frames < e.frames {
		f, ok, err := in.Poll()
		if err != nil {
			return err
		}
		if !ok {
			select {
			case <-wakeC:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if got.Frames++; got.Frames == 1 {
			began = time.Now()
			continue
		}
		got.Bytes += int64(len(f.Bytes))
	}
	got.Nanos = time.Since(began).Nanoseconds()
	return say(got)
}

// plain is what a program does that uses NATS by itself: it publishes and subscribes,
// with no limit to what waits in the subscriber.
func (e end) plain(ctx context.Context) error {
	nc, err := nats.Connect(e.url, nats.Name("bench plain"))
	if err != nil {
		return err
	}
	defer nc.Close()
	subject := "plain." + e.job
	if e.receive {
		return e.subscribe(ctx, nc, subject)
	}
	payload := make([]byte, e.size)
	for range e.frames {
		if err := nc.Publish(subject, payload); err != nil {
			return err
		}
	}
	if err := nc.FlushTimeout(time.Minute); err != nil {
		return err
	}
	return untilInputEnds(ctx)
}

func (e end) subscribe(ctx context.Context, nc *nats.Conn, subject string) error {
	const silent = 3 * time.Second // after which what did not arrive is lost
	var got passed
	var began, last time.Time
	doneC := make(chan struct{})
	arrivedC := make(chan struct{}, 1)
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) { // one call at a time
		if got.Frames++; got.Frames == 1 {
			began = time.Now()
		} else {
			got.Bytes += int64(len(m.Data))
		}
		if got.Frames%64 != 0 && got.Frames != e.frames {
			return
		}
		if last = time.Now(); got.Frames == e.frames {
			close(doneC)
			return
		}
		select {
		case arrivedC <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), nc.Flush(), say("ready")); err != nil {
		return err
	}
	for waiting := true; waiting; {
		select {
		case <-doneC:
			waiting = false
		case <-arrivedC:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(silent):
			waiting = false
		}
	}
	nc.Close()
	got.Nanos = last.Sub(began).Nanoseconds()
	return say(got)
}

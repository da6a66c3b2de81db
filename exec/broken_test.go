package exec_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
)

// cutOff is a network whose channels break: their ends say so.
type cutOff struct{ *exectest.Network }

func (n cutOff) Outbound(weir.ChannelID, func(error)) (weir.Outbound, bool, error) {
	return n, true, nil
}

func (n cutOff) Inbound(weir.ChannelID, chan<- struct{}) (weir.Inbound, error) {
	return n, nil
}
func (cutOff) Send(context.Context, weir.Frame) error { return errBroken() }
func (cutOff) Poll() (weir.Frame, bool, error)        { return weir.Frame{}, false, errBroken() }
func (cutOff) Idle() bool                             { return true }
func (cutOff) Close() error                           { return nil }

func errBroken() error { return fmt.Errorf("%w: channel 0: its peer was opened anew", weir.ErrBroken) }

// idle is a network whose outputs are broken before anything is sent.
type idle struct{ cutOff }

func (n idle) Outbound(_ weir.ChannelID, broken func(error)) (weir.Outbound, bool, error) {
	broken(errBroken())
	return n, true, nil
}

// A verdict is a Reporter that keeps a failure.
type verdict struct {
	lab
	failure weir.Failure
	restart bool
}

func (v *verdict) Failed(_ weir.TaskID, f weir.Failure, restart bool) {
	v.failure, v.restart = f, restart
}

// TestBrokenChannel: a task whose channel breaks, at whichever end, fails with the reason
// `channel`, and another attempt is worth it.
func TestBrokenChannel(t *testing.T) {
	t.Parallel()
	ends := cutOff{exectest.NewNetwork(1, false)}
	for _, test := range []struct {
		end     string
		chain   int
		rows    int
		network exec.Network
	}{
		{"sending", 0, 10, ends},
		{"receiving", 1, 10, ends},
		{"sending, with nothing to send", 0, 0, idle{ends}},
	} {
		c, v, end := config(test.rows), &verdict{}, test.end
		tasks, err := exec.Build(context.Background(), exec.BuildConfig{
			Job: "job_00000000000000000000000000000001", Worker: "w1", Graph: c.Graph, Parallelism: 1, Tasks: []weir.TaskID{{Chain: test.chain}},
			Network: test.network, Blobs: blob.NewMemory(), Reporter: v,
			Openers: exec.Openers{Source: c.Openers.Source, Operator: op.Open}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := tasks[0].Run(context.Background()); !errors.Is(err, weir.ErrBroken) {
			t.Errorf("%s end: %v", end, err)
		}
		if v.failure.Reason != exec.ReasonChannel || !v.restart || !strings.HasSuffix(v.failure.Message, "channel 0: its peer was opened anew") {
			t.Errorf("%s end: %+v, restart %v", end, v.failure, v.restart)
		}
	}
}

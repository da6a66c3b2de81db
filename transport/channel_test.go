package transport

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestChannel runs the scripts over a Sender and a Receiver joined by a network that
// does only what the script says. Each file is one way of losing.
func TestChannel(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/channel", func(t *testing.T, path string) {
		t.Parallel()
		var p *pair
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "channel" {
				p = newPair(scriptLimits(t, d))
				return p.state()
			}
			p.out.Reset()
			p.run(t, d)
			if p.out.Len() == 0 {
				return "nothing\n"
			}
			return p.out.String()
		})
	})
}

func scriptLimits(t *testing.T, d *datadriven.TestData) Limits {
	lim := Limits{MinCredit: 1000, MaxCredit: 10000, Message: 300, Collect: 100}
	d.MaybeScanArgs(t, "min", &lim.MinCredit)
	d.MaybeScanArgs(t, "max", &lim.MaxCredit)
	d.MaybeScanArgs(t, "message", &lim.Message)
	return lim
}

func (p *pair) run(t *testing.T, d *datadriven.TestData) {
	n, weight := 1, 100
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "weight", &weight)
	side := ""
	if len(d.CmdArgs) > 0 {
		side = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "up", "down":
		p.takes = 0
		d.MaybeScanArgs(t, "takes", &p.takes)
		p.connection(side, d.Cmd == "up")
	case "restart":
		p.restart(side)
	case "send":
		for range n {
			p.send(weight)
		}
	case "flush":
		p.toSender(Event{Kind: EvFlush})
	case "consume":
		for range n {
			p.consume()
		}
	case "deliver":
		for range n {
			p.deliver(side)
		}
	case "drop", "repeat", "swap", "damage", "version", "keep":
		for range n {
			p.tamper(d.Cmd, side)
		}
	case "late":
		p.late(side)
	case "foreign":
		p.foreign(side)
	case "intrude":
		p.intrude(weight)
	case "share":
		p.toReceiver(Event{Kind: EvShare, Weight: weight})
	case "wait", "silence", "asleep", "stopped":
		p.pass(t, d)
	case "state":
		p.out.WriteString(p.state())
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
}

// pass lets time pass: with every tick in its time (wait), so that nothing gets through
// (silence), or without any tick until the end (asleep), or beyond it (stopped).
func (p *pair) pass(t *testing.T, d *datadriven.TestData) {
	var by time.Duration
	d.ScanArgs(t, "for", &by)
	switch d.Cmd {
	case "wait":
		p.wait(by)
	case "silence":
		p.silence(by)
	case "asleep":
		p.asleep(by)
	case "stopped":
		p.now = p.now.Add(by)
	}
}

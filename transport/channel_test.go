package transport

import (
	"fmt"
	"strings"
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
	return lim
}

var testAddress = Address{Job: [16]byte{1}, Attempt: 7, Tag: [4]byte{2}, From: [2]uint32{0, 1}, To: [2]uint32{1, 0}}

// A pair is both machines of a channel and what is under way between them.
type pair struct {
	now      time.Time
	start    time.Time
	sender   *Sender
	receiver *Receiver
	data     []packet // to the receiver
	acks     []Event  // to the sender
	queue    []int    // weights delivered and not consumed
	seen     []uint64 // delivered
	sentUp   bool
	recvUp   bool
	flush    bool
	woken    bool
	out      strings.Builder
}

// A packet is a message of frames, or a probe.
type packet struct {
	frames []Event
	probe  bool
	seq    uint64
}

func newPair(lim Limits) *pair {
	start := time.Unix(1_000_000, 0)
	return &pair{
		now: start, start: start,
		sender: NewSender(testAddress, lim), receiver: NewReceiver(testAddress, lim),
	}
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
		p.connection(side, d.Cmd == "up")
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
	case "drop", "repeat", "swap":
		p.tamper(d.Cmd, side)
	case "foreign":
		p.foreign(side)
	case "intrude":
		p.toReceiver(Event{Kind: EvFrame, From: testAddress, Seq: p.receiver.last + 1, Weight: weight})
	case "share":
		p.toReceiver(Event{Kind: EvShare, Weight: weight})
	case "wait":
		var by time.Duration
		d.ScanArgs(t, "for", &by)
		p.wait(by)
	case "state":
		p.out.WriteString(p.state())
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
}

func (p *pair) connection(side string, up bool) {
	kind := EvDown
	if up {
		kind = EvUp
	}
	if side != "receiver" {
		p.sentUp = up
		p.toSender(Event{Kind: kind})
	}
	if side != "sender" {
		p.recvUp = up
		p.toReceiver(Event{Kind: kind})
	}
}

func (p *pair) send(weight int) bool {
	if !p.sender.Admits(weight) {
		p.printf("blocked")
		p.toSender(Event{Kind: EvWait, Weight: weight})
		return false
	}
	p.printf("sent %d", p.sender.NextSeq())
	p.toSender(Event{Kind: EvSend, Weight: weight, Wire: &Buffer{}})
	return true
}

func (p *pair) consume() {
	if len(p.queue) == 0 {
		p.printf("nothing to consume")
		return
	}
	weight := p.queue[0]
	p.queue = p.queue[1:]
	p.toReceiver(Event{Kind: EvConsume, Weight: weight})
}

func (p *pair) deliver(side string) {
	switch {
	case side == "data" && len(p.data) > 0:
		pkt := p.data[0]
		p.data = p.data[1:]
		p.arrive(pkt)
	case side == "ack" && len(p.acks) > 0:
		ev := p.acks[0]
		p.acks = p.acks[1:]
		p.toSender(ev)
	case side == "all":
		for len(p.data)+len(p.acks) > 0 {
			for len(p.data) > 0 {
				p.deliver("data")
			}
			for len(p.acks) > 0 {
				p.deliver("ack")
			}
		}
	default:
		p.printf("no %s under way", side)
	}
}

func (p *pair) arrive(pkt packet) {
	if pkt.probe {
		p.toReceiver(Event{Kind: EvProbe, From: testAddress, Seq: pkt.seq})
		return
	}
	for _, ev := range pkt.frames {
		p.toReceiver(ev)
	}
}

func (p *pair) tamper(how, side string) {
	switch {
	case side == "data" && len(p.data) > 0:
		p.printf("%s: %v", how, p.data[0])
		p.data = tampered(p.data, how)
	case side == "ack" && len(p.acks) > 0:
		p.printf("%s: ack %d", how, p.acks[0].Seq)
		p.acks = tampered(p.acks, how)
	default:
		p.printf("no %s under way", side)
	}
}

func (p packet) String() string {
	if p.probe {
		return fmt.Sprintf("probe %d", p.seq)
	}
	return fmt.Sprintf("frames %d-%d", p.frames[0].Seq, p.frames[len(p.frames)-1].Seq)
}

func tampered[T any](q []T, how string) []T {
	switch {
	case how == "drop" && len(q) > 0:
		return q[1:]
	case how == "repeat" && len(q) > 0:
		return append(q[:1:1], q...)
	case how == "swap" && len(q) > 1:
		q[0], q[1] = q[1], q[0]
	}
	return q
}

func (p *pair) foreign(side string) {
	other := testAddress
	other.Attempt--
	if side == "ack" {
		p.toSender(Event{Kind: EvAck, From: other, Seq: p.sender.last, Limit: 1 << 40})
		return
	}
	p.toReceiver(Event{Kind: EvFrame, From: other, Seq: p.receiver.last + 1, Weight: 100})
	p.toReceiver(Event{Kind: EvProbe, From: other, Seq: 99})
}

// wait lets time pass from deadline to deadline.
func (p *pair) wait(by time.Duration) {
	end := p.now.Add(by)
	for {
		next := earlier(p.sender.Deadline(), p.receiver.Deadline())
		if next.IsZero() || next.After(end) {
			break
		}
		if next.After(p.now) {
			p.now = next
		}
		p.printf("at %v", p.now.Sub(p.start))
		p.toSender(Event{Kind: EvTick})
		p.toReceiver(Event{Kind: EvTick})
	}
	p.now = end
}

func (p *pair) toSender(ev Event) {
	for _, a := range p.sender.Step(p.now, ev) {
		switch a.Kind {
		case ActTransmit:
			pkt := packet{}
			for seq := a.Seq; seq <= a.Last; seq++ {
				weight := p.sender.kept[p.sender.index(seq)].weight
				pkt.frames = append(pkt.frames, Event{Kind: EvFrame, From: testAddress, Seq: seq, Weight: weight})
			}
			p.data = append(p.data, pkt)
			p.printf("> transmit %d-%d%s", a.Seq, a.Last, map[bool]string{true: " again"}[a.Again])
		case ActProbe:
			p.data = append(p.data, packet{probe: true, seq: a.Seq})
			p.printf("> probe %d", a.Seq)
		case ActFlushSoon:
			p.flush = true
			p.printf("> flush soon")
		case ActWake:
			p.woken = true
			p.printf("> wake")
		case ActDrop:
			p.printf("> dropped: %v", a.Reason)
		case ActFree:
		}
	}
}

func (p *pair) toReceiver(ev Event) {
	for _, a := range p.receiver.Step(p.now, ev) {
		switch a.Kind {
		case ActDeliver:
			p.queue = append(p.queue, ev.Weight)
			p.seen = append(p.seen, a.Seq)
			p.printf("< deliver %d", a.Seq)
		case ActAck:
			p.acks = append(p.acks, Event{Kind: EvAck, From: testAddress, Seq: a.Seq, Consumed: a.Consumed, Limit: a.Limit, Gap: a.Gap})
			p.printf("< ack %d consumed=%d limit=%d%s", a.Seq, a.Consumed, a.Limit, map[bool]string{true: " gap"}[a.Gap])
		case ActDrop:
			p.printf("< dropped %d: %v", ev.Seq, a.Reason)
		}
	}
}

func (p *pair) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *pair) state() string {
	s, r := p.sender, p.receiver
	return fmt.Sprintf("sender: acked=%d last=%d credit=%d\nreceiver: last=%d queued=%d window=%d\nunder way: data=%d acks=%d\n",
		s.acked, s.last, int64(s.limit)-int64(s.sent), r.last, len(p.queue), r.window.size, len(p.data), len(p.acks))
}

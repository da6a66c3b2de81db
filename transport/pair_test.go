package transport

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

var testAddress = Address{Job: [16]byte{1}, Attempt: 7, Tag: [4]byte{2}, From: [2]uint32{0, 1}, To: [2]uint32{1, 0}}

// A pair is both ends of a channel and what is under way between them, in the form in
// which it travels. Each end may be opened anew.
type pair struct {
	lim      Limits
	sends    Limits // of the sender
	now      time.Time
	start    time.Time
	sender   *Sender
	receiver *Receiver
	senders  uint32 // lives so far
	receives uint32
	data     []packet    // to the receiver
	acks     []packet    // to the sender
	kept     []packet    // taken off the way, to come late
	queue    []int       // weights delivered and not consumed
	seen     []frameName // delivered in this life of the receiver
	sentUp   bool
	recvUp   bool
	heard    bool // the sender got a word of the receiver that it knows
	takes    int  // largest message of a connection that comes up; 0: any
	flush    bool
	woken    bool
	out      strings.Builder
}

// A packet is a message. The weights of its frames are the script's, not those of their
// payloads, which are empty.
type packet struct {
	data    []byte
	weights []int
}

// A frameName tells a frame from every other one of every life.
type frameName struct {
	life uint32 // of the sender
	seq  uint64
}

// Lives of senders are 101, 102, …, those of receivers 201, 202, ….
func newPair(lim Limits) *pair {
	start := time.Unix(1_000_000, 0)
	return &pair{
		lim: lim, sends: lim, now: start, start: start, senders: 101, receives: 201,
		sender: NewSender(testAddress, 101, lim), receiver: NewReceiver(testAddress, 201, lim),
	}
}

func (p *pair) connection(side string, up bool) {
	kind := EvDown
	if up {
		kind = EvUp
	}
	if side != "receiver" {
		p.sentUp = up
		p.toSender(Event{Kind: kind, Weight: p.takes})
	}
	if side != "sender" {
		p.recvUp = up
		p.toReceiver(Event{Kind: kind})
	}
}

// restart opens an end anew: what it knew is gone, what is under way is not.
func (p *pair) restart(side string) {
	if side != "receiver" {
		p.senders++
		p.sender = NewSender(testAddress, p.senders, p.sends)
		p.flush, p.woken = false, false
		if p.sentUp {
			p.toSender(Event{Kind: EvUp, Weight: p.takes})
		}
	}
	if side != "sender" {
		p.receives++
		p.receiver = NewReceiver(testAddress, p.receives, p.lim)
		p.queue, p.seen = nil, nil
		if p.recvUp {
			p.toReceiver(Event{Kind: EvUp})
		}
	}
}

func (p *pair) broken() BreakReason { return max(p.sender.broken, p.receiver.broken) }

func (p *pair) send(weight int) bool {
	if !p.sender.Admits(weight) {
		p.printf("blocked")
		p.toSender(Event{Kind: EvWait, Weight: weight})
		return false
	}
	p.printf("sent %d", p.sender.NextSeq())
	life, peer := p.sender.Lives()
	wire := &Buffer{b: appendFrame(nil, &wireFrame{addr: testAddress, seq: p.sender.NextSeq(), life: life, peer: peer})}
	p.toSender(Event{Kind: EvSend, Weight: weight, Wire: wire})
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
		p.arriveData(pkt)
	case side == "ack" && len(p.acks) > 0:
		pkt := p.acks[0]
		p.acks = p.acks[1:]
		p.arriveAck(pkt)
	case side == "all":
		for rounds := 0; len(p.data)+len(p.acks) > 0; rounds++ {
			if rounds > 100 {
				panic("transport: the ends talk without end")
			}
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

func (p *pair) arriveData(pkt packet) {
	for i, rest := 0, pkt.data; len(rest) > 0; i++ {
		f, after, err := decodeFrame(rest)
		if err != nil {
			p.printf("< refused: %v", err)
			return
		}
		rest = after
		ev := frameEvent(&f)
		if ev.Kind == EvFrame {
			ev.Weight = pkt.weights[i]
		}
		p.toReceiver(ev)
	}
}

func (p *pair) arriveAck(pkt packet) {
	f, _, err := decodeFrame(pkt.data)
	if err != nil {
		p.printf("> refused: %v", err)
		return
	}
	ev, err := ackEvent(&f)
	if err != nil {
		p.printf("> refused: %v", err)
		return
	}
	known := p.sender.bond.peer
	p.heard = p.heard || p.sender.broken == 0 && (known == 0 || known == ev.Life) && (ev.Peer == 0 || ev.Peer == p.sender.bond.life)
	p.toSender(ev)
}

// tamper does something to the first message under way to a side.
func (p *pair) tamper(how, side string) {
	switch {
	case side == "data" && len(p.data) > 0:
		p.printf("%s: %v", how, p.data[0])
		p.data = p.tampered(p.data, how)
	case side == "ack" && len(p.acks) > 0:
		p.printf("%s: %v", how, p.acks[0])
		p.acks = p.tampered(p.acks, how)
	default:
		p.printf("no %s under way", side)
	}
}

func (p *pair) tampered(q []packet, how string) []packet {
	switch how {
	case "drop":
		return q[1:]
	case "keep":
		p.kept = append(p.kept, q[0])
		return q[1:]
	case "repeat":
		return append(q[:1:1], q...)
	case "swap":
		if len(q) > 1 {
			q[0], q[1] = q[1], q[0]
		}
	case "damage":
		q[0].data = bytes.Clone(q[0].data)
		q[0].data[60] ^= 4 // the sequence
	case "version":
		q[0].data = bytes.Clone(q[0].data)
		q[0].data[1] = 1
	}
	return q
}

// late lets the first message arrive that was kept.
func (p *pair) late(side string) {
	if len(p.kept) == 0 {
		p.printf("nothing kept")
		return
	}
	pkt := p.kept[0]
	p.kept = p.kept[1:]
	p.printf("late: %v", pkt)
	if side == "ack" {
		p.arriveAck(pkt)
	} else {
		p.arriveData(pkt)
	}
}

func (p packet) String() string {
	first, rest, err := decodeFrame(p.data)
	last := first
	for len(rest) > 0 && err == nil {
		last, rest, err = decodeFrame(rest)
	}
	switch {
	case err != nil:
		return "damaged"
	case first.kind == kindProbe:
		return fmt.Sprintf("probe %d", first.seq)
	case first.kind == kindAck:
		return fmt.Sprintf("ack %d", first.seq)
	}
	return fmt.Sprintf("frames %d-%d", first.seq, last.seq)
}

func (p *pair) foreign(side string) {
	other := testAddress
	other.Attempt--
	if side == "ack" {
		p.toSender(Event{Kind: EvAck, From: other, Life: 1, Peer: 2, Seq: p.sender.last, Limit: 1 << 40})
		return
	}
	p.toReceiver(Event{Kind: EvFrame, From: other, Life: 1, Peer: 2, Seq: p.receiver.last + 1, Weight: 100})
	p.toReceiver(Event{Kind: EvProbe, From: other, Life: 1, Peer: 2, Seq: 99})
}

// intrude sends the next frame whatever the credit.
func (p *pair) intrude(weight int) {
	p.toReceiver(Event{Kind: EvFrame, From: testAddress, Life: p.sender.bond.life, Peer: p.receiver.bond.life, Seq: p.receiver.last + 1, Weight: weight})
}

// wait lets time pass from deadline to deadline.
func (p *pair) wait(by time.Duration) {
	end := p.now.Add(by)
	for p.tick(end) {
	}
	p.now = end
}

// tick lets time pass to the next deadline, unless that is after end.
func (p *pair) tick(end time.Time) bool {
	next := earlier(p.sender.Deadline(), p.receiver.Deadline())
	if next.IsZero() || next.After(end) {
		return false
	}
	if next.After(p.now) {
		p.now = next
	}
	p.printf("at %v", p.now.Sub(p.start))
	p.toSender(Event{Kind: EvTick})
	p.toReceiver(Event{Kind: EvTick})
	return true
}

// silence lets time pass, and loses all that the ends say meanwhile; of which only how
// the sender ends is told.
func (p *pair) silence(by time.Duration) {
	end, before, probes, was := p.now.Add(by), p.out.String(), 0, p.broken()
	p.data, p.acks = nil, nil
	for p.broken() == was && p.tick(end) {
		probes += len(p.data)
		p.data, p.acks = nil, nil
	}
	said := p.out.String()[len(before):]
	p.out.Reset()
	p.out.WriteString(before)
	p.printf("%d probes", probes)
	if p.broken() != was {
		lines := strings.Split(strings.TrimSpace(said), "\n")
		p.printf("%s", strings.Join(lines[len(lines)-2:], "\n"))
		return
	}
	p.now = end
}

// asleep lets time pass without a tick: the sender's process is stopped, then goes on.
func (p *pair) asleep(by time.Duration) {
	p.now = p.now.Add(by)
	p.printf("at %v", p.now.Sub(p.start))
	p.toSender(Event{Kind: EvTick})
}

func (p *pair) toSender(ev Event) {
	for _, a := range p.sender.Step(p.now, ev) {
		switch a.Kind {
		case ActTransmit:
			pkt := packet{}
			for seq := a.Seq; seq <= a.Last; seq++ {
				it := p.sender.kept[p.sender.index(seq)]
				pkt.data = append(pkt.data, it.wire.b...)
				pkt.weights = append(pkt.weights, it.weight)
			}
			p.data = append(p.data, pkt)
			p.printf("> transmit %d-%d%s", a.Seq, a.Last, map[bool]string{true: " again"}[a.Again])
		case ActProbe:
			data := appendFrame(nil, &wireFrame{addr: testAddress, kind: kindProbe, seq: a.Seq, life: a.Life, peer: a.Peer})
			p.data = append(p.data, packet{data: data})
			p.printf("> probe %d", a.Seq)
		case ActFlushSoon:
			p.flush = true
			p.printf("> flush soon")
		case ActWake:
			p.woken = true
			p.printf("> wake")
		case ActDrop:
			p.printf("> dropped: %v", a.Reason)
		case ActBroken:
			p.printf("> broken: %v%s", a.Break, map[bool]string{true: fmt.Sprintf(": frame %d weighs %d of %d", a.Seq, a.Weight, a.Limit)}[a.Break == BreakSize])
		case ActFree:
		}
	}
}

func (p *pair) toReceiver(ev Event) {
	for _, a := range p.receiver.Step(p.now, ev) {
		switch a.Kind {
		case ActDeliver:
			p.queue = append(p.queue, ev.Weight)
			p.seen = append(p.seen, frameName{ev.Life, ev.Seq})
			p.printf("< deliver %d", a.Seq)
		case ActAck:
			p.acks = append(p.acks, packet{data: appendAck(nil, testAddress, a)})
			p.printf("< ack %d consumed=%d limit=%d%s", a.Seq, a.Consumed, a.Limit, map[bool]string{true: " gap"}[a.Gap])
		case ActDrop:
			p.printf("< dropped %d: %v", ev.Seq, a.Reason)
		case ActBroken:
			p.printf("< broken: %v", a.Break)
		}
	}
}

func (p *pair) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *pair) state() string {
	s, r := p.sender, p.receiver
	return fmt.Sprintf("sender: acked=%d last=%d credit=%d\nreceiver: last=%d queued=%d window=%d\nunder way: data=%d acks=%d\n",
		s.acked, s.last, int64(s.limit)-int64(s.sent), r.last, len(p.queue), r.window.size, len(p.data), len(p.acks))
}

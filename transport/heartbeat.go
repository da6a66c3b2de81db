package transport

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

const (
	heartbeatsWait = 1024    // heartbeats that wait to be handled
	partHead       = 1 << 10 // room for a part's envelope
	partsMost      = 1024    // of a heartbeat
	partialMost    = 1024    // workers whose heartbeats are put together at a time
)

// A part is a piece of a heartbeat that NATS does not take in one message.
type part struct {
	From string `json:"from"`  // the sender's process
	Beat uint64 `json:"beat"`  // grows
	At   int    `json:"at"`    // its place, from 0
	Of   int    `json:"of"`    // parts
	Data []byte `json:"bytes"` // of the body
}

// Heartbeat tells every server that listens, at most once: the next one makes up for
// a lost one. It fails if there is no connection, or one that may not hear what it wants to:
// who hears no command offers himself to nobody. One that is larger than NATS takes goes
// in parts.
func (c *Control) Heartbeat(ctx context.Context, body []byte) error {
	data, err := encodeMessage(message{Kind: "heartbeat", Body: body})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if subject := c.link.deaf(); subject != "" {
		return fmt.Errorf("heartbeat: NATS forbids this user to subscribe to %s, so that it would hear no command or answer: allow it in its permissions (docs/nats.md)", subject)
	}
	most, ok := c.link.room()
	if !ok {
		return fmt.Errorf("heartbeat: %w", cmp.Or(c.Ready(), nats.ErrReconnectBufExceeded))
	}
	messages := [][]byte{data}
	if int64(len(data)) > most {
		if messages, err = c.cut(body, int(most)); err != nil {
			return err
		}
	}
	for _, data := range messages {
		if err := c.link.publish(c.names.heartbeat(), data); err != nil {
			return fmt.Errorf("heartbeat: %w", err)
		}
	}
	return nil
}

// cut makes the messages of a large heartbeat.
func (c *Control) cut(body []byte, most int) ([][]byte, error) {
	size := (most - partHead) / 4 * 3 // base64
	n := (len(body) + size - 1) / size
	if n > partsMost {
		return nil, fmt.Errorf("heartbeat: %d bytes are too many for messages of %d", len(body), most)
	}
	beat, list := c.beats.Add(1), make([][]byte, n)
	for i := range list {
		piece := body[i*size : min((i+1)*size, len(body))]
		var err error
		list[i], err = encodeMessage(message{Kind: "heartbeat", Part: &part{From: c.life, Beat: beat, At: i, Of: n, Data: piece}})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Heartbeats calls handle with the body of every heartbeat until ctx ends, one at a
// time and on the caller's goroutine. Where handle is too slow, heartbeats are lost.
func (c *Control) Heartbeats(ctx context.Context, handle func(body []byte)) error {
	msgC := make(chan *nats.Msg, heartbeatsWait)
	subs, err := c.subscribe(listener{c.names.heartbeat(), func(m *nats.Msg) {
		select {
		case msgC <- m:
		default: // the next one makes up for it
		}
	}})
	if err != nil {
		return err
	}
	var p partial
	for {
		select {
		case m := <-msgC:
			msg, err := decodeMessage(m.Data)
			if err != nil {
				c.opts.Log.Warn("message dropped", "subject", m.Subject, "err", err)
				continue
			}
			if msg.Part == nil {
				handle(msg.Body)
			} else if body, whole := p.add(*msg.Part); whole {
				handle(body)
			}
		case <-ctx.Done():
			return c.unlisten(subs)
		}
	}
}

// A partial puts heartbeats together. The parts of one come in order; where one is
// missing the heartbeat is lost, and the next one makes up for it.
type partial struct {
	from map[string]*beatParts
}

type beatParts struct {
	beat uint64
	next int // the part that comes next
	body []byte
}

func (p *partial) add(in part) (body []byte, whole bool) {
	b := p.from[in.From]
	switch {
	case in.Of < 1 || in.Of > partsMost || in.At < 0 || in.At >= in.Of:
		return nil, false
	case in.At == 0:
		if len(p.from) >= partialMost || p.from == nil {
			p.from = map[string]*beatParts{} // what is lost comes again
		}
		b = &beatParts{beat: in.Beat}
		p.from[in.From] = b
	case b == nil || b.beat != in.Beat || b.next != in.At:
		delete(p.from, in.From)
		return nil, false
	}
	b.body, b.next = append(b.body, in.Data...), b.next+1
	if b.next < in.Of {
		return nil, false
	}
	delete(p.from, in.From)
	return b.body, true
}

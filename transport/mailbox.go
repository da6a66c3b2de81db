package transport

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"

	"weir"
)

// A mailbox takes the answers to what a connection asks. Each question names the subject of
// its answer, and whose answer it is to be is in there: so NATS lets nobody else give it.
type mailbox struct {
	link   *link
	answer func(from, id string) string // the subject of one

	mu struct {
		sync.Mutex
		waiting map[string]chan *nats.Msg // by the subject of the answer; capacity 1
	}
}

// openMailbox listens at a subject, to which all that answer gives belong.
func openMailbox(l *link, at string, answer func(from, id string) string) (*mailbox, error) {
	b := &mailbox{link: l, answer: answer}
	b.mu.waiting = map[string]chan *nats.Msg{}
	_, err := l.subscribe(at, b.take, nats.DefaultSubPendingBytesLimit) // until the link is closed
	return b, err
}

// take gives an answer to who waits for it; a second one, or a late one, is nobody's.
func (b *mailbox) take(m *nats.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.mu.waiting[m.Subject]; c != nil {
		delete(b.mu.waiting, m.Subject)
		c <- m
	}
}

// ask sends a question to from, once, and waits for the answer until ctx ends.
// nats.ErrNoResponders: nobody listens.
func (b *mailbox) ask(ctx context.Context, from, subject string, data []byte) (*nats.Msg, error) {
	answerC := make(chan *nats.Msg, 1)
	reply := b.answer(from, weir.NewIncarnation()) // nobody else knows it, or could have it answered
	b.mu.Lock()
	b.mu.waiting[reply] = answerC
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.mu.waiting, reply)
	}()
	if err := b.link.nc().PublishRequest(subject, reply, data); err != nil {
		return nil, err
	}
	select {
	case m := <-answerC:
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" { // NATS says so itself
			return nil, nats.ErrNoResponders
		}
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

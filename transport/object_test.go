package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir"
	"weir/transport"
)

// memory keeps objects; away, if it says so, is why not.
type memory struct {
	putC chan struct{} // one for each put; nil: nobody counts
	mu   struct {
		sync.Mutex
		objects map[string][]byte
		spoil   func(data []byte) []byte // what is kept of a put; nil: nothing
		away    error
	}
}

func (m *memory) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) Put(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.away != nil {
		return m.mu.away
	}
	if m.putC != nil {
		m.putC <- struct{}{}
	}
	data = bytes.Clone(data)
	if m.mu.spoil != nil {
		if data = m.mu.spoil(data); data == nil {
			return nil
		}
	}
	if m.mu.objects == nil {
		m.mu.objects = map[string][]byte{}
	}
	m.mu.objects[key] = data
	return nil
}

func (m *memory) Get(_ context.Context, key string, most int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.mu.objects[key]
	switch {
	case m.mu.away != nil:
		return nil, m.mu.away
	case !ok:
		return nil, fmt.Errorf("get %s: %w", key, weir.ErrNotFound)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("get %s: %w: too long", key, weir.ErrInvalid)
	}
	return data, nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.with(func() { delete(m.mu.objects, key) })
	return nil
}

func (m *memory) left() (n int) {
	m.with(func() { n = len(m.mu.objects) })
	return n
}

// small is a NATS server that takes 64 KiB, and a way to open a control with objects.
func small(t *testing.T, m *memory) func(cluster string) *transport.Control {
	t.Helper()
	_, open := smallAt(t, m)
	return open
}

func smallAt(t *testing.T, m *memory) (url string, open func(cluster string) *transport.Control) {
	t.Helper()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{MaxPayload: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s.URL(), func(cluster string) *transport.Control {
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: s.URL(), Name: "test", Cluster: cluster, Objects: m})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// large is a body that no message to that server can carry.
func large(c string) []byte {
	b, _ := json.Marshal(strings.Repeat(c, 256<<10))
	return b
}

// TestObjects: commands, answers and reports that NATS does not take go by storage, which
// holds nothing afterwards; a command that comes again is answered as it was.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{"", "a+b"} {
		m := &memory{}
		open := small(t, m)
		body, answer := large("q"), large("a")
		var runs atomic.Int64
		handle := func(_ context.Context, _ string, got []byte) ([]byte, error) {
			if runs.Add(1); !bytes.Equal(got, body) {
				return nil, errors.New("another body came")
			}
			return answer, nil
		}
		serve(t, open(cluster), "inc", handle)
		reports := open(cluster)
		background(t, func(ctx context.Context) error { return reports.ServeReports(ctx, handle) })
		for i := range 2 {
			got, err := open(cluster).Command(bounded(t), testWorker, key(1, "deploy", ""), body)
			if err != nil || !bytes.Equal(got, answer) || runs.Load() != 1 {
				t.Errorf("command %d: %d bytes, %v, ran %d times", i, len(got), err, runs.Load())
			}
		}
		c := open(cluster)
		if got, err := c.Request(bounded(t), testWorker, "read", body); err != nil || !bytes.Equal(got, answer) {
			t.Errorf("read: %d bytes, %v", len(got), err)
		}
		if got, err := c.Publish(bounded(t), "report", body); err != nil || !bytes.Equal(got, answer) {
			t.Errorf("report: %d bytes, %v", len(got), err)
		}
		if n := m.left(); n != 0 {
			t.Errorf("%d objects are left", n)
		}
	}
}

// TestObjectsAtFault: what is not what was sent is refused by name, and the next try of a
// caller, or of a report by itself, brings it.
func TestObjectsAtFault(t *testing.T) {
	t.Parallel()
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	cut := func(data []byte) []byte { return data[:len(data)-1] }
	longer := func(data []byte) []byte { return append(data, ' ') }
	for _, c := range []struct {
		name  string
		spoil func([]byte) []byte
		away  error
		want  string
		rare  bool // another one is much like it: only with WEIR_LONG
	}{
		{"flipped", flip, nil, "is damaged: its SHA-256 is not", false},
		{"cut", cut, nil, "is damaged: it has not the", false},
		{"longer", longer, nil, "is damaged: it has not the", true},
		{"missing", func([]byte) []byte { return nil }, nil, "is not there", false},
		{"down", nil, errors.New("the disk is full"), "object storage did not take it either; try again: the disk is full", false},
	} {
		if c.rare && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &memory{putC: make(chan struct{}, 100)}
			open := small(t, m)
			var runs atomic.Int64
			mend := func() { m.with(func() { m.mu.spoil, m.mu.away = nil, nil }) }
			serve(t, open(""), "inc", func(_ context.Context, _ string, body []byte) ([]byte, error) {
				runs.Add(1)
				return []byte(fmt.Sprint(len(body))), nil
			})
			reports := open("")
			background(t, func(ctx context.Context) error {
				return reports.ServeReports(ctx, func(_ context.Context, _ string, body []byte) ([]byte, error) {
					return []byte(fmt.Sprint(len(body))), nil
				})
			})
			m.with(func() { m.mu.spoil, m.mu.away = c.spoil, c.away })
			asker, body := open(""), large("q")
			pinged(t, asker, "inc")
			_, err := asker.Command(bounded(t), testWorker, key(1, "deploy", ""), body)
			if !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), c.want) || runs.Load() != 0 {
				t.Errorf("%v, ran %d times; want %q", err, runs.Load(), c.want)
			}
			doneC := make(chan string, 1)
			go func() {
				got, err := asker.Publish(bounded(t), "report", body)
				doneC <- fmt.Sprint(string(got), err)
			}()
			if c.away == nil { // the command's put, and the report's first
				<-m.putC
				<-m.putC
			}
			mend()
			want := fmt.Sprint(len(body))
			if got := <-doneC; got != want+"<nil>" {
				t.Errorf("report: %s", got)
			}
			if got, err := asker.Command(bounded(t), testWorker, key(1, "deploy", ""), body); err != nil || string(got) != want {
				t.Errorf("asked again: %s, %v", got, err)
			}
			if n := m.left(); n != 0 {
				t.Errorf("%d objects are left", n)
			}
		})
	}
}

// TestForeignObjects: a message cannot have anything else read, or deleted, than an
// object of a control message of its cluster.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	m := &memory{}
	url, open := smallAt(t, m)
	serve(t, open(""), "inc", echo)
	pinged(t, open(""), "inc")
	nc := observer(t, url)
	for _, key := range []string{"job_00/1/manifest", "control/other/1700000000-" + strings.Repeat("0", 32), "control/default/x", "control/default/../x"} {
		m.with(func() { m.mu.objects = map[string][]byte{key: []byte(`1`)} })
		ask := fmt.Sprintf(`{"v":1,"id":"a","kind":"x","object":{"key":%q,"sha256":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b","length":1}}`, key)
		got, err := nc.RequestWithContext(bounded(t), "weir.default.w.w-1.command.x", []byte(ask))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got.Data), "which cannot hold one of cluster default") {
			t.Errorf("%s: %s", key, got.Data)
		}
		if m.left() != 1 {
			t.Errorf("%s was deleted", key)
		}
	}
}

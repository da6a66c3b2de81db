package transporttest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"weir"
	"weir/transport"
)

// A Traffic is a sequence of frames that follows from its fields alone: all kinds, and
// payloads from nothing to Largest, most of them small. The last frame is a close.
type Traffic struct {
	Seed    uint64
	Frames  int
	Largest int // bytes
	Local   bool

	noise []byte
}

// NewTraffic makes the payloads' bytes.
func NewTraffic(seed uint64, frames, largest int, local bool) *Traffic {
	tr := &Traffic{Seed: seed, Frames: frames, Largest: largest, Local: local, noise: make([]byte, largest+4096)}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range tr.noise {
		tr.noise[i] = byte(r.Uint32())
	}
	return tr
}

// Frame is the n-th frame, from 0. Its bytes must not be changed.
func (tr *Traffic) Frame(n int) weir.Frame {
	if n == tr.Frames-1 {
		return weir.Frame{Kind: weir.FrameClose}
	}
	r := rand.New(rand.NewPCG(tr.Seed, uint64(n)+1))
	switch r.IntN(10) {
	case 0:
		return weir.Frame{Kind: weir.FrameWatermark, Value: int64(n)}
	case 1:
		return weir.Frame{Kind: weir.FrameBarrier, Value: int64(n)}
	case 2:
		return weir.Frame{Kind: weir.FrameIdle}
	}
	size := r.IntN(200)
	switch most := r.IntN(100); {
	case most < 2:
		size = r.IntN(tr.Largest + 1)
	case most < 8:
		size = r.IntN(min(64<<10, tr.Largest) + 1)
	case most < 30:
		size = r.IntN(min(8<<10, tr.Largest) + 1)
	}
	f := weir.Frame{Kind: weir.FrameRecords, Value: int64(n), Size: size}
	if tr.Local {
		f.Batch = n
		return f
	}
	at := r.IntN(len(tr.noise) - size + 1)
	f.Bytes = tr.noise[at : at+size]
	return f
}

// Send sends every frame and calls each before the n-th; it may be nil.
func (tr *Traffic) Send(ctx context.Context, out weir.Outbound, each func(n int)) error {
	for n := range tr.Frames {
		if each != nil {
			each(n)
		}
		if err := out.Send(ctx, tr.Frame(n)); err != nil {
			return fmt.Errorf("frame %d of %d: %w", n, tr.Frames, err)
		}
	}
	return out.Close()
}

// Receive takes every frame and fails unless it is the next one, as it was sent. each is
// called before the n-th is waited for; it may be nil.
func (tr *Traffic) Receive(ctx context.Context, in weir.Inbound, wakeC <-chan struct{}, each func(n int)) error {
	for n := range tr.Frames {
		if each != nil {
			each(n)
		}
		got, err := Await(ctx, in, wakeC)
		if err != nil {
			return fmt.Errorf("frame %d of %d: %w", n, tr.Frames, err)
		}
		if err := same(got, tr.Frame(n)); err != nil {
			return fmt.Errorf("frame %d of %d: %w", n, tr.Frames, err)
		}
	}
	f, ok, err := in.Poll()
	if ok {
		return fmt.Errorf("%v %d after the last frame", f.Kind, f.Value)
	}
	return err
}

// Await waits for the next frame of an input.
func Await(ctx context.Context, in weir.Inbound, wakeC <-chan struct{}) (weir.Frame, error) {
	for {
		f, ok, err := in.Poll()
		if ok || err != nil {
			return f, err
		}
		select {
		case <-wakeC:
		case <-ctx.Done():
			return weir.Frame{}, fmt.Errorf("no frame came: %w", ctx.Err())
		}
	}
}

func same(got, want weir.Frame) error {
	if got.Kind != want.Kind || got.Value != want.Value || got.Size != want.Size || got.Batch != want.Batch || !bytes.Equal(got.Bytes, want.Bytes) {
		return fmt.Errorf("got %v %d of %d bytes, want %v %d of %d bytes", got.Kind, got.Value, got.Size, want.Kind, want.Value, want.Size)
	}
	return nil
}

// A Duplex is a pair of channels of one attempt, one from each network to the other.
type Duplex struct {
	Job         weir.JobID
	Attempt     weir.AttemptID
	There, Back End
}

// An End is a channel with both its ends.
type End struct {
	Out   weir.Outbound
	In    weir.Inbound
	WakeC chan struct{}
}

// OpenDuplex opens a pair of channels of a fresh attempt.
func OpenDuplex(a, b *transport.Network, local bool) (*Duplex, error) {
	d := &Duplex{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1)}
	there := Channel()
	back := weir.ChannelID{Edge: there.Edge, From: there.To, To: there.From}
	var err error
	if d.There, err = d.open(a, b, there, local); err != nil {
		return nil, err
	}
	d.Back, err = d.open(b, a, back, local)
	return d, err
}

func (d *Duplex) open(from, to *transport.Network, ch weir.ChannelID, local bool) (End, error) {
	e := End{WakeC: make(chan struct{}, 1)}
	var err error
	if e.In, err = to.Inbound(d.Job, d.Attempt, ch, local, e.WakeC); err != nil {
		return End{}, err
	}
	e.Out, err = from.Outbound(d.Job, d.Attempt, ch, local, nil)
	return e, err
}

// Run sends the same traffic both ways at once and returns when all has arrived. each is
// called before every frame of the way there.
func (d *Duplex) Run(ctx context.Context, tr *Traffic, each func(n int)) error {
	errC := make(chan error, 4)
	go func() { errC <- say("there, send", tr.Send(ctx, d.There.Out, each)) }()
	go func() { errC <- say("back, send", tr.Send(ctx, d.Back.Out, nil)) }()
	go func() { errC <- say("there, receive", tr.Receive(ctx, d.There.In, d.There.WakeC, nil)) }()
	go func() { errC <- say("back, receive", tr.Receive(ctx, d.Back.In, d.Back.WakeC, nil)) }()
	var first error
	for range cap(errC) {
		if err := <-errC; first == nil {
			first = err
		}
	}
	return first
}

func say(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

package transport

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"

	"weir"
)

// The frame, version 2, little-endian; golden bytes are in frame_test.go.
//
//	 0 magic 'W' · 1 version · 2 kind · 3 flags (ack: bit 0 = gap)
//	 4 CRC-32C of everything but itself
//	 8 length of the payload · 12 edge
//	16 job (16 bytes) · 32 attempt number · 40 attempt tag (4 bytes)
//	44 from chain, from subtask, to chain, to subtask (4 bytes each)
//	60 sequence · 68 value
//	76 life of who sends this (4 bytes, never 0) · 80 life of who shall get it, 0 = not known
//	84 payload
//
// An ack is sent by the receiver: there the lives are its own and the sender's.
// A message holds one or more frames of one channel, back to back.
const (
	frameMagic   = 'W'
	frameVersion = 2
	headerLen    = 84
	flagGap      = 1
	ackLen       = 16 // payload of an ack: consumed, limit
)

// Kinds of frames that belong to the protocol and are never delivered.
const (
	kindProbe weir.FrameKind = 128 // sequence: the sender's last
	kindAck   weir.FrameKind = 129 // sequence: the receiver's last in order
)

var errFrame = errors.New("bad frame")

// An Address names a channel of an attempt in the form that frames carry it.
// Two addresses are equal exactly if they name the same channel of the same
// attempt of the same job.
type Address struct {
	Job     [16]byte
	Attempt int64
	Tag     [4]byte
	Edge    uint32
	From    [2]uint32 // chain, subtask
	To      [2]uint32
}

// NewAddress checks and packs the names of a channel. The error is weir.ErrInvalid.
func NewAddress(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID) (Address, error) {
	a := Address{
		Attempt: attempt.Number,
		Edge:    uint32(ch.Edge),
		From:    [2]uint32{uint32(ch.From.Chain), uint32(ch.From.Subtask)},
		To:      [2]uint32{uint32(ch.To.Chain), uint32(ch.To.Subtask)},
	}
	if err := checkAttempt(job, attempt); err != nil {
		return Address{}, err
	}
	if min(ch.Edge, ch.From.Chain, ch.From.Subtask, ch.To.Chain, ch.To.Subtask) < 0 {
		return Address{}, fmt.Errorf("%w: channel %v has a negative part", weir.ErrInvalid, ch)
	}
	_, jobErr := hex.Decode(a.Job[:], []byte(job[len("job_"):]))
	_, tagErr := hex.Decode(a.Tag[:], []byte(attempt.Tag))
	return a, errors.Join(jobErr, tagErr) // both nil: checkAttempt has seen to it
}

// checkAttempt reports whether job and attempt have the form that frames and
// subjects carry.
func checkAttempt(job weir.JobID, attempt weir.AttemptID) error {
	if !job.Valid() {
		return fmt.Errorf("%w: job %q is not job_ and 32 hexadecimal digits", weir.ErrInvalid, job)
	}
	if tag, err := hex.DecodeString(attempt.Tag); err != nil || len(tag) != 4 || attempt.Number < 1 {
		return fmt.Errorf("%w: attempt %q is not a number from 1 and a tag of 8 hexadecimal digits", weir.ErrInvalid, attempt)
	}
	return nil
}

// A wireFrame is a frame as it travels. Its payload aliases the message.
type wireFrame struct {
	addr    Address
	kind    weir.FrameKind
	flags   byte
	seq     uint64
	value   int64
	life    uint32
	peer    uint32
	payload []byte
}

// appendFrame appends the encoding of f to b.
func appendFrame(b []byte, f *wireFrame) []byte {
	at := len(b)
	le := binary.LittleEndian
	b = append(b, frameMagic, frameVersion, byte(f.kind), f.flags, 0, 0, 0, 0)
	b = le.AppendUint32(b, uint32(len(f.payload)))
	b = le.AppendUint32(b, f.addr.Edge)
	b = append(b, f.addr.Job[:]...)
	b = le.AppendUint64(b, uint64(f.addr.Attempt))
	b = append(b, f.addr.Tag[:]...)
	for _, n := range [...]uint32{f.addr.From[0], f.addr.From[1], f.addr.To[0], f.addr.To[1]} {
		b = le.AppendUint32(b, n)
	}
	b = le.AppendUint64(b, f.seq)
	b = le.AppendUint64(b, uint64(f.value))
	b = le.AppendUint32(b, f.life)
	b = le.AppendUint32(b, f.peer)
	b = append(b, f.payload...)
	le.PutUint32(b[at+4:], checksum(b[at:]))
	return b
}

// decodeFrame reads the first frame of b and returns what follows it.
func decodeFrame(b []byte) (f wireFrame, rest []byte, err error) {
	switch {
	case len(b) < 2 || b[0] != frameMagic:
		return f, nil, fmt.Errorf("%w: %d bytes do not begin with a header", errFrame, len(b))
	case b[1] != frameVersion: // before its length: that is the version's, too
		return f, nil, fmt.Errorf("%w: version %d, this program knows %d; run the same version of weir everywhere", errFrame, b[1], frameVersion)
	case len(b) < headerLen:
		return f, nil, fmt.Errorf("%w: %d bytes of a header of %d", errFrame, len(b), headerLen)
	}
	le := binary.LittleEndian
	size := uint64(le.Uint32(b[8:])) + headerLen
	if size > uint64(len(b)) {
		return f, nil, fmt.Errorf("%w: %d bytes of %d", errFrame, len(b), size)
	}
	if le.Uint32(b[4:]) != checksum(b[:size]) {
		return f, nil, fmt.Errorf("%w: wrong checksum", errFrame)
	}
	f.kind, f.flags = weir.FrameKind(b[2]), b[3]
	f.addr.Edge = le.Uint32(b[12:])
	copy(f.addr.Job[:], b[16:])
	f.addr.Attempt = int64(le.Uint64(b[32:]))
	copy(f.addr.Tag[:], b[40:])
	f.addr.From = [2]uint32{le.Uint32(b[44:]), le.Uint32(b[48:])}
	f.addr.To = [2]uint32{le.Uint32(b[52:]), le.Uint32(b[56:])}
	f.seq, f.value = le.Uint64(b[60:]), int64(le.Uint64(b[68:]))
	f.life, f.peer = le.Uint32(b[76:]), le.Uint32(b[80:])
	f.payload = b[headerLen:size:size]
	return f, b[size:], nil
}

// checksum covers a frame but for the checksum's own place.
func checksum(frame []byte) uint32 {
	head := crc32.Update(0, castagnoli, frame[:4])
	return crc32.Update(head, castagnoli, frame[8:])
}

// castagnoli is the table of the processor's own CRC instruction; it never changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendAck appends the ack that action a describes.
func appendAck(b []byte, addr Address, a Action) []byte {
	var payload [ackLen]byte
	binary.LittleEndian.PutUint64(payload[:], a.Consumed)
	binary.LittleEndian.PutUint64(payload[8:], a.Limit)
	f := wireFrame{addr: addr, kind: kindAck, seq: a.Seq, life: a.Life, peer: a.Peer, payload: payload[:]}
	if a.Gap {
		f.flags = flagGap
	}
	return appendFrame(b, &f)
}

// frameEvent reads a frame or a probe as the event of a receiver.
func frameEvent(f *wireFrame) Event {
	ev := Event{Kind: EvFrame, From: f.addr, Life: f.life, Peer: f.peer, Seq: f.seq, Weight: headerLen + len(f.payload)}
	if f.kind == kindProbe {
		ev.Kind, ev.Weight = EvProbe, 0
	}
	return ev
}

// ackEvent reads an ack as the event of a sender.
func ackEvent(f *wireFrame) (Event, error) {
	if f.kind != kindAck || len(f.payload) != ackLen {
		return Event{}, fmt.Errorf("%w: %d bytes of kind %d where an ack was expected", errFrame, len(f.payload), f.kind)
	}
	return Event{
		Kind: EvAck, From: f.addr, Life: f.life, Peer: f.peer, Seq: f.seq, Gap: f.flags&flagGap != 0,
		Consumed: binary.LittleEndian.Uint64(f.payload),
		Limit:    binary.LittleEndian.Uint64(f.payload[8:]),
	}, nil
}

package weir

import "fmt"

// A FrameKind says what a frame of a channel carries. Values are part of the wire
// format and never change.
type FrameKind uint8

// The kinds of frames. Records, watermarks, idleness, barriers and ends share one
// order per channel (I2).
const (
	FrameRecords   FrameKind = 1 // a batch of rows
	FrameWatermark FrameKind = 2 // Value: event time, microseconds since 1970
	FrameIdle      FrameKind = 3 // the sender has nothing to say for now
	FrameBarrier   FrameKind = 4 // Value: checkpoint id
	FrameEnd       FrameKind = 5 // no more records; barriers still follow
	FrameClose     FrameKind = 6 // nothing follows
)

// String names the kind as ARCHITECTURE does.
func (k FrameKind) String() string {
	switch k {
	case FrameRecords:
		return "records"
	case FrameWatermark:
		return "watermark"
	case FrameIdle:
		return "idle"
	case FrameBarrier:
		return "barrier"
	case FrameEnd:
		return "end"
	case FrameClose:
		return "close"
	}
	return fmt.Sprintf("frame(%d)", uint8(k))
}

// A Frame is one element of a channel's FIFO. Exactly one of Bytes and Batch is set
// for FrameRecords: Batch, opaque here, within a worker (ownership passes with it);
// Bytes, its encoding, between workers. Size is the payload's weight in bytes, for
// credit; control frames weigh nothing.
type Frame struct {
	Kind  FrameKind
	Value int64
	Bytes []byte
	Batch any
	Size  int
}

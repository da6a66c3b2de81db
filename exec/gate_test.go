package exec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir"
	"weir/checkpoint"
	"weir/exec/batch"
)

// script is an inbound channel that holds what a test pushed.
type script struct{ frames []weir.Frame }

func (s *script) Poll() (weir.Frame, bool, error) {
	if len(s.frames) == 0 {
		return weir.Frame{}, false, nil
	}
	f := s.frames[0]
	s.frames = s.frames[1:]
	return f, true, nil
}

// TestGate runs the scripts of testdata/gate: channels filled by hand, and polls.
func TestGate(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/gate", func(t *testing.T, path string) {
		var g *gate
		var channels []*script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "gate":
				var n int
				d.ScanArgs(t, "channels", &n)
				channels = nil
				var inputs []input
				for i := range n {
					ch := &script{}
					channels = append(channels, ch)
					inputs = append(inputs, input{
						id: weir.ChannelID{From: weir.TaskID{Subtask: i}, To: weir.TaskID{Chain: 1}}, ch: ch,
						pool: batch.NewPool(nil, 0),
					})
				}
				mode := checkpoint.ExactlyOnce
				if d.HasArg("at_least_once") {
					mode = checkpoint.AtLeastOnce
				}
				g = newGate(inputs, mode)
				return ""
			case "push":
				var ch int
				d.ScanArgs(t, "ch", &ch)
				for _, word := range strings.Fields(d.Input) {
					channels[ch].frames = append(channels[ch].frames, parseFrame(word))
				}
				return ""
			case "poll":
				var s strings.Builder
				for {
					f, ch, ok, err := g.poll()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					s.WriteString(takeFrame(g, f, ch))
				}
				return s.String() + fmt.Sprintf("nothing; open=%d going=%d\n", g.open, g.going)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func parseFrame(word string) weir.Frame {
	kind, value, _ := strings.Cut(word, "=")
	var f weir.Frame
	fmt.Sscan(value, &f.Value)
	switch kind {
	case "rows":
		f.Kind, f.Batch = weir.FrameRecords, &batch.Batch{Len: int(f.Value)}
	case "bytes":
		f.Kind, f.Bytes = weir.FrameRecords, batch.Append(nil, &batch.Batch{Len: int(f.Value)})
	case "damaged":
		f.Kind, f.Bytes = weir.FrameRecords, []byte("?")
	case "barrier":
		f.Kind = weir.FrameBarrier
	case "end":
		f.Kind = weir.FrameEnd
	case "close":
		f.Kind = weir.FrameClose
	}
	return f
}

func takeFrame(g *gate, f weir.Frame, ch int) string {
	s := fmt.Sprintf("ch=%d %v", ch, f.Kind)
	switch f.Kind {
	case weir.FrameRecords:
		b, err := g.rows(ch, f)
		if err != nil {
			return fmt.Sprintf("%s: %v\n", s, err)
		}
		s += fmt.Sprintf(" %d", b.Len)
	case weir.FrameBarrier:
		s += fmt.Sprintf(" %d", f.Value)
		if a, ok := g.barrier(ch, weir.CheckpointID(f.Value), origin{}, time.Time{}); ok {
			s += fmt.Sprintf(": snapshot %d, last %v", a.id, a.last)
		}
	case weir.FrameEnd:
		if g.end(ch) {
			s += ": all ended"
		}
	case weir.FrameClose:
		aligned, err := g.close(ch)
		if err != nil {
			return fmt.Sprintf("%s: %v\n", s, err)
		}
		for _, a := range aligned {
			s += fmt.Sprintf(": snapshot %d, last %v", a.id, a.last)
		}
	}
	return s + "\n"
}

package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"weir"
)

// An element is what a channel carries: a row, a barrier, or the close.
type element struct {
	seq   int // its place among the elements of all channels
	row   string
	cp    weir.CheckpointID
	close bool
}

// channels are the inputs of one subtask with what was sent into them and not read yet,
// in front of an Aligner. It reads as tasks do: from channels that are not held, here in the
// order of sending. Its state is the rows read, its snapshots are copies of that.
type channels struct {
	align     *Aligner
	queues    [][]element
	sent      int
	rows      [][]string // all that were sent, per channel
	state     []string
	snapshots map[weir.CheckpointID][]string
	// positions has for each checkpoint how many rows each channel had sent before its
	// barrier, which is where its source reads again; -1: it has not sent it.
	positions map[weir.CheckpointID][]int
}

func newChannels(n int, mode Mode) *channels {
	return &channels{
		align: NewAligner(n, mode), queues: make([][]element, n), rows: make([][]string, n),
		snapshots: map[weir.CheckpointID][]string{}, positions: map[weir.CheckpointID][]int{},
	}
}

func (c *channels) send(ch int, e element) {
	e.seq = c.sent
	c.sent++
	c.queues[ch] = append(c.queues[ch], e)
	switch {
	case e.row != "":
		c.rows[ch] = append(c.rows[ch], e.row)
	case e.cp > 0:
		if c.positions[e.cp] == nil {
			c.positions[e.cp] = slices.Repeat([]int{-1}, len(c.rows))
		}
		c.positions[e.cp][ch] = len(c.rows[ch])
	}
}

// ahead are the rows that were sent ahead of the barriers of a checkpoint; all those of a
// channel that closed without.
func (c *channels) ahead(cp weir.CheckpointID) (rows []string) {
	for ch, n := range c.positions[cp] {
		if n < 0 {
			n = len(c.rows[ch])
		}
		rows = append(rows, c.rows[ch][:n]...)
	}
	return rows
}

// read reads until nothing more may be read.
func (c *channels) read() string {
	var out strings.Builder
	for {
		ch := c.oldest()
		if ch < 0 {
			break
		}
		e := c.queues[ch][0]
		c.queues[ch] = c.queues[ch][1:]
		var aligned []weir.CheckpointID
		switch {
		case e.row != "":
			c.state = append(c.state, e.row)
			fmt.Fprintf(&out, "  %d: row %s\n", ch, e.row)
		case e.close:
			aligned = c.align.Close(ch)
			fmt.Fprintf(&out, "  %d: close\n", ch)
		default:
			if c.align.Barrier(ch, e.cp) {
				aligned = []weir.CheckpointID{e.cp}
			}
			fmt.Fprintf(&out, "  %d: barrier %d\n", ch, e.cp)
		}
		for _, id := range aligned {
			c.snapshots[id] = slices.Clone(c.state)
			fmt.Fprintf(&out, "  snapshot %d: %s\n", id, words(c.state))
		}
	}
	for ch := range c.queues {
		if c.align.Held(ch) {
			fmt.Fprintf(&out, "  held in %d: %s\n", ch, c.waiting(ch))
		}
	}
	return out.String()
}

// oldest is the channel whose first element was sent first, of those that may be read.
func (c *channels) oldest() int {
	oldest := -1
	for ch, q := range c.queues {
		if len(q) > 0 && !c.align.Held(ch) && (oldest < 0 || q[0].seq < c.queues[oldest][0].seq) {
			oldest = ch
		}
	}
	return oldest
}

// waiting lists what a channel has that was not read.
func (c *channels) waiting(ch int) string {
	var list []string
	for _, e := range c.queues[ch] {
		switch {
		case e.row != "":
			list = append(list, e.row)
		case e.close:
			list = append(list, "close")
		default:
			list = append(list, fmt.Sprintf("barrier-%d", e.cp))
		}
	}
	return words(list)
}

func words(rows []string) string {
	if len(rows) == 0 {
		return "nothing"
	}
	return strings.Join(rows, " ")
}

// restored says where sources read again after a failure, and what the snapshot has
// counted already of that.
func (c *channels) restored(cp weir.CheckpointID) string {
	var twice []string
	out := ""
	for ch, n := range c.positions[cp] {
		if n < 0 {
			out += fmt.Sprintf("  source %d has closed\n", ch)
			continue
		}
		again := c.rows[ch][n:]
		out += fmt.Sprintf("  source %d reads again: %s\n", ch, words(again))
		for _, row := range again {
			if slices.Contains(c.snapshots[cp], row) {
				twice = append(twice, row)
			}
		}
	}
	return out + "  counted twice: " + words(twice) + "\n"
}

// TestChannelScripts sends the same into an exactly-once and an at-least-once subtask:
// which rows are in a snapshot, which are held, and in which order they are taken after.
func TestChannelScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/channels", func(t *testing.T, path string) {
		both := map[Mode]*channels{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return channelCommand(t, d, both)
		})
	})
}

func channelCommand(t *testing.T, d *datadriven.TestData, both map[Mode]*channels) string {
	e := element{row: arg(d, "row"), cp: weir.CheckpointID(num(t, arg(d, "cp"))), close: d.Cmd == "close"}
	said := func(Mode) string { return "" }
	switch d.Cmd {
	case "channels":
		for _, mode := range []Mode{ExactlyOnce, AtLeastOnce} {
			both[mode] = newChannels(num(t, arg(d, "n")), mode)
		}
	case "send", "barrier", "close":
		for _, c := range both {
			c.send(num(t, arg(d, "ch")), e)
		}
	case "read":
		said = func(mode Mode) string { return both[mode].read() }
	case "restore":
		said = func(mode Mode) string { return both[mode].restored(e.cp) }
	default:
		d.Fatalf(t, "unknown command")
	}
	exactly, atLeast := said(ExactlyOnce), said(AtLeastOnce)
	if exactly == atLeast {
		return exactly
	}
	return "exactly_once\n" + exactly + "at_least_once\n" + atLeast
}

// TestChannels: whatever is sent and whenever it is read, an exactly-once snapshot has the
// rows that were sent ahead of its barriers, no more and no fewer, and an at-least-once one
// no fewer; the rows of a channel are taken in its order, and none is lost.
func TestChannels(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{ExactlyOnce, AtLeastOnce} {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 4).Draw(t, "channels")
			c := newChannels(n, mode)
			barrier, closed := make([]weir.CheckpointID, n), make([]bool, n)
			for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
				ch := rapid.IntRange(0, n-1).Draw(t, "ch")
				switch what := rapid.IntRange(0, 19).Draw(t, "what"); {
				case what < 5:
					c.read()
				case closed[ch]:
				case what == 19:
					closed[ch] = true
					c.send(ch, element{close: true})
				case what < 12 && barrier[ch] < 9:
					barrier[ch] += weir.CheckpointID(rapid.IntRange(1, min(2, 9-int(barrier[ch]))).Draw(t, "skip"))
					c.send(ch, element{cp: barrier[ch]})
				default:
					c.send(ch, element{row: fmt.Sprintf("%d-%d", ch, i)})
				}
			}
			for ch := range n { // the last barrier lets everything through
				if !closed[ch] {
					c.send(ch, element{cp: 10})
				}
			}
			c.read()
			checkChannels(t, mode, c)
		})
	}
}

func checkChannels(t *rapid.T, mode Mode, c *channels) {
	for id, got := range c.snapshots {
		want := slices.Sorted(slices.Values(c.ahead(id)))
		got = slices.Sorted(slices.Values(got))
		if mode == AtLeastOnce {
			got = slices.DeleteFunc(got, func(row string) bool { return !slices.Contains(want, row) })
		}
		if !slices.Equal(got, want) {
			t.Fatalf("snapshot %d has %v, ahead of its barriers were %v", id, got, want)
		}
	}
	for ch, rows := range c.rows {
		prefix := fmt.Sprintf("%d-", ch)
		taken := slices.DeleteFunc(slices.Clone(c.state), func(row string) bool { return !strings.HasPrefix(row, prefix) })
		if !slices.Equal(taken, rows) {
			t.Fatalf("channel %d sent %v, taken were %v", ch, rows, taken)
		}
	}
	if _, taken := c.snapshots[10]; !taken && len(c.positions[10]) > 0 {
		t.Fatal("the last checkpoint was not taken")
	}
}

package transport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
)

const testJob = weir.JobID("job_000102030405060708090a0b0c0d0e0f")

var (
	testAttempt = weir.AttemptID{Number: 3, Tag: "aabbccdd"}
	testChannel = weir.ChannelID{Edge: 5, From: weir.TaskID{Chain: 1, Subtask: 2}, To: weir.TaskID{Chain: 3, Subtask: 4}}
)

// goldenFrame is a barrier with a payload in version 2. It never changes; a newer
// version gets bytes of its own beside it.
const goldenFrame = "57020400" + "7bf2c6a1" + "03000000" + "05000000" +
	"000102030405060708090a0b0c0d0e0f" + "0300000000000000" + "aabbccdd" +
	"01000000" + "02000000" + "03000000" + "04000000" +
	"2a00000000000000" + "feffffffffffffff" + "0403020107000000" + "616263"

// goldenFrame1 is the same in version 1, which had no lives; it is refused.
const goldenFrame1 = "57010400" + "1a9db6ae" + "03000000" + "05000000" +
	"000102030405060708090a0b0c0d0e0f" + "0300000000000000" + "aabbccdd" +
	"01000000" + "02000000" + "03000000" + "04000000" +
	"2a00000000000000" + "feffffffffffffff" + "616263"

// goldenAck is an ack with a gap in version 2.
const goldenAck = "57028101" + "97af8891" + "10000000" + "05000000" +
	"000102030405060708090a0b0c0d0e0f" + "0300000000000000" + "aabbccdd" +
	"01000000" + "02000000" + "03000000" + "04000000" +
	"2a00000000000000" + "0000000000000000" + "0700000004030201" + "0001000000000000" + "0002000000000000"

func TestFrameGolden(t *testing.T) {
	t.Parallel()
	addr, err := NewAddress(testJob, testAttempt, testChannel)
	if err != nil {
		t.Fatal(err)
	}
	f := wireFrame{addr: addr, kind: weir.FrameBarrier, seq: 42, value: -2, life: 0x01020304, peer: 7, payload: []byte("abc")}
	if got := hex.EncodeToString(appendFrame(nil, &f)); got != goldenFrame {
		t.Errorf("frame\n got %s\nwant %s", got, goldenFrame)
	}
	golden, _ := hex.DecodeString(goldenFrame)
	got, rest, err := decodeFrame(append(golden, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got, cmp.AllowUnexported(wireFrame{})); diff != "" || len(rest) != 2 {
		t.Errorf("read back, rest %d: %s", len(rest), diff)
	}
}

func TestAckGolden(t *testing.T) {
	t.Parallel()
	addr, err := NewAddress(testJob, testAttempt, testChannel)
	if err != nil {
		t.Fatal(err)
	}
	b := appendAck(nil, addr, Action{Kind: ActAck, Life: 7, Peer: 0x01020304, Seq: 42, Consumed: 256, Limit: 512, Gap: true})
	if got := hex.EncodeToString(b); got != goldenAck {
		t.Errorf("ack\n got %s\nwant %s", got, goldenAck)
	}
	golden, _ := hex.DecodeString(goldenAck)
	f, _, err := decodeFrame(golden)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := ackEvent(&f)
	if err != nil {
		t.Fatal(err)
	}
	want := Event{Kind: EvAck, From: addr, Life: 7, Peer: 0x01020304, Seq: 42, Consumed: 256, Limit: 512, Gap: true}
	if diff := cmp.Diff(want, ev); diff != "" {
		t.Error(diff)
	}
}

func TestFrameRefused(t *testing.T) {
	t.Parallel()
	golden, _ := hex.DecodeString(goldenFrame)
	before, _ := hex.DecodeString(goldenFrame1)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(golden)
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":    {nil, "do not begin with a header"},
		"magic":    {change(0, 'w'), "do not begin with a header"},
		"version":  {change(1, 9), "version 9, this program knows 2; run the same version of weir everywhere"},
		"before":   {before, "version 1, this program knows 2"},
		"header":   {golden[:20], "20 bytes of a header of 84"},
		"short":    {golden[:len(golden)-1], "86 bytes of 87"},
		"length":   {change(11, 0xff), "bytes of"},
		"kind":     {change(2, 5), "wrong checksum"},
		"flags":    {change(3, 1), "wrong checksum"},
		"payload":  {change(86, 'x'), "wrong checksum"},
		"sequence": {change(60, 0), "wrong checksum"},
		"life":     {change(76, 0), "wrong checksum"},
	} {
		_, _, err := decodeFrame(c.data)
		if !errors.Is(err, errFrame) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ackEvent(&wireFrame{kind: kindAck, payload: []byte("short")}); !errors.Is(err, errFrame) {
		t.Errorf("short ack: %v", err)
	}
}

func TestAddressRefused(t *testing.T) {
	t.Parallel()
	negative := testChannel
	negative.To.Subtask = -1
	for name, err := range map[string]error{
		"job":     addressErr("job_1", testAttempt, testChannel),
		"tag":     addressErr(testJob, weir.AttemptID{Number: 1, Tag: "zz"}, testChannel),
		"number":  addressErr(testJob, weir.AttemptID{Tag: "aabbccdd"}, testChannel),
		"channel": addressErr(testJob, testAttempt, negative),
	} {
		if !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func addressErr(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID) error {
	_, err := NewAddress(job, attempt, ch)
	return err
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	s, err := newSubjects("prod")
	if err != nil {
		t.Fatal(err)
	}
	job := string(testJob)
	for got, want := range map[string]string{
		s.data(testJob, testAttempt, testChannel):            "weir.prod.d." + job + ".3-aabbccdd.3_4.1_2",
		s.dataTo(testJob, testAttempt, testChannel.To):       "weir.prod.d." + job + ".3-aabbccdd.3_4.*",
		s.acks(testJob, testAttempt, testChannel):            "weir.prod.k." + job + ".3-aabbccdd.1_2.3_4",
		s.acksTo(testJob, testAttempt, testChannel.From):     "weir.prod.k." + job + ".3-aabbccdd.1_2.*",
		s.command("w-1", "read"):                             "weir.prod.w.w-1.command.read",
		s.command("w-1@life", "x"):                           "weir.prod.w.w-1.life.life.x",
		s.command("server-1", "x"):                           "weir.prod.s.server-1.command.x",
		s.command("server-1@1", "*"):                         "weir.prod.s.server-1.life.1.*",
		s.ping("w-1"):                                        "weir.prod.w.w-1.ping",
		s.inbox("w-1", "life"):                               "weir.prod.i.w.w-1.life.",
		s.inbox("", "life"):                                  "weir.prod.i.s.life.",
		s.from("w-1@life") + s.from("server-1") + s.from(""): "w.w-1ss",
		s.report():    "weir.prod.s.report",
		s.heartbeat(): "weir.prod.s.heartbeat",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, bad := range []string{"a.b", "a b", "*", ">", "a\x00"} {
		if _, err := newSubjects(bad); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("cluster %q: %v", bad, err)
		}
	}
}

// FuzzDecodeFrame: reading never panics, and what can be read is written back the
// same.
func FuzzDecodeFrame(f *testing.F) {
	golden, _ := hex.DecodeString(goldenFrame)
	ack, _ := hex.DecodeString(goldenAck)
	f.Add(golden)
	f.Add(append(golden, ack...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for len(data) > 0 {
			frame, rest, err := decodeFrame(data)
			if err != nil {
				return
			}
			if again := appendFrame(nil, &frame); !bytes.Equal(again, data[:len(data)-len(rest)]) {
				t.Fatalf("written back as %x", again)
			}
			_, _ = ackEvent(&frame) // must not panic
			data = rest
		}
	})
}

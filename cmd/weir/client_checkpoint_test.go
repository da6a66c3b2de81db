package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/checkpoint"
	"weir/server"
)

// page prints a checkpoint as weir checkpoint show does, an hour after it began.
func page(t *testing.T, answer string) string {
	t.Helper()
	var d server.CheckpointDetail
	if err := json.Unmarshal([]byte(answer), &d); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := printDetail(&b, "counts", d, d.TriggeredAt.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func TestCheckpointPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"completed": {
			`{"id":7,"attempt":2,"type":"checkpoint","status":"completed","periodic":true,"triggered_at":"2026-03-01T12:00:00Z","completed_at":"2026-03-01T12:00:01.25Z",
			"committed_at":"2026-03-01T12:00:01.33Z","duration_ms":1250,"commit_ms":80,"state_bytes":4096,"new_bytes":100,"critical_path":"count subtask 1 was last",
			"last":{"operator":"b","name":"count","subtask":1},"operators":[
			{"id":"a","name":"user_behavior","last":{"operator":"a","name":"user_behavior","subtask":0},"subtasks":[
			{"index":0,"worker":"w1","start_delay_ms":0.5,"cut_ms":0.02,"upload_ms":3,"new_bytes":40,"total_bytes":40,"acked_at":"2026-03-01T12:00:00.01Z"}]},
			{"id":"b","name":"count ▸ result","last":{"operator":"b","name":"count","subtask":1},"subtasks":[
			{"index":0,"worker":"w1","start_delay_ms":2,"alignment_ms":10,"cut_ms":1,"upload_ms":30,"commit_ms":12,"new_bytes":30,"total_bytes":2000,"acked_at":"2026-03-01T12:00:00.05Z"},
			{"index":1,"worker":"w2","start_delay_ms":2,"alignment_ms":1100,"cut_ms":1,"upload_ms":30,"new_bytes":30,"total_bytes":2056,"acked_at":"2026-03-01T12:00:01.2Z"}]}]}`, `
checkpoint 7 of job counts: completed
triggered 2026-03-01 12:00:00.000Z (1 h ago) in attempt 2, by the interval; ended after 1250 ms
4.0 KiB of state, 100 B of it new; output visible 80 ms later
critical path: count subtask 1 was last
OPERATOR        SUBTASK  WORKER  START DELAY, ms  ALIGNMENT   CUT  UPLOAD  COMMIT   NEW    TOTAL  ACKED, ms
user_behavior         0  w1                 0.50          0  0.02    3.00       0  40 B     40 B        +10
count ▸ result        0  w1                 2.00         10  1.00      30      12  30 B  2.0 KiB        +50
count ▸ result        1  w2                 2.00       1100  1.00      30       0  30 B  2.0 KiB      +1200  ◀ last of all
`,
		},
		"failed": {
			`{"id":8,"attempt":2,"type":"savepoint","savepoint":"sp","status":"failed","triggered_at":"2026-03-01T12:00:00Z","completed_at":"2026-03-01T12:01:00Z","duration_ms":60000,
			"failure":{"reason":"timeout","operator":"count","subtask":3,"worker":"w2","message":"expired after 60 s"},"thinned":true,"operators":[]}`, `
savepoint sp, number 8 of job counts: failed
triggered 2026-03-01 12:00:00.000Z (1 h ago) in attempt 2, on request; ended after 60000 ms
timeout: expired after 60 s (operator count, subtask 3, worker w2)
its detail per subtask was given up by --history-detail
`,
		},
		"failed while others were missing": {
			`{"id":8,"attempt":2,"type":"checkpoint","status":"failed","periodic":true,"triggered_at":"2026-03-01T12:00:00Z","completed_at":"2026-03-01T12:01:00Z","duration_ms":60000,
			"failure":{"reason":"timeout","operator":"count","subtask":3,"worker":"w2","message":"expired after 60 s"},"last":{"operator":"b","name":"count","subtask":1},"operators":[
			{"id":"b","name":"count","last":{"operator":"b","name":"count","subtask":1},"subtasks":[
			{"index":1,"worker":"w1","start_delay_ms":2,"acked_at":"2026-03-01T12:00:01Z"}]}]}`, `
checkpoint 8 of job counts: failed
triggered 2026-03-01 12:00:00.000Z (1 h ago) in attempt 2, by the interval; ended after 60000 ms
timeout: expired after 60 s (operator count, subtask 3, worker w2)
OPERATOR  SUBTASK  WORKER  START DELAY, ms  ALIGNMENT  CUT  UPLOAD  COMMIT  NEW  TOTAL  ACKED, ms
count           1  w1                 2.00          0    0       0       0  0 B    0 B      +1000
`,
		},
		"pending": {
			`{"id":9,"attempt":2,"type":"checkpoint","status":"pending","final":true,"triggered_at":"2026-03-01T12:00:00Z","operators":[],"waiting_unknown":"worker w3 did not answer",
			"waiting_for":[{"operator":"b","name":"count","subtask":3,"worker":"w1","stage":"aligning","since_ms":10,"missing":[{"operator":"a","name":"src","subtask":1}],"back_pressured":0.98,"busy":0.02},
			{"operator":"b","name":"count","subtask":4,"worker":"w1","stage":"uploading","back_pressured":0,"busy":0,"doing":"storing 3 of 7 objects"}]}`, `
checkpoint 9 of job counts: pending
triggered 2026-03-01 12:00:00.000Z (1 h ago) in attempt 2, as the last one
not all tasks say how far they are: worker w3 did not answer
WAITS FOR  SUBTASK  WORKER  STAGE      BACK-PRESSURED  BUSY  BARRIERS MISSING FROM
count            3  w1      aligning             98 %   2 %  src 1
count            4  w1      uploading             0 %   0 %  storing 3 of 7 objects
`,
		},
	} {
		if diff := cmp.Diff(c.want, page(t, c.answer)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestHistoryFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "90d": "90d", "36h": "36h0m0s", "48h": "2d", "1m": "1m0s",
		"-1h": "no age", "1w": "no age", "d": "no age", "1.5d": "no age", "": "no age", "10s": "too short", "99999999d": "no age",
	} {
		var a age
		if err := a.Set(text); err == nil && a.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, a.String(), err, want)
		}
	}
	for _, args := range []string{"up --history 90x", "server --history-detail 5"} {
		var out, said strings.Builder
		if code := execute(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &said); code != 2 || !strings.Contains(said.String(), "no age") {
			t.Errorf("%s: %d, %s", args, code, said.String())
		}
	}
	var keep checkpoint.Thinning
	historyFlags(newVersion().Flags(), &keep)
	if keep != (checkpoint.Thinning{Detail: 7 * day}) {
		t.Errorf("the defaults are %+v", keep)
	}
}

func TestHistoryFilter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := historyFilter{status: []string{"failed", "aborted"}, kind: "savepoint", since: "2d", until: "2026-03-01T11:00:00+01:00", minDuration: "1s", reason: []string{"timeout"}, attempt: 3, limit: 5}
	q, err := h.query(now)
	const want = "attempt=3&limit=5&min_duration=1s&reason=timeout&since=2026-02-27T12%3A00%3A00Z&status=failed%2Caborted&type=savepoint&until=2026-03-01T11%3A00%3A00%2B01%3A00"
	if err != nil || q.Encode() != want {
		t.Errorf("%s, %v", q.Encode(), err)
	}
	if q, err = (&historyFilter{}).query(now); err != nil || q.Encode() != "limit=1000" {
		t.Errorf("%s, %v", q.Encode(), err)
	}
}

// A filter that chooses nothing is refused, not left out: the whole history is no answer.
func TestHistoryFilterRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--limit 0":        "weir: --limit is 0: give 1 or more\n",
		"--attempt 0":      "weir: --attempt is 0: give 1 or more\n",
		"--attempt -1":     "weir: --attempt is -1: give 1 or more\n",
		"--since tomorrow": "weir: --since is \"tomorrow\": give a time such as 2026-03-01T12:00:00Z, or how long ago, such as 36h or 2d\n",
		"--until 2026":     "weir: --until is \"2026\": give a time such as 2026-03-01T12:00:00Z, or how long ago, such as 36h or 2d\n",
	} {
		var out, said strings.Builder
		code := execute(t.Context(), strings.Fields("checkpoint list shop --server http://127.0.0.1:1 "+args), strings.NewReader(""), &out, &said)
		if code != 2 || said.String() != want {
			t.Errorf("%s: %d, %s", args, code, said.String())
		}
	}
}

// What is no number of a checkpoint is refused before anything is asked: the summary has a
// path beside theirs.
func TestCheckpointNumber(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"checkpoint show shop summary", "checkpoint cancel shop 0", "checkpoint show shop 1/2"} {
		var out, said strings.Builder
		code := execute(t.Context(), append(strings.Fields(args), "--server", "http://127.0.0.1:1"), strings.NewReader(""), &out, &said)
		if code != 2 || !strings.Contains(said.String(), "weir checkpoint list shop") || out.Len() > 0 {
			t.Errorf("%s: %d, %q", args, code, said.String())
		}
	}
}

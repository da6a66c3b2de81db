package metastoretest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir"
	"weir/checkpoint"
)

var historyTests = map[string]func(*testing.T, suite){
	"a history is filtered":                 historyFilters,
	"a history is summed up":                historySummary,
	"detail is thinned before rows":         historyThinning,
	"what is in use is not forgotten":       historyKeeps,
	"an attempt's end says why":             historyAttemptEnded,
	"a failed savepoint goes with its row":  historySavepoints,
	"thinning goes on batch by batch":       historyBatches,
	"numbers go on where rows were deleted": historyNumbers,
}

// begin begins a checkpoint or savepoint that was triggered n minutes after day.
func (s suite) beginAt(t testing.TB, f weir.Fence, n int, savepoint string) weir.CheckpointID {
	t.Helper()
	r := checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: day.Add(time.Duration(n) * time.Minute), Savepoint: savepoint}
	if savepoint != "" {
		r.Type = checkpoint.TypeSavepoint
	}
	id, err := s.BeginCheckpoint(t.Context(), f, r)
	ok(t, err)
	return id
}

// collect has the objects of all that a job has given up gone.
func (s suite) collect(t testing.TB, job weir.JobID) {
	t.Helper()
	g, err := s.GivenUp(t.Context(), job, 100, 0)
	ok(t, err)
	ok(t, s.Collected(t.Context(), job, g))
}

func (s suite) failed(t testing.TB, f weir.Fence, id weir.CheckpointID, status checkpoint.Status, reason string, end time.Time) {
	t.Helper()
	_, err := s.AbortCheckpoint(t.Context(), f, checkpoint.Record{
		ID: id, Status: status, CompletedAt: end, Failure: &weir.Failure{Reason: reason, Message: "so it is"}, Acks: []checkpoint.Ack{{Worker: "w1"}}, Path: "how far it came",
	})
	ok(t, err)
}

func historyFilters(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Minute) }
	for n, took := range []time.Duration{time.Second, 2500 * time.Millisecond} { // 1, 2
		id := s.beginAt(t, f, n, "")
		ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", CompletedAt: at(n).Add(took)}, true))
	}
	s.failed(t, f, s.beginAt(t, f, 2, ""), checkpoint.StatusFailed, checkpoint.ReasonTimeout, at(3))           // 3
	s.failed(t, f, s.beginAt(t, f, 3, "sp"), checkpoint.StatusAborted, checkpoint.ReasonCanceled, at(3))       // 4
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, nil))                                             //
	f = s.begin(t, s.job(t, "a"), 1)                                                                           //
	s.failed(t, f, s.beginAt(t, f, 4, ""), checkpoint.StatusAborted, checkpoint.ReasonSuperseded, time.Time{}) // 5, by the database's clock
	s.beginAt(t, f, 5, "later")                                                                                // 6, pending
	other, g := s.running(t, "b")
	s.checkpoint(t, g, true)
	for name, test := range map[string]struct {
		f    checkpoint.Filter
		want []weir.CheckpointID
	}{
		"all":              {checkpoint.Filter{}, []weir.CheckpointID{6, 5, 4, 3, 2, 1}},
		"a page":           {checkpoint.Filter{Before: 5, Limit: 2}, []weir.CheckpointID{4, 3}},
		"status":           {checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusPending, checkpoint.StatusFailed}}, []weir.CheckpointID{6, 3}},
		"savepoints":       {checkpoint.Filter{Type: checkpoint.TypeSavepoint}, []weir.CheckpointID{6, 4}},
		"checkpoints":      {checkpoint.Filter{Type: checkpoint.TypeCheckpoint, Limit: 2}, []weir.CheckpointID{5, 3}},
		"attempt":          {checkpoint.Filter{Attempt: 1}, []weir.CheckpointID{4, 3, 2, 1}},
		"another attempt":  {checkpoint.Filter{Attempt: 3}, nil},
		"reason":           {checkpoint.Filter{Reason: []string{checkpoint.ReasonTimeout, checkpoint.ReasonSuperseded}}, []weir.CheckpointID{5, 3}},
		"since":            {checkpoint.Filter{Since: at(3)}, []weir.CheckpointID{6, 5, 4}},
		"until":            {checkpoint.Filter{Until: at(1)}, []weir.CheckpointID{1}},
		"between":          {checkpoint.Filter{Since: at(1), Until: at(3)}, []weir.CheckpointID{3, 2}},
		"long":             {checkpoint.Filter{MinDuration: 2500 * time.Millisecond}, []weir.CheckpointID{5, 3, 2}},
		"longer":           {checkpoint.Filter{MinDuration: 2501 * time.Millisecond, Until: at(3)}, []weir.CheckpointID{3}},
		"and":              {checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusAborted}, Type: checkpoint.TypeSavepoint, Reason: []string{checkpoint.ReasonCanceled}}, []weir.CheckpointID{4}},
		"nothing is both":  {checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusCompleted}, Reason: []string{checkpoint.ReasonTimeout}}, nil},
		"the first by far": {checkpoint.Filter{Before: 2}, []weir.CheckpointID{1}},
	} {
		list, err := s.Checkpoints(t.Context(), j.ID, test.f)
		ok(t, err)
		var got []weir.CheckpointID
		for _, r := range list {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		sum, err := s.CheckpointSummary(t.Context(), j.ID, checkpoint.Filter{
			Status: test.f.Status, Type: test.f.Type, Attempt: test.f.Attempt, Reason: test.f.Reason,
			Since: test.f.Since, Until: test.f.Until, MinDuration: test.f.MinDuration,
		})
		ok(t, err)
		if test.f.Before == 0 && test.f.Limit == 0 && sum.Total != int64(len(test.want)) {
			t.Errorf("%s: the summary counts %d, want %d", name, sum.Total, len(test.want))
		}
	}
	list, err := s.Checkpoints(t.Context(), other.ID, checkpoint.Filter{})
	ok(t, err)
	equal(t, len(list), 1)
}

// historySummary compares the summary with one made by hand.
func historySummary(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	sum, err := s.CheckpointSummary(t.Context(), j.ID, checkpoint.Filter{})
	ok(t, err)
	equal(t, sum, checkpoint.Summary{})
	rng := rand.New(rand.NewPCG(1, 2))
	var want checkpoint.Summary
	var took, state, fresh []float64
	for n := range 120 {
		id := s.beginAt(t, f, n, "")
		end := day.Add(time.Duration(n)*time.Minute + time.Duration(rng.IntN(50))*100*time.Microsecond)
		want.Total++
		if rng.IntN(5) == 0 {
			s.failed(t, f, id, checkpoint.StatusFailed, checkpoint.ReasonTimeout, end)
			want.Failed++
			continue
		}
		r := checkpoint.Record{ID: id, Manifest: "m", CompletedAt: end, StateBytes: rng.Int64N(1 << 40), NewBytes: rng.Int64N(4)}
		ok(t, s.CompleteCheckpoint(t.Context(), f, r, true))
		want.Completed++
		took = append(took, float64(end.Sub(day.Add(time.Duration(n)*time.Minute)).Microseconds())/1000)
		state, fresh = append(state, float64(r.StateBytes)), append(fresh, float64(r.NewBytes))
	}
	s.beginAt(t, f, 500, "")
	want.Total, want.Pending = want.Total+1, 1
	want.Duration, want.StateBytes, want.NewBytes = Distribution(took), Distribution(state), Distribution(fresh)
	sum, err = s.CheckpointSummary(t.Context(), j.ID, checkpoint.Filter{})
	ok(t, err)
	if diff := cmp.Diff(want, sum, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// Distribution measures values by hand.
func Distribution(values []float64) checkpoint.Distribution {
	if len(values) == 0 {
		return checkpoint.Distribution{}
	}
	slices.Sort(values)
	total := 0.0
	for _, v := range values {
		total += v
	}
	at := func(share float64) float64 { // the first value that so many are not above
		for _, v := range values {
			if n := sort.Search(len(values), func(i int) bool { return values[i] > v }); float64(n) >= share*float64(len(values)) {
				return v
			}
		}
		return values[len(values)-1]
	}
	return checkpoint.Distribution{
		Min: values[0], Avg: total / float64(len(values)), Max: values[len(values)-1],
		P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999),
	}
}

// ago is so long before now.
func ago(d time.Duration) time.Time { return time.Now().Add(-d) }

func historyThinning(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	for n, age := range []time.Duration{100 * time.Hour, 50 * time.Hour, 10 * time.Hour, time.Minute, time.Minute, time.Minute} {
		s.failed(t, f, s.beginAt(t, f, n, ""), checkpoint.StatusFailed, checkpoint.ReasonTimeout, ago(age))
	}
	s.collect(t, j.ID)
	keep := checkpoint.Thinning{Detail: 24 * time.Hour, Rows: 72 * time.Hour}
	for range 2 { // again it finds nothing
		_, err := s.ThinHistory(t.Context(), keep)
		ok(t, err)
		_, err = s.CheckpointByID(t.Context(), j.ID, 1)
		fails(t, err, weir.ErrNotFound)
		for id := weir.CheckpointID(2); id <= 6; id++ {
			r, err := s.CheckpointByID(t.Context(), j.ID, id)
			ok(t, err)
			if thin := id == 2; r.Thinned != thin || (len(r.Acks) == 0) != thin || r.Path == "" || r.Failure == nil {
				t.Fatalf("%d: %+v", id, r)
			}
		}
	}
	done, err := s.ThinHistory(t.Context(), checkpoint.Thinning{})
	ok(t, err)
	equal(t, done, checkpoint.Thinned{})
}

func historyKeeps(t *testing.T, s suite) {
	j := newJob("a")
	j.Checkpoint = json.RawMessage(`{"num_retained":2}`)
	_, err := s.CreateJob(t.Context(), j, "")
	ok(t, err)
	f := s.begin(t, j, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	old := ago(1000 * time.Hour)
	acks := []checkpoint.Ack{{Worker: "w1"}}
	complete := func(savepoint string, open bool) weir.CheckpointID {
		id := s.beginAt(t, f, 0, savepoint)
		ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", CompletedAt: old, Acks: acks, CommitsOpen: open}, savepoint == ""))
		return id
	}
	given := complete("", false)
	kept := complete("", false)
	saved := complete("sp", false)
	open := complete("", true)
	failed := s.beginAt(t, f, 0, "")
	s.failed(t, f, failed, checkpoint.StatusFailed, checkpoint.ReasonTimeout, old)
	var newest []weir.CheckpointID
	for range 2 {
		newest = append(newest, s.beginAt(t, f, 0, ""))
	}
	s.failed(t, f, newest[0], checkpoint.StatusFailed, checkpoint.ReasonTimeout, old) // the other one is pending
	gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{given})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{given})

	done, err := s.ThinHistory(t.Context(), checkpoint.Thinning{Rows: time.Hour})
	ok(t, err)
	equal(t, done, checkpoint.Thinned{}) // their objects may still be there
	s.collect(t, j.ID)
	done, err = s.ThinHistory(t.Context(), checkpoint.Thinning{Detail: time.Hour, Rows: time.Hour})
	ok(t, err)
	equal(t, done, checkpoint.Thinned{Details: 3, Rows: 2})
	list, err := s.Checkpoints(t.Context(), j.ID, checkpoint.Filter{})
	ok(t, err)
	var left []weir.CheckpointID
	for _, r := range list {
		left = append(left, r.ID)
		equal(t, r.Thinned, r.ID == newest[0])
	}
	equal(t, left, []weir.CheckpointID{newest[1], newest[0], open, saved, kept})
}

func historyAttemptEnded(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.beginAt(t, f, 0, "sp")
	two := 2
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, &weir.Failure{Reason: "task", Operator: "agg", Subtask: &two, Worker: "w1", Message: "it broke"}))
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.Failure, &weir.Failure{Reason: checkpoint.ReasonAttemptEnded, Operator: "agg", Subtask: &two, Worker: "w1", Message: "attempt 1 ended before the checkpoint was complete: it broke"})
	sp, err := s.Savepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, sp.Status, checkpoint.StatusAborted)
	equal(t, sp.Failure, r.Failure)
	equal(t, sp.CompletedAt, r.CompletedAt)
	list, err := s.Checkpoints(t.Context(), j.ID, checkpoint.Filter{Reason: []string{checkpoint.ReasonAttemptEnded}})
	ok(t, err)
	equal(t, len(list), 1)
}

func historySavepoints(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.failed(t, f, s.beginAt(t, f, 0, "sp"), checkpoint.StatusAborted, checkpoint.ReasonCanceled, ago(100*time.Hour))
	for range 5 {
		s.checkpoint(t, f, true)
	}
	s.collect(t, j.ID)
	done, err := s.ThinHistory(t.Context(), checkpoint.Thinning{Rows: time.Hour})
	ok(t, err)
	equal(t, done, checkpoint.Thinned{Rows: 1})
	_, err = s.Savepoint(t.Context(), "sp")
	fails(t, err, weir.ErrNotFound)
}

func historyBatches(t *testing.T, s suite) {
	for _, name := range []string{"a", "b"} {
		j, f := s.running(t, name)
		for range 7 {
			s.failed(t, f, s.beginAt(t, f, 0, ""), checkpoint.StatusFailed, checkpoint.ReasonTimeout, ago(100*time.Hour))
		}
		s.collect(t, j.ID)
	}
	var got []string
	for more := true; more; {
		done, err := s.ThinHistory(t.Context(), checkpoint.Thinning{Detail: time.Hour, Rows: time.Hour, Batch: 3})
		ok(t, err)
		got, more = append(got, fmt.Sprint(done.Details, done.Rows)), done.More
	}
	details, rows := 0, 0
	for _, g := range got {
		var d, r int
		_, err := fmt.Sscan(g, &d, &r)
		ok(t, err)
		if d > 3 || r > 3 {
			t.Fatalf("a batch of %s", g)
		}
		details, rows = details+d, rows+r
	}
	if rows != 2*(7-3) || details < 2*3 { // the newest three of each stay
		t.Fatalf("%d details, %d rows: %v", details, rows, got)
	}
}

func historyNumbers(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	for range 5 {
		s.failed(t, f, s.beginAt(t, f, 0, ""), checkpoint.StatusFailed, checkpoint.ReasonTimeout, ago(100*time.Hour))
	}
	s.collect(t, j.ID)
	done, err := s.ThinHistory(t.Context(), checkpoint.Thinning{Rows: time.Hour})
	ok(t, err)
	equal(t, done.Rows, 2)
	equal(t, s.beginAt(t, f, 0, ""), 6)
}

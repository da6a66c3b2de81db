package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/exec/batch"
	"weir/server/job"
	"weir/server/job/jobtest"
	"weir/transport"
)

// TestMaxPayloadBelowLeast: NATS comes back with a max_payload that is of no use, while a
// job runs, loses a worker, and another one is submitted. Both wait, and go on by
// themselves once NATS is right again.
func TestMaxPayloadBelowLeast(t *testing.T) {
	t.Parallel()
	for _, most := range []int{600, 2 << 10} { // without room for a part of a heartbeat, or for a frame
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			c := jobtest.NewOn(t, transport.ServerOptions{})
			s := c.Server("s1")
			for i := range 3 {
				c.Worker(fmt.Sprintf("w%d", i), 1)
			}
			c.Heard(s, 3)
			probe := c.Control("probe")
			const table = "CREATE TABLE s (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', 'number-of-rows' = '%d', " +
				"'fields.k.kind' = 'sequence', 'fields.k.start' = '1'); SELECT COUNT(*) AS n FROM s"
			submit := func(name string, rows, parallelism int) {
				if _, err := s.Submit(t.Context(), c.Spec(name, fmt.Sprintf(table, rows), parallelism)); err != nil {
					t.Fatal(err)
				}
			}
			submit("runs", 6000, 2)
			c.Await(s, "runs", weir.StatusRunning)

			c.RestartNATS(transport.ServerOptions{MaxPayload: most})
			c.Until("NATS is found to take too little", func(context.Context) bool {
				err := probe.Ready()
				return err != nil && strings.Contains(err.Error(), "max_payload")
			})
			submit("waits", 100, 1)
			// Its tasks are to go to workers, and the history says why they do not.
			const why = "its tasks wait for NATS: "
			c.Until("it says what it waits for", func(ctx context.Context) bool {
				j, err := s.Get(ctx, "waits")
				if err != nil {
					return false
				}
				list, err := c.Store.Events(ctx, j.ID, 0, 100)
				return err == nil && slices.ContainsFunc(list, func(e weir.Event) bool { return strings.HasPrefix(e.Message, why) })
			})
			c.RestartNATS(transport.ServerOptions{})
			for name, want := range map[string]string{"runs": `{"n":6000}`, "waits": `{"n":100}`} {
				j := c.Await(s, name, weir.StatusFinished, weir.StatusFailed)
				if j.Status != weir.StatusFinished {
					t.Errorf("%s: %s, %+v", name, j.Status, j.Failure)
				} else if got := results(t, s, name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %v, want %s", name, got, want)
				}
			}
		})
	}
}

// TestMaxPayloadBelowFrames: NATS comes back with a max_payload that is smaller than the
// frames which are under way, and larger than a row: the attempt ends with that reason, and
// the next one's frames are smaller. On a busy machine a worker may be back so late that the
// attempt ends for that instead; then it is tried again.
func TestMaxPayloadBelowFrames(t *testing.T) {
	t.Parallel()
	c := jobtest.NewOn(t, transport.ServerOptions{})
	s := c.Server("s1")
	c.Worker("w1", 1)
	c.Worker("w2", 1)
	const why, late = "bytes is larger than the NATS server takes (max_payload is 8192)", "nobody answers under its name"
	for try := range 5 {
		c.Heard(s, 2)
		said := func(what string, events []weir.Event) bool {
			return slices.ContainsFunc(events, func(e weir.Event) bool { return strings.Contains(e.Message, what) })
		}
		events := belowFrames(t, c, s, fmt.Sprint("wide-", try))
		if said(why, events) {
			return
		}
		if !said(late, events) {
			t.Fatalf("nobody says why: %+v", events)
		}
		c.RestartNATS(transport.ServerOptions{})
	}
	t.Error("a worker was late each time")
}

// belowFrames runs a job through it, and returns its history.
func belowFrames(t *testing.T, c *jobtest.Cluster, s *job.Service, name string) []weir.Event {
	t.Helper()
	const rows = 2*batch.Target + 200 // what is left behind the first batch of each source does not fit either
	const table = "CREATE TABLE s (k BIGINT, v STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', " +
		"'fields.k.kind' = 'sequence', 'fields.k.start' = '1'); " +
		"SELECT SUM(n) AS n FROM (SELECT v, COUNT(*) AS n FROM (SELECT LPAD(CAST(k AS STRING), 5000, 'x') AS v FROM s) GROUP BY v)"
	c.Batches.Store(1)
	if _, err := s.Submit(t.Context(), c.Spec(name, fmt.Sprintf(table, rows), 2)); err != nil {
		t.Fatal(err)
	}
	c.Await(s, name, weir.StatusRunning)
	c.RestartNATS(transport.ServerOptions{MaxPayload: 8 << 10})
	c.Batches.Store(0)
	j := c.Await(s, name, weir.StatusFinished, weir.StatusFailed)
	if j.Status != weir.StatusFinished {
		t.Fatalf("%s, %+v", j.Status, j.Failure)
	}
	if got := results(t, s, name); len(got) != 1 || got[0] != fmt.Sprintf(`{"n":%d}`, rows) {
		t.Errorf("%v", got)
	}
	events, err := c.Store.Events(t.Context(), j.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

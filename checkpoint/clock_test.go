package checkpoint_test

import (
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/clocktest"
)

// slowly acknowledges two seconds after the trigger, all tasks together.
func (r *rig) slowly(said checkpoint.Timing) func(*checkpoint.Ack) bool {
	return func(a *checkpoint.Ack) bool {
		if a.Task == r.tasks.List[0].ID {
			<-time.After(2 * time.Second)
		}
		a.Timing = said
		return true
	}
}

// R10: the machine's time of day is set an hour ahead and back, between checkpoints and
// within one. None is missed, none is one too many, and each says how long it really took.
func TestClockStepR10(t *testing.T) {
	t.Parallel()
	outside := time.Now()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{Interval: 10 * time.Second, Timeout: time.Minute})
		clock := clocktest.InBubble(outside)
		r.cfg.Now = clock.Now
		r.tasks.Answer = r.slowly(checkpoint.Timing{})
		r.start()
		for _, by := range []time.Duration{time.Hour, 0, -time.Hour, 0} {
			<-time.After(11 * time.Second) // a second into a checkpoint
			clock.Step(by)
			<-time.After(9 * time.Second)
		}
		<-time.After(5 * time.Second)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		rows := r.store.Rows()
		if len(rows) != 8 {
			t.Errorf("%d checkpoints in 85 s, one begins every 10 s", len(rows))
		}
		for _, row := range rows {
			took := row.CompletedAt.Round(0).Sub(row.TriggeredAt.Round(0)) // by what is stored
			if row.Status != checkpoint.StatusCompleted || took != 2*time.Second {
				t.Errorf("checkpoint %d: %s after %v", row.ID, row.Status, took)
			}
			for _, a := range row.Acks {
				if at := a.AckedAt.Round(0).Sub(row.TriggeredAt.Round(0)); at < 0 || at > took {
					t.Errorf("checkpoint %d: task %v acknowledged after %v", row.ID, a.Task, at)
				}
			}
		}
	})
}

// R10: a worker whose time of day is an hour off says how late the barrier came. Of a
// checkpoint that took two seconds nobody waited for more.
func TestStartDelayR10(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, want float64 }{
		"ahead":  {3_600_000, 1500},
		"behind": {-3_600_000, 0},
		"right":  {700, 700},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, false, checkpoint.Options{})
				r.tasks.Answer = r.slowly(checkpoint.Timing{StartDelayMS: c.said, AlignmentMS: 300, CutMS: 50, UploadMS: 150})
				r.start()
				rec := r.ended(r.begin())
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
				if rec.Failure != nil {
					t.Fatal(rec.Failure)
				}
				for _, a := range r.store.Rows()[0].Acks {
					if a.Timing.StartDelayMS != c.want || a.Timing.AlignmentMS != 300 {
						t.Errorf("task %v: %+v, want a start delay of %v ms", a.Task, a.Timing, c.want)
					}
				}
			})
		})
	}
}

package worker

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/exec/deploy"
)

// A lost attempt is one that ended here since nobody could be heard, and that no server
// knows of yet.
type lost struct {
	job     weir.JobID
	attempt weir.AttemptID
}

// watch drives the watch: it looks at the connection and does what follows.
func (w *Worker) watch(ctx context.Context) error {
	ticks := w.cfg.Ticks
	if ticks == nil {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		ticks = ticker.C
	}
	var asks errgroup.Group
	var m watch
	answerC := make(chan error, 1)
	m.tick(w.cfg.Now(), w.cfg.Control.Connected())
	for {
		var todo []watchDo
		select {
		case <-ctx.Done():
			return asks.Wait()
		case err := <-answerC:
			todo = m.answered(err == nil)
		case <-ticks:
			todo = m.tick(w.cfg.Now(), w.cfg.Control.Connected())
		}
		for _, do := range todo {
			w.cfg.Logger.Info(do.says(), "worker", w.cfg.ID)
			switch do {
			case doPause:
				w.pause(true)
			case doGoOn:
				w.pause(false)
			case doEnd:
				w.endAll()
			case doAsk:
				asks.Go(func() error { answerC <- w.askCurrent(ctx); return nil }) // has room: one at a time
			}
		}
	}
}

// pause has the sources of all attempts read nothing more, or go on.
func (w *Worker) pause(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.paused = on
	for _, a := range w.mu.attempts {
		a.pause(on)
	}
}

// endAll ends all attempts; the servers hear of it when they can be asked again.
func (w *Worker) endAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, job := range sortedKeys(w.mu.attempts) {
		a := w.mu.attempts[job]
		if a.ctx.Err() == nil {
			w.mu.lost = append(w.mu.lost, lost{job, a.m.Attempt})
			a.cancel()
		}
	}
}

// askCurrent asks the servers which attempts are over, and ends those, before it returns.
// It is repeated until a server answers that knows.
func (w *Worker) askCurrent(ctx context.Context) error {
	m := deploy.Returned{Header: deploy.Head(), Worker: w.cfg.ID, Incarnation: w.incarnation}
	w.mu.Lock()
	told := len(w.mu.lost)
	for _, l := range w.mu.lost {
		m.Attempts = append(m.Attempts, deploy.Held{Job: l.job, Attempt: l.attempt, Ended: true})
	}
	for _, job := range sortedKeys(w.mu.attempts) {
		if a := w.mu.attempts[job]; a.ctx.Err() == nil {
			m.Attempts = append(m.Attempts, deploy.Held{Job: job, Attempt: a.m.Attempt})
		}
	}
	w.mu.Unlock()
	if len(m.Attempts) == 0 {
		return nil
	}
	body, err := w.cfg.Control.Publish(ctx, deploy.KindReturned, deploy.Encode(m))
	var answer deploy.Over
	if err == nil {
		err = deploy.Decode(body, &answer)
	}
	if err != nil {
		if ctx.Err() == nil {
			w.cfg.Logger.Warn("which attempts are over is not known, asked again", "worker", w.cfg.ID, "err", err)
		}
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.lost = w.mu.lost[told:]
	for _, h := range answer.Attempts {
		if a := w.mu.attempts[h.Job]; a != nil && a.m.Attempt == h.Attempt {
			a.log.Info("attempt is over", "worker", w.cfg.ID)
			a.cancel() // its sources read nothing more, however long a call of theirs hangs
		}
	}
	return nil
}

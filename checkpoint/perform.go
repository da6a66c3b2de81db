package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
)

// perform is a goroutine of a lane: one action after the other, until ctx ends.
func (r *Runner) perform(ctx context.Context, actionC <-chan Action) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-actionC:
			e := r.do(ctx, a)
			select {
			case <-ctx.Done():
				return
			case r.resultC <- e:
			}
		}
	}
}

// do performs one action; its outcome, whatever it is, is an event.
func (r *Runner) do(ctx context.Context, a Action) Event {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(a))
	defer cancel()
	switch a := a.(type) {
	case SendTrigger:
		killpoint.Here("before-trigger")
		err := r.cfg.Tasks.Trigger(ctx, a.Trigger, a.Targets)
		killpoint.Here("after-trigger")
		return Triggered{ID: a.Trigger.Checkpoint, Err: err}
	case WriteManifest:
		killpoint.Here("before-manifest")
		err := r.writeManifest(ctx, a.Manifest)
		killpoint.Here("after-manifest")
		return ManifestWritten{ID: a.Manifest.Checkpoint, Err: err}
	case Notify:
		killpoint.Here("before-notify")
		err := r.cfg.Tasks.Notify(ctx, a.ID, a.Tasks)
		killpoint.Here("after-notify")
		return Notified{ID: a.ID, Err: err}
	case AskProgress:
		said, err := r.cfg.Tasks.Progress(ctx, a.ID)
		return Progressed{ID: a.ID, Tasks: said, Err: err}
	case Survey:
		return r.survey(ctx)
	case Tell: // it has happened, also where the attempt ends meanwhile
		tctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioTimeout)
		defer cancel()
		r.tell(tctx, a)
		return performed{}
	case DropObjects:
		r.drop(ctx, a.Keys)
		return performed{}
	case Collect:
		r.garbage()
		return performed{}
	}
	return r.record(ctx, a)
}

// record performs what reads or writes rows.
func (r *Runner) record(ctx context.Context, a Action) Event {
	store, fence := r.cfg.Store, r.cfg.Fence
	switch a := a.(type) {
	case Begin:
		killpoint.Here("before-begin")
		a.Record.ID = a.After
		id, err := store.BeginCheckpoint(ctx, fence, a.Record)
		killpoint.Here("after-begin")
		return Begun{ID: id, Err: err}
	case Decide:
		killpoint.Here("before-decision")
		err := store.CompleteCheckpoint(ctx, fence, a.Record, a.Base)
		killpoint.Here("after-decision")
		return Decided{ID: a.Record.ID, Err: err}
	case ReadBack:
		record, err := store.Checkpoint(ctx, fence, a.ID)
		return Read{ID: a.ID, Record: record, Err: err}
	case WriteAbort:
		killpoint.Here("before-abort")
		status, err := store.AbortCheckpoint(ctx, fence, a.Record)
		killpoint.Here("after-abort")
		return Aborted{ID: a.Record.ID, Status: status, Err: err}
	case CloseCommits:
		killpoint.Here("before-close")
		var errs []error
		for _, id := range a.IDs {
			var took []CommitTime
			if id == a.ID {
				took = a.Took
			}
			errs = append(errs, store.CloseCommits(ctx, fence, id, took))
		}
		killpoint.Here("after-close")
		return CommitsClosed{ID: a.ID, Err: errors.Join(errs...)}
	}
	panic(fmt.Sprintf("checkpoint: unknown action %T", a))
}

func timeoutOf(a Action) time.Duration {
	switch a.(type) {
	case WriteManifest:
		return blobTimeout
	case AskProgress:
		return askTimeout
	case Survey, DropObjects, Collect:
		return storageTimeout
	}
	return ioTimeout
}

// writeManifest puts the manifest if absent. What is there already is read back: equal
// bytes were written by an earlier try of ours.
func (r *Runner) writeManifest(ctx context.Context, m *Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	key := ManifestKey(m.Job, m.Checkpoint)
	err = r.cfg.Blobs.PutIfAbsent(ctx, key, bytes.NewReader(data))
	if !errors.Is(err, blob.ErrExists) {
		return err
	}
	there, err := readObject(ctx, r.cfg.Blobs, key)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if bytes.Equal(there, data) {
		return nil
	}
	if old, err := DecodeManifest(there); err == nil && old.Attempt != m.Attempt {
		return fmt.Errorf("%w: %v", errForeign, old.Attempt)
	}
	return errors.New("another manifest is there")
}

// survey looks for what the metastore does not know.
func (r *Runner) survey(ctx context.Context) Event {
	found, err := Find(ctx, r.cfg.Blobs, r.cfg.Fence.Job)
	if err != nil {
		return Surveyed{Err: err}
	}
	return Surveyed{Newest: found.Newest(), Attempt: found.Rival(r.cfg.Fence.Attempt)}
}

// drop deletes what a late ack named. What cannot be deleted now is found when the
// attempt is over and its folder is looked through.
func (r *Runner) drop(ctx context.Context, keys []string) {
	err := deleteAll(ctx, r.cfg.Blobs, 1, keys)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.cfg.Logger.Warn("objects of an aborted checkpoint stay for now", "job", r.cfg.Fence.Job, "err", err)
	}
}

func (r *Runner) garbage() {
	if r.cfg.Garbage != nil {
		r.cfg.Garbage()
	}
}

func (r *Runner) tell(ctx context.Context, a Tell) {
	if r.cfg.OnEvent != nil {
		r.cfg.OnEvent(ctx, weir.Event{Job: r.cfg.Fence.Job, At: r.cfg.Now(), Kind: a.Kind, Attempt: r.cfg.Fence.Attempt.Number, Message: a.Message})
	}
}

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/state"
)

// The truth is what really happened, whatever the metastore says or has forgotten. It
// checks each step against the invariants.
type truth struct {
	w       *world
	given   map[weir.JobID]weir.CheckpointID // newest id given out (I1)
	owner   map[weir.JobID]weir.Fence
	gone    map[weir.JobID]bool // the metastore went back and nobody has mended it
	goneAt  time.Time
	unknown map[weir.JobID]weir.CheckpointID
	lost    map[string]bool                 // objects of checkpoints that were kept, and that it has forgotten
	wiped   bool                            // some time the metastore went back
	read    map[string]*checkpoint.Manifest // by its key, while it stays as it is

	lineage   map[weir.JobID][]int              // rows of each split that the job's base has counted
	freed     map[weir.SnapshotRef]bool         // given up, whatever the metastore says of it since
	promised  map[weir.JobID]map[segmentID]bool // of the snapshot it started from, due with its next decision
	decidedAs map[weir.JobID]map[segmentID][]row
	shown     map[weir.JobID]map[segmentID][]row // by whose output it is
	commits   map[weir.SnapshotRef]bool          // decided, and its sinks may commit
	again     map[weir.JobID]bool                // began once more behind its output
}

func newTruth(w *world) *truth {
	return &truth{
		w: w, given: map[weir.JobID]weir.CheckpointID{}, owner: map[weir.JobID]weir.Fence{}, gone: map[weir.JobID]bool{},
		unknown: map[weir.JobID]weir.CheckpointID{}, lost: map[string]bool{}, read: map[string]*checkpoint.Manifest{}, lineage: map[weir.JobID][]int{},
		freed: map[weir.SnapshotRef]bool{}, promised: map[weir.JobID]map[segmentID]bool{}, decidedAs: map[weir.JobID]map[segmentID][]row{}, shown: map[weir.JobID]map[segmentID][]row{},
		commits: map[weir.SnapshotRef]bool{}, again: map[weir.JobID]bool{},
	}
}

// manifest reads one past all faults; nil: it is not there, or damaged.
func (t *truth) manifest(ref weir.SnapshotRef) *checkpoint.Manifest {
	key := checkpoint.ManifestKey(ref.Job, ref.Checkpoint)
	if m := t.read[key]; m != nil {
		return m
	}
	m, err := checkpoint.LoadManifest(context.Background(), t.w.blobs, key)
	if err != nil {
		return nil
	}
	t.read[key] = m
	return m
}

// segmentsOf are the segments that a snapshot holds uncommitted.
func segmentsOf(w *world, m *checkpoint.Manifest) (list []segment) {
	for _, items := range m.OpenSegments() {
		for _, item := range items {
			var s segment
			w.parse(item, &s)
			list = append(list, s)
		}
	}
	return list
}

// positionsOf is how far a snapshot has read each split.
func positionsOf(w *world, m *checkpoint.Manifest) []int {
	at := make([]int, len(w.splits))
	for _, task := range m.Tasks {
		for _, op := range task.Operators {
			if op.Operator != "source" {
				continue
			}
			for _, item := range op.List {
				var p position
				w.parse(item, &p)
				at[p.Split] = p.Row
			}
		}
	}
	return at
}

// countsAt is the reference: the counts after so many rows of each split.
func (w *world) countsAt(at []int) (counts [keys]int) {
	for split, n := range at {
		for _, key := range w.splits[split][:n] {
			counts[key]++
		}
	}
	return counts
}

// owns: a job has a new owner.
func (t *truth) owns(j *jobRow) {
	t.owner[j.id] = weir.Fence{Job: j.id, Attempt: j.attempt, Term: j.term}
}

// abortedAs: the reason is one of the closed list, says why, and only one that counts makes
// the checkpoint failed.
func (t *truth) abortedAs(r checkpoint.Record) {
	for _, d := range checkpoint.ReasonDocs() {
		if r.Failure != nil && r.Failure.Message != "" && r.Failure.Reason == d.Reason && d.Counts == (r.Status == checkpoint.StatusFailed) {
			return
		}
	}
	t.w.fail("checkpoint %d of %s is %s because of %+v", r.ID, r.Job, r.Status, r.Failure)
}

// starts: somebody lets a job start from its base, whatever it has done before.
func (t *truth) starts(j *jobRow) {
	at := make([]int, len(t.w.splits))
	t.promised[j.id] = map[segmentID]bool{}
	if t.decidedAs[j.id] == nil {
		t.decidedAs[j.id], t.shown[j.id] = map[segmentID][]row{}, map[segmentID][]row{}
	}
	if !j.base.IsZero() {
		m := t.manifest(j.base)
		if m == nil {
			t.w.fail("job %s starts from %v, which is not there", j.id, j.base)
			return
		}
		at = positionsOf(t.w, m)
		for _, s := range segmentsOf(t.w, m) {
			t.promised[j.id][s.ID] = true
		}
	}
	if was := t.lineage[j.id]; was != nil && (!slices.Equal(was, at) || t.behindOutput(j)) {
		t.again[j.id] = true
	}
	t.lineage[j.id] = at
}

// behindOutput reports whether a job starts from a snapshot older than what it has made
// visible: its user allowed that rows come again.
func (t *truth) behindOutput(j *jobRow) bool {
	for ref := range t.commits {
		if ref.Job == j.id && ref.Checkpoint > j.base.Checkpoint {
			return true
		}
	}
	return false
}

// begun: an id is given out.
func (t *truth) begun(j *jobRow, id weir.CheckpointID) {
	if id <= t.given[j.id] && !t.gone[j.id] {
		t.w.fail("id %d of job %s was given out twice (I1)", id, j.id)
	}
	t.given[j.id] = max(t.given[j.id], id)
	t.inTurn(j, j.rows[id])
}

// inTurn: a periodic checkpoint begins no sooner after the last one than the options say.
func (t *truth) inTurn(j *jobRow, begun checkpoint.Record) {
	for _, r := range j.rows {
		ended := r.Status == checkpoint.StatusCompleted && r.Type == checkpoint.TypeCheckpoint && r.Attempt == j.attempt
		if pause := t.w.options.MinPause; ended && begun.Periodic && begun.TriggeredAt.Before(r.CompletedAt.Add(pause)) && begun.TriggeredAt.After(r.CompletedAt) {
			t.w.fail("periodic checkpoint %d begins %v after the end of %d, the pause is %v", begun.ID, begun.TriggeredAt.Sub(r.CompletedAt), r.ID, pause)
		}
	}
}

// decided: a checkpoint is complete (I8).
func (t *truth) decided(j *jobRow, r checkpoint.Record, base bool) {
	w := t.w
	ref := weir.SnapshotRef{Job: j.id, Checkpoint: r.ID}
	// One that had begun may complete beside a newer savepoint, whose row is gone since.
	if t.gone[j.id] && t.unknown[j.id] > 0 && !r.TriggeredAt.Before(t.goneAt) {
		w.fail("checkpoint %v begins and is decided while the metastore is behind storage", ref)
	}
	m := t.manifest(ref)
	if m == nil {
		w.fail("checkpoint %v is decided without a manifest (I8)", ref)
		return
	}
	if err := m.CheckObjects(context.Background(), w.blobs); err != nil {
		w.fail("checkpoint %v is decided, but not durable (I7): %v", ref, err)
		return
	}
	if m.Attempt != j.attempt {
		w.fail("checkpoint %v is decided by attempt %v with the manifest of %v (I8)", ref, j.attempt, m.Attempt)
	}
	t.names(j, r, m)
	var tasks []weir.TaskID
	for _, task := range m.Tasks {
		tasks = append(tasks, task.Task)
	}
	for _, task := range checkpoint.TasksOf(graph(), m.Parallelism) {
		if !slices.Contains(tasks, task.ID) {
			w.fail("checkpoint %v is decided without %v (I7)", ref, task)
		}
	}
	if ended := m.Tasks[0].Ended; slices.ContainsFunc(m.Tasks, func(s checkpoint.TaskSnapshot) bool { return s.Ended != ended }) {
		w.saw("decision: some tasks had finished (I12)")
	}
	at := positionsOf(w, m)
	exact := w.options.Mode != checkpoint.AtLeastOnce
	w.saw("decision: under %s", w.options.Mode)
	if got, want := t.countsIn(m), w.countsAt(at); exact && got != want {
		w.fail("checkpoint %v is not consistent: positions %v make %v, its counts are %v", ref, at, want, got)
	}
	if base {
		t.moves(j, r, m, at, exact)
	}
}

// moves: a decided checkpoint is the base now, and its segments may become visible.
func (t *truth) moves(j *jobRow, r checkpoint.Record, m *checkpoint.Manifest, at []int, exact bool) {
	w := t.w
	if j.base.Job == j.id && r.ID <= j.base.Checkpoint {
		w.fail("checkpoint %d of %s is decided after %d", r.ID, j.id, j.base.Checkpoint)
	}
	var rows []row
	for _, s := range segmentsOf(w, m) {
		if t.decidedAs[j.id][s.ID] == nil {
			t.decidedAs[j.id][s.ID] = s.Rows
			if !t.promised[j.id][s.ID] {
				rows = append(rows, s.Rows...)
			}
		}
	}
	var want []row
	old, now := w.countsAt(t.lineage[j.id]), w.countsAt(at)
	for key := range now {
		for n := old[key] + 1; n <= now[key]; n++ {
			want = append(want, row{key, n})
		}
	}
	sortRows(rows)
	sortRows(want)
	if exact && !slices.Equal(rows, want) {
		w.fail("checkpoint %d of %s holds %d new rows of output, %d are due (I10)", r.ID, j.id, len(rows), len(want))
	}
	t.lineage[j.id] = at
	t.commits[weir.SnapshotRef{Job: j.id, Checkpoint: r.ID}] = true
}

func sortRows(rows []row) {
	slices.SortFunc(rows, func(a, b row) int { return (a.Key-b.Key)*100000 + a.N - b.N })
}

// countsIn are the counts that a snapshot holds: of each subtask whatever its handles have,
// also of key groups that are none of its own.
func (t *truth) countsIn(m *checkpoint.Manifest) (sum [keys]int) {
	for _, task := range m.Tasks {
		for _, op := range task.Operators {
			if len(op.Keyed) == 0 {
				continue
			}
			c, _, err := restored(context.Background(), t.w.blobs, state.Options{MaxParallelism: maxGroups}, op.Keyed, false)
			if err == nil {
				err = c.sum(&sum)
			}
			if err != nil {
				t.w.fail("checkpoint %d of %s: %v", m.Checkpoint, m.Job, err)
			}
		}
	}
	return sum
}

// names: a snapshot names objects that were stored for it, or that a completed one names; a
// savepoint its own ones only.
func (t *truth) names(j *jobRow, r checkpoint.Record, m *checkpoint.Manifest) {
	for _, key := range m.Objects() {
		job, id, _ := checkpoint.StateOf(key)
		switch {
		case job != j.id:
			t.w.fail("checkpoint %d of %s names %s, which is another job's", r.ID, j.id, key)
		case id == r.ID:
		case r.Type == checkpoint.TypeSavepoint:
			t.w.fail("savepoint %d of %s names %s, which is not its own", r.ID, j.id, key)
		case id != 0 && !t.wiped && j.rows[id].Status != checkpoint.StatusCompleted:
			t.w.fail("checkpoint %d of %s names %s, and %d is %s (S5)", r.ID, j.id, key, id, j.rows[id].Status)
		}
	}
}

// visible: a sink makes segments visible after checkpoint id.
func (t *truth) visible(a *attempt, id weir.CheckpointID, segments []segment) {
	w, job := t.w, a.fence.Job
	if !t.commits[weir.SnapshotRef{Job: job, Checkpoint: id}] {
		w.fail("commit of checkpoint %d of %s, which is not decided (I10)", id, job)
	}
	for _, r := range w.meta.jobs[job].rows {
		if r.CommitsOpen && r.ID < id && id != a.base.Checkpoint && t.owner[job] == a.fence && a.c != nil && !t.wiped {
			w.fail("commit of checkpoint %d while %d is open (I10)", id, r.ID)
		}
	}
	for _, s := range segments {
		switch want, ok := t.decidedAs[job][s.ID]; {
		case !ok:
			w.fail("segment %v of %s becomes visible without a decision (I10)", s.ID, job)
		case !slices.Equal(want, s.Rows):
			w.fail("segment %v of %s has other rows than were decided", s.ID, job)
		}
		t.shown[job][s.ID] = s.Rows
	}
}

// closed: all that checkpoint id made due is said to be visible.
func (t *truth) closed(j *jobRow, id weir.CheckpointID) {
	m := t.manifest(weir.SnapshotRef{Job: j.id, Checkpoint: id})
	if m == nil {
		return // given up: its successors hold what it held
	}
	for _, s := range segmentsOf(t.w, m) {
		if t.shown[j.id][s.ID] == nil {
			t.w.fail("commits of checkpoint %d of %s are closed, segment %v is not visible (I10)", id, j.id, s.ID)
		}
	}
}

// written: an object is put that may be there already.
func (t *truth) written(key string, data []byte) {
	r, err := t.w.blobs.Get(context.Background(), key, 0, -1)
	if err != nil {
		return
	}
	if there, _ := io.ReadAll(r); !bytes.Equal(there, data) {
		t.w.fail("object %s is overwritten with other bytes", key)
	}
}

// deleted: nothing that is kept may lack an object (I9).
func (t *truth) deleted(key string) {
	w := t.w
	for _, id := range w.meta.ids() {
		if t.lost[key] && t.gone[id] {
			w.fail("%s is deleted, which only the metastore has forgotten", key)
		}
		for _, r := range w.meta.retained(id) {
			ref := weir.SnapshotRef{Job: id, Checkpoint: r.ID}
			if t.freed[ref] {
				continue // its deletion was under way when the metastore went back
			}
			m := t.manifest(ref)
			if key == r.Manifest || m != nil && slices.Contains(m.Objects(), key) {
				w.fail("%s is deleted, which checkpoint %d of %s keeps (I9)", key, r.ID, id)
			}
		}
	}
}

// goBack lets the metastore go back to a backup.
func (m *metastore) goBack(pick int) {
	if a := m.w.jobs[0].current; len(m.backups) == 0 || m.w.truth.wiped || len(m.w.jobs) > 1 || a != nil && a.ending != nil {
		return
	}
	t, backup := m.w.truth, m.backups[pick%len(m.backups)]
	for id, old := range backup {
		now := m.jobs[id]
		newest := weir.CheckpointID(0)
		if kept := m.retained(id); len(kept) > 0 { // a manifest that was given up may be gone in a moment
			newest = kept[0].ID
		}
		if now.base != old.base && newest <= old.last || now.status.Terminal() || old.status.Terminal() || now.desired != weir.DesiredRunning || old.desired != weir.DesiredRunning {
			return // nothing in storage tells; or somebody has to remember what he asked for
		}
	}
	t.wiped, t.goneAt = true, m.w.now
	for _, p := range m.w.servers[:len(m.w.servers)-1] {
		p.kill() // whoever restores a backup sees to it that no older server is left, whose fence it would know again
	}
	for id, old := range backup {
		for _, r := range m.retained(id) {
			// One that it remembers as pending looks like one whose server died before the decision.
			if _, ok := old.rows[r.ID]; !ok {
				t.forget(weir.SnapshotRef{Job: id, Checkpoint: r.ID})
				t.unknown[id] = max(t.unknown[id], r.ID)
			}
		}
		if now := m.jobs[id]; now.last != old.last || now.attempt != old.attempt || now.base != old.base || now.open() != old.open() {
			t.gone[id] = true
			m.w.saw("incident: metastore-back")
			m.w.log("%s goes back to attempt %v, last id %d, base %d", id[34:], old.attempt, old.last, old.base.Checkpoint)
		}
		m.jobs[id] = old
	}
}

// forget notes what belongs to a checkpoint that the metastore does not know any more.
func (t *truth) forget(ref weir.SnapshotRef) {
	t.lost[checkpoint.ManifestKey(ref.Job, ref.Checkpoint)] = true
	if m := t.manifest(ref); m != nil {
		for _, key := range m.Objects() {
			t.lost[key] = true
		}
	}
}

// open counts the checkpoints whose commits are open.
func (j *jobRow) open() (n int) {
	for _, r := range j.rows {
		if r.CommitsOpen {
			n++
		}
	}
	return n
}

// checkpointsIn are the ids of a job whose manifests are in storage.
func (t *truth) checkpointsIn(id weir.JobID) (ids []weir.CheckpointID) {
	_ = t.w.blobs.List(context.Background(), checkpoint.JobPrefix(id), func(key string, _ int64) bool {
		if parts := strings.Split(key, "/"); parts[len(parts)-1] == "manifest" {
			n, _ := strconv.ParseInt(parts[1], 10, 64)
			ids = append(ids, weir.CheckpointID(n))
		}
		return true
	})
	return ids
}

// adopt is an operator who goes on from the newest whole manifest in storage.
func (w *world) adopt(j *jobRow) {
	t := w.truth
	var newest *checkpoint.Manifest
	last := j.last
	for _, id := range t.checkpointsIn(j.id) {
		last = max(last, id)
		m := t.manifest(weir.SnapshotRef{Job: j.id, Checkpoint: id})
		if m != nil && m.CheckObjects(context.Background(), w.blobs) == nil && (newest == nil || id > newest.Checkpoint) {
			newest = m
		}
	}
	number := j.attempt.Number
	_ = w.blobs.List(context.Background(), checkpoint.JobPrefix(j.id), func(key string, _ int64) bool {
		if a, err := weir.ParseAttemptID(strings.Split(key, "/")[1]); err == nil {
			number = max(number, a.Number)
		}
		return true
	})
	for id, r := range j.rows { // what is gone since is not kept
		m := t.manifest(weir.SnapshotRef{Job: j.id, Checkpoint: id})
		if r.Status == checkpoint.StatusCompleted && (m == nil || m.CheckObjects(context.Background(), w.blobs) != nil) {
			r.Discarded, r.CommitsOpen = true, false
			j.rows[id] = r
		}
	}
	j.attempt = weir.AttemptID{Number: number + 1, Tag: fmt.Sprintf("%08x", w.rng.Uint32())} // whoever owned the job is stale
	j.last = max(last, t.given[j.id])
	j.status, j.desired, j.failure, j.base = weir.StatusRestarting, weir.DesiredRunning, "", weir.SnapshotRef{}
	if newest != nil {
		j.base = weir.SnapshotRef{Job: j.id, Checkpoint: newest.Checkpoint}
		delete(j.collected, newest.Checkpoint)
		j.rows[newest.Checkpoint] = checkpoint.Record{
			Job: j.id, ID: newest.Checkpoint, Attempt: newest.Attempt, Type: newest.Type, Status: checkpoint.StatusCompleted,
			Manifest: checkpoint.ManifestKey(j.id, newest.Checkpoint), CommitsOpen: len(newest.OpenSegments()) > 0, Savepoint: newest.Savepoint,
		}
		t.commits[j.base] = true
		for _, s := range segmentsOf(w, newest) { // an adopted checkpoint is as good as decided
			t.decidedAs[j.id][s.ID] = s.Rows
		}
	}
	w.log("%s adopts %d", j.id[34:], j.base.Checkpoint)
	w.saw("incident: adopt")
	t.gone[j.id], t.unknown[j.id] = false, 0
	again := t.again[j.id]
	t.starts(j)
	t.again[j.id] = again
}

// checkEnd: every job is finished.
func (w *world) checkEnd() {
	t := w.truth
	for _, id := range w.meta.ids() {
		j := w.meta.jobs[id]
		for _, r := range j.rows {
			if r.Status == checkpoint.StatusPending || r.CommitsOpen && !t.wiped {
				w.fail("checkpoint %d of %s is left %s, commits open %v", r.ID, id, r.Status, r.CommitsOpen)
			}
		}
		if !maps.EqualFunc(t.shown[id], t.decidedAs[id], slices.Equal) {
			w.fail("%s: %d segments are visible, %d were decided", id, len(t.shown[id]), len(t.decidedAs[id]))
		}
		w.checkOutput(id)
	}
}

// checkOutput compares what became visible with the reference.
func (w *world) checkOutput(id weir.JobID) {
	seen := map[row]int{}
	for _, rows := range w.truth.shown[id] {
		for _, r := range rows {
			seen[r]++
		}
	}
	for key, total := range w.truth.expected() {
		for n := 1; n <= total; n++ {
			if got := seen[row{key, n}]; got == 0 && !w.truth.forked(id) || got > 1 && !w.truth.again[id] && w.options.Mode != checkpoint.AtLeastOnce {
				w.fail("%s: row %d of key %d is visible %d times", id, n, key, got)
			}
			delete(seen, row{key, n})
		}
	}
	if len(seen) > 0 && w.options.Mode != checkpoint.AtLeastOnce {
		w.fail("%s: %d rows are visible that no input makes", id, len(seen))
	}
}

func (t *truth) expected() [keys]int {
	var all []int
	for _, s := range t.w.splits {
		all = append(all, len(s))
	}
	return t.w.countsAt(all)
}

// forked reports whether a job began from another's snapshot, so that part of its
// output is the other's.
func (t *truth) forked(id weir.JobID) bool { return id != t.w.jobs[0].id }

// checkLeaks: after collection storage holds what is kept, and nothing else.
func (w *world) checkLeaks() {
	if w.truth.wiped {
		return // what the metastore does not know is nobody's to delete
	}
	kept := map[string]bool{}
	for _, id := range w.meta.ids() {
		for _, r := range w.meta.retained(id) {
			kept[r.Manifest] = true
			m := w.truth.manifest(weir.SnapshotRef{Job: id, Checkpoint: r.ID})
			if m == nil {
				w.fail("kept checkpoint %d of %s has no manifest (I9)", r.ID, id)
				return
			}
			if err := m.CheckObjects(context.Background(), w.blobs); err != nil {
				w.fail("kept checkpoint %d of %s is damaged (I9): %v", r.ID, id, err)
			}
			for _, key := range m.Objects() {
				kept[key] = true
			}
		}
	}
	var leaked []string
	err := w.blobs.List(context.Background(), "", func(key string, _ int64) bool {
		if !kept[key] {
			leaked = append(leaked, key)
		}
		return true
	})
	if err = errors.Join(err); err != nil || len(leaked) > 0 {
		w.fail("%d objects are leaked: %v", len(leaked), leaked)
	}
}

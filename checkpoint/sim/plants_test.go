package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A plant is a known fault: file, from the root of the module, with new in place of old.
// The program that is tested never holds it: the compiler is given the changed file by
// an overlay.
type plant struct {
	name, file string
	old, new   string
	script     string // of testdata/regress, which finds it; empty: seeds do
}

// Each plant has its place in the code as it is now, and each script the fault that it
// once found: else it would prove nothing any more, and go on passing. make planted
// plants them.
func TestPlantsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, p := range plants() {
		source, err := os.ReadFile(filepath.Join("..", "..", p.file))
		if n := strings.Count(string(source), p.old); err != nil || n != 1 {
			t.Errorf("%s: %s holds the place %d times, not once: %v", p.name, p.file, n, err)
		}
		if p.script != "" {
			scripts = append(scripts, filepath.Join("testdata", "regress", p.script))
		}
	}
	there, err := filepath.Glob("testdata/regress/*")
	slices.Sort(scripts)
	if err != nil || !slices.Equal(there, scripts) {
		t.Errorf("scripts %v have a plant, there are %v: %v", scripts, there, err)
	}
}

// plants are the faults that the simulation must find, each with what it breaks.
func plants() []plant { return append(protocolPlants(), statePlants()...) }

// protocolPlants are those of the checkpoint protocol.
func protocolPlants() []plant {
	return []plant{
		{ // I11: partial counts are state that no snapshot holds
			name: "barrier before the flush", file: "checkpoint/sim/task.go",
			old: "\ts.flush()\n\tsnap := ", new: "\tdefer s.flush()\n\tsnap := ",
		},
		{ // §2: what the base is, and not what is newest, decides
			name: "latest row instead of base", file: "checkpoint/sim/metastore.go",
			old: "\tout := *j\n", new: "\tfor id, r := range j.rows {\n\t\tif r.Status == checkpoint.StatusCompleted && !r.Discarded && id > j.base.Checkpoint {\n\t\t\tj.base = weir.SnapshotRef{Job: j.id, Checkpoint: id}\n\t\t}\n\t}\n\tout := *j\n",
		},
		{ // a check beside the write is no fence: time passes between them
			name: "fence by EXISTS", file: "checkpoint/sim/metastore.go",
			old: "\treturn c.do(point, func(m *metastore) error {\n\t\tj, err := m.owned(f)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn work(m, j)\n\t})",
			new: "\tj, err := c.world().meta.owned(f)\n\tif err != nil {\n\t\treturn err\n\t}\n\tseen := maps.Clone(j.rows)\n\treturn c.do(point, func(m *metastore) error {\n\t\tfor id, r := range seen {\n\t\t\tif r.Status == checkpoint.StatusPending && j.attempt != f.Attempt {\n\t\t\t\tj.rows[id] = r\n\t\t\t}\n\t\t}\n\t\treturn work(m, j)\n\t})",
		},
		{ // a zombie overwrites what a newer attempt wrote
			name: "object key without attempt", file: "checkpoint/path.go",
			old: "return fmt.Sprintf(\"%s/%d-%d\", stateDir(job, attempt, op, subtask), id, n)",
			new: "return fmt.Sprintf(\"%s/%d-%d\", stateDir(job, weir.AttemptID{Number: 1, Tag: \"00000000\"}, op, subtask), id, n)",
		},
		{ // I5: what an older attempt had aligned is not aligned now
			name: "alignment kept over attempts", file: "checkpoint/sim/task.go",
			old: "\t\ta.counters = append(a.counters, k)\n\t}\n\tfor _, s := range a.sources {\n",
			new: "\t\ta.counters = append(a.counters, k)\n\t\tif before := a.before; before != nil && len(before.counters) == a.parallelism {\n\t\t\ta.counters[i].aligner = before.counters[i].aligner\n\t\t}\n\t}\n\tfor _, s := range a.sources {\n",
		},
		{ // I5: the first barrier is not the last
			name: "snapshot at the first barrier", file: "checkpoint/align.go",
			old: "if len(w.arrived) == len(a.open) {", new: "if len(w.arrived) > 0 {",
		},
		{ // I3: rows behind a barrier are in the snapshot before it
			name: "held channels are read", file: "checkpoint/align.go",
			old: "return a.mode != AtLeastOnce && len(a.waiting) > 0 && slices.Contains(a.waiting[0].arrived, ch)", new: "return false",
		},
		{ // I9: what another job would start from is given up
			name: "pins are ignored", file: "checkpoint/sim/metastore.go",
			old: "if j.id != ref.Job && j.base == ref {", new: "if j.id == \"\" {",
		},
		{ // I7: an ack that comes twice is not two
			name: "acks counted", file: "checkpoint/pending.go",
			old: "\tif _, ok := p.acks[a.Task]; ok || p.phase > asking {\n\t\treturn AckDuplicate\n\t}\n",
			new: "\tif p.phase > asking {\n\t\treturn AckDuplicate\n\t}\n\tif _, ok := p.acks[a.Task]; ok {\n\t\tfor _, t := range tasks {\n\t\t\tif _, ok := p.acks[t.ID]; !ok {\n\t\t\t\tp.acks[t.ID] = a\n\t\t\t\treturn AckAccepted\n\t\t\t}\n\t\t}\n\t}\n",
		},
		{ // what is pending may complete yet
			name: "deletion before the decision", file: "checkpoint/sim/metastore.go",
			old: "(r.Discarded || r.Status == checkpoint.StatusFailed ||", new: "(r.Discarded || r.Status == checkpoint.StatusPending || r.Status == checkpoint.StatusFailed ||",
		},
		{ // I10: earlier segments become visible first
			name: "commit of N+1 before N", file: "checkpoint/commit.go",
			old: "\tc.commits = append(c.commits, o)\n",
			new: "\tc.commits = append([]*openCommit{o}, c.commits...)\n",
		},
		{ // an outcome that is unknown is read back
			name: "unknown decision taken for a failure", file: "checkpoint/decide.go",
			old: "\t\tp.undecided = e.Err\n\t\treturn []Action{ReadBack{ID: e.ID}}\n",
			new: "\t\tc.remove(p)\n\t\treturn []Action{Ended{Record: p.record}, DropObjects{ID: e.ID}}\n",
		},
		{ // an outcome that is unknown is read back
			name: "unknown decision taken for done", file: "checkpoint/decide.go",
			old: "\t\tp.undecided = e.Err\n\t\treturn []Action{ReadBack{ID: e.ID}}\n",
			new: "\t\treturn c.complete(now, p)\n",
		},
		{ // a savepoint beside checkpoints is no base, and commits nothing
			name: "savepoints commit", file: "checkpoint/pending.go",
			old: "return p.record.Type == TypeCheckpoint || p.stop",
			new: "return true",
		},
		{ // what is older than the base is not decided
			name: "older checkpoints are not superseded", file: "checkpoint/decide.go",
			old: "if q.record.ID < p.record.ID && q.record.Type == TypeCheckpoint && q.phase < deciding {",
			new: "if false && q.record.ID < p.record.ID {",
		},
		{ // what storage knows and the metastore does not is looked for first
			name: "no survey", file: "checkpoint/survey.go",
			old: "\tcase e.Newest > c.lastID:",
			new: "\tcase e.Newest < 0:",
		},
		{ // a new owner makes visible what was decided before it
			name: "open commits forgotten", file: "checkpoint/sim/job.go",
			old: "\t\tif k.CommitsOpen {\n\t\t\topen = append([]weir.CheckpointID{k.ID}, open...)\n\t\t}\n",
			new: "\t\t_ = k\n",
		},
		{ // I9: rows are marked first
			name: "objects deleted before the row is marked", file: "checkpoint/collect.go",
			old: "\tif ids := Discards(retained, s.Keep); len(ids) > 0 {\n",
			new: "\tif ids := Discards(retained, s.Keep); len(ids) > 0 {\n\t\tfor _, id := range ids {\n\t\t\t_ = c.blobs.Delete(ctx, ManifestKey(job, id))\n\t\t}\n",
		},
		{ // savepoints, canceled and superseded ones never count
			name: "savepoints count as failures", file: "checkpoint/decide.go",
			old: "if p.record.Status != StatusFailed || p.record.Type != TypeCheckpoint {",
			new: "if p.record.Status != StatusFailed {",
		},
		{ // the decision comes after the manifest
			name: "decision before the manifest", file: "checkpoint/decide.go",
			old: "\treturn answer, []Action{WriteManifest{Manifest: c.manifest(p)}}\n",
			new: "\tp.phase, p.record.CompletedAt = deciding, now\n\treturn answer, []Action{c.decision(p), WriteManifest{Manifest: c.manifest(p)}}\n",
		},
		{ // an ack says that its objects are durable (I7)
			name: "ack before the upload", file: "checkpoint/sim/upload.go",
			old: "\t\t\tif err := (blobs{t}).Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t}\n\t\thandles =",
			new: "\t\t\tearly := *u.snap\n\t\t\tearly.Operators = slices.Clone(early.Operators)\n\t\t\tearly.Operators[0].Keyed = append(slices.Clone(handles), p.Handle(name, !u.parts.Whole))\n\t\t\tq.k.ack(u.id, &early, nil)\n\t\t\tif err := (blobs{t}).Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t}\n\t\thandles =",
		},
		{ // decided output is that of every sink
			name: "one sink confirms for all", file: "checkpoint/commit.go",
			old: "\thead.waiting = slices.Delete(head.waiting, i, i+1)\n",
			new: "\thead.waiting = nil\n",
		},
		{ // collection keeps what a kept manifest names
			name: "base given up", file: "checkpoint/gc.go",
			old: "return r.Type == TypeCheckpoint && !r.Base && !r.Pinned",
			new: "return r.Type == TypeCheckpoint && !r.Pinned",
		},
		{ // the last checkpoint begins after every source has reported its end
			name: "final checkpoint before the end", file: "checkpoint/turn.go",
			old: "\treturn !slices.ContainsFunc(c.tasks, func(t Task) bool { return t.Source && !c.ended[t.ID] })\n",
			new: "\treturn slices.ContainsFunc(c.tasks, func(t Task) bool { return t.Source && c.ended[t.ID] })\n",
		},
		{ // I1: numbers go on over all attempts
			name: "ids begin anew with each attempt", file: "checkpoint/sim/metastore.go",
			old: "\tm.endAttempt(j)\n\tj.attempt = ", new: "\tm.endAttempt(j)\n\tj.last = j.base.Checkpoint\n\tj.attempt = ",
		},
		{ // I2: a barrier keeps its place
			name: "barrier overtakes rows", file: "checkpoint/sim/task.go",
			old: "\ts.broadcast(frame{barrier: id, origin: origin{t.Base, t.Whole}})\n",
			new: "\tfor _, c := range s.channels {\n\t\t*c = append([]frame{{barrier: id, origin: origin{t.Base, t.Whole}}}, *c...)\n\t}\n",
		},
		{ // I12: a checkpoint holds the part of tasks that have finished, too
			name: "finished sources are passed over", file: "checkpoint/sim/task.go",
			old: "if s.gone() || id <= s.last {", new: "if s.gone() || s.ended || id <= s.last {",
		},
		{ // at least once: no row is lost
			name: "at-least-once aligns nothing", file: "checkpoint/align.go",
			old: "if len(w.arrived) == len(a.open) {", new: "if len(w.arrived) == len(a.open) || a.mode == AtLeastOnce {",
		},
		{ // what a restored metastore has forgotten
			name: "an id that is forgotten is given out again", file: "checkpoint/sim/metastore.go", script: "begin_after_going_back",
			old: "\t\tif j.last < r.ID {\n\t\t\treturn weir.ErrNotFound\n\t\t}\n", new: "",
		},
		{ // an answer that was not heard
			name: "an end is written over a new beginning", file: "checkpoint/sim/metastore.go", script: "end_repeated",
			old: "\tif j.status.Terminal() {\n\t\treturn weir.ErrConflict", new: "\tif false {\n\t\treturn weir.ErrConflict",
		},
		{ // what is kept is looked up before the metastore goes back
			name: "collection looks once", file: "checkpoint/collect.go", script: "going_back_in_a_round",
			old: "\tif s, err = c.subject(ctx, job); err != nil {\n\t\treturn false, err\n\t}\n\tif s.Fence", new: "\tif s.Fence",
		},
		{ // what the answer to an abort tells of a begin whose own answer was lost
			name: "an id that a lost begin had is not noted", file: "checkpoint/survey.go", script: "lost_begin_again",
			old: "max(0, c.lost-int(e.ID-c.lastID)), e.ID, nil", new: "c.lost, c.lastID, nil",
		},
		{ // a machine asks for a tick only where it does something with it
			name: "a notify is repeated beside the close", file: "checkpoint/commit.go", script: "notify_after_close",
			old: "c.commits[0].id != e.ID || c.commits[0].closing {", new: "c.commits[0].id != e.ID {",
		},
	}
}

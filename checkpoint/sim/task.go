package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"weir"
	"weir/checkpoint"
)

// A frame is one element of a channel.
type frame struct {
	key     int
	barrier weir.CheckpointID // 0: a record, or the end
	end     bool
}

// A position says how far a split is read; it is one item of the sources' list state.
type position struct{ Split, Row int }

// A source reads its splits row by row.
type source struct {
	a        *attempt
	subtask  int
	splits   []position
	last     weir.CheckpointID // newest barrier sent
	ended    bool
	channels []*[]frame // to the counters
}

// A segment is what a sink subtask wrote between two barriers; one item of the sinks' list
// state until it is committed.
type segment struct {
	ID   segmentID
	Rows []row
}

// A counter counts rows by key and hands each count to its sink.
type counter struct {
	a        *attempt
	subtask  int
	aligner  *checkpoint.Aligner
	channels []*[]frame // from the sources
	ends     int
	counts   map[int]int
	buffer   []row
	segments []segment
}

func groupOf(key int) int { return key % maxGroups }

// makeTasks makes the tasks and their channels and deals the state out.
func (a *attempt) makeTasks(p *checkpoint.RestorePlan) {
	for i := range a.parallelism {
		a.sources = append(a.sources, &source{a: a, subtask: i})
		a.counters = append(a.counters, &counter{a: a, subtask: i, aligner: checkpoint.NewAligner(a.parallelism, checkpoint.ExactlyOnce), counts: map[int]int{}})
	}
	for _, s := range a.sources {
		for _, k := range a.counters {
			c := new([]frame)
			s.channels, k.channels = append(s.channels, c), append(k.channels, c)
		}
	}
	at := make([]int, len(a.w.splits)) // where each split goes on
	for _, item := range p.Lists["source"] {
		var pos position
		a.parse(item, &pos)
		at[pos.Split] = pos.Row
	}
	for split, row := range at {
		s := a.sources[split%a.parallelism]
		s.splits = append(s.splits, position{split, row})
	}
	for i, item := range p.Lists["sink"] {
		var seg segment
		a.parse(item, &seg)
		k := a.counters[i%a.parallelism]
		k.segments = append(k.segments, seg)
	}
	for _, t := range p.Tasks {
		for _, op := range t.Keyed {
			a.counters[t.Task.Subtask].restore(op.Handles)
		}
	}
}

func (a *attempt) parse(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		a.w.fail("state cannot be read: %v", err)
	}
}

func (k *counter) restore(handles []checkpoint.Handle) {
	for _, h := range handles {
		r, err := k.a.w.blobs.Get(context.Background(), h.Object, 0, -1)
		if err != nil {
			k.a.w.fail("restore: %v", err)
			return
		}
		var all map[string]int
		if err := json.NewDecoder(r).Decode(&all); err != nil {
			k.a.w.fail("restore: %v", err)
		}
		for name, n := range all {
			if key, _ := strconv.Atoi(name); h.KeyGroups.Contains(groupOf(key)) {
				k.counts[key] += n // twice the same key would show
			}
		}
	}
}

// poll is one turn of the source's loop; it schedules the next.
func (s *source) poll() {
	w := s.a.w
	if s.a.dead {
		return
	}
	w.after(w.upTo(60*time.Millisecond), s.poll)
	for i := range s.splits {
		p := &s.splits[i]
		if p.Row < len(w.splits[p.Split]) {
			key := w.splits[p.Split][p.Row]
			p.Row++
			s.send(weir.SubtaskOf(groupOf(key), s.a.parallelism, maxGroups), frame{key: key})
			return
		}
	}
	if !s.ended {
		s.ended = true
		for to := range s.channels {
			s.send(to, frame{end: true})
		}
	}
	if w.rng.IntN(10) == 0 { // the report is repeated, as one may be lost
		s.a.report(checkpoint.SourceEnded{Task: weir.TaskID{Subtask: s.subtask}})
	}
}

func (s *source) send(to int, f frame) { *s.channels[to] = append(*s.channels[to], f) }

// trigger begins a checkpoint: positions first, then the barrier on every channel.
func (s *source) trigger(id weir.CheckpointID) {
	if s.a.dead || id <= s.last {
		return
	}
	s.last = id
	snap := &checkpoint.TaskSnapshot{Task: weir.TaskID{Subtask: s.subtask}, Ended: s.ended}
	op := checkpoint.OperatorSnapshot{Operator: "source"}
	for _, p := range s.splits {
		op.List = append(op.List, fmt.Appendf(nil, `{"Split":%d,"Row":%d}`, p.Split, p.Row))
	}
	snap.Operators = append(snap.Operators, op)
	for to := range s.channels {
		s.send(to, frame{barrier: id})
	}
	s.a.ack(id, snap)
}

// poll is one turn of the counter's loop: one frame of a channel that is not held.
func (k *counter) poll() {
	w := k.a.w
	if k.a.dead {
		return
	}
	w.after(w.upTo(20*time.Millisecond), k.poll)
	first := w.rng.IntN(len(k.channels))
	for i := range k.channels {
		ch := (first + i) % len(k.channels)
		c := k.channels[ch]
		if len(*c) == 0 || k.aligner.Held(ch) {
			continue
		}
		f := (*c)[0]
		*c = (*c)[1:]
		switch {
		case f.end:
			k.ends++
		case f.barrier == 0:
			k.counts[f.key]++
			k.buffer = append(k.buffer, row{f.key, k.counts[f.key]})
		case k.aligner.Barrier(ch, f.barrier):
			k.snapshot(f.barrier)
		}
		return
	}
}

// snapshot closes the segment, and uploads and acknowledges the state.
func (k *counter) snapshot(id weir.CheckpointID) {
	if len(k.buffer) > 0 {
		k.segments = append(k.segments, segment{segmentID{k.subtask, id}, k.buffer})
		k.buffer = nil
	}
	task := weir.TaskID{Chain: 1, Subtask: k.subtask}
	snap := &checkpoint.TaskSnapshot{Task: task, Ended: k.ends == len(k.channels), Commits: len(k.segments) > 0}
	sink := checkpoint.OperatorSnapshot{Operator: "sink"}
	for _, seg := range k.segments {
		item, _ := json.Marshal(seg)
		sink.List = append(sink.List, item)
	}
	data, _ := json.Marshal(k.counts)
	key := checkpoint.StateKey(job, k.a.fence.Attempt, "count", k.subtask, id, 0)
	count := checkpoint.OperatorSnapshot{Operator: "count", Keyed: []checkpoint.Handle{{
		Object: key, Size: int64(len(data)),
		KeyGroups: weir.KeyGroupsOf(k.subtask, k.a.parallelism, maxGroups),
	}}}
	snap.Operators = []checkpoint.OperatorSnapshot{count, sink}
	upload := k.a.w.upTo(300 * time.Millisecond)
	if k.a.w.rng.Float64() < k.a.w.faults {
		upload += k.a.w.options.Timeout // late
	}
	k.a.w.after(upload, func() {
		if k.a.dead {
			return
		}
		if err := k.a.w.faulty.Put(context.Background(), key, bytes.NewReader(data)); err != nil {
			k.a.report(checkpoint.Acked{Ack: checkpoint.Ack{Job: job, Attempt: k.a.fence.Attempt, Task: task, Checkpoint: id, Failure: &weir.Failure{Message: err.Error()}}})
			return
		}
		k.a.ack(id, snap)
	})
}

func (a *attempt) ack(id weir.CheckpointID, snap *checkpoint.TaskSnapshot) {
	a.report(checkpoint.Acked{Ack: checkpoint.Ack{Version: 1, Job: job, Attempt: a.fence.Attempt, Task: snap.Task, Checkpoint: id, Snapshot: snap}})
}

// commit makes the segments up to a decided checkpoint visible, in barrier order. It is
// idempotent by their identity.
func (k *counter) commit(id weir.CheckpointID) {
	w := k.a.w
	if k.a.dead {
		return
	}
	decided, ok := w.rowOf(id)
	if !ok || decided.Status != checkpoint.StatusCompleted || decided.Type != checkpoint.TypeCheckpoint {
		w.fail("commit of checkpoint %d, which is %s (I10)", id, decided.Status)
	}
	for _, r := range w.store.Rows() {
		if r.CommitsOpen && r.ID < id && id != k.a.base && k.a == w.attempt {
			w.fail("commit of checkpoint %d while %d is open (I10)", id, r.ID)
		}
	}
	k.segments = slices.DeleteFunc(k.segments, func(s segment) bool {
		if s.ID.Barrier > id {
			return false
		}
		if old, ok := w.visible[s.ID]; ok && !slices.Equal(old, s.Rows) {
			w.fail("segment %v has other rows than before", s.ID)
		}
		w.visible[s.ID] = s.Rows
		return true
	})
	k.a.report(checkpoint.Committed{Task: weir.TaskID{Chain: 1, Subtask: k.subtask}, ID: id})
}

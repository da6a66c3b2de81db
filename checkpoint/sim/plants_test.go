//go:build planted

package sim

// plants are the faults that the simulation must find, each with what it breaks.
func plants() []plant {
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
			old: "counts: map[int]int{}})\n\t}\n\tfor _, s := range a.sources {\n",
			new: "counts: map[int]int{}})\n\t\tif before := a.before; before != nil && len(before.counters) == a.parallelism {\n\t\t\ta.counters[i].aligner = before.counters[i].aligner\n\t\t}\n\t}\n\tfor _, s := range a.sources {\n",
		},
		{ // I5: the first barrier is not the last
			name: "snapshot at the first barrier", file: "checkpoint/align.go",
			old: "if len(w.arrived) == len(a.open) {", new: "if len(w.arrived) > 0 {",
		},
		{ // I3: rows behind a barrier are in the snapshot before it
			name: "held channels are read", file: "checkpoint/align.go",
			old: "return a.mode != AtLeastOnce && len(a.waiting) > 0 && slices.Contains(a.waiting[0].arrived, ch)", new: "return false",
		},
		{ // a restored subtask counts what belongs to its neighbour
			name: "restore without trimming", file: "checkpoint/restore.go",
			old: "if h.KeyGroups = h.KeyGroups.Intersect(groups); !h.KeyGroups.Empty() {", new: "if !h.KeyGroups.Intersect(groups).Empty() {",
		},
		{ // I9: what another job would start from is given up
			name: "pins are ignored", file: "checkpoint/sim/metastore.go",
			old: "if j.id != ref.Job && j.base == ref {", new: "if j.id == \"\" {",
		},
	}
}

package sim

// statePlants are those of state, and of what is decided about its runs.
func statePlants() []plant {
	return []plant{
		{ // S5: a checkpoint that was stored may still fail
			name: "rebase to what is stored", file: "exec/state/chain.go",
			old: "\tfor len(c.stored) > 0 && c.stored[0].id <= id {\n",
			new: "\tfor len(c.stored) > 0 {\n\t\tid = max(id, c.stored[0].id)\n",
		},
		{ // S5: nor is what is laid over it named
			name: "snapshot over a pending one", file: "exec/state/chain.go",
			old: "\tif n := len(c.runs); n > 0 {\n",
			new: "\tif n := len(c.stored); n > 0 {\n\t\ts.Kept = slices.Clone(c.stored[n-1].handles)\n\t}\n\tif n := len(c.runs); n > 0 {\n",
		},
		{ // S4: what changed up to a barrier belongs to later snapshots, too
			name: "the newest run alone", file: "exec/state/chain.go",
			old: "\t\tc.runs = append(c.runs, chainRun{",
			new: "\t\tc.runs = append(c.runs[:0:0], chainRun{",
		},
		{ // S4: runs that the base holds are done with, newer ones are not
			name: "runs go with any base", file: "exec/state/chain.go",
			old: "func(r chainRun) bool { return r.id <= id })", new: "func(r chainRun) bool { return r.id >= 0 })",
		},
		{ // a savepoint is self-contained
			name: "savepoint over the base", file: "exec/state/chain.go",
			old: "\tcase whole:\n", new: "\tcase whole && len(s.Kept) > 2:\n",
		},
		{ // what was merged lies where its parts do
			name: "merged handles over any others", file: "exec/state/chain.go",
			old: "if len(list)-i >= len(handles) && slices.EqualFunc(list[i:i+len(handles)], handles, sameHandle) {", new: "if len(list)-i >= len(handles) {",
		},
		{ // what was merged is still named by what completed before
			name: "parts deleted once merged", file: "checkpoint/sim/upload.go",
			old: "\t\tw.saw(\"state: %s merged\", map", new: "\t\tmade = handles\n\t\tdefer func() {\n\t\t\tfor _, h := range made {\n\t\t\t\tif h.Object != \"\" {\n\t\t\t\t\t_ = (blobs{t}).Delete(context.Background(), h.Object)\n\t\t\t\t}\n\t\t\t}\n\t\t}()\n\t\tw.saw(\"state: %s merged\", map",
		},
		{ // I9: merged objects outlive their attempt where a kept snapshot names them
			name: "merged objects go with the attempt", file: "checkpoint/gc.go",
			old: "k.Checkpoint <= last && !holds.Has(key) {\n\t\t\tleft", new: "k.Checkpoint <= last && (k.Full || !holds.Has(key)) {\n\t\t\tleft",
		},
		{ // I9: and of one that was given up, unless another names them
			name: "what was merged for another", file: "checkpoint/gc.go",
			old: "if !holds.Has(key) && (r.Status == StatusCompleted || !isFull(key)) {", new: "if isFull(key) || !holds.Has(key) {",
		},
		{ // what was merged is named by the attempt's next checkpoints, whatever becomes of the first
			name: "merged objects go with an aborted one", file: "checkpoint/gc.go", script: "merged_named_by_aborted",
			old: "if !holds.Has(key) && (r.Status == StatusCompleted || !isFull(key)) {", new: "if !holds.Has(key) {",
		},
		{ // S6: a delta keeps deletions
			name: "a deletion is lost", file: "exec/state/table.go",
			old: "\t\tt.gone.add(hash, c.key(t.rec, i, t.text))\n", new: "\t\t_ = hash\n",
		},
		{ // S6: so do merged deltas
			name: "merged deltas lose deletions", file: "exec/state/merge.go",
			old: "if !whole || !top.at.isGone(top.at.i) {", new: "if !top.at.isGone(top.at.i) {",
		},
		{ // S6: and runs that are merged while nothing lies below them yet
			name: "merged runs lose deletions", file: "checkpoint/sim/upload.go",
			old: "Whole: u.parts.Whole && !u.parts.Runs}", new: "Whole: u.parts.Whole}",
		},
		{ // the later entry of a key counts
			name: "older entries win", file: "exec/state/mergesource.go",
			old: "cmp.Or(s.at.compare(&other.at), other.age-s.age) < 0", new: "cmp.Or(s.at.compare(&other.at), s.age-other.age) < 0",
		},
		{ // S7: a merge takes what lies in a handle's key groups
			name: "merge without trimming", file: "exec/state/mergesource.go",
			old: "\tfor s.at.i < from {\n", new: "\tfrom, s.to = 0, len(hashes)\n\tfor s.at.i < from {\n",
		},
		{ // S7: so does a restore
			name: "restore without trimming", file: "exec/state/load.go",
			old: "\treturn from, max(from, to)\n", new: "\treturn 0 * from, max(to, n)\n",
		},
		{ // a handle that overlaps a subtask's key groups in part is one of its own
			name: "handles of others are passed over", file: "checkpoint/restore.go",
			old: "if h, ok := h.Trim(groups); ok {", new: "if h, ok := h.Trim(groups); ok && len(old) != 3 {",
		},
		{ // S5: another job's objects are its own to delete
			name: "a fork names what is another's", file: "checkpoint/sim/task.go",
			old: "anew := slices.ContainsFunc(keyed[i], a.foreign)", new: "anew := false && slices.ContainsFunc(keyed[i], a.foreign)",
		},
		{ // S1: what a cut shows is copied before it is changed
			name: "nothing is copied aside", file: "exec/state/table.go",
			old: "\tif t.store.isRead(c.generation, c.size()) {\n\t\tc = c.clone()\n\t\tt.chunks[i] = c\n\t} else if", new: "\tif false {\n\t\tc = c.clone()\n\t\tt.chunks[i] = c\n\t} else if",
		},
		{ // S1: and is shown all the same
			name: "what was copied aside is left out", file: "exec/state/table.go",
			old: "\tif t.store.isRead(c.generation, c.size()) {\n\t\tc = c.clone()\n\t\tt.chunks[i] = c\n\t} else if", new: "\tif t.store.isRead(c.generation, c.size()) {\n\t\told := c\n\t\tc = c.clone()\n\t\told.dirty = slotSet{}\n\t\tt.chunks[i] = c\n\t} else if",
		},
		{ // S9: what a cut has still to show stays in memory
			name: "spilled before it is shown", file: "exec/state/spill.go",
			old: "\tif t.store.isRead(c.generation, 0) {\n\t\treturn set\n", new: "\tif false {\n\t\treturn set\n",
		},
		{ // S6: a restore that spills makes runs that lie over each other
			name: "runs of a restore lose deletions", file: "exec/state/restore.go", script: "deletion_while_copied",
			old: "\tcut.entries = -1 ", new: "\t_ = cut ",
		},
		{ // S10: what is deleted in memory is not on disk either
			name: "no grave", file: "exec/state/table.go",
			old: "\t\tt.cold.bury(hash, c.key(t.rec, i, t.text))\n", new: "",
		},
		{ // a cut between two barriers is a run like others
			name: "a cut between barriers is lost", file: "checkpoint/sim/upload.go",
			old: "\tq.chain.Add(u.id, run, u.cut.Whole())\n", new: "\tif u.snap != nil {\n\t\tq.chain.Add(u.id, run, u.cut.Whole())\n\t}\n",
		},
	}
}

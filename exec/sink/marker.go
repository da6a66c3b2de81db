package sink

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"weir"
)

// A marker is an empty hidden file that says: the segments of this writer up to this
// barrier have been published. It lets a restored sink tell a segment that a reader has
// moved away since from one that is lost.

// markerPrefix begins the names of a writer's markers; the barrier ends them.
func markerPrefix(job weir.JobID, operator weir.OperatorID, subtask int) string {
	return fmt.Sprintf("%s%s-%s-%d-done-", hidden, job, shortened(string(operator)), subtask)
}

// mark notes segments, in barrier order, as published, which is durable after sync. Each
// gets a marker of its own: one that a reader takes away before its sealed file is let go of
// would otherwise be published again. It returns the markers of this sink that are
// superseded once the sealed files are gone.
func (f *folder) mark(published []segment) (superseded []string, err error) {
	for i := range published {
		s := &published[i]
		prefix := markerPrefix(s.Job, s.Operator, s.Subtask)
		before, made := f.marks[prefix]
		if made && before >= s.Barrier {
			continue
		}
		file, err := f.root.OpenFile(markerName(prefix, s.Barrier), os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("mark in folder %s: %w", f.path, err)
		}
		if made {
			superseded = append(superseded, markerName(prefix, before))
		}
		f.marks[prefix] = s.Barrier
	}
	return superseded, nil
}

func markerName(prefix string, barrier weir.CheckpointID) string {
	return prefix + strconv.FormatInt(int64(barrier), 10)
}

// marked reports whether the segment is known to have been published.
func (f *folder) marked(s *segment) (bool, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return false, fmt.Errorf("read folder %s: %w", f.path, err)
	}
	for _, e := range entries {
		if barrier, ok := markedBarrier(e.Name(), markerPrefix(s.Job, s.Operator, s.Subtask)); ok && barrier >= s.Barrier {
			return true, nil
		}
	}
	return false, nil
}

// markedBarrier reads the name of a marker that begins with prefix.
func markedBarrier(name, prefix string) (weir.CheckpointID, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	barrier, err := strconv.ParseInt(digits, 10, 64)
	return weir.CheckpointID(barrier), err == nil
}

// oldMarkers picks, out of a folder's names, the markers of the writer's sink that
// higher ones of the same subtask supersede.
func oldMarkers(w writer, names []string) (old []string) {
	type marker struct {
		name    string
		barrier weir.CheckpointID
	}
	highest := map[string]marker{} // by subtask
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, w.prefix())
		subtask, digits, found := strings.Cut(rest, "-done-")
		barrier, err := strconv.ParseInt(digits, 10, 64)
		if !ok || !found || err != nil {
			continue
		}
		m := marker{name, weir.CheckpointID(barrier)}
		if top, ok := highest[subtask]; ok && top.barrier >= m.barrier {
			old = append(old, m.name)
			continue
		} else if ok {
			old = append(old, top.name)
		}
		highest[subtask] = m
	}
	return old
}

package source

import (
	"bytes"
	"context"
)

// lookBlocks is how many blocks a call of Next looks through for quotes at most: barriers
// and cancellation get through in between.
const lookBlocks = 4

// look looks for quotes in front of a split, where others read, a few blocks at a time;
// ready: all of that is known.
func (s *filesystem) look(ctx context.Context, sp *split) (ready bool, err error) {
	r := &s.reader
	if !r.quotes || sp.Position > sp.Start && sp.End == sp.Size {
		return true, nil // there is no cut to ask about
	}
	until := sp.Position - 1
	for range lookBlocks {
		if r.clean >= until {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := r.look(until); err != nil {
			return false, err
		}
		sp.Clean = r.clean
		if r.found {
			return true, nil
		}
	}
	return r.clean >= until, nil
}

// refuse ends a split whose own cut is shut.
func (s *filesystem) refuse(sp *split) error {
	s.shut(sp)
	s.claim(-sp.left())
	return s.leave(sp)
}

// judge lets a split go on to the end of its file once its next cut is known to be shut: the
// first quote of the file stands in front of it, or in the record that reaches over it.
func (s *filesystem) judge(sp *split) {
	r := &s.reader
	if !r.quotes || sp.Start == 0 && sp.End == sp.Size {
		return
	}
	sp.Clean = max(sp.Clean, r.clean)
	if r.found && sp.End < sp.Size && r.clean < max(sp.End, r.offset()) {
		s.claim(sp.Size - sp.End)
		sp.End = sp.Size
		s.shut(sp)
	}
}

// shut ends the splits behind one, in the same file: their records are read with its own.
func (s *filesystem) shut(sp *split) {
	for i := s.at + 1; i < len(s.splits) && s.splits[i].Path == sp.Path; i++ {
		s.claim(-s.splits[i].left())
		s.splits[i].Done = true
	}
}

// claim says that so many more bytes are this subtask's to read: its share of the pace
// follows.
func (s *filesystem) claim(n int64) {
	s.own += n
	s.pace.rate = s.rate * float64(s.own) / float64(max(s.total, 1))
}

// look looks for the file's first quote in a block from where it is known to be free of
// them, but not behind until. The window is empty meanwhile.
func (r *reader) look(until int64) error {
	at := r.clean
	r.seek(at)
	want := min(int64(r.block), until-at)
	if err := r.readAt(r.buf[:want], at); err != nil {
		return err
	}
	r.note(r.buf[:want], at)
	return nil
}

// note takes down whether there are quotes in what was read at an offset.
func (r *reader) note(fresh []byte, at int64) {
	i := bytes.IndexByte(fresh, '"')
	r.plain = r.plain && i < 0
	if r.found || at > r.clean {
		return // known, or of no use as long as nobody has looked in between
	}
	if i >= 0 {
		r.clean, r.found = at+int64(i), true
	} else {
		r.clean = max(r.clean, at+int64(len(fresh)))
	}
}

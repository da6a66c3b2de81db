package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"
	"time"

	"weir"
	"weir/checkpoint/killpoint"
	"weir/exec"
	"weir/exec/batch"
)

// writeSize is how much text is gathered for one write.
const writeSize = 128 << 10

// A filesystem writes rows into the files of a folder.
type filesystem struct {
	table   string
	writer  writer
	folder  *folder
	encoder encoder
	crc     *crc32.Table

	file     *os.File // being written; nil as long as there were no rows since the barrier
	buf      []byte   // text not yet written
	rows     int64    // since the barrier
	bytes    int64    // written since the barrier
	checksum uint32
	written  atomic.Int64 // since it was opened

	segments []segment  // sealed and not confirmed as published, in barrier order
	unsynced []*os.File // of these, not handed to the uploader yet
}

func openFilesystem(setup exec.Setup) (*filesystem, error) {
	table := setup.Operator.Sink.Table
	enc, err := newEncoder(table)
	if err != nil {
		return nil, err
	}
	all, err := restoredSegments(setup.List)
	if err != nil {
		return nil, err
	}
	given, err := restoredSegments(setup.GivenUp)
	if err != nil {
		return nil, err
	}
	s := &filesystem{table: table.Name, writer: writerOf(setup, table.Format), encoder: enc, crc: crc32.MakeTable(crc32.Castagnoli)}
	for i := setup.Subtask; i < len(all); i += setup.Parallelism {
		s.segments = append(s.segments, all[i])
	}
	if s.folder, err = openFolder(setup.Files, table.Options["path"]); err != nil {
		return nil, err
	}
	if err := s.settle(all, given); err != nil {
		return nil, errors.Join(err, s.folder.root.Close())
	}
	return s, nil
}

// settle looks at what a restored sink finds in its folder. Another job's segment that was
// never there is refused at once, and not when it is to be published: then a checkpoint
// would have been decided whose output nobody can show. Of what was given up the sealed
// files go; what was published of it stays.
func (s *filesystem) settle(all, given []segment) error {
	for i := range s.segments {
		if s.segments[i].Job == s.writer.job {
			continue
		}
		if err := s.folder.has(&s.segments[i]); err != nil {
			return err
		}
	}
	if s.writer.subtask > 0 {
		return nil
	}
	for i := range given {
		if given[i].Job != s.writer.job { // that one's files are its own
			continue
		}
		if err := s.folder.remove(given[i].Temp); err != nil {
			return err
		}
	}
	return s.folder.clean(s.writer, all, time.Now())
}

// Process appends a batch's rows to the segment.
func (s *filesystem) Process(b *batch.Batch, _ exec.Collector) error {
	if s.rows == 0 && b.Rows() > 0 {
		s.buf = s.encoder.head(s.buf[:0])
	}
	for i := range b.Rows() {
		row := b.Row(i)
		if b.Kinds != nil && b.Kinds[row] != batch.Insert {
			return fmt.Errorf("table %s: a file takes rows, not changes of rows (%v)", s.table, b.Kinds[row])
		}
		s.buf = s.encoder.row(s.buf, b, row)
		s.rows++
		if len(s.buf) >= writeSize {
			if err := s.write(); err != nil {
				return err
			}
		}
	}
	b.Release()
	return nil
}

// write hands the gathered text to the segment's file, which it makes if need be.
func (s *filesystem) write() error {
	if s.file == nil {
		file, err := s.folder.root.OpenFile(s.writer.openName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return fmt.Errorf("table %s: %w", s.table, exec.FileError("write to folder", s.folder.path, err))
		}
		s.file, s.bytes, s.checksum = file, 0, 0
	}
	if _, err := s.file.Write(s.buf); err != nil {
		return fmt.Errorf("table %s: %w", s.table, err)
	}
	s.checksum = crc32.Update(s.checksum, s.crc, s.buf)
	s.bytes += int64(len(s.buf))
	s.written.Add(int64(len(s.buf)))
	s.buf = s.buf[:0]
	return nil
}

// BytesWritten is how many bytes it has written to files; any goroutine may ask.
func (s *filesystem) BytesWritten() int64 { return s.written.Load() }

// Flush has nothing to do: what is gathered is part of the next segment.
func (s *filesystem) Flush(exec.Collector) error { return nil }

// End has nothing to do: the last rows are sealed by the checkpoint that follows.
func (s *filesystem) End(exec.Collector) error { return nil }

// Snapshot seals the segment of barrier id and returns all that wait for their commit. It
// is durable once what Seal returns has run.
func (s *filesystem) Snapshot(id weir.CheckpointID) ([]json.RawMessage, error) {
	if s.rows > 0 {
		if err := s.seal(id); err != nil {
			return nil, err
		}
	}
	items := make([]json.RawMessage, len(s.segments))
	for i := range s.segments {
		item, err := json.Marshal(&s.segments[i])
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", s.table, err)
		}
		items[i] = item
	}
	return items, nil
}

func (s *filesystem) seal(id weir.CheckpointID) error {
	if err := s.write(); err != nil {
		return err
	}
	killpoint.Here("before-seal")
	sealed := s.writer.seal(id, s.rows, s.bytes, s.checksum)
	if err := s.folder.root.Rename(s.writer.openName(), sealed.Temp); err != nil {
		return fmt.Errorf("table %s: %w", s.table, err)
	}
	sealed.file = s.file
	s.segments, s.unsynced = append(s.segments, sealed), append(s.unsynced, s.file)
	s.file, s.rows = nil, 0
	return nil
}

// Seal returns what flushes the segments sealed since the last call to disk, for which rows
// need not wait; nil: there are none.
func (s *filesystem) Seal() func() error {
	files := s.unsynced
	if s.unsynced = nil; files == nil {
		return nil
	}
	return func() error {
		for _, file := range files {
			if err := file.Sync(); err != nil {
				return fmt.Errorf("table %s: %w", s.table, err)
			}
		}
		if err := s.folder.sync(); err != nil {
			return fmt.Errorf("table %s: %w", s.table, err)
		}
		killpoint.Here("after-seal")
		return nil
	}
}

// Pending reports whether segments wait for a commit.
func (s *filesystem) Pending() bool { return len(s.segments) > 0 }

// Commit publishes the segments of barriers up to id, in barrier order. Repeated, also
// by another attempt, it finds them published and is content.
func (s *filesystem) Commit(ctx context.Context, id weir.CheckpointID) error {
	sortSegments(s.segments)
	n := 0
	for ; n < len(s.segments) && s.segments[n].Barrier <= id; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		killpoint.Here("before-publish")
		if err := s.folder.publish(&s.segments[n]); err != nil {
			return fmt.Errorf("table %s: commit %d: %w", s.table, id, err)
		}
		killpoint.Here("after-publish")
	}
	if n == 0 {
		return nil
	}
	if err := s.confirm(s.segments[:n]); err != nil {
		return fmt.Errorf("table %s: commit %d: %w", s.table, id, err)
	}
	err := closeFiles(s.segments[:n])
	s.segments = s.segments[n:]
	if err != nil {
		return fmt.Errorf("table %s: commit %d: %w", s.table, id, err)
	}
	return nil
}

// closeFiles lets go of the files of segments; nobody flushes them any more.
func closeFiles(segments []segment) (err error) {
	for i := range segments {
		if file := segments[i].file; file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// confirm makes what was published durable, and only then lets go of the sealed files.
func (s *filesystem) confirm(published []segment) error {
	killpoint.Here("before-mark")
	superseded, err := s.folder.mark(published)
	killpoint.Here("after-mark")
	if err != nil {
		return err
	}
	if err := s.folder.sync(); err != nil {
		return err
	}
	var gone []string
	for i := range published {
		gone = append(gone, published[i].Temp)
	}
	for _, name := range append(gone, superseded...) { // a segment's marker goes after its sealed file
		if err := s.folder.remove(name); err != nil {
			return err
		}
	}
	return nil
}

// Close throws the segment away that was only begun; sealed ones stay.
func (s *filesystem) Close() error {
	err := closeFiles(s.segments)
	s.segments = nil
	if s.file != nil {
		err = errors.Join(err, s.file.Close(), s.folder.root.Remove(s.writer.openName()))
		s.file = nil
	}
	return errors.Join(err, s.folder.root.Close())
}

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/plan"
)

// A filesystem reads the files of a table, split after split.
type filesystem struct {
	table  string
	roots  []string
	path   string
	format string
	header bool // each CSV file begins with the columns' names

	rows    *rows
	decoder decoder
	csv     *csvDecoder // the same, or nil
	pace    pacer
	rate    float64 // rows per second of all subtasks; 0: as fast as possible
	total   int64   // bytes to read, of all subtasks
	own     int64   // and of this one
	now     func() time.Time
	rejects exec.Rejecter // nil: a record at fault fails the job
	bad     int           // records rejected by this call of Next

	splitSize int64
	splits    []split // this subtask's, finished ones included
	at        int     // the split being read
	reader    reader  // its window; file is nil before it is opened
}

func openFilesystem(ctx context.Context, setup exec.Setup) (*filesystem, error) {
	s, err := newFilesystem(setup.Operator.Source, setup.Files)
	if err != nil {
		return nil, err
	}
	s.rejects = setup.Rejects
	return s, s.start(ctx, setup)
}

// newFilesystem makes the source of a table's files without looking at them.
func newFilesystem(spec *plan.SourceSpec, roots []string) (*filesystem, error) {
	o := options{table: spec.Table.Name, values: spec.Table.Options}
	s := &filesystem{
		table: spec.Table.Name, roots: roots, path: o.text("path", ""), format: spec.Table.Format,
		now: time.Now, splitSize: splitSize, reader: reader{block: blockSize, quotes: spec.Table.Format == "csv"},
	}
	text := o.csv()
	if o.err != nil {
		return nil, o.err
	}
	var err error
	if s.rows, err = newRows(spec); err != nil {
		return nil, err
	}
	switch s.format {
	case "json":
		s.decoder = newJSONDecoder(s.rows)
	case "csv":
		s.csv, s.header = newCSVDecoder(spec, text), text.header
		s.decoder = s.csv
	default:
		return nil, fmt.Errorf("%w: table %s: format %q is not csv or json", weir.ErrInvalid, s.table, s.format)
	}
	return s, nil
}

// start finds this subtask's splits, and its share of the pace.
func (s *filesystem) start(ctx context.Context, setup exec.Setup) error {
	all, err := s.allSplits(ctx, setup)
	if err != nil {
		return fmt.Errorf("table %s: %w", s.table, err)
	}
	s.splits = share(all, setup.Subtask, setup.Parallelism)
	if err := s.check(); err != nil {
		return fmt.Errorf("table %s: %w", s.table, err)
	}
	s.rate = setup.Operator.Source.RowsPerSecond
	for i := range all {
		s.total += all[i].left()
	}
	for i := range s.splits {
		s.claim(s.splits[i].left())
	}
	return nil
}

// check refuses files that are not what they were, as long as there is something to
// read in them.
func (s *filesystem) check() error {
	checked := map[string]bool{}
	for i := range s.splits {
		if s.splits[i].Done || checked[s.splits[i].Path] {
			continue
		}
		file, err := s.splits[i].open(s.roots)
		if err != nil {
			return err
		}
		file.Close()
		checked[s.splits[i].Path] = true
	}
	return nil
}

// Next decodes one batch of the current split, passes over one block of it, or looks through a
// few of those in front of it.
func (s *filesystem) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	for s.at < len(s.splits) && s.splits[s.at].Done {
		s.at++
	}
	if s.at == len(s.splits) {
		return nil, exec.Done, time.Time{}, nil
	}
	n, until := s.pace.grant(s.now(), batch.Target)
	if n == 0 {
		return nil, exec.Wait, until, nil
	}
	s.rows.begin(n)
	s.bad = 0
	b, err := s.read(ctx, &s.splits[s.at])
	if err != nil {
		return nil, exec.More, time.Time{}, err
	}
	if b != nil {
		s.bad += b.Len
	}
	s.pace.spend(s.bad)
	return b, exec.More, time.Time{}, nil
}

// read goes on in a split until there is a batch, or a block has been used up.
func (s *filesystem) read(ctx context.Context, sp *split) (*batch.Batch, error) {
	r := &s.reader
	if !r.entered {
		if ready, err := s.approach(ctx, sp); err != nil || !ready || sp.Done {
			return nil, s.located(sp, err)
		}
	}
	if r.p == r.n && r.base+int64(r.p) < sp.End {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.fill(ctx, sp); err != nil {
			return nil, s.located(sp, err)
		}
	}
	s.judge(sp)
	began, err := s.decode(ctx, sp)
	if err != nil {
		return nil, s.located(sp, err)
	}
	s.judge(sp)
	if began || s.bad > 0 || sp.Position > 0 { // not behind a mark or header only: no line feed need stand there
		sp.Position = r.offset()
	}
	if r.base+int64(r.p) >= sp.End {
		if err := s.leave(sp); err != nil {
			return nil, err
		}
	}
	return s.rows.finish(sp.Path), nil
}

// decode turns records of the window into rows; began: it passed over some.
func (s *filesystem) decode(ctx context.Context, sp *split) (began bool, err error) {
	r := &s.reader
	for s.bad+s.rows.n < s.rows.limit {
		limit := int(min(int64(r.n), max(sp.End-r.base, 0)))
		if s.csv != nil {
			s.csv.noQuotes = r.plain
		}
		p, more, f := s.decoder.decode(s.rows, r.data(), r.p, limit, r.base)
		began = began || p > r.p
		r.p = p
		if more && r.end && s.rows.n == 0 {
			f = &fault{reason: unclosed, broken: true}
		}
		if f != nil {
			if more, err = s.reject(sp, f); err != nil {
				return began, err
			}
			if !more {
				continue
			}
		}
		if more && s.rows.n == 0 { // else first hand over what there is
			err = s.fill(ctx, sp)
		}
		break
	}
	return began, err
}

// approach opens a split's file and moves to its next record, step by step.
func (s *filesystem) approach(ctx context.Context, sp *split) (ready bool, err error) {
	if s.reader.file == nil {
		if err := s.open(sp); err != nil {
			return false, err
		}
	}
	if ready, err := s.look(ctx, sp); err != nil || !ready {
		return false, err
	}
	s.reader.entered = true
	return true, s.enter(ctx, sp)
}

// open opens a split's file.
func (s *filesystem) open(sp *split) error {
	if s.at > 0 && s.splits[s.at-1].Path == sp.Path {
		sp.Clean = max(sp.Clean, s.splits[s.at-1].Clean)
	}
	file, err := sp.open(s.roots)
	if err != nil {
		return err
	}
	r := &s.reader
	r.file, r.size, r.entered, r.clean, r.found = file, sp.Size, false, sp.Clean, false
	return nil
}

// enter moves to a split's next record.
func (s *filesystem) enter(ctx context.Context, sp *split) error {
	r := &s.reader
	if sp.Position > 0 {
		r.seek(sp.Position - 1)
		if err := r.align(sp.End); err != nil {
			return err
		}
		if sp.Position == sp.Start && r.found && r.clean < r.offset() { // a quote in the record that reaches over the cut
			return s.refuse(sp)
		}
		return nil
	}
	r.seek(0)
	if err := r.fill(sp.End); err != nil {
		return s.tooLong(ctx, sp, err)
	}
	if r.m >= 3 && r.buf[0] == 0xef && r.buf[1] == 0xbb && r.buf[2] == 0xbf { // a byte order mark
		r.p = 3
	}
	if s.header && sp.Size > int64(r.p) {
		return s.readHeader(sp)
	}
	if r.p > 0 && sp.End <= int64(r.p) && sp.Size > int64(r.p) {
		sp.End = int64(r.p) + 1 // the split's record starts behind its mark
	}
	return nil
}

func (s *filesystem) readHeader(sp *split) error {
	for {
		next, more, f := s.decoder.header(s.reader.data(), s.reader.p)
		if f == nil && !more {
			s.reader.p = next
			return nil
		}
		if f == nil && s.reader.end {
			f = &fault{reason: unclosed}
		}
		if f != nil {
			return s.rowError(sp, f)
		}
		mark := s.reader.p
		s.reader.p = 0 // keep the mark's place: the window must begin at the file's start
		if err := s.reader.fill(sp.End); err != nil {
			return err
		}
		s.reader.p = mark
	}
}

// leave ends a split, whose file must still be what it was.
func (s *filesystem) leave(sp *split) error {
	err := sp.unchanged(s.reader.file)
	s.closeFile()
	sp.Done = true
	return err
}

func (s *filesystem) closeFile() {
	if s.reader.file != nil {
		s.reader.file.Close()
		s.reader.file, s.reader.entered = nil, false
	}
}

// Snapshot gives the position of every split, finished ones included.
func (s *filesystem) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, len(s.splits))
	for i := range s.splits {
		item, err := json.Marshal(&s.splits[i])
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", s.table, err)
		}
		items[i] = item
	}
	return items, nil
}

// BytesRead is how many bytes of files it has read.
func (s *filesystem) BytesRead() int64 { return s.reader.read }

// Close closes the file being read.
func (s *filesystem) Close() error {
	s.closeFile()
	return nil
}

// located says which table's file an error is about; one in a file that is not what it was is
// the change's.
func (s *filesystem) located(sp *split, err error) error {
	if err == nil {
		return nil
	}
	if s.reader.file != nil {
		if changed := sp.unchanged(s.reader.file); changed != nil {
			return changed
		}
	}
	var row *exec.RowError
	switch {
	case errors.As(err, &row):
		return row
	case errors.Is(err, errTooLong):
		return s.rowError(sp, recordTooLong())
	}
	return fmt.Errorf("table %s, file %s: %w", s.table, sp.Path, err)
}

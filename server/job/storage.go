package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// A StorageRequest says how storage is to be checked.
type StorageRequest struct {
	Job     string // id or name; empty: all jobs, and what belongs to none
	Deep    bool   // read every object that is kept and compare its checksum
	Repair  bool   // delete what nobody needs; give up checkpoints that are harmed
	Unknown bool   // repair also deletes what is newer than the metastore knows
}

// A StorageReport is what a check of storage found.
type StorageReport struct {
	Jobs     int
	Objects  int
	Bytes    int64
	Findings []checkpoint.Finding
	GivenUp  []weir.SnapshotRef // checkpoints that a repair had to give up
}

// Sound reports whether nothing that is kept, after a repair still, is missing or damaged.
func (r *StorageReport) Sound() bool {
	return !slices.ContainsFunc(r.Findings, func(f checkpoint.Finding) bool {
		return f.Harms() && !slices.Contains(r.GivenUp, weir.SnapshotRef{Job: f.Job, Checkpoint: f.Checkpoint})
	})
}

// unfinishedAfter is how old an upload must be to be none that goes on.
const unfinishedAfter = time.Hour

// CheckStorage compares what lies in storage with what the metastore knows. Nothing is
// changed but by a repair; what a repair does each finding says.
func (s *Service) CheckStorage(ctx context.Context, req StorageRequest) (*StorageReport, error) {
	report := &StorageReport{Findings: []checkpoint.Finding{}}
	ids, err := s.jobsToCheck(ctx, req, report)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		findings, err := s.checkJob(ctx, req, id, report)
		if err != nil {
			return nil, fmt.Errorf("check storage of %s: %w", id, err)
		}
		report.Findings = append(report.Findings, findings...)
	}
	if err := s.checkUploads(ctx, req, report); err != nil {
		return nil, fmt.Errorf("check storage: %w", err)
	}
	report.Jobs = len(ids)
	return report, nil
}

// jobsToCheck lists the jobs of the metastore and those that have objects, in order.
func (s *Service) jobsToCheck(ctx context.Context, req StorageRequest, report *StorageReport) ([]weir.JobID, error) {
	if req.Job != "" {
		id := weir.JobID(req.Job)
		if !id.Valid() { // the id may be that of a job that is deleted or forgotten
			j, err := s.Get(ctx, req.Job)
			if err != nil {
				return nil, err
			}
			id = j.ID
		}
		return []weir.JobID{id}, nil
	}
	ids, err := s.deps.Store.JobIDs(ctx)
	if err != nil {
		return nil, err
	}
	var left []checkpoint.Finding
	err = s.deps.Blobs.List(ctx, "", func(key string, size int64) bool {
		first, _, below := strings.Cut(key, "/")
		if at, ok := weir.IsControlKey(key); ok && !at.IsZero() {
			report.Objects, report.Bytes = report.Objects+1, report.Bytes+size
			if s.now().Sub(at) > messageAfter {
				left = append(left, checkpoint.Finding{Fault: checkpoint.FaultOrphan, Key: key, Bytes: size, Problem: "it held a command or an answer of more than an hour ago, and a process was killed before it deleted it: repair deletes it"})
			}
			return true
		}
		switch id := weir.JobID(first); {
		case !id.Valid(), !below:
			report.Objects, report.Bytes = report.Objects+1, report.Bytes+size
			report.Findings = append(report.Findings, checkpoint.Finding{Fault: checkpoint.FaultForeign, Key: key, Bytes: size, Problem: "it is no object of Weir: it is left alone"})
		case len(ids) == 0 || ids[len(ids)-1] != id:
			ids = append(ids, id)
		}
		return true
	})
	slices.Sort(ids)
	if err == nil {
		err = s.sweepMessages(ctx, req, left)
	}
	report.Findings = append(report.Findings, left...)
	return slices.Compact(ids), storageAway(err)
}

// messageAfter is how old the object of a control message must be to be nobody's: a message
// lives for seconds. One that waits for NATS to come back may be older, and a clock may be
// wrong by more; nothing is lost by that. Who cannot read its object refuses it as a conflict
// or is silent, and its sender sends it anew, with another object.
const messageAfter = time.Hour

// sweepMessages has a repair delete what control messages have left.
func (s *Service) sweepMessages(ctx context.Context, req StorageRequest, left []checkpoint.Finding) error {
	if !req.Repair {
		return nil
	}
	for i, f := range left {
		if err := s.deps.Blobs.Delete(ctx, f.Key); err != nil {
			return err
		}
		left[i].Repaired = "deleted"
	}
	return nil
}

// storageAway is what a request says that object storage did not serve: its user can mend
// that, and need not read a log for it.
func storageAway(err error) error {
	if err == nil || gone(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: object storage: %w", ErrUnavailable, err)
}

func (s *Service) checkJob(ctx context.Context, req StorageRequest, id weir.JobID, report *StorageReport) ([]checkpoint.Finding, error) {
	check := checkpoint.Check{Blobs: s.deps.Blobs, Deep: req.Deep}
	keys, err := check.List(ctx, id)
	if err != nil {
		return nil, storageAway(err)
	}
	report.Objects += len(keys)
	for _, size := range keys {
		report.Bytes += size
	}
	inv, err := s.deps.Store.Inventory(ctx, id) // after its keys: the job may be a new one
	known := !errors.Is(err, weir.ErrNotFound)
	switch {
	case !known && (len(keys) > 0 || req.Job == ""):
		inv = checkpoint.Inventory{Subject: checkpoint.Subject{Fence: weir.Fence{Job: id}}} // without a row nothing is known
	case err != nil:
		return nil, err
	}
	findings, err := check.Job(ctx, keys, inv)
	if err != nil || len(findings) == 0 {
		return nil, storageAway(err)
	}
	if findings, err = s.stillSo(ctx, id, known, findings); err != nil || !req.Repair {
		return findings, err
	}
	return findings, s.repair(ctx, req, inv, findings, report)
}

// stillSo leaves out the faults of snapshots that retention has given up meanwhile.
func (s *Service) stillSo(ctx context.Context, id weir.JobID, known bool, findings []checkpoint.Finding) ([]checkpoint.Finding, error) {
	if !known || !slices.ContainsFunc(findings, checkpoint.Finding.Harms) {
		return findings, nil
	}
	retained, err := s.deps.Checkpoints.Retained(ctx, id)
	return slices.DeleteFunc(findings, func(f checkpoint.Finding) bool {
		return f.Harms() && !slices.ContainsFunc(retained, func(r checkpoint.Retained) bool { return r.ID == f.Checkpoint })
	}), err
}

// repair does what may be done about a job's findings and says so in each. Of a job that
// failed as metastore_behind nothing is deleted.
func (s *Service) repair(ctx context.Context, req StorageRequest, inv checkpoint.Inventory, findings []checkpoint.Finding, report *StorageReport) error {
	if inv.Subject.Behind {
		for i := range findings {
			findings[i].Repaired = "nothing: the job failed as metastore_behind; adopt a checkpoint first"
		}
		return nil
	}
	given, err := s.giveUpHarmed(ctx, inv, findings)
	if err != nil {
		return err
	}
	report.GivenUp = append(report.GivenUp, given...)
	defer s.clean.wake(inv.Subject.Fence.Job) // it may have been held up by what is deleted here
	var delays []int                          // manifests go last
	remove := func(i int) error {
		if err := s.deps.Blobs.Delete(ctx, findings[i].Key); err != nil {
			return err
		}
		findings[i].Repaired = "deleted"
		return nil
	}
	for i, f := range findings {
		switch {
		case f.Fault != checkpoint.FaultOrphan && !(f.Fault == checkpoint.FaultUnknown && req.Unknown):
		case checkpoint.IsManifest(f.Key):
			delays = append(delays, i)
		default:
			if err := remove(i); err != nil {
				return err
			}
		}
	}
	for _, i := range delays {
		if err := remove(i); err != nil {
			return err
		}
	}
	return nil
}

// giveUpHarmed gives up checkpoints that cannot be restored any more, where nothing but
// retention keeps them, and returns them.
func (s *Service) giveUpHarmed(ctx context.Context, inv checkpoint.Inventory, findings []checkpoint.Finding) ([]weir.SnapshotRef, error) {
	var ids []weir.CheckpointID
	for _, f := range findings {
		free := slices.ContainsFunc(inv.Retained, func(r checkpoint.Retained) bool { return r.ID == f.Checkpoint && r.Free() })
		if f.Harms() && free && !slices.Contains(ids, f.Checkpoint) {
			ids = append(ids, f.Checkpoint)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	marked, err := s.deps.Checkpoints.DiscardCheckpoints(ctx, inv.Subject.Fence, ids)
	if errors.Is(err, weir.ErrStale) {
		return nil, fmt.Errorf("%w: the job has just begun another attempt: try again", weir.ErrConflict)
	}
	var given []weir.SnapshotRef
	for _, id := range marked {
		given = append(given, weir.SnapshotRef{Job: inv.Subject.Fence.Job, Checkpoint: id})
	}
	for i, f := range findings {
		if f.Harms() && slices.Contains(marked, f.Checkpoint) {
			findings[i].Repaired = fmt.Sprintf("checkpoint %d was given up", f.Checkpoint)
		}
	}
	return given, err
}

// checkUploads looks for uploads in parts that nobody will complete.
func (s *Service) checkUploads(ctx context.Context, req StorageRequest, report *StorageReport) error {
	cleaner, ok := s.deps.Blobs.(blob.Cleaner)
	if !ok || req.Job != "" {
		return nil
	}
	uploads, err := cleaner.Unfinished(ctx, s.now().Add(-unfinishedAfter))
	if err != nil {
		return err
	}
	for _, u := range uploads {
		f := checkpoint.Finding{Fault: checkpoint.FaultUnfinished, Key: u.Key, Problem: "an upload in parts that was begun more than an hour ago and never completed: repair removes it"}
		if req.Repair {
			if err := cleaner.Abandon(ctx, u); err != nil {
				return err
			}
			f.Repaired = "removed"
		}
		report.Findings = append(report.Findings, f)
	}
	return nil
}

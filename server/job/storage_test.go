package job_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// many has more keys than fit into a manifest, also where it is stopped early, since for HAVING its
// result keeps rows of its own. It goes on for so long that it can be stopped in the middle on a
// slow machine too.
var many = strings.NewReplacer("k % 4", "k % 5000", "'rows-per-second' = '25000'", "'rows-per-second' = '12500'").Replace(counts) + " HAVING COUNT(*) > 0"

// manyFinished waits for the end of counts and its exact answer.
func manyFinished(t *testing.T, c *jobtest.Cluster, s *job.Service) weir.Job {
	t.Helper()
	return exact(t, c, s, "counts")
}

// exact waits for the end of a job that counts many, and its exact answer.
func exact(t *testing.T, c *jobtest.Cluster, s *job.Service, name string) weir.Job {
	t.Helper()
	j := c.Await(s, name, weir.StatusFinished, weir.StatusFailed)
	page, err := s.Results(context.Background(), name, job.ResultQuery{OrderBy: "key", Limit: 10000})
	if err != nil || j.Status != weir.StatusFinished || len(page.Rows) != 5000 {
		t.Fatalf("%s: %s %+v, %d rows, %v", name, j.Status, j.Failure, len(page.Rows), err)
	}
	for key, row := range page.Rows {
		if want := fmt.Sprintf(`{"key":%d,"n":20,"total":%d}`, key, 20*key+950000); string(row) != want {
			t.Fatalf("%s: row %s, want %s", name, row, want)
		}
	}
	return j
}

// stopped runs sql as counts for a while and stops it with a savepoint.
func stopped(t *testing.T, c *jobtest.Cluster, s *job.Service, sql, savepoint string) weir.Job {
	t.Helper()
	spec := c.Spec("counts", sql, 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"50ms","num_retained":2}`)
	if _, err := s.Submit(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	c.Until("some checkpoints", func(ctx context.Context) bool {
		j, err := c.Store.Job(ctx, "counts")
		return err == nil && j.Base.Checkpoint >= 2
	})
	if _, err := s.Stop(context.Background(), "counts", job.StopRequest{Name: savepoint}); err != nil {
		t.Fatal(err)
	}
	return c.Await(s, "counts", weir.StatusStopped)
}

// stoppedMany is a cluster of one server and one worker whose job counts, of many, is
// stopped with savepoint mine.
func stoppedMany(t *testing.T) (*jobtest.Cluster, *job.Service, weir.Job) {
	t.Helper()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	return c, s, stopped(t, c, s, many, "mine")
}

func findings(t *testing.T, s *job.Service, req job.StorageRequest) []string {
	t.Helper()
	r, err := s.CheckStorage(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, f := range r.Findings {
		line := string(f.Fault) + " " + f.Key[strings.Index(f.Key, "/")+1:]
		if f.Repaired != "" {
			line += ": " + f.Repaired
		}
		list = append(list, line)
	}
	return list
}

func read(t *testing.T, c *jobtest.Cluster, key string) []byte {
	t.Helper()
	r, err := c.Blobs.Get(context.Background(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t *testing.T, c *jobtest.Cluster, key string, data []byte) {
	t.Helper()
	if err := c.Blobs.Put(context.Background(), key, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *jobtest.Cluster, key string) {
	t.Helper()
	if err := c.Blobs.Delete(context.Background(), key); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// C17, C22: after many checkpoints with retention 2 exactly what is kept lies in storage,
// and each of it can be restored. What is missing or damaged is found and named, and no
// job starts from it.
func TestStorageCheck(t *testing.T) {
	t.Parallel()
	c, s, j := stoppedMany(t)
	ctx := context.Background()
	c.Until("storage holds what is kept and nothing else", func(context.Context) bool {
		r, err := s.CheckStorage(ctx, job.StorageRequest{Deep: true})
		kept, rerr := c.Store.Retained(ctx, j.ID)
		found, ferr := checkpoint.Find(ctx, c.Blobs, j.ID)
		return err == nil && rerr == nil && ferr == nil && len(r.Findings) == 0 && len(kept) == 3 && len(found.Manifests) == 3
	})
	// What an attempt leaves is no orphan before its folder was looked through, which is said here
	// long before something lies there: nobody is to look through it meanwhile.
	if err := c.Store.Collected(ctx, j.ID, checkpoint.GivenUp{Attempts: []weir.AttemptID{j.Attempt}}); err != nil {
		t.Fatal(err)
	}
	sp, err := c.Store.Savepoint(ctx, "mine")
	if err != nil {
		t.Fatal(err)
	}
	m, err := checkpoint.LoadManifest(ctx, c.Blobs, sp.Manifest)
	if err != nil || len(m.Objects()) == 0 {
		t.Fatalf("savepoint without objects: %v", err)
	}
	object := m.Objects()[0]
	short := object[strings.Index(object, "/")+1:]
	data := read(t, c, object)

	refused := func(what, named string) {
		t.Helper()
		_, err := s.Start(ctx, "counts", job.StartRequest{From: "savepoint:mine"})
		if !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), "start from another checkpoint") {
			t.Errorf("%s: %v; want a conflict that names %s, and what to do", what, err, named)
		}
	}
	remove(t, c, object)
	same(t, "an object is gone", findings(t, s, job.StorageRequest{Job: "counts"}), "missing "+short)
	same(t, "repair leaves the base", findings(t, s, job.StorageRequest{Repair: true}), "missing "+short)
	refused("one data file is gone", object)
	put(t, c, object, data[:len(data)-1])
	same(t, "an object is cut short", findings(t, s, job.StorageRequest{}), "damaged "+short)
	refused("one data file is cut short", object)
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	put(t, c, object, flipped)
	same(t, "a flipped bit is seen by who reads", findings(t, s, job.StorageRequest{}))
	same(t, "a flipped bit", findings(t, s, job.StorageRequest{Deep: true}), "damaged "+short)
	put(t, c, object, data)

	manifest := read(t, c, sp.Manifest)
	place := fmt.Sprintf("%d/manifest", sp.Checkpoint)
	remove(t, c, sp.Manifest)
	same(t, "the manifest is gone", findings(t, s, job.StorageRequest{}), "missing "+place)
	refused("the manifest is gone", sp.Manifest)
	put(t, c, sp.Manifest, manifest[:len(manifest)/2])
	same(t, "the manifest is half written", findings(t, s, job.StorageRequest{}), "damaged "+place)
	refused("the manifest is half written (C19)", sp.Manifest)
	put(t, c, sp.Manifest, manifest)
	foreign(t, c, s, j)

	orphan := checkpoint.StateKey(j.ID, j.Attempt, "global_x", 0, 1, 7)
	unknown := checkpoint.ManifestKey(j.ID, 999)
	for _, key := range []string{orphan, unknown, string(j.ID) + "/notes", "readme"} {
		put(t, c, key, []byte("x"))
	}
	strays := []string{"foreign readme", "orphan " + orphan[len(j.ID)+1:], "unknown 999/manifest", "foreign notes"}
	slices.Sort(strays)
	got := findings(t, s, job.StorageRequest{})
	slices.Sort(got)
	same(t, "strays", got, strays...)
	got = findings(t, s, job.StorageRequest{Repair: true, Job: "counts"})
	slices.Sort(got)
	same(t, "repair", got, "foreign notes", "orphan "+orphan[len(j.ID)+1:]+": deleted", "unknown 999/manifest")
	same(t, "repair of what is unknown", findings(t, s, job.StorageRequest{Repair: true, Unknown: true, Job: "counts"}), "unknown 999/manifest: deleted", "foreign notes")

	kept, err := c.Store.Retained(ctx, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	oldest := kept[len(kept)-1]
	remove(t, c, oldest.Manifest)
	same(t, "a checkpoint is given up that cannot be restored", findings(t, s, job.StorageRequest{Repair: true, Job: "counts"})[:1],
		fmt.Sprintf("missing %d/manifest: checkpoint %d was given up", oldest.ID, oldest.ID))
	if _, err := s.Start(ctx, "counts", job.StartRequest{From: fmt.Sprintf("checkpoint:%d", kept[1].ID)}); err != nil { // C22: each of the kept ones
		t.Fatal(err)
	}
	manyFinished(t, c, s)
}

// Storage knows more than the metastore, as after a restore from a backup: nothing starts,
// nothing is deleted, until a checkpoint is adopted; then the answer is exact.
func TestAdopt(t *testing.T) {
	t.Parallel()
	c, s, j := stoppedMany(t)
	ctx := context.Background()
	if _, _, err := s.Adopt(ctx, "counts", 0); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("nothing to adopt: %v", err)
	}
	// The forgotten history had completed a checkpoint, taken by an attempt that is forgotten.
	m, err := checkpoint.LoadManifest(ctx, c.Blobs, checkpoint.ManifestKey(j.ID, j.Base.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	m.Checkpoint, m.Attempt, m.Type, m.Savepoint = j.LastCheckpoint+5, weir.AttemptID{Number: j.Attempt.Number + 3, Tag: "0badcafe"}, checkpoint.TypeCheckpoint, ""
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, checkpoint.ManifestKey(j.ID, m.Checkpoint), data)
	saved := *m // and a savepoint before it
	saved.Checkpoint, saved.Type, saved.Savepoint = m.Checkpoint-1, checkpoint.TypeSavepoint, "forgotten"
	if data, err = saved.Encode(); err != nil {
		t.Fatal(err)
	}
	put(t, c, checkpoint.ManifestKey(j.ID, saved.Checkpoint), data)
	late := checkpoint.StateKey(j.ID, m.Attempt, "global_x", 0, m.Checkpoint+1, 0)
	put(t, c, late, []byte("x"))
	put(t, c, checkpoint.ManifestKey(j.ID, m.Checkpoint+1), []byte("{")) // not whole

	before, err := checkpoint.Find(ctx, c.Blobs, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	j = c.Await(s, "counts", weir.StatusFailed)
	if j.Failure.Reason != checkpoint.ReasonMetastoreBack {
		t.Fatalf("failed because of %+v", j.Failure)
	}
	for _, f := range findings(t, s, job.StorageRequest{Repair: true, Unknown: true}) {
		if strings.Contains(f, "deleted") {
			t.Errorf("%s, but the job is metastore_behind", f)
		}
	}
	_, list, err := s.Adoptable(ctx, "counts")
	if err != nil || len(list) < 3 || list[0].Problem == "" || !list[1].Newer || list[1].Problem != "" || list[len(list)-1].Newer {
		t.Errorf("adoptable: %+v, %v", list, err)
	}
	if _, _, err := s.Adopt(ctx, "counts", 999); err == nil || err.Error() != `not found: checkpoint 999 of job "counts" in storage` {
		t.Errorf("one that is not there: %v", err)
	}
	if _, _, err := s.Adopt(ctx, "counts", m.Checkpoint+1); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("one that is not whole: %v", err)
	}
	after, err := checkpoint.Find(ctx, c.Blobs, j.ID) // once one is adopted, retention gives up older ones
	if err != nil || !slices.Equal(before.Manifests, after.Manifests) {
		t.Errorf("manifests %v before, %v after (%v)", before.Manifests, after.Manifests, err)
	}
	j, chosen, err := s.Adopt(ctx, "counts", 0)
	if err != nil || chosen.Checkpoint != m.Checkpoint || j.Base.Checkpoint != m.Checkpoint || j.Failure != nil ||
		j.LastCheckpoint != m.Checkpoint+1 || j.Attempt.Number <= m.Attempt.Number {
		t.Fatalf("adopted %+v: %+v, %v", chosen.Checkpoint, j, err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	j = manyFinished(t, c, s)
	if j.LastCheckpoint <= m.Checkpoint+1 {
		t.Errorf("ids go on at %d", j.LastCheckpoint)
	}
	// The savepoint is its user's again: no clean-up takes it.
	if _, err := c.Store.Savepoint(ctx, "forgotten"); err != nil {
		t.Error(err)
	}
	for _, f := range findings(t, s, job.StorageRequest{Repair: true}) {
		if strings.Contains(f, fmt.Sprintf("%d/manifest", saved.Checkpoint)) {
			t.Error(f)
		}
	}
	if _, err := c.Blobs.Stat(ctx, checkpoint.ManifestKey(j.ID, saved.Checkpoint)); err != nil {
		t.Error(err)
	}
}

// A refusing store lists nothing.
type refusing struct {
	blob.Store
	err error
}

func (r refusing) List(context.Context, string, func(string, int64) bool) error { return r.err }

// Whoever asks what lies in storage hears why storage does not say, not that a log has more.
func TestStorageRefuses(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	c.Blobs = refusing{c.Blobs, errors.New("list objects in s3://b: 403 AccessDenied: allow s3:ListBucket")}
	s := c.Server("s1")
	ctx := context.Background()
	j, err := s.Submit(ctx, c.Spec("counts", many, 2)) // it waits for slots
	if err != nil {
		t.Fatal(err)
	}
	_, all := s.CheckStorage(ctx, job.StorageRequest{})
	_, one := s.CheckStorage(ctx, job.StorageRequest{Job: string(j.ID)})
	_, _, list := s.Adoptable(ctx, "counts")
	for what, err := range map[string]error{"check": all, "check one job": one, "adopt --list": list} {
		if !errors.Is(err, job.ErrUnavailable) || !strings.Contains(err.Error(), "unavailable: object storage: list") || !strings.HasSuffix(err.Error(), "403 AccessDenied: allow s3:ListBucket") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An ailing store reads nothing once it is ill.
type ailing struct {
	blob.Store
	ill atomic.Bool
}

func (a *ailing) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if a.ill.Load() {
		return nil, errors.New("get " + key + ": 403 AccessDenied: allow s3:GetObject")
	}
	return a.Store.Get(ctx, key, offset, length)
}

// So does whoever starts from a savepoint.
func TestStartWhileStorageRefuses(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	store := &ailing{Store: c.Blobs}
	c.Blobs = store
	s := c.Server("s1")
	c.Worker("w1", 4)
	stopped(t, c, s, many, "mine")
	store.ill.Store(true)
	_, err := s.Start(t.Context(), "counts", job.StartRequest{From: "savepoint:mine"})
	if !errors.Is(err, job.ErrUnavailable) || !strings.Contains(err.Error(), "unavailable: object storage: ") || !strings.HasSuffix(err.Error(), "403 AccessDenied: allow s3:GetObject") {
		t.Errorf("%v", err)
	}
}

// A busy store is one in which something happens while all of it is listed.
type busy struct {
	blob.Store
	once sync.Once
	then func()
}

func (b *busy) List(ctx context.Context, prefix string, f func(string, int64) bool) error {
	if prefix == "" {
		b.once.Do(b.then)
	}
	return b.Store.List(ctx, prefix, f)
}

// A job that is submitted while storage is checked is not unknown: nothing of it is deleted.
func TestStorageCheckMeetsNewJob(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	b := &busy{Store: c.Blobs}
	c.Blobs = b
	s := c.Server("s1")
	c.Worker("w1", 4)
	b.then = func() { stopped(t, c, s, many, "mine") }
	for _, f := range findings(t, s, job.StorageRequest{Repair: true, Unknown: true}) {
		if strings.Contains(f, "deleted") {
			t.Error(f)
		}
	}
	if _, err := s.Start(t.Context(), "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	manyFinished(t, c, s)
}

// A job that failed as metastore_behind and is deleted adopts nothing any more: what it has
// in storage, its savepoints aside, goes once what is newer has been given up.
func TestDeletedBehind(t *testing.T) {
	t.Parallel()
	c, s, j := stoppedMany(t)
	ctx := t.Context()
	newer := checkpoint.ManifestKey(j.ID, j.LastCheckpoint+5)
	put(t, c, newer, read(t, c, checkpoint.ManifestKey(j.ID, j.Base.Checkpoint)))
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	if j = c.Await(s, "counts", weir.StatusFailed); j.Failure.Reason != checkpoint.ReasonMetastoreBack {
		t.Fatalf("failed because of %+v", j.Failure)
	}
	if err := s.Delete(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	got := findings(t, s, job.StorageRequest{Job: string(j.ID), Repair: true})
	if slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "manifest: deleted") }) {
		t.Errorf("repair: %q", got)
	}
	got = findings(t, s, job.StorageRequest{Job: string(j.ID), Repair: true, Unknown: true})
	if !slices.Contains(got, "unknown "+newer[len(j.ID)+1:]+": deleted") {
		t.Errorf("repair of what is unknown: %q", got)
	}
	c.Until("storage holds the savepoint and nothing else", func(context.Context) bool {
		found, err := checkpoint.Find(ctx, c.Blobs, j.ID)
		subject, serr := c.Store.GivenUp(ctx, j.ID, 10, 0)
		return err == nil && serr == nil && len(found.Manifests) == 1 && !subject.Job
	})
}

// A metastore that went back further than the job keeps checkpoints names a base that was
// given up since: that is why it cannot be restored, and what the job says.
func TestBaseGivenUpSince(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	spec := c.Spec("counts", many, 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"0s"}`)
	if _, err := s.Submit(ctx, spec); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "counts", weir.StatusRunning)
	r, err := s.TriggerCheckpoint(ctx, "counts", jobtest.Timeout)
	if err != nil || r.Status != checkpoint.StatusCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	m, err := checkpoint.LoadManifest(ctx, c.Blobs, r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	m.Checkpoint += 5
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, checkpoint.ManifestKey(m.Job, m.Checkpoint), data)
	remove(t, c, r.Manifest)
	c.Kill("w1")
	c.Worker("w1", 4)
	if j := c.Await(s, "counts", weir.StatusFailed); j.Failure.Reason != checkpoint.ReasonMetastoreBack {
		t.Fatalf("failed because of %+v", j.Failure)
	}
	if _, _, err := s.Adopt(ctx, "counts", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	manyFinished(t, c, s)
}

// goneBack takes the manifest of a job's base away and puts one of a forgotten history there,
// as if the metastore had been restored from a backup so old that retention has deleted
// since what it says to start from.
func goneBack(t *testing.T, c *jobtest.Cluster, j weir.Job) weir.CheckpointID {
	t.Helper()
	key := checkpoint.ManifestKey(j.ID, j.Base.Checkpoint)
	m, err := checkpoint.LoadManifest(context.Background(), c.Blobs, key)
	if err != nil {
		t.Fatal(err)
	}
	m.Checkpoint, m.Attempt = j.LastCheckpoint+1000, weir.AttemptID{Number: j.Attempt.Number + 3, Tag: "0badcafe"}
	m.Type, m.Savepoint = checkpoint.TypeCheckpoint, ""
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, checkpoint.ManifestKey(j.ID, m.Checkpoint), data)
	remove(t, c, key)
	return m.Checkpoint
}

// A backup is mostly older than the checkpoints that are kept: that its base is not in
// storage is no fault of storage, and its open commits are no reason to wait for ever.
func TestAdoptLostBase(t *testing.T) {
	t.Parallel()
	c, s, out := unheard(t)
	ctx := context.Background()
	submit(t, c, s, "copy", copyRows(out))
	completed(t, c, "copy")
	c.Kill("s1")
	j, err := c.Store.Job(ctx, "copy")
	if err != nil {
		t.Fatal(err)
	}
	newest := goneBack(t, c, j)
	s = c.Server("s2")
	j = c.Await(s, "copy", weir.StatusFailed)
	if j.Failure.Reason != checkpoint.ReasonMetastoreBack {
		t.Fatalf("failed because of %+v", j.Failure)
	}
	if _, err := s.Start(ctx, "copy", job.StartRequest{}); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "adopt") {
		t.Errorf("start from a base that is gone: %v", err)
	}
	c.Until("clean-up is held up", func(ctx context.Context) bool { return told(ctx, c, j.ID, "until a checkpoint was adopted") })
	c.Lose.Store(nil)
	if j, _, err = s.Adopt(ctx, "copy", 0); err != nil || j.Base.Checkpoint != newest {
		t.Fatalf("adopted %+v, %v", j.Base, err)
	}
	if _, err := s.Start(ctx, "copy", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "copy", weir.StatusFinished)
	copiedOnce(t, out)
	c.Until("clean-up goes on", func(ctx context.Context) bool {
		kept, err := c.Store.Retained(ctx, j.ID)
		return err == nil && len(kept) <= 4
	})
}

// told: the job's history has a line with these words.
func told(ctx context.Context, c *jobtest.Cluster, id weir.JobID, words string) bool {
	events, err := c.Store.Events(ctx, id, 0, 1000)
	return err == nil && slices.ContainsFunc(events, func(e weir.Event) bool { return strings.Contains(e.Message, words) })
}

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint/blob"
)

func TestFormatScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/format", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "make":
				id, n, subtask := weir.CheckpointID(num(t, arg(d, "cp"))), num(t, arg(d, "n")), num(t, arg(d, "subtask"))
				op := weir.OperatorID(arg(d, "operator"))
				return strings.Join([]string{
					JobPrefix(testJob), AttemptPrefix(testJob, testAttempt), ManifestKey(testJob, id),
					StateKey(testJob, testAttempt, op, subtask, id, n), FullKey(testJob, testAttempt, op, subtask, n),
				}, "\n") + "\n"
			case "parse":
				var b strings.Builder
				for key := range strings.SplitSeq(d.Input, "\n") {
					if k, ok := parseKey(key); ok {
						fmt.Fprintf(&b, "%s attempt=%v cp=%d manifest=%v full=%v\n", k.Job, k.Attempt, k.Checkpoint, k.Manifest, k.Full)
					} else {
						fmt.Fprintf(&b, "%s: no key\n", key)
					}
				}
				return b.String()
			case "encode":
				data, err := goldenManifest().Encode()
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func goldenManifest() *Manifest {
	return &Manifest{
		Version: ManifestVersion, Job: testJob, Checkpoint: 7, Attempt: testAttempt, Type: TypeSavepoint, Savepoint: "mine",
		Parallelism: 2, MaxParallelism: 8, Operators: operatorsOf(testGraph(true)), Tasks: []TaskSnapshot{
			{Task: weir.TaskID{Chain: 1}, Commits: true, Operators: []OperatorSnapshot{
				{Operator: "global_k", Keyed: []Handle{
					{Object: "job_00000000000000000000000000000001/1-aaaaaaaa/global_k-0/7-0", Size: 4096, Checksum: 18446744073709551615, KeyGroups: weir.KeyGroupRange{Start: 0, End: 4}},
					{Inline: []byte{0, 1, 254, 255}, Size: 4, Checksum: 1, KeyGroups: weir.KeyGroupRange{Start: 0, End: 2}},
				}},
				{Operator: "sink_out", List: []json.RawMessage{json.RawMessage(`{ "path": "a<b>&.csv", "rows": 3 }`)}},
			}},
			{Task: weir.TaskID{Chain: 0, Subtask: 1}, Operators: []OperatorSnapshot{{Operator: "source_in"}}},
			{Task: weir.TaskID{}, Ended: true, Operators: []OperatorSnapshot{{Operator: "source_in", List: []json.RawMessage{json.RawMessage(`{"path":"in.csv","position":9007199254740993}`)}}}},
		},
	}
}

// TestManifestOrder: the bytes follow from the acks, whatever their order was.
func TestManifestOrder(t *testing.T) {
	t.Parallel()
	m := goldenManifest()
	one, _ := m.Encode()
	m.Tasks[0], m.Tasks[2] = m.Tasks[2], m.Tasks[0]
	two, _ := m.Encode()
	if diff := cmp.Diff(string(one), string(two)); diff != "" {
		t.Error(diff)
	}
	back, err := DecodeManifest(one)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := back.Encode()
	if diff := cmp.Diff(string(one), string(again)); diff != "" {
		t.Error(diff)
	}
}

// TestManifestDamaged: no cut and no changed byte goes unnoticed (C17, C19).
func TestManifestDamaged(t *testing.T) {
	t.Parallel()
	data, err := goldenManifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		if _, err := DecodeManifest(data[:i]); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("cut at %d: %v", i, err)
		}
		bad := append([]byte(nil), data...)
		bad[i] ^= 1
		if _, err := DecodeManifest(bad); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	newer := strings.Replace(string(data), `"version":1`, `"version":2`, 1)
	if _, err := DecodeManifest([]byte(newer)); err == nil || !strings.Contains(err.Error(), "version 2, this program reads version 1") {
		t.Errorf("newer version: %v", err)
	}
}

// TestManifestObjects: what is missing is named before anything is restored (C17).
func TestManifestObjects(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	m := goldenManifest()
	key := ManifestKey(m.Job, m.Checkpoint)
	if _, err := LoadManifest(t.Context(), blobs, key); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), key) {
		t.Errorf("missing manifest: %v", err)
	}
	if err := blobs.Put(t.Context(), key, strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadManifest(t.Context(), blobs, key); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), key) {
		t.Errorf("damaged manifest: %v", err)
	}
	object := m.Objects()[0]
	if err := m.CheckObjects(t.Context(), blobs); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), object) {
		t.Errorf("missing object: %v", err)
	}
	if err := blobs.Put(t.Context(), object, strings.NewReader("short")); err != nil {
		t.Fatal(err)
	}
	if err := m.CheckObjects(t.Context(), blobs); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), object+" has 5 bytes, its manifest says 4096") {
		t.Errorf("short object: %v", err)
	}
	if err := blobs.Put(t.Context(), object, strings.NewReader(strings.Repeat("x", 4096))); err != nil {
		t.Fatal(err)
	}
	if err := m.CheckObjects(t.Context(), blobs); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[weir.OperatorID][]json.RawMessage{"sink_out": {json.RawMessage(`{ "path": "a<b>&.csv", "rows": 3 }`)}}, m.OpenSegments()); diff != "" {
		t.Error(diff)
	}
}

func TestSavepointNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "before-upgrade_2", "0", strings.Repeat("a", 63)} {
		if err := CheckSavepointName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "-a", "A", "a b", "a/b", "ä", strings.Repeat("a", 64), "a\n"} {
		if err := CheckSavepointName(name); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

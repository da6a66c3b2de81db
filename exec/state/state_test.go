package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// put adds an entry whose key needs no batch.
func put(table *Table, key string, word uint64, text string) {
	slot, _ := table.Upsert(hashOf(key), []byte(key))
	table.Words(slot)[0] = word
	if text != "" {
		table.SetBlob(slot, []byte(text))
	}
}

// small returns a store with two tables and its one inline handle.
func small(t *testing.T) (*Store, checkpoint.Handle) {
	t.Helper()
	s := New(Options{MaxParallelism: testGroups})
	groups := s.Table("groups", Layout{Words: 1})
	put(groups, "buy", 206, "")
	put(groups, "a key longer than fifteen bytes", 536, "")
	rows := s.Table("rows", Layout{Words: 1, Blob: true})
	put(rows, "x", 1, "some text")
	put(rows, "", 2, "")
	cut := s.Cut()
	defer cut.Release()
	handles, err := cut.Write(context.Background(), blob.NewMemory(), "p")
	if err != nil || len(handles) != 1 || handles[0].Object != "" {
		t.Fatalf("%+v, %v", handles, err)
	}
	return s, handles[0]
}

func TestSnapshotGolden(t *testing.T) {
	t.Parallel()
	_, h := small(t)
	text, err := os.ReadFile(filepath.Join("testdata", "snapshot.hex"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.Inline, want) {
		t.Errorf("snapshot.hex: the frozen form changed; got\n%s", hex.Dump(h.Inline))
	}
	s := New(Options{MaxParallelism: testGroups})
	golden := checkpoint.Handle{Inline: want, Size: int64(len(want)), Checksum: xxh3.Hash(want), KeyGroups: s.KeyGroups()}
	if err := s.Restore(context.Background(), nil, []checkpoint.Handle{golden}); err != nil {
		t.Fatal(err)
	}
	slot, ok := s.Table("rows", Layout{Words: 1, Blob: true}).Find(hashOf("x"), []byte("x"))
	if !ok || string(s.Table("rows", Layout{Words: 1, Blob: true}).Blob(slot)) != "some text" {
		t.Error("the golden entry is not there")
	}
}

// Every damaged byte, and every cut, of a snapshot is an error that names it; with the
// handle's checksum made to fit, the blocks' own checksums notice.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	_, h := small(t)
	try := func(what string, data []byte, fix bool) {
		t.Helper()
		bad := h
		bad.Inline = data
		if fix {
			bad.Size, bad.Checksum = int64(len(data)), xxh3.Hash(data)
		}
		s := New(Options{MaxParallelism: testGroups})
		err := s.Restore(context.Background(), nil, []checkpoint.Handle{bad})
		if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "inside the checkpoint") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range h.Inline {
		data := slices.Clone(h.Inline)
		data[i] ^= 0x41
		try(fmt.Sprintf("byte %d", i), data, false)
		try(fmt.Sprintf("byte %d, checksum fixed", i), data, true)
		try(fmt.Sprintf("cut at %d", i), h.Inline[:i], false)
		try(fmt.Sprintf("cut at %d, checksum fixed", i), h.Inline[:i], true)
	}
	bad := h
	bad.Checksum++ // another file, sound in itself
	if err := New(Options{MaxParallelism: testGroups}).Restore(context.Background(), nil, []checkpoint.Handle{bad}); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("another file: %v", err)
	}
	try("longer", append(slices.Clone(h.Inline), 0), false)
	try("longer, checksum fixed", append(slices.Clone(h.Inline), 0), true)
}

// sealed puts payloads into a file with right checksums.
func sealed(blocks ...[]byte) checkpoint.Handle {
	data := append([]byte(magic), formatVersion)
	for _, b := range blocks {
		block := append(make([]byte, blockHeader), b[1:]...)
		block[0] = b[0]
		sealBlock(block)
		data = append(data, block...)
	}
	return checkpoint.Handle{Inline: data, Size: int64(len(data)), Checksum: xxh3.Hash(data), KeyGroups: weir.KeyGroupRange{End: testGroups}}
}

// Blocks that are sealed well but make no sense are refused too, without a panic.
func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	header := func(groups, words uint32, blob byte, n uint64) []byte {
		b := binary.LittleEndian.AppendUint32([]byte{blockTable}, groups)
		b = append(binary.LittleEndian.AppendUint32(b, words), blob)
		return append(binary.LittleEndian.AppendUint64(b, n), 't')
	}
	count := func(n uint32, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte{blockEntries}, n), rest...)
	}
	one := func(group byte) []byte { // hash 0, key "" of a group
		return append(make([]byte, 8), 2, 0, 0, 0, 0, group)
	}
	for want, h := range map[string]checkpoint.Handle{
		"entries without a table":      sealed(count(0)),
		"does not hold together":       sealed(header(testGroups, 0, 0, 1), count(1, 1, 2, 3)),
		"9 entries in":                 sealed(header(testGroups, 0, 0, 9)),
		"unknown kind 7":               sealed([]byte{7}),
		"max_parallelism 99":           sealed(header(99, 0, 0, 0)),
		"a table of 4294967295 words":  sealed(header(testGroups, 1<<32-1, 0, 0)),
		"a table block of 0 bytes":     sealed([]byte{blockTable}),
		"1 entries of table":           sealed(header(testGroups, 0, 0, 1), header(testGroups, 0, 0, 1)),
		"not as many as it says":       sealed([]byte{blockEnd, 1, 0, 0, 0, 0, 0, 0, 0}),
		"not of key group 0":           sealed(header(testGroups, 0, 0, 1), count(1, one(5)...)),
		"is there twice":               sealed(header(testGroups, 0, 0, 2), count(1, one(0)...), count(1, one(0)...)),
		"has layout {Words:0 Blob:tru": sealed(header(testGroups, 0, 0, 0), header(testGroups, 1, 0, 0)),
	} {
		s := New(Options{MaxParallelism: testGroups})
		if strings.HasPrefix(want, "has layout") {
			s.Table("t", Layout{Blob: true})
			want = "and {Words:0 Blob:true} here"
		}
		err := s.Restore(context.Background(), nil, []checkpoint.Handle{h})
		if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A missing object, or one of another size, is named (C17).
func TestMissingObjectIsNamed(t *testing.T) {
	t.Parallel()
	ctx, blobs := context.Background(), blob.NewMemory()
	s := New(Options{MaxParallelism: testGroups})
	put(s.Table("t", testLayout), "big", 1, strings.Repeat("x", 2*InlineLimit))
	cut := s.Cut()
	handles, err := cut.Write(ctx, blobs, "job_1/1-aa/op-0/3-")
	cut.Release()
	if err != nil || len(handles) != 1 || handles[0].Object != "job_1/1-aa/op-0/3-0" {
		t.Fatalf("%+v, %v", handles, err)
	}
	size, err := blobs.Stat(ctx, handles[0].Object)
	if err != nil || size != handles[0].Size {
		t.Fatalf("size %d, handle %d, %v", size, handles[0].Size, err)
	}
	restore := func() error {
		return New(Options{MaxParallelism: testGroups}).Restore(ctx, blobs, handles)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if err := blobs.Put(ctx, handles[0].Object, strings.NewReader("WRST")); err != nil {
		t.Fatal(err)
	}
	if err := restore(); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "job_1/1-aa/op-0/3-0") {
		t.Errorf("damaged: %v", err)
	}
	if err := blobs.Delete(ctx, handles[0].Object); err != nil {
		t.Fatal(err)
	}
	if err := restore(); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), "job_1/1-aa/op-0/3-0") {
		t.Errorf("missing: %v", err)
	}
	foreign := weir.KeyGroupRange{Start: 0, End: weir.KeyGroupOf(hashOf("big"), testGroups)}
	handles[0].KeyGroups = foreign
	if err := New(Options{MaxParallelism: testGroups, KeyGroups: weir.KeyGroupRange{Start: foreign.End, End: testGroups}}).
		Restore(ctx, blobs, handles); err != nil {
		t.Errorf("an object of other key groups is not needed: %v", err)
	}
}

func TestEmptyStateHasNoHandles(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.Table("t", testLayout)
	cut := s.Cut()
	defer cut.Release()
	handles, err := cut.Write(context.Background(), blob.NewMemory(), "p")
	if err != nil || len(handles) != 0 {
		t.Fatalf("%+v, %v", handles, err)
	}
}

func TestFailedPut(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	blobs := blob.NewFaulty(blob.NewMemory(), blob.FailTimes(1, "Put", "p", blob.Fault{Before: full}))
	s := New(Options{})
	put(s.Table("t", testLayout), "big", 1, strings.Repeat("x", 2*InlineLimit))
	cut := s.Cut()
	defer cut.Release()
	if _, err := cut.Write(context.Background(), blobs, "p"); !errors.Is(err, full) {
		t.Fatalf("write: %v", err)
	}
	handles, err := cut.Write(context.Background(), blobs, "p") // a cut may be written again
	if err != nil || len(handles) != 1 {
		t.Fatalf("%+v, %v", handles, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := cut.Write(ctx, blobs, "q"); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

// The loop writes on while a cut is written on another goroutine (run with -race).
func TestWriteBesideTheLoop(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	table := s.Table("t", testLayout)
	for i := range 3000 {
		put(table, fmt.Sprintf("key %d", i), 1, "before")
	}
	blobs := blob.NewMemory()
	var wg sync.WaitGroup
	results := make([][]checkpoint.Handle, 3)
	for round := range results {
		cut := s.Cut()
		wg.Go(func() {
			defer cut.Release()
			var err error
			if results[round], err = cut.Write(context.Background(), blobs, fmt.Sprintf("cut%d-", round)); err != nil {
				t.Error(err)
			}
		})
		for i := range 3000 {
			put(table, fmt.Sprintf("key %d", i), uint64(round+2), fmt.Sprintf("after %d", round))
		}
		slot, _ := table.Find(hashOf("key 7"), []byte("key 7"))
		table.Delete(slot)
	}
	wg.Wait()
	for round, handles := range results {
		r := New(Options{MaxParallelism: testGroups})
		if err := r.Restore(context.Background(), blobs, handles); err != nil {
			t.Fatal(err)
		}
		back := r.Table("t", testLayout)
		back.Range(func(slot int) bool {
			if back.ReadWords(slot)[0] != uint64(round+1) {
				t.Errorf("cut %d shows %d", round, back.ReadWords(slot)[0])
				return false
			}
			return true
		})
		if want := []int{3000, 2999, 2999}[round]; back.Len() != want {
			t.Errorf("cut %d has %d entries, want %d", round, back.Len(), want)
		}
	}
}

// A large state goes into several objects, whose ranges are together the store's.
func TestSeveralObjects(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	table := s.Table("t", testLayout)
	text := strings.Repeat("x", 1<<10)
	for i := range 150 {
		put(table, fmt.Sprint(i), uint64(i), text)
	}
	cut := s.Cut()
	defer cut.Release()
	blobs := blob.NewMemory()
	handles, err := cut.write(context.Background(), blobs, "p-", 40<<10)
	if err != nil || len(handles) < 2 {
		t.Fatalf("%d handles, %v", len(handles), err)
	}
	at := 0
	for i, h := range handles {
		if h.KeyGroups.Start != at || h.Object != fmt.Sprintf("p-%d", i) {
			t.Errorf("handle %d is %s for %v", i, h.Object, h.KeyGroups)
		}
		at = h.KeyGroups.End
	}
	if at != testGroups {
		t.Errorf("the last range ends at %d", at)
	}
	back := New(Options{MaxParallelism: testGroups})
	if err := back.Restore(context.Background(), blobs, handles); err != nil || back.Len() != 150 {
		t.Fatalf("%d entries, %v", back.Len(), err)
	}
}

// Snapshots depend on the content, not on its history (S4).
func TestSameContentSameBytes(t *testing.T) {
	t.Parallel()
	encode := func(keys []string, extra bool) []byte {
		s := New(Options{MaxParallelism: testGroups})
		table := s.Table("t", testLayout)
		for _, k := range keys {
			put(table, k, uint64(len(k)), k+k)
		}
		if extra {
			put(table, "extra", 1, "gone")
			slot, _ := table.Find(hashOf("extra"), []byte("extra"))
			table.Delete(slot)
		}
		cut := s.Cut()
		defer cut.Release()
		e := newEncoder(context.Background(), cut, prepared(cut))
		data, err := io.ReadAll(e)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	keys := []string{"a", "b", "a key longer than fifteen bytes", "d", ""}
	first := encode(keys, false)
	slices.Reverse(keys)
	if !bytes.Equal(first, encode(keys, true)) {
		t.Error("the same content has different bytes")
	}
}

func prepared(c *Cut) piece {
	for i := range c.tables {
		c.tables[i].order = order(c.tables[i].chunks, c.tables[i].rec, c.keyGroups, c.maxParallelism)
	}
	return c.pieces(objectSize)[0]
}

func TestBrokenInvariantsPanic(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups, KeyGroups: weir.KeyGroupRange{Start: 15, End: 16}})
	table := s.Table("t", Layout{Words: 1})
	if s.Table("t", Layout{Words: 1}) != table {
		t.Error("declared again, another table")
	}
	for name, f := range map[string]func(){
		"another layout":    func() { s.Table("t", Layout{Words: 2}) },
		"a foreign group":   func() { table.Upsert(0, nil) },
		"no blobs":          func() { slot, _ := table.Upsert(1<<64-1, nil); table.SetBlob(slot, nil) },
		"restore not empty": func() { _ = s.Restore(context.Background(), nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			if name == "restore not empty" {
				table.Upsert(1<<64-1, nil)
			}
			f()
		}()
	}
}

// Bytes that no entry refers to any more are given back, also while a cut reads them.
func TestDeadBytesAreRewritten(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	table := s.Table("t", testLayout)
	want := map[string]string{}
	for i := range 2000 {
		key := strings.Repeat("a long key ", 2) + fmt.Sprint(i%10)
		text := strings.Repeat(string(rune('a'+i%26)), i%700)
		slot, _ := table.Upsert(hashOf(key), []byte(key))
		table.SetBlob(slot, []byte(text))
		want[key] = text
		if i == 1000 {
			defer s.Cut().Release()
		}
	}
	if n := cap(table.chunks[0].bytes); n > 64<<10 {
		t.Errorf("%d bytes kept", n)
	}
	for key, text := range want {
		slot, ok := table.Find(hashOf(key), []byte(key))
		if !ok || string(table.Key(slot)) != key || string(table.Blob(slot)) != text {
			t.Errorf("%q is lost: %v", key, ok)
		}
	}
}

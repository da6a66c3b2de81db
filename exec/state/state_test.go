package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
)

var textLayout = Layout{Words: 2, Blob: true}

// put adds an entry whose key needs no batch.
func put(table *Table, key string, word uint64, text string) {
	slot, _ := table.Upsert(hashOf(key), []byte(key))
	table.Words(slot)[0] = word
	if text != "" {
		table.SetBlob(slot, []byte(text))
	}
}

func putNumber(table *Table, x int64, word uint64) {
	slot, _ := table.Upsert(batch.HashInt(x), appendIntKey(nil, x, false))
	table.Words(slot)[0] = word
}

// inline gives the handles of pieces as they lie in a manifest.
func inline(pieces []Piece, delta bool) (handles []checkpoint.Handle) {
	for _, p := range pieces {
		handles = append(handles, p.Handle("", delta))
	}
	return handles
}

// sample returns the runs of two generations: tables of each kind, deletions, NULL.
func sample(t *testing.T) []checkpoint.Handle {
	t.Helper()
	s := New(Options{MaxParallelism: testGroups})
	groups := s.Table("groups", Layout{Words: 1})
	put(groups, "buy", 206, "")
	put(groups, "a key longer than fifteen bytes", 536, "")
	rows := s.Table("rows", Layout{Words: 1, Blob: true})
	put(rows, "x", 1, "some text")
	put(rows, "", 2, "")
	numbers := s.Table("numbers", Layout{Key: IntKey, Words: 1})
	for i := range int64(5) {
		putNumber(numbers, i*1000, uint64(i))
	}
	slot, _ := numbers.upsertNull()
	numbers.Words(slot)[0] = 9
	put(s.Table("wide", Layout{Key: WideKey, Words: 1}), "twenty bytes of a key", 3, "")
	first := s.Cut().Run()
	slot, _ = rows.Find(hashOf("x"), []byte("x"))
	rows.Delete(slot)
	slot, _ = numbers.Find(batch.HashInt(1000), appendIntKey(nil, 1000, false))
	numbers.Delete(slot)
	putNumber(numbers, 2000, 77)
	return append(inline(first, false), inline(s.Cut().Run(), true)...)
}

// Every damaged byte, and every cut, of a piece is an error that names it; with the
// handle's checksum made to fit, the blocks' own checksums notice. A merge notices too.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	handles := sample(t)
	for k, h := range handles {
		try := func(what string, data []byte, fix bool) {
			t.Helper()
			bad := slices.Clone(handles)
			bad[k].Inline = data
			if fix {
				bad[k].Size, bad[k].Checksum = int64(len(data)), xxh3.Hash(data)
			}
			_, err := New(Options{MaxParallelism: testGroups}).Restore(t.Context(), nil, bad)
			merged := Merge{MaxParallelism: testGroups, Handles: bad}.Run(t.Context(), nil, func(Piece) error { return nil })
			for _, err := range []error{err, merged} {
				if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "inside the checkpoint") {
					t.Errorf("%d: %s: %v", k, what, err)
				}
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
		try("longer", append(slices.Clone(h.Inline), 0), false)
		try("longer, checksum fixed", append(slices.Clone(h.Inline), 0), true)
		bad := slices.Clone(handles)
		bad[k].Checksum++ // another file, sound in itself
		if _, err := New(Options{MaxParallelism: testGroups}).Restore(t.Context(), nil, bad); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("another file: %v", err)
		}
	}
}

// sealed puts payloads into a piece with right checksums.
func sealed(blocks ...[]byte) checkpoint.Handle {
	data := append([]byte(magic), formatVersion)
	for _, b := range blocks {
		block := append(make([]byte, blockHeader), b[1:]...)
		block[0] = b[0]
		sealBlock(block)
		data = append(data, block...)
	}
	return handleOf(data)
}

// Blocks that are sealed well but make no sense are refused too, without a panic.
func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	header := func(groups uint32, key byte, words uint32, blob byte, name byte) []byte {
		b := binary.LittleEndian.AppendUint32([]byte{blockTable}, groups)
		b = binary.LittleEndian.AppendUint32(append(b, key), words)
		return append(b, blob, name)
	}
	numbers := func(xs ...uint64) []byte {
		c := newColumns(Layout{Key: IntKey})
		for _, x := range xs {
			c.ints = append(c.ints, x)
			c.added(0, false)
		}
		return c.append([]byte{blockEntries})
	}
	count := func(n uint32, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte{blockEntries}, n), rest...)
	}
	word := newColumns(Layout{Words: 1})
	word.addGone(1, []byte("k"))
	for want, blocks := range map[string][][]byte{
		"entries without a table":     {count(0, 0)},
		"does not hold together":      {header(testGroups, 0, 0, 0, 't'), count(1, 0, 2, 3)},
		"a block of 1048576 entries":  {header(testGroups, 0, 0, 0, 't'), count(1<<20, 0)},
		"a block of no entries":       {header(testGroups, 2, 0, 0, 't'), numbers()},
		"does not ascend":             {header(testGroups, 2, 0, 0, 't'), numbers(1, 1)},
		"unknown kind 7":              {{7}},
		"max_parallelism 99":          {header(99, 0, 0, 0, 't')},
		"a table of 4294967295 words": {header(testGroups, 0, 1<<32-1, 0, 't')},
		"a table of 0 words":          {header(testGroups, 9, 0, 0, 't')},
		"a table block of 0 bytes":    {{blockTable}},
		"comes behind table":          {header(testGroups, 0, 0, 0, 't'), header(testGroups, 0, 0, 0, 't')},
		"not as many as it says":      {{blockEnd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"and {0 0 true} here":         {header(testGroups, 0, 1, 0, 't'), word.append([]byte{blockEntries})},
	} {
		s := New(Options{MaxParallelism: testGroups})
		if strings.HasPrefix(want, "and {") {
			s.Table("t", Layout{Blob: true})
		}
		if _, err := s.Restore(t.Context(), nil, []checkpoint.Handle{sealed(blocks...)}); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A missing object, or a damaged one, is named (C17); one of other key groups is not needed.
func TestMissingObjectIsNamed(t *testing.T) {
	t.Parallel()
	ctx, blobs := t.Context(), blob.NewMemory()
	s := New(Options{MaxParallelism: testGroups})
	put(s.Table("t", textLayout), "big", 1, strings.Repeat("x", 2*InlineLimit))
	const name = "job_1/1-aa/op-0/3-0"
	h := s.Cut().Run()[0]
	if err := blobs.Put(ctx, name, bytes.NewReader(h.Data)); err != nil {
		t.Fatal(err)
	}
	handles := []checkpoint.Handle{h.Handle(name, false)}
	restore := func(groups weir.KeyGroupRange) error {
		_, err := New(Options{MaxParallelism: testGroups, KeyGroups: groups}).Restore(ctx, blobs, handles)
		return err
	}
	if err := restore(weir.KeyGroupRange{}); err != nil {
		t.Fatal(err)
	}
	if err := blobs.Put(ctx, name, strings.NewReader("WRST")); err != nil {
		t.Fatal(err)
	}
	if err := restore(weir.KeyGroupRange{}); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), name) {
		t.Errorf("damaged: %v", err)
	}
	if err := blobs.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := restore(weir.KeyGroupRange{}); !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), name) {
		t.Errorf("missing: %v", err)
	}
	if g := weir.KeyGroupOf(hashOf("big"), testGroups); h.KeyGroups != (weir.KeyGroupRange{Start: g, End: g + 1}) {
		t.Errorf("the piece holds %v", h.KeyGroups)
	} else if err := restore(weir.KeyGroupRange{Start: g + 1, End: testGroups}); err != nil {
		t.Errorf("an object of other key groups is not needed: %v", err)
	}
}

// A store in which nothing has changed makes no run.
func TestNothingChanged(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	table := s.Table("t", textLayout)
	if c := s.Cut(); len(c.tables) > 0 || len(c.Run()) != 0 {
		t.Error("a run of an empty store")
	}
	put(table, "a", 1, "text")
	if c := s.Cut(); len(c.tables) == 0 || len(c.Run()) != 1 {
		t.Error("no run of an entry")
	}
	slot, _ := table.Find(hashOf("a"), []byte("a"))
	_, _, _ = table.ReadWords(slot), table.Blob(slot), table.Key(slot)
	if c := s.Cut(); len(c.tables) > 0 {
		t.Error("reading changes something")
	}
	put(table, "b", 1, "comes and goes")
	slot, _ = table.Find(hashOf("b"), []byte("b"))
	table.Delete(slot)
	if n := len(s.Cut().Run()); n != 0 {
		t.Errorf("%d pieces of an entry that came and went", n)
	}
}

// The loop writes on while cuts are made runs on another goroutine (run with -race).
func TestRunBesideTheLoop(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	texts, numbers := s.Table("t", textLayout), s.Table("n", Layout{Key: IntKey, Words: 1})
	write := func(n uint64) {
		for i := range 3000 {
			put(texts, fmt.Sprintf("key %d", i), n, fmt.Sprintf("text %d", n))
			putNumber(numbers, int64(i), n)
		}
	}
	write(1)
	var wg sync.WaitGroup
	results := make([][]checkpoint.Handle, 4)
	for round := range results {
		cut := s.Cut()
		wg.Go(func() { results[round] = inline(cut.Run(), false) })
		write(uint64(round + 2))
		slot, _ := texts.Find(hashOf("key 7"), []byte("key 7"))
		texts.Delete(slot)
	}
	wg.Wait()
	for round, handles := range results {
		r := New(Options{MaxParallelism: testGroups})
		if _, err := r.Restore(context.Background(), nil, handles); err != nil {
			t.Fatal(err)
		}
		for name, l := range map[string]Layout{"t": textLayout, "n": {Key: IntKey, Words: 1}} {
			back := r.Table(name, l)
			back.Range(func(slot int) bool {
				if back.ReadWords(slot)[0] != uint64(round+1) || l.Blob && string(back.Blob(slot)) != fmt.Sprintf("text %d", round+1) {
					t.Errorf("cut %d shows %d", round, back.ReadWords(slot)[0])
					return false
				}
				return true
			})
		}
		if want := []int{6000, 5999, 5999, 5999}[round]; r.Len() != want {
			t.Errorf("cut %d has %d entries, want %d", round, r.Len(), want)
		}
	}
}

// A large run has several pieces, in order; blocks are of a bounded number of entries.
func TestSeveralPieces(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	for i := range int64(50_000) {
		putNumber(table, i, uint64(i))
	}
	pieces := s.Cut().run(50_000)
	if len(pieces) < 3 {
		t.Fatalf("%d pieces", len(pieces))
	}
	last := 0
	for i, p := range pieces {
		if p.KeyGroups.Start < last || p.KeyGroups.Empty() || len(p.Data) > 200_000 {
			t.Errorf("piece %d: %v, %d bytes", i, p.KeyGroups, len(p.Data))
		}
		last = p.KeyGroups.End - 1
	}
	back := New(Options{MaxParallelism: testGroups})
	if _, err := back.Restore(t.Context(), nil, inline(pieces, false)); err != nil || back.Len() != 50_000 {
		t.Fatalf("%d entries, %v", back.Len(), err)
	}
}

func TestBrokenInvariantsPanic(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups, KeyGroups: weir.KeyGroupRange{Start: 15, End: 16}})
	table := s.Table("t", Layout{Words: 1})
	if s.Table("t", Layout{Words: 1}) != table {
		t.Error("declared again, another table")
	}
	for name, f := range map[string]func(){
		"another layout":  func() { s.Table("t", Layout{Words: 2}) },
		"a foreign group": func() { table.Upsert(0, nil) },
		"no blobs":        func() { slot, _ := table.Upsert(1<<64-1, nil); table.SetBlob(slot, nil) },
		"no number":       func() { s.Table("n", Layout{Key: IntKey}).Upsert(1<<64-1, []byte("x")) },
		"restore not empty": func() {
			table.Upsert(1<<64-1, nil)
			_, _ = s.Restore(context.Background(), nil, nil)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Bytes that no entry refers to any more are given back, also while a cut reads them.
func TestDeadBytesAreRewritten(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	table := s.Table("t", textLayout)
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

// An index grows, one segment at a time, and shrinks no entry away.
func TestIndexOfMany(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	table := s.Table("t", Layout{Key: IntKey, Words: 1})
	const n = 200_000
	for i := range int64(n) {
		putNumber(table, i, uint64(i))
	}
	if len(table.index.dir) < 16 {
		t.Errorf("%d segments", len(table.index.dir))
	}
	for i := int64(0); i < n; i += 2 {
		slot, ok := table.findInt(batch.HashInt(i), i)
		if !ok {
			t.Fatalf("%d is lost", i)
		}
		table.Delete(slot)
	}
	for i := range int64(n) {
		if _, ok := table.findInt(batch.HashInt(i), i); ok != (i%2 == 1) {
			t.Fatalf("%d: %v", i, ok)
		}
	}
	if table.Len() != n/2 {
		t.Errorf("%d entries", table.Len())
	}
}

// A key that ends one block and begins the next is there twice (S7), to a restore and to a merge.
func TestTwiceAcrossBlocks(t *testing.T) {
	t.Parallel()
	for _, l := range []Layout{{Words: 1}, {Key: IntKey, Words: 1}} {
		var pieces []Piece
		w := newRunWriter(testGroups, pieceSize, func(p Piece) error {
			pieces = append(pieces, p)
			return nil
		})
		to, c := w.begin("t", l), &chunk{}
		rec := recordLayoutOf(l)
		c.reserve(rec, 0)
		r, hash := c.at(rec, 0), batch.HashInt(7)
		if r[0] = 7; !rec.ints {
			p := pack([]byte("seven"))
			r[0], r[1], r[2] = hash, p.a, p.b
		}
		for range 2 {
			to.addRecord(hash, c, rec, 0)
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		handles := inline(pieces, false)
		if _, err := New(Options{MaxParallelism: testGroups}).Restore(t.Context(), nil, handles); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%v: restored: %v", l, err)
		}
		if err := (Merge{MaxParallelism: testGroups, Handles: handles}).Run(t.Context(), nil, func(Piece) error { return nil }); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%v: merged: %v", l, err)
		}
	}
}

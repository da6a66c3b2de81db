package state

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/exec/batch"
)

// golden reads bytes that later versions must read.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func handleOf(data []byte) checkpoint.Handle {
	return checkpoint.Handle{Inline: data, Size: int64(len(data)), Checksum: xxh3.Hash(data), KeyGroups: weir.KeyGroupRange{End: testGroups}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for i, h := range sample(t) {
		name := fmt.Sprintf("v2-%d.hex", i)
		if !bytes.Equal(h.Inline, golden(t, name)) {
			t.Errorf("%s: the frozen form changed; got\n%s", name, hex.EncodeToString(h.Inline))
		}
	}
	s := New(Options{MaxParallelism: testGroups})
	handles := []checkpoint.Handle{handleOf(golden(t, "v2-0.hex")), handleOf(golden(t, "v2-1.hex"))}
	if base, err := s.Restore(t.Context(), nil, handles); err != nil || len(base) != 2 {
		t.Fatal(base, err)
	}
	numbers := s.Table("numbers", Layout{Key: IntKey, Words: 1})
	slot, ok := numbers.Find(batch.HashInt(2000), appendIntKey(nil, 2000, false))
	if _, gone := s.Table("rows", Layout{Words: 1, Blob: true}).Find(hashOf("x"), []byte("x")); gone || !ok || numbers.ReadWords(slot)[0] != 77 || s.Len() != 9 {
		t.Errorf("%d entries", s.Len())
	}
}

// What an older version wrote lay in memory, and so it does again until its tables are declared:
// one of numbers that is larger than the budget has all of its entries.
func TestVersion1BeyondBudget(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var hashes, sizes, keys, words []byte
	for k := range int64(n) {
		hash := batch.HashInt(k)
		key := appendIntKey(nil, k, false)
		hashes = binary.LittleEndian.AppendUint64(hashes, hash)
		sizes = binary.LittleEndian.AppendUint32(sizes, uint32(2+len(key)))
		keys = append(binary.BigEndian.AppendUint16(keys, uint16(weir.KeyGroupOf(hash, testGroups))), key...)
		words = binary.LittleEndian.AppendUint64(words, uint64(k))
	}
	header := binary.LittleEndian.AppendUint32([]byte{blockTable}, testGroups)
	header = append(binary.LittleEndian.AppendUint32(header, 1), 0)
	header = append(binary.LittleEndian.AppendUint64(header, n), "counts"...)
	entries := binary.LittleEndian.AppendUint32([]byte{blockEntries}, n)
	data := sealed(header, slices.Concat(entries, hashes, sizes, keys, words), binary.LittleEndian.AppendUint64([]byte{blockEnd}, n)).Inline
	data[len(magic)] = 1
	disk, err := NewDisk(scratchFolder, DiskOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{MaxParallelism: testGroups, Disk: disk, Budget: NewBudget(100 << 10)})
	if _, err := s.Restore(t.Context(), nil, []checkpoint.Handle{handleOf(data)}); err != nil {
		t.Fatal(err)
	}
	table := s.Table("counts", Layout{Key: IntKey, Words: 1})
	for round := range 2 {
		for k := range int64(n) {
			if slot, ok := table.Find(batch.HashInt(k), appendIntKey(nil, k, false)); !ok || table.ReadWords(slot)[0] != uint64(k) {
				t.Fatalf("round %d: %d is lost of %d", round, k, s.Len())
			}
		}
		for errors.Is(s.Relax(), ErrDirty) {
			if _, err := s.Cut().Write(s.shelf); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, cold := s.Figures(); cold == 0 {
		t.Error("nothing is on disk")
	}
	if err := errors.Join(s.Close(), disk.Close()); err != nil {
		t.Fatal(err)
	}
}

// What an older version wrote is read, and written anew with the next cut; a table takes
// another layout if its keys fit.
func TestVersion1(t *testing.T) {
	t.Parallel()
	s := New(Options{MaxParallelism: testGroups})
	base, err := s.Restore(t.Context(), nil, []checkpoint.Handle{handleOf(golden(t, "v1.hex"))})
	if err != nil || len(base) != 0 {
		t.Fatal(base, err)
	}
	rows := s.Table("rows", Layout{Words: 1, Blob: true})
	if slot, ok := rows.Find(hashOf("x"), []byte("x")); !ok || string(rows.Blob(slot)) != "some text" {
		t.Error("the golden entry is not there")
	}
	if groups := s.Table("groups", Layout{Key: WideKey, Words: 1}); groups.Len() != 2 {
		t.Errorf("%d groups", groups.Len())
	} else if slot, ok := groups.Find(hashOf("buy"), []byte("buy")); !ok || groups.ReadWords(slot)[0] != 206 {
		t.Error("a group is lost")
	}
	again := New(Options{MaxParallelism: testGroups})
	if _, err := again.Restore(t.Context(), nil, inline(s.Cut().Run(), false)); err != nil || again.Len() != s.Len() || s.Len() != 4 {
		t.Errorf("%d of %d entries, %v", again.Len(), s.Len(), err)
	}
	m := Merge{MaxParallelism: testGroups, Handles: []checkpoint.Handle{handleOf(golden(t, "v1.hex"))}}
	if err := m.Run(t.Context(), nil, func(Piece) error { return nil }); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("merged: %v", err)
	}
}

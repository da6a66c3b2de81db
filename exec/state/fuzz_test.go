package state

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
)

// mostAllocated is what reading some small pieces may allocate, all in all.
const mostAllocated = 128 << 20

// asPiece makes a piece of a fuzzer's bytes: as they are, or, the first being odd, of blocks that
// are sealed well: kind (1 byte), length (2), payload.
func asPiece(data []byte) checkpoint.Handle {
	if len(data) == 0 || data[0]&1 == 0 {
		return handleOf(slices.Clone(data[min(len(data), 1):]))
	}
	version := data[0] >> 1
	var blocks [][]byte
	for data = data[1:]; len(data) >= 3; {
		kind, n := data[0], int(binary.LittleEndian.Uint16(data[1:]))
		data = data[3:]
		n = min(n, len(data))
		blocks = append(blocks, append([]byte{kind}, data[:n]...))
		data = data[n:]
	}
	h := sealed(blocks...)
	if version == 1 {
		h.Inline[len(magic)] = 1
		h = handleOf(h.Inline)
	}
	return h
}

// fromPiece is what asPiece makes a piece of.
func fromPiece(data []byte, seal bool) []byte {
	if !seal {
		return append([]byte{0}, data...)
	}
	out := []byte{1 | data[len(magic)]<<1}
	for at := len(magic) + 1; at < len(data); {
		n := int(binary.LittleEndian.Uint32(data[at+1:]))
		out = binary.LittleEndian.AppendUint16(append(out, data[at]), uint16(n))
		out = append(out, data[at+blockHeader:at+blockHeader+n]...)
		at += blockHeader + n
	}
	return out
}

// Whatever a piece and one laid over it hold: they are restored, or refused as invalid; and
// where they are, merging them gives the same, also through the store's own next run. Nothing
// panics, and little is allocated.
func FuzzRestore(f *testing.F) {
	var pieces [][]byte
	for _, name := range []string{"v1.hex", "v2-0.hex", "v2-1.hex"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil {
			f.Fatal(err)
		}
		pieces = append(pieces, data)
	}
	for _, a := range pieces {
		for _, b := range pieces {
			f.Add(fromPiece(a, false), fromPiece(b, true))
			f.Add(fromPiece(a, true), fromPiece(b, true))
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		handles := []checkpoint.Handle{asPiece(a), asPiece(b)}
		handles[1].Delta = true
		was := [][]byte{slices.Clone(handles[0].Inline), slices.Clone(handles[1].Inline)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := New(Options{MaxParallelism: testGroups})
		base, err := s.Restore(t.Context(), nil, handles)
		merged, failed := mergedOf(t, handles)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > mostAllocated {
			t.Fatalf("%d bytes allocated for %d", n, len(a)+len(b))
		}
		if !bytes.Equal(was[0], handles[0].Inline) || !bytes.Equal(was[1], handles[1].Inline) {
			t.Fatal("the pieces themselves are changed")
		}
		for _, err := range []error{err, failed} {
			if err != nil && !errors.Is(err, weir.ErrInvalid) {
				t.Fatal(err)
			}
		}
		if err != nil {
			return
		}
		for _, table := range s.tables {
			table.Range(func(slot int) bool {
				table.Words(slot) // as if it were changed
				return true
			})
		}
		sameStore(t, "its own run", s, inline(s.Cut().Run(), false))
		switch {
		case len(base) == 0: // of version 1, which is not merged
		case failed != nil:
			t.Fatalf("restored, and not merged: %v", failed)
		default:
			sameStore(t, "merged", s, merged)
		}
	})
}

func mergedOf(t *testing.T, handles []checkpoint.Handle) (merged []checkpoint.Handle, err error) {
	err = Merge{MaxParallelism: testGroups, Handles: handles, Whole: true}.Run(t.Context(), nil, func(p Piece) error {
		merged = append(merged, p.Handle("", false))
		return nil
	})
	return merged, err
}

// sameStore compares what handles restore with a store.
func sameStore(t *testing.T, what string, s *Store, handles []checkpoint.Handle) {
	t.Helper()
	again := New(Options{MaxParallelism: testGroups})
	if _, err := again.Restore(t.Context(), nil, handles); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if again.Len() != s.Len() {
		t.Fatalf("%s: %d entries, want %d", what, again.Len(), s.Len())
	}
	for _, table := range s.tables {
		if table.Len() == 0 {
			continue
		}
		other := again.find(table.name)
		for e := range table.Entries() {
			slot, ok := other.Find(e.Hash, e.Key)
			if !ok {
				t.Fatalf("%s: %q is lost", what, e.Key)
			}
			if o := other.Entry(slot); o.Hash != e.Hash || !slices.Equal(o.Words, e.Words) || string(o.Blob) != string(e.Blob) {
				t.Fatalf("%s: %v, want %v", what, o, e)
			}
		}
	}
}

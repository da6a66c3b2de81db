package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
)

// A counted store counts what is read of it.
type counted struct {
	blob.Store
	mu    sync.Mutex
	gets  []string
	bytes int64
}

// Get implements blob.Store.
func (c *counted) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := c.Store.Get(ctx, key, offset, length)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets = append(c.gets, key)
	return &countedBody{c, r}, err
}

type countedBody struct {
	c *counted
	io.ReadCloser
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.bytes += int64(n)
	return n, err
}

// objects stores pieces and returns their handles.
func objects(t testing.TB, blobs blob.Store, prefix string, pieces []Piece, delta bool) (handles []checkpoint.Handle) {
	t.Helper()
	for i, p := range pieces {
		name := fmt.Sprintf("job_1/1-a/op-0/%s-%d", prefix, i)
		if err := blobs.Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {
			t.Fatal(err)
		}
		handles = append(handles, p.Handle(name, delta))
	}
	return handles
}

// large is a store of two large tables, one of n numbers, a small one between them, and a delta over it.
func large(t testing.TB, blobs blob.Store, n, pieceSize int) (*Store, []checkpoint.Handle) {
	s := New(Options{MaxParallelism: testGroups})
	numbers, texts := s.Table("a numbers", Layout{Key: IntKey, Words: 1}), s.Table("c texts", textLayout)
	put(s.Table("b few", Layout{Words: 1}), "a key", 7, "")
	for i := range n {
		putNumber(numbers, int64(i), uint64(i))
	}
	for i := range n / 4 {
		put(texts, fmt.Sprint("key ", i), uint64(i), fmt.Sprint("text ", i))
	}
	_, _ = numbers.upsertNull()
	handles := objects(t, blobs, "1", s.Cut().run(pieceSize), false)
	for i := range n / 3 {
		putNumber(numbers, int64(i*3), uint64(i))
	}
	for i := range 40 {
		slot, _ := texts.Find(hashOf(fmt.Sprint("key ", i)), fmt.Appendf(nil, "key %d", i))
		texts.Delete(slot)
	}
	return s, append(handles, objects(t, blobs, "2", s.Cut().run(pieceSize), true)...)
}

// contents are the entries of each table of a store, and how many each key group has.
func contents(s *Store) (all map[string]map[string]string, counts [testGroups]int) {
	all = map[string]map[string]string{}
	var value []byte
	for _, table := range s.tables {
		m := make(map[string]string, table.Len())
		for e := range table.Entries() {
			value = appendContent(value[:0], e)
			m[string(e.Key)] = string(value)
			counts[weir.KeyGroupOf(e.Hash, testGroups)]++
		}
		all[table.name] = m
	}
	return all, counts
}

func appendContent(dst []byte, e Entry) []byte {
	for _, w := range e.Words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return append(dst, e.Blob...)
}

// wrong says what a store holds that differs from the contents of another within key groups.
func wrong(s *Store, all map[string]map[string]string, counts [testGroups]int, groups weir.KeyGroupRange) string {
	want := 0
	for _, n := range counts[groups.Start:groups.End] {
		want += n
	}
	if s.Len() != want {
		return fmt.Sprintf("%d entries of %d", s.Len(), want)
	}
	n := 0
	var value []byte
	for _, table := range s.tables {
		m := all[table.name]
		for e := range table.Entries() {
			value = appendContent(value[:0], e)
			if want, ok := m[string(e.Key)]; !ok || want != string(value) || !groups.Contains(weir.KeyGroupOf(e.Hash, testGroups)) {
				return fmt.Sprintf("%s: %q has %v %q", table.name, e.Key, e.Words, e.Blob)
			}
			n++
		}
	}
	if n != want {
		return fmt.Sprintf("ranged over %d entries of %d", n, want)
	}
	return ""
}

// A restore of some key groups gives what is in them, of objects of any size, and reads
// about as much as that is; no object without any of them.
func TestRestoreTrimmed(t *testing.T) {
	t.Parallel()
	for n, size := range map[int]int{40_000: 50 << 10, 120_000: pieceSize} {
		blobs := &counted{Store: blob.NewMemory()}
		s, handles := large(t, blobs, n, size)
		all, counts := contents(s)
		var total int64
		for _, h := range handles {
			total += h.Size
		}
		for _, groups := range []weir.KeyGroupRange{{Start: 0, End: 16}, {Start: 0, End: 1}, {Start: 15, End: 16}, {Start: 5, End: 6}, {Start: 3, End: 11}} {
			blobs.gets, blobs.bytes = nil, 0
			back := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
			base, err := back.Restore(t.Context(), blobs, handles)
			if err != nil {
				t.Fatal(err)
			}
			if what := wrong(back, all, counts, groups); what != "" {
				t.Fatalf("%v: %s", groups, what)
			}
			for _, h := range handles {
				i := slices.IndexFunc(base, func(b checkpoint.Handle) bool { return b.Object == h.Object })
				if needed := !h.KeyGroups.Intersect(groups).Empty(); needed != slices.Contains(blobs.gets, h.Object) || needed != (i >= 0) {
					t.Fatalf("%s, key groups %v: needed %v; read %v", h.Object, h.KeyGroups, needed, blobs.gets)
				} else if needed && base[i].Trimmed != (base[i].KeyGroups != h.KeyGroups) {
					t.Fatalf("base %+v of %+v", base[i], h)
				}
			}
			// a block, or what lies between two parts, more on either side of each table
			if most := total*int64(groups.End-groups.Start)/testGroups + int64(len(base))*(500<<10); size == pieceSize && blobs.bytes > most {
				t.Fatalf("%d of %d bytes read for %v, at most %d", blobs.bytes, total, groups, most)
			}
			again := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
			if _, err := again.Restore(t.Context(), blobs, base); err != nil || again.Len() != back.Len() {
				t.Fatalf("restored from the handles that it gave: %d entries, %v", again.Len(), err)
			}
		}
	}
}

// What is wrong with a part of an object is an error that names it; a directory that
// is no good is none.
func TestTrimmedDamaged(t *testing.T) {
	t.Parallel()
	blobs, groups := blob.NewMemory(), weir.KeyGroupRange{Start: 5, End: 7}
	s, handles := large(t, blobs, 120_000, pieceSize)
	all, counts := contents(s)
	h := handles[0]
	object := func() []byte {
		data, err := blob.Whole{Store: blobs}.Get(t.Context(), h.Object, h.Size)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := object()
	n := int64(len(good)) - int64(uint32(good[len(good)-4])|uint32(good[len(good)-3])<<8)
	d, ok := readDirectory(good[n:], h.Size)
	if !ok || len(d.tables) != 3 || d.end != n {
		t.Fatalf("directory at %d: %+v", n, d)
	}
	spans := d.spans(groups, testGroups)
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	restore := func(data []byte) error {
		if err := blobs.Put(t.Context(), h.Object, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		back := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
		_, err := back.Restore(t.Context(), blobs, handles)
		if err == nil {
			if what := wrong(back, all, counts, groups); what != "" {
				t.Error(what)
			}
		}
		return err
	}
	flipped := func(at int64) []byte {
		data := slices.Clone(good)
		data[at] ^= 1
		return data
	}
	for what, data := range map[string][]byte{
		"a block": flipped(spans[0].from + 1000), "its length": flipped(spans[1].from + 1), "its kind": flipped(spans[1].from),
		"the directory": flipped(n + 60), "its length at the end": flipped(h.Size - 3), "too short": good[:len(good)/2], "empty": nil,
	} {
		if err := restore(data); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), h.Object) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := restore(flipped((spans[0].from + 60) / 2)); err != nil {
		t.Errorf("a block that nobody needs: %v", err)
	}
	if err := restore(good); err != nil {
		t.Error(err)
	}
}

// Several objects are asked for at once, within bounds; an error of any, which is named, or
// the end of the context, ends all.
func TestFetchAtOnce(t *testing.T) {
	t.Parallel()
	memory := blob.NewMemory()
	_, handles := large(t, memory, 80_000, 50<<10)
	if len(handles) <= fetchAtOnce {
		t.Fatalf("%d pieces", len(handles))
	}
	var mu sync.Mutex
	asked, allC := 0, make(chan struct{})
	slow := blob.NewFaulty(memory, func(blob.Call) blob.Fault {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == fetchAtOnce {
			close(allC)
		}
		return blob.Fault{Wait: allC}
	})
	if _, err := New(Options{MaxParallelism: testGroups}).Restore(t.Context(), slow, handles); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("storage is away")
	for i, h := range handles {
		hangs := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bad := blob.NewFaulty(memory, func(c blob.Call) blob.Fault {
			switch {
			case c.Key == h.Object && i%2 == 0:
				return blob.Fault{Before: broken}
			case c.Key == h.Object:
				cancel()
			case slices.IndexFunc(handles, func(h checkpoint.Handle) bool { return h.Object == c.Key }) < i:
				return blob.Fault{}
			}
			return blob.Fault{Wait: hangs}
		})
		_, err := New(Options{MaxParallelism: testGroups}).Restore(ctx, bad, handles)
		if i%2 == 0 && (!errors.Is(err, broken) || !strings.Contains(err.Error(), h.Object)) || i%2 == 1 && !errors.Is(err, context.Canceled) {
			t.Errorf("piece %d: %v", i, err)
		}
	}
}

// An index that is made for a number of slots takes them without growing.
func TestIndexReserve(t *testing.T) {
	t.Parallel()
	for _, n := range []int{15, 16, 100, mostSegment / 4 * 3, mostSegment, 100_000, 1_000_000} {
		var x index
		x.reserve(n)
		size := x.size
		hashes := make([]uint64, n)
		for i := range hashes {
			hashes[i] = batch.HashInt(int64(i))
		}
		x.addAll(hashes, 0)
		if x.n != n || n >= leastSegment && (x.size != size || size > 40*n+1000) {
			t.Errorf("%d slots: %d there, %d bytes, at first %d", n, x.n, x.size, size)
		}
	}
}

package exec_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/exectest"
)

// objects are those that a snapshot's keyed state names.
func objects(s *exectest.Snapshot) (keys []string) {
	for _, task := range s.Tasks {
		for _, o := range task.Operators {
			for _, h := range o.Keyed {
				if h.Object != "" {
					keys = append(keys, h.Object)
				}
			}
		}
	}
	return keys
}

// A savepoint is made of the base that its trigger names, and of nothing older: that has gone
// where a checkpoint built on it, and was given up (I9).
func TestSavepointOverBase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, c, second := stepped(t, blob.NewMemory())
		take := func(tr checkpoint.Trigger) *exectest.Snapshot {
			t.Helper()
			second()
			id, err := j.BeginAs(tr)
			if err != nil {
				t.Fatal(err)
			}
			s, err := j.Await(id)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		for range 4 { // too much for what follows to be merged with it
			second()
		}
		under := checkpoint.Trigger{Base: take(checkpoint.Trigger{}).ID}
		old, base := take(under), take(under)
		take(checkpoint.Trigger{Base: old.ID}) // and is given up
		kept, gone := objects(base), 0
		for _, key := range objects(old) {
			if !slices.Contains(kept, key) {
				if err := c.Blobs.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				gone++
			}
		}
		if gone == 0 {
			t.Fatal("the base names all that the older one does")
		}
		whole(t, c, take(checkpoint.Trigger{Base: base.ID, Whole: true}))
		j.Kill()
	})
}

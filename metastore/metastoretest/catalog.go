package metastoretest

import (
	"encoding/json"
	"testing"
	"time"

	"weir"
)

var catalogTests = map[string]func(*testing.T, suite){
	"tables are found in any case, and changed together": tables,
	"events are numbered per job":                        events,
	"a lease has one holder":                             leases,
}

func tables(t *testing.T, s suite) {
	seen := func() []weir.Table {
		t.Helper()
		all, err := s.Tables(t.Context())
		ok(t, err)
		return all
	}
	names := func() (list []string) {
		for _, table := range seen() {
			list = append(list, table.Name)
		}
		return list
	}
	want := weir.Table{Name: "Orders", SQL: "CREATE TABLE Orders (a INT)", Columns: json.RawMessage(`[{"name":"a","type":"INT"}]`), Connector: "datagen", CreatedAt: day}
	ok(t, s.ChangeTables(t.Context(), nil, nil, []weir.Table{want}))
	fails(t, s.ChangeTables(t.Context(), seen(), nil, []weir.Table{{Name: "ORDERS"}}), weir.ErrConflict)
	got, err := s.TableByName(t.Context(), "orders")
	ok(t, err)
	equal(t, got, want)
	before := seen()
	ok(t, s.ChangeTables(t.Context(), before, []string{"none"}, []weir.Table{{Name: "a_b", SQL: "x", CreatedAt: day}, {Name: "aB", SQL: "x", CreatedAt: day}}))
	equal(t, names(), []string{"a_b", "aB", "Orders"})

	// Made for another catalog: nothing happens.
	fails(t, s.ChangeTables(t.Context(), before, []string{"orders"}, nil), weir.ErrConflict)
	// One part fails: nothing happens.
	fails(t, s.ChangeTables(t.Context(), seen(), []string{"orders"}, []weir.Table{{Name: "new", SQL: "x"}, {Name: "A_B"}}), weir.ErrConflict)
	equal(t, names(), []string{"a_b", "aB", "Orders"})

	// A table in the place of another one of its name.
	ok(t, s.ChangeTables(t.Context(), seen(), []string{"ORDERS", "ab"}, []weir.Table{{Name: "orders", SQL: "y", CreatedAt: day}}))
	equal(t, names(), []string{"a_b", "orders"})
	ok(t, s.ChangeTables(t.Context(), seen(), []string{"Orders"}, nil))
	_, err = s.TableByName(t.Context(), "orders")
	fails(t, err, weir.ErrNotFound)
}

func events(t *testing.T, s suite) {
	a, b := s.create(t, "a"), s.create(t, "b")
	for _, message := range []string{"one", "two", "three"} {
		ok(t, s.AddEvent(t.Context(), weir.Event{Job: a.ID, At: day, Kind: "commit", Attempt: 1, Message: message, Data: json.RawMessage(`{"n":1}`)}))
	}
	ok(t, s.AddEvent(t.Context(), weir.Event{Job: b.ID, Kind: "commit", Message: "other"}))
	got, err := s.Events(t.Context(), a.ID, 2, 1)
	ok(t, err)
	equal(t, got, []weir.Event{{Job: a.ID, Seq: 3, At: day, Kind: "commit", Attempt: 1, Message: "two", Data: json.RawMessage(`{"n":1}`)}})
	for before, want := range map[int64][]int64{0: {4, 3}, 3: {2, 1}, 1: nil} {
		newest, err := s.NewestEvents(t.Context(), a.ID, before, 2)
		ok(t, err)
		var seqs []int64
		for _, e := range newest {
			seqs = append(seqs, e.Seq)
		}
		equal(t, seqs, want)
	}
	got, err = s.Events(t.Context(), b.ID, 0, 0)
	ok(t, err)
	if len(got) != 2 || got[1].Seq != 2 || got[1].At.IsZero() || got[1].Data != nil {
		t.Fatalf("events: %+v", got)
	}
	fails(t, s.AddEvent(t.Context(), weir.Event{Job: weir.NewJobID(), Kind: "commit"}), weir.ErrNotFound)
}

func leases(t *testing.T, s suite) {
	first, err := s.AcquireLease(t.Context(), 0, "x", time.Hour)
	ok(t, err)
	if first.Holder != "x" || first.Term != 1 || first.Shard != 0 || first.Expires.IsZero() {
		t.Fatalf("lease: %+v", first)
	}
	other, err := s.AcquireLease(t.Context(), 0, "y", time.Hour)
	ok(t, err)
	equal(t, other, first)
	renewed, err := s.AcquireLease(t.Context(), 0, "x", 2*time.Hour)
	ok(t, err)
	if renewed.Term != 1 || !renewed.Expires.After(first.Expires) {
		t.Fatalf("renewed: %+v", renewed)
	}
	ok(t, s.ReleaseLease(t.Context(), 0, "y")) // not the holder: nothing happens
	other, err = s.AcquireLease(t.Context(), 0, "y", time.Hour)
	ok(t, err)
	equal(t, other.Holder, "x")

	ok(t, s.ReleaseLease(t.Context(), 0, "x"))
	taken, err := s.AcquireLease(t.Context(), 0, "y", time.Hour)
	ok(t, err)
	if taken.Holder != "y" || taken.Term != 2 {
		t.Fatalf("taken over: %+v", taken)
	}
	expired, err := s.AcquireLease(t.Context(), 1, "x", -time.Second)
	ok(t, err)
	equal(t, expired.Term, 1)
	taken, err = s.AcquireLease(t.Context(), 1, "y", time.Hour)
	ok(t, err)
	equal(t, taken.Term, 2) // another shard, expired by itself

	// R10: the database's clock was set back after x renewed. y takes over all the same once
	// its own ttl has passed.
	_, err = s.AcquireLease(t.Context(), 2, "x", time.Hour)
	ok(t, err)
	const ttl = 50 * time.Millisecond
	for began := time.Now(); ; {
		l, err := s.AcquireLease(t.Context(), 2, "y", ttl)
		ok(t, err)
		if l.Holder == "y" {
			equal(t, l.Term, 2)
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("lease of a dead holder: %+v", l)
		}
	}
}

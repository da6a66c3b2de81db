package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"weir"
	"weir/exec/deploy"
)

const many = `CREATE TABLE r (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '50000', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '50000');
SELECT k, COUNT(*) AS n FROM r GROUP BY k`

// pages reads a result to its end and returns its rows in order, and how many pages
// they were.
func (h *harness) pages(ask deploy.Results) (rows []string, pages int) {
	h.t.Helper()
	for ; ; pages++ {
		var page deploy.Page
		if err := deploy.Decode(h.must(deploy.KindResults, ask), &page); err != nil {
			h.t.Fatal(err)
		}
		if page.Total != 50_000 || len(page.Rows) > ask.Query.Limit {
			h.t.Errorf("page %d has %d rows of %d", pages, len(page.Rows), page.Total)
		}
		for _, r := range page.Rows {
			rows = append(rows, string(r))
		}
		if ask.Query.After = page.Next; page.Next == nil {
			return rows, pages + 1
		}
	}
}

// Every row of a large table is on one page, read from the tasks or from a snapshot,
// and the two have the same order. A snapshot is loaded once for all its pages.
func TestPaging(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, many)
	h.must(deploy.KindDeploy, m)
	handles := h.checkpoint(m)
	last := len(m.Graph.Chains) - 1
	parts := slices.DeleteFunc(slices.Clone(m.Placement), func(p deploy.Placed) bool { return p.Task.Chain != last })
	live := deploy.Results{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt, Parts: parts, Query: deploy.Query{Limit: 10_000}}
	stored := deploy.Results{
		Header: deploy.Head(), Job: jobID, Query: deploy.Query{Limit: 7_001},
		Snapshot: snapshotOf(m, handles),
	}
	rows, pages := h.pages(live)
	if pages < 5 || pages > 8 {
		t.Errorf("%d pages of the live result", pages)
	}
	probe := stored
	probe.Query.Limit = 1
	h.must(deploy.KindResults, probe)
	for _, x := range handles {
		if err := h.blobs.Delete(context.Background(), x.Object); err != nil {
			t.Fatal(err)
		}
	}
	fromSnapshot, pages := h.pages(stored)
	if pages != 8 || !slices.Equal(rows, fromSnapshot) {
		t.Errorf("%d pages of the snapshot; like the live ones: %v", pages, slices.Equal(rows, fromSnapshot))
	}
	slices.Sort(rows)
	if rows = slices.Compact(rows); len(rows) != 50_000 || !slices.Contains(rows, `{"k":50000,"n":1}`) {
		t.Errorf("%d rows", len(rows))
	}
	for _, ask := range []deploy.Results{live, stored} {
		ask.Query.After = []byte{1}
		if _, err := h.ask(deploy.KindResults, ask); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("a place that was never given out: %v", err)
		}
	}
}

// What fits a page is shown in the order of its keys.
func TestWholeResultByKey(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, five)
	h.must(deploy.KindDeploy, m)
	h.checkpoint(m)
	last := len(m.Graph.Chains) - 1
	parts := slices.DeleteFunc(slices.Clone(m.Placement), func(p deploy.Placed) bool { return p.Task.Chain != last })
	var page deploy.Page
	ask := deploy.Results{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt, Parts: parts, Query: deploy.Query{Limit: 5}}
	if err := deploy.Decode(h.must(deploy.KindResults, ask), &page); err != nil {
		t.Fatal(err)
	}
	want := `[{"k":1,"n":1} {"k":2,"n":1} {"k":3,"n":1} {"k":4,"n":1} {"k":5,"n":1}]`
	if got := fmt.Sprintf("%s", page.Rows); got != want || page.Next != nil {
		t.Errorf("%s, next %x", got, page.Next)
	}
}

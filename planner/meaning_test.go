package planner

import (
	"maps"
	"testing"
)

// TestMeanings: C15: state of a query is that of another one only where what it was computed
// from is the same.
func TestMeanings(t *testing.T) {
	t.Parallel()
	meanings := func(query, options string) map[string]string {
		p, err := Plan("CREATE TABLE g (k INT, v INT, w INT, f BOOLEAN) WITH ('connector' = 'datagen', 'number-of-rows' = '9'"+options+"); "+query, nil, Options{})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		m := map[string]string{}
		for id, text := range p.Graph.Meanings() {
			m[string(id)] = text
		}
		return m
	}
	for _, c := range []struct {
		one, two string
		same     bool
	}{
		{"SELECT k, MIN(v) AS m FROM g GROUP BY k", "SELECT k AS key, MIN(v) AS least FROM g AS h GROUP BY 1", true},
		{"SELECT k, MIN(v) AS m FROM g GROUP BY k", "SELECT k, m FROM (SELECT k, MIN(v) AS m FROM g GROUP BY k) AS x", true},
		{"SELECT k, MIN(v) AS m FROM g GROUP BY k", "SELECT k, MAX(v) AS m FROM g GROUP BY k", false},
		{"SELECT k, MIN(v) AS m FROM g GROUP BY k", "SELECT k, MIN(w) AS m FROM g GROUP BY k", false},
		{"SELECT k, SUM(v) AS m FROM g GROUP BY k", "SELECT k, COUNT(v) AS m FROM g GROUP BY k", false},
		{"SELECT k, COUNT(*) AS m FROM g GROUP BY k", "SELECT k, COUNT(*) + 1 AS m FROM g GROUP BY k", false},
		{"SELECT k, COUNT(*) AS m FROM g GROUP BY k", "SELECT k, COUNT(*) AS m FROM g WHERE v > 1 GROUP BY k", false},
		{"SELECT k, COUNT(*) AS m FROM g WHERE v > 2 GROUP BY k", "SELECT k, COUNT(*) AS m FROM g WHERE v > 1 GROUP BY k", false},
		{"SELECT k, COUNT(*) AS m FROM g GROUP BY k HAVING COUNT(*) > 1", "SELECT k, COUNT(*) AS m FROM g GROUP BY k HAVING COUNT(*) > 2", false},
		{"SELECT k, COUNT(*) FILTER (WHERE v > 1) AS m FROM g GROUP BY k", "SELECT k, COUNT(*) FILTER (WHERE v > 2) AS m FROM g GROUP BY k", false},
		{"SELECT k, COUNT(DISTINCT v) AS m FROM g GROUP BY k", "SELECT k, SUM(DISTINCT v) AS m FROM g GROUP BY k", false},
		{"SELECT c, MIN(v) AS m FROM (SELECT v, COUNT(*) AS c FROM g GROUP BY v) AS x GROUP BY c", "SELECT c, MAX(v) AS m FROM (SELECT v, COUNT(*) AS c FROM g GROUP BY v) AS x GROUP BY c", false},
		{"SELECT c, COUNT(*) AS m FROM (SELECT v, SUM(w) AS c FROM g GROUP BY v) AS x GROUP BY c", "SELECT c, COUNT(*) AS m FROM (SELECT v, SUM(k) AS c FROM g GROUP BY v) AS x GROUP BY c", false},
		{"SELECT k, v FROM g UNION ALL SELECT k, w FROM g", "SELECT k, v FROM g UNION ALL SELECT k, w + 1 FROM g", false},
		{"SELECT k, COUNT(*) AS n FROM g GROUP BY ROLLUP(k)", "SELECT k, COUNT(*) AS n FROM g GROUP BY k", false},
	} {
		one, two := meanings(c.one, ""), meanings(c.two, ", 'rows-per-second' = '5'")
		if len(one) == 0 {
			t.Errorf("%s: no operator has a meaning", c.one)
		}
		if maps.Equal(one, two) != c.same {
			t.Errorf("same: %t, want %t\n%s\n%s\n%v\n%v", !c.same, c.same, c.one, c.two, one, two)
		}
	}
}

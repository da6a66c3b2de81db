package difftest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/metastore/postgrestest"
	"weir/planner"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

// perTable is how many queries are asked of the same rows.
const perTable = 10

// number reads a figure from the environment.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, text)
	}
	return n
}

// TestDifferential asks both systems random queries. It stops after ten differences.
func TestDifferential(t *testing.T) {
	t.Parallel()
	seed := uint64(number(t, "WEIR_DIFFTEST_SEED", 1))
	first, n := 0, number(t, "WEIR_DIFFTEST", 300)
	if one := number(t, "WEIR_DIFFTEST_CASE", -1); one >= 0 {
		first, n = one, one+1
	}
	const workers = 2
	var faults, rows, failed, refused atomic.Int64
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				conn := connect(t)
				for batch := first / perTable; batch*perTable < n && faults.Load() < int64(number(t, "WEIR_DIFFTEST_FAULTS", 10)); batch++ {
					if batch%workers != w && n > first+1 {
						continue
					}
					t.Run(fmt.Sprintf("rows %d", batch), func(t *testing.T) {
						c := newCase(t, conn, seed, batch)
						for i := max(first, batch*perTable); i < min(n, (batch+1)*perTable); i++ {
							a, ok := c.ask(t, i)
							if !ok {
								faults.Add(1)
							}
							rows.Add(int64(len(a.rows)))
							switch a.class {
							case "failed":
								failed.Add(1)
							case "refused":
								refused.Add(1)
							}
						}
					})
				}
			})
		}
	})
	t.Logf("seed %d: %d queries, %d rows compared, %d failed by a value and %d refused in both", seed, n-first, rows.Load(), failed.Load(), refused.Load())
	if n-first >= 300 && rows.Load() < int64(n-first) {
		t.Errorf("only %d rows in %d queries: the cases have become empty", rows.Load(), n-first)
	}
}

func connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgrestest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "SET extra_float_digits = 1; SET intervalstyle = 'postgres'; SET datestyle = 'ISO'; SET bytea_output = 'hex'; SET max_parallel_workers_per_gather = 0", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// A testCase is one table and its rows, laid out for both.
type testCase struct {
	conn *pgx.Conn
	run  weirRun
	seed uint64
}

func newCase(t *testing.T, conn *pgx.Conn, seed uint64, batch int) *testCase {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(batch)))
	zone := pick(r, []string{"", "", "", "America/New_York", "Europe/Berlin", "Asia/Kolkata"})
	tab := newTable(r, "t", zone != "")
	c := &testCase{conn: conn, seed: seed, run: weirRun{tb: t, dir: t.TempDir(), tables: []*table{tab}, zone: zone}}
	if err := c.run.write(tab); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SET timezone = '"+cmp.Or(zone, "UTC")+"'"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), tab.postgresTable(), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, tab.postgresTable())
	}
	return c
}

// ask runs case i on both sides and compares.
func (c *testCase) ask(t *testing.T, i int) (want answer, ok bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(c.seed^0x5eed, uint64(i)))
	g := &gen{Rand: r, risky: r.IntN(3) == 0}
	q := g.query(c.run.tables[0], 2+r.IntN(2))
	want, err := postgres(t.Context(), c.conn, q)
	if err != nil {
		t.Fatalf("case %d: PostgreSQL: %v\n%s", i, err, q.p)
	}
	m, tab := newMode(r), c.run.tables[0]
	if tab.spoiled >= 0 {
		m.rewrites = planner.Rewrites{} // they decide what is read, and so what can fail
	}
	straight, resumed, p := c.run.run(q, m)
	if tab.spoiled >= 0 && p.Result != nil && p.reads(tab, "s") && want.class == "" {
		want = answer{class: "failed", err: "the text is not UTF-8"}
	}
	for _, got := range []struct {
		how string
		answer
	}{{"straight", straight}, {fmt.Sprintf("killed after %d batches and resumed, without %+v", m.steps, m.rewrites), resumed}} {
		if diff := difference(want, got.answer); diff != "" {
			t.Errorf("case %d, %s (-PostgreSQL +Weir):\n%s\nWeir:       %s\nPostgreSQL: %s\nzone %q, rows:\n%s", i, got.how, diff, q.w, q.p, c.run.zone, tab.postgresTable())
			return want, false
		}
	}
	return want, true
}

func difference(want, got answer) string {
	ours := strings.Contains(got.err, "outside the years 1 to 9999") || strings.Contains(got.err, "years are 1 to 9999")
	if want.class == "" && ours {
		return "" // PostgreSQL's years go further
	}
	if want.class != got.class {
		return fmt.Sprintf("- %s %s\n+ %s %s", want.class, want.err, got.class, got.err)
	}
	if strings.Contains(want.err, "UTF-8") && !strings.Contains(got.err, "UTF-8") && !ours {
		return fmt.Sprintf("- %s\n+ %s", want.err, got.err)
	}
	if want.class != "" {
		return ""
	}
	if !slices.Equal(want.types, got.types) {
		return fmt.Sprintf("types\n- %s\n+ %s", strings.Join(want.types, ", "), strings.Join(got.types, ", "))
	}
	return gocmp.Diff(want.rows, got.rows)
}

package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/sink"
	"weir/planner/plan"
)

// passes is how many batches most stages take at a time.
const passes = 64

// take makes the next so many batches, in the memory of into.
func (f feed) take(n int, into []*batch.Batch) []*batch.Batch {
	into = into[:0]
	for range n {
		into = append(into, f())
	}
	return into
}

// processing gives so many batches at a time to an operator, whose own time alone counts. check
// compares the sum of what put says of each batch with that of what got says of each that comes out.
func processing(s *site, o exec.Operator, n int, next feed, put, got func(b *batch.Batch) uint64) *body {
	e := &end{}
	var batches []*batch.Batch
	process := func() {
		for _, b := range batches {
			s.must(o.Process(b, e))
		}
	}
	once := func() time.Duration {
		batches = next.take(n, batches)
		began := processorTime()
		process()
		return processorTime() - began
	}
	return &body{rows: n * batch.Target, once: once, check: func() {
		var sum, ins uint64
		batches = next.take(n, batches)
		for _, b := range batches {
			n := put(b)
			sum, ins = sum+n, ins|n
		}
		e.see = func(b *batch.Batch) { sum -= got(b) }
		process()
		s.must(o.End(e))
		if e.see = nil; sum != 0 || ins == 0 {
			s.Error("what came out is not the answer")
		}
	}}
}

// filters keep some of the rows.
func filters() (all []stage) {
	for _, f := range []struct {
		name, where string
		keeps       func(b *batch.Batch, r int) bool // b: the columns that the query reads
	}{
		{"number less", "category_id < 5000", func(b *batch.Batch, r int) bool { return b.Columns[0].Ints[r] < 5000 }},
		{"text in", "behavior IN ('buy', 'cart')", func(b *batch.Batch, r int) bool {
			return slices.Contains([]string{"buy", "cart"}, string(b.Columns[0].Str(r)))
		}},
		{"text like", "behavior LIKE '%a%'", func(b *batch.Batch, r int) bool { return bytes.Contains(b.Columns[0].Str(r), []byte("a")) }},
		{"and", "category_id < 5000 AND behavior = 'pv'", func(b *batch.Batch, r int) bool {
			return b.Columns[0].Ints[r] < 5000 && string(b.Columns[1].Str(r)) == "pv"
		}},
	} {
		read := "category_id"
		if !strings.Contains(f.where, read) {
			read = "behavior"
		}
		all = append(all, stage{f.name, func(s *site) *body {
			p := s.operator(s.plan("json", "SELECT "+read+" FROM rows WHERE "+f.where), plan.Filter)
			columns := upTo(len(p.input()))
			put := func(b *batch.Batch) (sum uint64) {
				for r, h := range hashed(b, columns) {
					if f.keeps(b, r) {
						sum += h
					}
				}
				return sum
			}
			return processing(s, p.open(s), passes, inTurn(s.rows(), p.reads(s)), put, func(b *batch.Batch) uint64 { return digest(b, columns) })
		}})
	}
	return all
}

// projects compute columns.
func projects() []stage {
	return []stage{{"arithmetic", func(s *site) *body {
		p := s.operator(s.plan("json", "SELECT user_id + 1 AS a, ts * 2 - user_id AS b FROM rows"), plan.Project)
		put := func(b *batch.Batch) (sum uint64) {
			for r := range b.Len {
				u, t := b.Columns[0].Ints[r], b.Columns[1].Ints[r]
				sum += uint64(u+1)<<20 + uint64(t*2-u)
			}
			return sum
		}
		got := func(b *batch.Batch) (sum uint64) {
			for r := range b.Len {
				sum += uint64(b.Columns[0].Ints[r])<<20 + uint64(b.Columns[1].Ints[r])
			}
			return sum
		}
		return processing(s, p.open(s), passes, inTurn(s.rows(), p.reads(s)), put, got)
	}}}
}

// grouping is a query that counts by columns.
func grouping(columns string) string {
	return "SELECT " + columns + ", COUNT(*) AS n FROM rows GROUP BY " + columns
}

// probes group rows in the local aggregate's own table, or pass them through.
func probes() (all []stage) {
	for _, g := range []struct {
		name, by string
		keys     int // drawn out of so many; 0: the file's rows
	}{
		{"4 texts", "behavior", 0},
		{"10k numbers", "category_id", 0},
		{"1M numbers passing", "user_id", users},
		{"number and text passing", "user_id, behavior", 0},
	} {
		all = append(all, stage{g.name, func(s *site) *body {
			p := s.operator(s.plan("json", grouping(g.by)), plan.LocalAggregate)
			next := inTurn(s.rows(), p.reads(s))
			if g.keys > 0 {
				next = keyed(g.keys, 0, 1)
			}
			put := func(b *batch.Batch) uint64 { return digest(b, upTo(len(p.input()))) }
			return processing(s, p.open(s), len(s.rows()), next, put, counted)
		}})
	}
	return all
}

// merges take partial counts into the keyed state and put out what changed.
func merges() (all []stage) {
	for _, g := range []struct {
		name, by string
		keys     int // drawn out of so many; 0: the file's rows
	}{
		{"4 texts", "behavior", 0},
		{"10k numbers", "category_id", 0},
		{"1M numbers", "user_id", users},
		{"5M numbers", "user_id", 5 * users},
	} {
		all = append(all, stage{g.name, func(s *site) *body {
			p := s.operator(s.plan("json", grouping(g.by)), plan.GlobalAggregate)
			o, keys := p.open(s), s.keys(g.keys)
			next := inTurn(s.rows(), p.reads(s))
			if g.keys > 0 {
				next = keyed(keys, keys, 2)
			}
			fill(s, o, next, max(keys, len(s.rows())*batch.Target))
			return processing(s, o, passes, next, counted, counted)
		}})
	}
	return all
}

// fill gives rows to an operator, so that their keys are there.
func fill(s *site, o exec.Operator, next feed, rows int) {
	for range rows/batch.Target + 1 {
		s.must(o.Process(next(), &end{}))
	}
}

// keeps take a million counts into a result: the changes of counts, where it has rows of its own,
// as some groups are none of them; and partial counts, where its rows are the groups of the
// aggregate in front of it.
func keeps() []stage {
	return []stage{
		{"1M counts", func(s *site) *body {
			p := s.operator(s.plan("json", grouping("user_id")+" HAVING COUNT(*) > 0"), plan.Result)
			result, keys := p.open(s), s.keys(users)
			next := keyed(keys, keys, 2)
			fill(s, result, next, keys)
			b := processing(s, result, passes, func() *batch.Batch { // 1 becomes 1: what is taken back is there
				b := next()
				for r := range b.Len {
					b.Columns[0].Ints[r] = b.Columns[0].Ints[r&^1]
					b.Kinds = append(b.Kinds, []batch.RowKind{batch.UpdateBefore, batch.UpdateAfter}[r&1])
				}
				return b
			}, counted, counted)
			b.check = func() {
				b.once()
				if n, sum := shown(s, result); n != keys || sum != keys {
					s.Errorf("%d counts of 1, %d together, where %d were kept", n, sum, keys)
				}
			}
			return b
		}},
		{"1M groups", func(s *site) *body {
			return keepGroups(s, grouping("user_id"), func(counts *batch.Batch) *batch.Batch { return counts })
		}},
		{"1M sums", func(s *site) *body {
			return keepGroups(s, "SELECT user_id, SUM(item_id) AS n FROM rows GROUP BY user_id", func(counts *batch.Batch) *batch.Batch {
				sums := make([]batch.Int128, counts.Len)
				for r, n := range counts.Columns[1].Ints {
					sums[r] = batch.Int128Of(n)
				}
				counts.Columns[1] = batch.Vector{Physical: batch.Decimals, Decimals: sums}
				return counts
			})
		}},
	}
}

// keepGroups takes partial counts, or what is made of them, into the groups of a query.
func keepGroups(s *site, query string, of func(counts *batch.Batch) *batch.Batch) *body {
	p := s.operator(s.plan("json", query), plan.GlobalAggregate)
	next := p.node + 1
	for p.graph.Chains[p.chain].Operators[next].Kind != plan.Result { // older plans project
		next++
	}
	result, keys := place{p.graph, p.chain, next}.open(s), s.keys(users)
	o := inFront{p.open(s), result}
	if f, ok := result.(interface{ Follow(exec.Operator) error }); ok { // older ones keep a copy
		s.must(f.Follow(o.Operator))
	}
	counts := keyed(keys, keys, 2)
	partial := func() *batch.Batch { return of(counts()) }
	fill(s, o, partial, keys)
	none := func(*batch.Batch) uint64 { return 0 } // nobody asks for changes: see check
	b := processing(s, o, passes, partial, none, none)
	b.check = func() {
		b.once()
		rows := (keys/batch.Target + 1 + passes) * batch.Target
		if n, sum := shown(s, result); n != keys || sum != rows {
			s.Errorf("%d groups of %d count %d rows of %d", n, keys, sum, rows)
		}
	}
	return b
}

// An inFront is an operator and the one that takes what it puts out.
type inFront struct {
	exec.Operator
	behind exec.Operator
}

// Process implements exec.Operator.
func (f inFront) Process(b *batch.Batch, out exec.Collector) error {
	return f.Operator.Process(b, &link{f.behind, out})
}

// shown is how many rows a result has, and the sum of their column n.
func shown(s *site, result exec.Operator) (rows, sum int) {
	page, err := result.(exec.Reader).Read(exec.Query{})
	s.must(err)
	for _, r := range page.Rows {
		var row struct {
			N int `json:"n"`
		}
		s.must(json.Unmarshal(r.JSON, &row))
		sum += row.N
	}
	return len(page.Rows), sum
}

// sinks write rows to a file.
func sinks() (all []stage) {
	for _, format := range []string{"json", "csv"} {
		all = append(all, stage{format, func(s *site) *body {
			p := s.operator(s.plan(format, "INSERT INTO written SELECT * FROM rows"), plan.Sink)
			rows := s.rows()[:min(passes, len(s.rows()))]
			want := text("rows."+format, rows)
			next := inTurn(rows, []int{user, item, category, behavior, ts})
			var batches []*batch.Batch
			write := func(end func(o exec.Operator)) (spent time.Duration) {
				o, err := sink.Open(context.Background(), p.setup(s))
				s.must(err)
				batches = next.take(len(rows), batches)
				began := processorTime()
				for _, b := range batches {
					s.must(o.Process(b, nil))
				}
				spent = processorTime() - began
				end(o)
				s.must(o.Close()) // what is not sealed goes
				return spent
			}
			once := func() time.Duration { return write(func(exec.Operator) {}) }
			check := func() {
				write(func(o exec.Operator) {
					_, err := o.(exec.Committer).Snapshot(1)
					s.must(err)
					s.must(o.(exec.Committer).Commit(context.Background(), 1))
				})
				if !bytes.Equal(published(s, "written"), want) {
					s.Error("the file does not hold the rows")
				}
			}
			return &body{rows: len(rows) * batch.Target, bytes: len(want), once: once, check: check}
		}})
	}
	return all
}

// published is the text of all files of a folder that are to be seen.
func published(s *site, folder string) (all []byte) {
	files, err := filepath.Glob(filepath.Join(s.dir, folder, "[^.]*"))
	s.must(err)
	for _, f := range files {
		body, err := os.ReadFile(f)
		s.must(err)
		all = append(all, body...)
	}
	return all
}

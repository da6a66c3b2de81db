package stage

import (
	"context"
	"io"
	"os"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/source"
	"weir/planner/plan"
)

// block is how much the source reads of a file at once.
const block = 256 << 10

// reads take a file out of the page cache, as the source does and with nothing else.
func reads() (all []stage) {
	for _, name := range []string{"rows.json", "rows.csv"} {
		all = append(all, stage{name[len("rows."):], func(s *site) *body {
			path, size := s.file(name)
			buf := make([]byte, block)
			got := 0
			once := func() {
				f, err := os.Open(path)
				s.must(err)
				defer f.Close()
				for at := int64(0); ; {
					n, err := f.ReadAt(buf, at)
					if at += int64(n); err == io.EOF {
						got = int(at)
						return
					}
					s.must(err)
				}
			}
			return timed(len(s.rows())*batch.Target, size, once, func() {
				if once(); got != size {
					s.Errorf("read %d bytes of %d", got, size)
				}
			})
		}})
	}
	return all
}

// scans look for the rows and take no column of them.
func scans() (all []stage) {
	for _, format := range []string{"json", "csv"} {
		all = append(all,
			stage{format, decoding(format, "SELECT COUNT(*) AS n FROM rows")},
			stage{format + " escapes", decoding(format, "SELECT COUNT(*) AS n FROM orders")})
	}
	return all
}

// parses make columns.
func parses() (all []stage) {
	for _, format := range []string{"json", "csv"} {
		for _, q := range []struct{ name, sql string }{
			{"number", "SELECT user_id FROM rows"},
			{"text", "SELECT behavior FROM rows"},
			{"all", "SELECT * FROM rows"},
			{"timestamp", "SELECT made FROM orders"},
			{"decimal", "SELECT price FROM orders"},
			{"escapes", "SELECT title FROM orders"},
		} {
			all = append(all, stage{format + " " + q.name, decoding(format, q.sql)})
		}
	}
	return all
}

// decoding runs the source of a query over the file.
func decoding(format, query string) func(s *site) *body {
	return func(s *site) *body {
		p := s.operator(s.plan(format, query), plan.Source)
		table := p.spec().Source.Table.Name
		_, size := s.file(table + "." + format)
		want := s.rows()
		if table == "orders" {
			want = orders(want)
		}
		e := &end{}
		once := func() { s.drain(p, e) }
		return timed(len(want)*batch.Target, size, once, func() {
			columns := p.spec().Source.Read
			var rows, left int
			var sum uint64
			for _, b := range want {
				left += b.Len
				sum -= digest(b, columns)
			}
			e.see = func(b *batch.Batch) { rows, sum = rows+b.Rows(), sum+digest(b, upTo(len(columns))) }
			once()
			if e.see = nil; rows != left || sum != 0 {
				s.Errorf("%d rows of %d came out, or others", rows, left)
			}
		})
	}
}

// drain gives all rows of a source to next.
func (s *site) drain(p place, next exec.Collector) {
	ctx := context.Background()
	from, err := source.Open(ctx, p.setup(s))
	s.must(err)
	for more := exec.More; more != exec.Done; {
		var b *batch.Batch
		b, more, _, err = from.Next(ctx)
		s.must(err)
		if b != nil {
			s.must(next.Emit(b))
		}
	}
	s.must(from.Close())
}

// chains run what lies before the exchange, as a task does.
func chains() (all []stage) {
	for _, format := range []string{"json", "csv"} {
		all = append(all,
			stage{format + " behavior", chain(format, "SELECT behavior, COUNT(*) AS n FROM rows GROUP BY behavior", behavior)},
			stage{format + " user", chain(format, "SELECT user_id, COUNT(*) AS n FROM rows GROUP BY user_id", user)})
	}
	return all
}

// chain runs all operators of a query's first chain, which ends with counts by a column.
func chain(format, query string, key int) func(s *site) *body {
	return func(s *site) *body {
		g := s.plan(format, query)
		_, size := s.file("rows." + format)
		e := &end{}
		var head exec.Collector = e
		var links []*link
		for n := len(g.Chains[0].Operators) - 1; n > 0; n-- {
			l := &link{place{g, 0, n}.open(s), head}
			links, head = append([]*link{l}, links...), l
		}
		once := func() { s.drain(place{g, 0, 0}, head) } // the aggregate goes on from pass to pass
		return timed(len(s.rows())*batch.Target, size, once, func() {
			var sum uint64
			for _, b := range s.rows() {
				sum += digest(b, []int{key})
			}
			e.see = func(b *batch.Batch) { sum -= counted(b) }
			once()
			for _, l := range links {
				s.must(l.op.End(l.next))
			}
			if e.see = nil; sum != 0 {
				s.Error("the counts are not those of the rows")
			}
		})
	}
}

// counted is the digest of the rows that a batch's counts stand for: its last column counts,
// the others are the key, and what is taken back counts against.
func counted(b *batch.Batch) (sum uint64) {
	last := len(b.Columns) - 1
	for i, h := range hashed(b, upTo(last)) {
		n := h * uint64(b.Columns[last].Ints[b.Row(i)])
		if k := b.Kind(b.Row(i)); k == batch.UpdateBefore || k == batch.Delete {
			n = -n
		}
		sum += n
	}
	return sum
}

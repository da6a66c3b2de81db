package stage

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"weir/exec/batch"
)

// Columns of the rows. The last one counts them, as partial aggregates do.
const (
	user = iota
	item
	category
	behavior
	ts
	one
)

// columnNames are those of the rows, by which plans find them.
var columnNames = []string{"user_id", "item_id", "category_id", "behavior", "ts", "count(*)"}

const (
	// fileBatches, of batch.Target rows, are about as many as a local aggregate passes through
	// for each table that it filled: each pass over them has its part of both.
	fileBatches = 272
	users       = 1_000_000
	categories  = 10_000
)

// drawn are the rows of the file. Nobody changes them.
var drawn = sync.OnceValue(func() []*batch.Batch {
	random := rand.New(rand.NewPCG(20171125, 3))
	at := int64(1_511_658_000_000)
	all := make([]*batch.Batch, fileBatches)
	for i := range all {
		b := batch.New([]batch.Physical{batch.Ints, batch.Ints, batch.Ints, batch.Strings, batch.Ints, batch.Ints}, batch.Target)
		for range batch.Target {
			done := "pv"
			switch d := random.IntN(1000); {
			case d < 20:
				done = "buy"
			case d < 42:
				done = "fav"
			case d < 96:
				done = "cart"
			}
			at += random.Int64N(4)
			b.Columns[user].AppendInt(random.Int64N(users))
			b.Columns[item].AppendInt(random.Int64N(4_000_000))
			b.Columns[category].AppendInt(random.Int64N(categories))
			b.Columns[behavior].AppendString(done)
			b.Columns[ts].AppendInt(at)
			b.Columns[one].AppendInt(1)
			b.EndRow(batch.Insert)
		}
		all[i] = b
	}
	return all
})

// rows are the batches of the file, as many as there are to be.
func (s *site) rows() []*batch.Batch {
	if s.small {
		return drawn()[:3]
	}
	return drawn()
}

// Columns of orders: the values that are harder to read.
const (
	price = iota
	made
	title
)

// orders makes rows with decimals, timestamps and texts that have to be escaped.
func orders(rows []*batch.Batch) (all []*batch.Batch) {
	for _, from := range rows {
		b := batch.New([]batch.Physical{batch.Decimals, batch.Ints, batch.Strings}, batch.Target)
		for r := range from.Len {
			b.Columns[price].AppendDecimal(batch.Int128Of(from.Columns[item].Ints[r]))
			b.Columns[made].AppendInt(1000 * from.Columns[ts].Ints[r])
			b.Columns[title].AppendString(`a "` + string(from.Columns[behavior].Str(r)) + `", of many`)
			b.EndRow(batch.Insert)
		}
		all = append(all, b)
	}
	return all
}

// A line appends a row as text.
type line func(to []byte, b *batch.Batch, r int) []byte

// lines are the forms of the files, by name.
var lines = map[string]line{
	"rows.json": func(to []byte, b *batch.Batch, r int) []byte {
		to = strconv.AppendInt(append(to, `{"user_id":`...), b.Columns[user].Ints[r], 10)
		to = strconv.AppendInt(append(to, `,"item_id":`...), b.Columns[item].Ints[r], 10)
		to = strconv.AppendInt(append(to, `,"category_id":`...), b.Columns[category].Ints[r], 10)
		to = append(append(to, `,"behavior":"`...), b.Columns[behavior].Str(r)...)
		to = strconv.AppendInt(append(to, `","ts":`...), b.Columns[ts].Ints[r], 10)
		return append(to, "}\n"...)
	},
	"rows.csv": func(to []byte, b *batch.Batch, r int) []byte {
		to = append(strconv.AppendInt(to, b.Columns[user].Ints[r], 10), ',')
		to = append(strconv.AppendInt(to, b.Columns[item].Ints[r], 10), ',')
		to = append(strconv.AppendInt(to, b.Columns[category].Ints[r], 10), ',')
		to = append(append(to, b.Columns[behavior].Str(r)...), ',')
		return append(strconv.AppendInt(to, b.Columns[ts].Ints[r], 10), '\n')
	},
	"orders.json": func(to []byte, b *batch.Batch, r int) []byte {
		to = b.Columns[price].Decimals[r].AppendDecimal(append(to, `{"price":`...), 2)
		to = time.UnixMicro(b.Columns[made].Ints[r]).UTC().AppendFormat(append(to, `,"made":"`...), "2006-01-02T15:04:05.000")
		to = strconv.AppendQuote(append(to, `","title":`...), string(b.Columns[title].Str(r)))
		return append(to, "}\n"...)
	},
	"orders.csv": func(to []byte, b *batch.Batch, r int) []byte {
		to = b.Columns[price].Decimals[r].AppendDecimal(to, 2)
		to = time.UnixMicro(b.Columns[made].Ints[r]).UTC().AppendFormat(append(to, ','), "2006-01-02 15:04:05.000")
		to = append(to, `,"`...)
		for _, c := range b.Columns[title].Str(r) {
			if to = append(to, c); c == '"' {
				to = append(to, c)
			}
		}
		return append(to, "\"\n"...)
	},
}

// text is all rows in one of the forms.
func text(name string, rows []*batch.Batch) (to []byte) {
	for _, b := range rows {
		for r := range b.Len {
			to = lines[name](to, b, r)
		}
	}
	return to
}

// file is the path of the rows' file, and its size.
func (s *site) file(name string) (path string, size int) {
	s.Helper()
	path = filepath.Join(s.dir, name)
	if info, err := os.Stat(path); err == nil {
		return path, int(info.Size())
	}
	rows := s.rows()
	if name == "orders.json" || name == "orders.csv" {
		rows = orders(rows)
	}
	body := text(name, rows)
	s.must(os.WriteFile(path, body, 0o600))
	return path, len(body)
}

// A feed gives the next batch; it is the caller's.
type feed func() *batch.Batch

// inTurn gives columns of batches, one after the other and over again.
func inTurn(from []*batch.Batch, columns []int) feed {
	pool, at := batch.NewPool(kindsOf(from[0], columns), batch.Target), 0
	return func() *batch.Batch {
		b, next := pool.Get(), from[at%len(from)]
		for i, c := range columns {
			b.Columns[i].CopyFrom(&next.Columns[c])
		}
		b.Len = next.Len
		at++
		return b
	}
}

// keyed gives numbers, in a first column; each further one holds ones. They ascend from 0 for
// as long as they are below fill, and are then drawn out of keys.
func keyed(keys, fill, columns int) feed {
	kinds := make([]batch.Physical, columns)
	for i := range kinds {
		kinds[i] = batch.Ints
	}
	pool, random, next := batch.NewPool(kinds, batch.Target), rand.New(rand.NewPCG(3, 4)), 0
	return func() *batch.Batch {
		b := pool.Get()
		for range batch.Target {
			k := int64(next)
			if next++; next > fill {
				k = random.Int64N(int64(keys))
			}
			b.Columns[0].AppendInt(k)
			for i := 1; i < columns; i++ {
				b.Columns[i].AppendInt(1)
			}
		}
		b.Len = batch.Target
		return b
	}
}

func kindsOf(b *batch.Batch, columns []int) (kinds []batch.Physical) {
	for _, c := range columns {
		kinds = append(kinds, b.Columns[c].Physical)
	}
	return kinds
}

// digest adds up the hashes of the selected rows, so that their order does not count.
func digest(b *batch.Batch, columns []int) (sum uint64) {
	for _, h := range hashed(b, columns) {
		sum += h
	}
	return sum
}

func hashed(b *batch.Batch, columns []int) []uint64 {
	all := make([]uint64, b.Rows())
	batch.HashRows(b, columns, all)
	return all
}

// upTo lists 0, 1, … n-1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

package source

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/exec"
	"weir/exec/batch"
	"weir/planner/plan"
)

// sample makes rows in the shape of the examples' table.
func sample(format string, n int) string {
	rnd := rand.New(rand.NewPCG(1, 2))
	form := "{\"user_id\":%d,\"item_id\":%d,\"category_id\":%d,\"behavior\":\"%s\",\"ts\":%d}\n"
	if format == "csv" {
		form = "%d,%d,%d,%s,%d\n"
	}
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, form, rnd.IntN(1_000_000), rnd.IntN(4_000_000), rnd.IntN(10_000),
			[]string{"buy", "fav", "cart", "cart", "pv"}[min(rnd.IntN(48), 4)], 1511544070+i/50)
	}
	return s.String()
}

func benchmarkDecode(b *testing.B, format string, columns ...int) {
	spec := reading(behavior(format, ""), columns...)
	body := sample(format, 20_000)
	data := window(body)
	r, err := newRows(spec)
	if err != nil {
		b.Fatal(err)
	}
	var d decoder = newJSONDecoder(r)
	if format == "csv" {
		text := newCSVDecoder(spec, csvOptions{delimiter: ','})
		text.noQuotes = true
		d = text
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for p := 0; p < len(body); {
			r.begin(batch.Target)
			var f *fault
			if p, _, f = d.decode(r, data, p, len(body), 0); f != nil {
				b.Fatal(f.reason)
			}
			out := r.finish("f")
			n += out.Len
			out.Release()
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkJSON(b *testing.B)         { benchmarkDecode(b, "json") }
func BenchmarkJSONBehavior(b *testing.B) { benchmarkDecode(b, "json", 3) }
func BenchmarkJSONUser(b *testing.B)     { benchmarkDecode(b, "json", 0) }
func BenchmarkCSV(b *testing.B)          { benchmarkDecode(b, "csv") }
func BenchmarkCSVBehavior(b *testing.B)  { benchmarkDecode(b, "csv", 3) }
func BenchmarkCSVUser(b *testing.B)      { benchmarkDecode(b, "csv", 0) }

func BenchmarkDatagen(b *testing.B) {
	d, err := newDatagen(reading(generated(map[string]string{})))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		out := d.make(n, batch.Target)
		n += int64(out.Len)
		out.Release()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// generated is the table of the examples, made by the connector datagen.
func generated(more map[string]string) plan.Table {
	t := behavior("", "")
	t.Connector = "datagen"
	t.Options = map[string]string{
		"fields.user_id.max": "999999", "fields.item_id.max": "3999999", "fields.category_id.max": "9999",
		"fields.behavior.values": "pv,cart,fav,buy", "fields.behavior.weights": "90,5,3,2",
		"fields.ts.kind": "sequence", "fields.ts.start": "1511544070",
	}
	for k, v := range more {
		t.Options[k] = v
	}
	return t
}

// BenchmarkFile reads a file in splits from the page cache.
func BenchmarkFile(b *testing.B) {
	body := sample("json", 300_000)
	dir := folder(b, map[string]string{"f": body})
	spec := reading(behavior("json", dir))
	for _, block := range []int{64 << 10, 128 << 10, blockSize, 1 << 20} {
		b.Run(fmt.Sprintf("block=%dK", block>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				s := sized(b, spec, setupOf(spec, dir, 0, 1), splitSize, block)
				for {
					out, p, _, err := s.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if out != nil {
						out.Release()
					}
					if p == exec.Done {
						break
					}
				}
			}
		})
	}
}

// BenchmarkTypes reads the types that are texts in files.
func BenchmarkTypes(b *testing.B) {
	table := plan.Table{Name: "t", Columns: []plan.Column{col("b", bytesType), col("d", dateType), col("t", clockType), col("z", timestamp), col("i", intervals)}}
	for format, row := range map[string]string{
		"json": `{"b":"aGVsbG8=","d":"2017-11-25","t":"2017-11-25T01:00:00.5","z":"2017-11-25T01:00:00Z","i":"02:03:04"}` + "\n",
		"csv":  "aGVsbG8=,2017-11-25,2017-11-25T01:00:00.5,2017-11-25T01:00:00Z,02:03:04\n",
	} {
		b.Run(format, func(b *testing.B) {
			table.Format = format
			spec := reading(table)
			body := strings.Repeat(row, 5000)
			data := window(body)
			r, err := newRows(spec)
			if err != nil {
				b.Fatal(err)
			}
			var d decoder = newJSONDecoder(r)
			if format == "csv" {
				d = newCSVDecoder(spec, csvOptions{delimiter: ','})
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for p := 0; p < len(body); {
					r.begin(batch.Target)
					var f *fault
					if p, _, f = d.decode(r, data, p, len(body), 0); f != nil {
						b.Fatal(f.reason)
					}
					out := r.finish("f")
					n += out.Len
					out.Release()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
		})
	}
}

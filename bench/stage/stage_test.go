package stage

import (
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A stage is one thing that is measured.
type stage struct {
	name string
	open func(s *site) *body
}

// A site is where a stage is opened.
type site struct {
	testing.TB
	dir   string // for files
	small bool   // a test: a hundredth of the rows and keys
}

// keys is how many keys there are to be.
func (s *site) keys(n int) int {
	if s.small {
		return min(n, 4+n/100)
	}
	return n
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// A body is what is done over and over.
type body struct {
	rows  int // that go by each time
	bytes int // of text or of frames; 0: it is not about bytes
	once  func() time.Duration
	// check does it once, before anything else, and looks at the answer.
	check func()
}

// timed is a body all of which counts.
func timed(rows, bytes int, once, check func()) *body {
	return &body{rows: rows, bytes: bytes, check: check, once: func() time.Duration {
		began := processorTime()
		once()
		return processorTime() - began
	}}
}

// processorTime is what the process has had of the processors so far, collections included:
// however busy the machine is, no more of it goes by.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure reports the mean of all passes: what a pass now and then pays for the others, as
// collections and the tables that a passing aggregate tries, is in it.
func (b *body) measure(tb *testing.B) {
	b.once() // what grows has grown
	before := mallocs()
	spent, n := time.Duration(0), 0
	for tb.Loop() {
		spent += b.once()
		n++
	}
	made, rows := float64(mallocs()-before), float64(n*b.rows)
	tb.ReportMetric(0, "ns/op")
	tb.ReportMetric(float64(spent.Nanoseconds())/rows, "ns/row")
	tb.ReportMetric(math.Round(100*made/rows)/100, "allocs/row")
	if b.bytes > 0 {
		tb.ReportMetric(float64(n*b.bytes)/1e6/spent.Seconds(), "MB/s")
		tb.ReportMetric(float64(b.bytes)/float64(b.rows), "B/row")
	}
}

// mallocs counts the allocations of the process so far.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func bench(b *testing.B, stages []stage) {
	dir := b.TempDir()
	for _, st := range stages {
		b.Run(st.name, func(b *testing.B) { st.open(&site{TB: b, dir: dir}).measure(b) })
	}
}

func BenchmarkRead(b *testing.B)      { bench(b, reads()) }
func BenchmarkScan(b *testing.B)      { bench(b, scans()) }
func BenchmarkParse(b *testing.B)     { bench(b, parses()) }
func BenchmarkFilter(b *testing.B)    { bench(b, filters()) }
func BenchmarkProject(b *testing.B)   { bench(b, projects()) }
func BenchmarkProbe(b *testing.B)     { bench(b, probes()) }
func BenchmarkHash(b *testing.B)      { bench(b, hashes()) }
func BenchmarkPartition(b *testing.B) { bench(b, partitions()) }
func BenchmarkEncode(b *testing.B)    { bench(b, encodes()) }
func BenchmarkSend(b *testing.B)      { bench(b, sends()) }
func BenchmarkDecode(b *testing.B)    { bench(b, decodes()) }
func BenchmarkMerge(b *testing.B)     { bench(b, merges()) }
func BenchmarkKeep(b *testing.B)      { bench(b, keeps()) }
func BenchmarkSink(b *testing.B)      { bench(b, sinks()) }
func BenchmarkChain(b *testing.B)     { bench(b, chains()) }

// TestStages runs each of them once and checks its answer.
func TestStages(t *testing.T) {
	t.Parallel()
	for name, stages := range map[string][]stage{
		"Read": reads(), "Scan": scans(), "Parse": parses(), "Filter": filters(), "Project": projects(), "Probe": probes(),
		"Hash": hashes(), "Partition": partitions(), "Encode": encodes(), "Send": sends(), "Decode": decodes(),
		"Merge": merges(), "Keep": keeps(), "Sink": sinks(), "Chain": chains(),
	} {
		for _, st := range stages {
			t.Run(name+"/"+st.name, func(t *testing.T) {
				t.Parallel()
				b := st.open(&site{TB: t, dir: t.TempDir(), small: true})
				b.check()
				if took := b.once(); took <= 0 || b.rows == 0 {
					t.Errorf("%d rows in %v", b.rows, took)
				}
			})
		}
	}
}

package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// speedBench measures Weir as users run it beside programs written by hand and, where it is
// asked for, beside Flink; what is compared runs alternately.
type speedBench struct {
	rows, runs, flinkRuns int
	seconds               float64
	only, markdown        string
	withFlink             bool

	common
	want  *answers
	made  map[int]written // of a datagen's answers, by copies
	peer  *peer
	inbox string // the folder of what the job reads and writes
}

func (b *speedBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.rows, "rows", 10_000_000, "rows of a file")
	f.IntVar(&b.runs, "runs", 5, "rounds, in each of which all that are compared run once")
	f.Float64Var(&b.seconds, "seconds", 12, "how long a run of Weir lasts at least")
	f.StringVar(&b.only, "only", "", "measure the works of these names alone, with commas between")
	f.StringVar(&b.markdown, "markdown", "", "write the tables to this file too")
	f.BoolVar(&b.withFlink, "flink", false, "run Flink beside Weir; Java and Maven have to be there")
	f.IntVar(&b.flinkRuns, "flink-runs", 1, "rounds in which Flink runs")
}

// A sample is one run's.
type sample struct {
	Rows    int64   `json:"rows"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of all its processes
	Memory  int64   `json:"peak_bytes"`  // 0: it was not looked at
}

// A contender is one of those that are compared.
type contender struct {
	name   string
	rounds int // it takes part in the first ones alone; 0: in all
	run    func(ctx context.Context) (sample, error)
}

// workFigures are a work's.
type workFigures struct {
	Name       string             `json:"name"`
	Title      string             `json:"title"`
	Copies     int                `json:"copies"` // of the file, that Weir reads
	Contenders []contenderFigures `json:"contenders"`
	Targets    []targetFigures    `json:"targets"`
}

type contenderFigures struct {
	Name    string   `json:"name"`
	Samples []sample `json:"samples"`
}

// A targetFigures says how far a target is reached.
type targetFigures struct {
	Of       string  `json:"of"`
	Measured float64 `json:"measured"`
	Wanted   float64 `json:"wanted"`
	AtMost   bool    `json:"at_most"` // else at least
	Met      bool    `json:"met"`
}

func (b *speedBench) run(ctx context.Context, c common) (any, string, error) {
	b.common = c
	names, err := b.chosen()
	if err != nil {
		return nil, "", err
	}
	f := speedFigures{Machine: thisMachine(), Date: time.Now().UTC().Format(time.DateOnly), Rows: b.rows, Runs: b.runs}
	if f.Weir, err = versionOf(ctx, c.weir); err != nil {
		return nil, "", err
	}
	if b.inbox, err = os.MkdirTemp(c.dir, "speed-"); err != nil { // on the file system of the files, for their links
		return nil, "", err
	}
	defer os.RemoveAll(b.inbox) //nolint:errcheck // a temporary folder
	if err := b.openPeer(ctx); err != nil {
		return nil, "", err
	}
	b.want = answersOf(b.rows)
	for _, w := range works() {
		if names[w.name] {
			got, err := b.measure(ctx, w)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", w.name, err)
			}
			f.Works = append(f.Works, got)
		}
	}
	for _, w := range waits() {
		if names[w.name] {
			got, err := w.measure(ctx, b)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", w.name, err)
			}
			f.Waits = append(f.Waits, got...)
		}
	}
	text := f.text()
	if b.markdown != "" {
		err = os.WriteFile(b.markdown, []byte("# Speed\n\n"+text), 0o644)
	}
	return f, text, err
}

// chosen are the names of what is measured.
func (b *speedBench) chosen() (map[string]bool, error) {
	all := map[string]bool{}
	var known []string
	for _, w := range works() {
		known = append(known, w.name)
	}
	for _, w := range waits() {
		known = append(known, w.name)
	}
	names := known
	if b.only != "" {
		names = strings.Split(b.only, ",")
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("-only: no work is named %q; there are %s", n, strings.Join(known, ", "))
		}
		all[n] = true
	}
	return all, nil
}

// measure runs all that take part in a work, in turns.
func (b *speedBench) measure(ctx context.Context, w work) (workFigures, error) {
	f := workFigures{Name: w.name, Title: w.title}
	all, copies, err := b.contenders(ctx, w)
	if err != nil {
		return f, err
	}
	f.Copies = copies
	if f.Contenders, err = b.rounds(ctx, w.name, all); err != nil {
		return f, err
	}
	f.Targets = f.reached(w)
	return f, nil
}

// rounds runs the contenders in turns, which begin at the other end in every second round.
func (b *speedBench) rounds(ctx context.Context, work string, all []contender) ([]contenderFigures, error) {
	figures := make([]contenderFigures, len(all))
	for round := range b.runs {
		for turn := range all {
			i := turn
			if round%2 == 1 {
				i = len(all) - 1 - turn
			}
			c := all[i]
			figures[i].Name = c.name
			if c.rounds != 0 && round >= c.rounds {
				continue
			}
			s, err := c.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			figures[i].Samples = append(figures[i].Samples, s)
			fmt.Fprintf(os.Stderr, "%s: %s: %.2f M rows/s, %.1f s\n", work, c.name, s.rate()/1e6, s.Seconds)
		}
	}
	return figures, nil
}

// contenders are those of a work, with Weir at its end, and how many copies of the file it reads.
func (b *speedBench) contenders(ctx context.Context, w work) (all []contender, copies int, err error) {
	in := input{copies: 1}
	if w.format != "" {
		if in.file, err = generate(b.dir, w.format, b.rows); err == nil {
			err = cache(in.file)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	in, few, err := b.sized(ctx, w, in)
	if err != nil {
		return nil, 0, err
	}
	beside := few
	if w.query == "user" {
		beside = in // making and merging tables of a million users is shared by as many rows as in Weir
	}
	for _, l := range w.loops {
		all = append(all, contender{name: l.String(), run: func(context.Context) (sample, error) { return b.loop(l, beside) }})
	}
	if w.copies {
		all = append(all,
			contender{name: asCopy, run: func(context.Context) (sample, error) { return b.copyAlone(few, false) }},
			contender{name: asCopy + ", flushed to disk", run: func(context.Context) (sample, error) { return b.copyAlone(few, true) }})
	}
	all = append(all, b.peerContenders(w)...)
	all = append(all, contender{name: onWeir, run: func(ctx context.Context) (sample, error) { return b.weirRun(ctx, w, &in, 1) }})
	if w.workers {
		all = append(all, contender{name: twoWeir, run: func(ctx context.Context) (sample, error) { return b.weirRun(ctx, w, &in, 2) }})
	}
	return all, in.copies, nil
}

// maxCopies is how often a file is read at most.
const maxCopies = 120

// An input is what a run reads: copies of a file, or as many rows from a datagen.
type input struct {
	file, dir string
	files     []string
	copies    int
	written   int64 // bytes of files that Weir has written of it
}

// sized finds out, by short runs, of how many copies a run of Weir lasts long enough; the
// others are given a quarter of them, where little is the same for any number of rows, for they
// are faster; rates are compared.
func (b *speedBench) sized(ctx context.Context, w work, in input) (full, few input, err error) {
	for copies, last := 2, 0; copies > last; {
		if in, err = b.linkedInput(in, copies); err != nil {
			return in, in, err
		}
		s, err := b.weirRun(ctx, w, &in, 1)
		if err != nil {
			return in, in, fmt.Errorf("a first run: %w", err)
		}
		if s.Seconds >= b.seconds || copies == maxCopies {
			break
		}
		last = copies
		copies = min(int(math.Ceil(float64(copies)*b.seconds*1.15/s.Seconds)), maxCopies) // a short run is slower than a long one
	}
	few, err = b.linkedInput(in, max(in.copies/4, 1))
	few.written = in.written * int64(few.copies) / int64(in.copies)
	return in, few, err
}

// linkedInput is a folder with so many copies of the input's file.
func (b *speedBench) linkedInput(in input, copies int) (input, error) {
	in.copies = copies
	if in.file == "" {
		return in, nil
	}
	var err error
	in.dir = filepath.Join(b.inbox, fmt.Sprintf("%d.%s", copies, filepath.Base(in.file)))
	in.files, err = linked(in.file, in.dir, copies)
	return in, err
}

func (s sample) rate() float64 { return float64(s.Rows) / s.Seconds }

// rates are those of the samples, sorted.
func (c contenderFigures) rates() (all []float64) {
	for _, s := range c.Samples {
		all = append(all, s.rate())
	}
	return all
}

// cpu is the median of the seconds of processor time per million rows.
func (c contenderFigures) cpu() float64 {
	var all []float64
	for _, s := range c.Samples {
		all = append(all, s.CPU/float64(s.Rows)*1e6)
	}
	return median(all)
}

// peak is the most memory of any run.
func (c contenderFigures) peak() (most int64) {
	for _, s := range c.Samples {
		most = max(most, s.Memory)
	}
	return most
}

// best is the fastest of the contenders whose names begin so; nil: there is none.
func (f workFigures) best(name string) (best *contenderFigures) {
	for i, c := range f.Contenders {
		if (c.Name == name || c.Name == name+miniBatch) && len(c.Samples) > 0 && (best == nil || median(c.rates()) > median(best.rates())) {
			best = &f.Contenders[i]
		}
	}
	return best
}

// reached compares the medians with the targets; those beside who did not run are left out.
func (f workFigures) reached(w work) (all []targetFigures) {
	own := f.best(onWeir)
	if w.workers {
		own = f.best(twoWeir)
	}
	for _, t := range w.wanted {
		if beside := f.best(t.beside); beside != nil {
			ratio := median(own.rates()) / median(beside.rates())
			all = append(all, targetFigures{Of: beside.Name, Measured: ratio, Wanted: t.least, Met: ratio >= t.least})
		}
	}
	if flink := f.best(flinkHeap); flink != nil && w.flink != "" {
		ratio := own.cpu() / flink.cpu()
		all = append(all, targetFigures{Of: "CPU of " + flink.Name, Measured: ratio, Wanted: 0.1, AtMost: true, Met: ratio <= 0.1})
	}
	return all
}

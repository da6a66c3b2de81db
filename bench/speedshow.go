package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// speedFigures are those of bench speed.
type speedFigures struct {
	Machine machine       `json:"machine"`
	Weir    string        `json:"weir"`
	Date    string        `json:"date"`
	Rows    int           `json:"rows_of_a_file"`
	Runs    int           `json:"rounds"`
	Works   []workFigures `json:"works"`
	Waits   []waitFigures `json:"waits"`
}

// A machine is what the figures were taken on.
type machine struct {
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	Memory     int64  `json:"memory_bytes"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
}

// thisMachine leaves empty what the system does not say.
func thisMachine() machine {
	m := machine{Processors: runtime.NumCPU(), Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	m.Memory, _ = figureIn("/proc/meminfo", "MemTotal:", 1<<10) // 0: not known
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}

func (m machine) String() string {
	return fmt.Sprintf("%d × %s, %.0f GiB, %s, %s", m.Processors, m.Processor, float64(m.Memory)/(1<<30), m.Kernel, m.Go)
}

// versionOf is what weir says it is.
func versionOf(ctx context.Context, weir string) (string, error) {
	out, err := exec.CommandContext(ctx, weir, "version").Output()
	if err != nil {
		return "", fmt.Errorf("weir version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// text is all of them as Markdown.
func (f speedFigures) text() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s, %s; %s\n\nFiles of %s rows; parallelism 2, a checkpoint every second, exactly-once; medians of %d rounds, the least and the most in brackets. Every answer was checked.\n",
		f.Date, f.Weir, f.Machine, amount(int64(f.Rows)), f.Runs)
	for _, work := range f.Works {
		fmt.Fprintf(&w, "\n### %s\n\n", work.Title)
		work.table(&w)
	}
	if len(f.Waits) > 0 {
		w.WriteString("\n### Waiting\n\n| | ms, median (least, most) |\n|---|---|\n")
		for _, wait := range f.Waits {
			fmt.Fprintf(&w, "| %s | %.0f (%.0f, %.0f) |\n", wait.Title, median(wait.Milliseconds), slices.Min(wait.Milliseconds), slices.Max(wait.Milliseconds))
		}
	}
	w.WriteString("\n### Targets\n\n| work | beside | measured | target | |\n|---|---|---|---|---|\n")
	for _, work := range f.Works {
		for _, t := range work.Targets {
			fmt.Fprintf(&w, "| %s | %s | %.2f | %s %g | %s |\n", work.Title, t.Of, t.Measured, map[bool]string{true: "≤", false: "≥"}[t.AtMost], t.Wanted, metOrNot(t.Met))
		}
	}
	for _, wait := range f.Waits {
		fmt.Fprintf(&w, "| %s | | %.0f ms | < %.0f ms | %s |\n", wait.Title, median(wait.Milliseconds), wait.Target, metOrNot(wait.Met))
	}
	w.WriteString("| TUMBLE | | | | when windows land |\n")
	return w.String()
}

func metOrNot(met bool) string {
	if met {
		return "met"
	}
	return "**not met**"
}

// table shows the contenders of a work.
func (f workFigures) table(w *strings.Builder) {
	w.WriteString("| | M rows/s | of weir's | rows of a run | s, median | CPU s per M rows | M rows per CPU s | peak MiB |\n|---|---|---|---|---|---|---|---|\n")
	own := f.best(onWeir)
	for _, c := range f.Contenders {
		if len(c.Samples) == 0 {
			continue
		}
		var seconds []float64
		for _, s := range c.Samples {
			seconds = append(seconds, s.Seconds)
		}
		peak := "–"
		if most := c.peak(); most > 0 {
			peak = fmt.Sprintf("%.0f", mebibytes(most))
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %s | %.1f | %.3f | %.2f | %s |\n", c.Name, spread(c.rates(), "%.2f"),
			median(c.rates())/median(own.rates()), amount(c.Samples[0].Rows), median(seconds), c.cpu(), 1/c.cpu(), peak)
	}
}

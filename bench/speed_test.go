package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReached(t *testing.T) {
	t.Parallel()
	of := func(name string, rates ...float64) (c contenderFigures) {
		c.Name = name
		for _, r := range rates {
			c.Samples = append(c.Samples, sample{Rows: 1000, Seconds: 1000 / r, CPU: 1})
		}
		return c
	}
	loop := limit{"user", "json", "validate", 2}.String()
	f := workFigures{Contenders: []contenderFigures{of(loop, 30, 10, 20), of(flinkHeap, 2), of(flinkHeap+miniBatch, 4), of(flinkRocks), of(onWeir, 9, 8, 10)}}
	got := fmt.Sprint(f.reached(work{flink: "user", wanted: []target{{loop, 0.4}, {flinkHeap, 2.5}, {flinkRocks, 20}}}))
	want := fmt.Sprint([]targetFigures{
		{Of: loop, Measured: 0.45, Wanted: 0.4, Met: true},
		{Of: flinkHeap + miniBatch, Measured: 2.25, Wanted: 2.5},
		{Of: "CPU of " + flinkHeap + miniBatch, Measured: 1, Wanted: 0.1, AtMost: true},
	})
	if got != want {
		t.Errorf("targets are %v, want %v", got, want)
	}
}

// A work is measured in turns, and what takes part in the first rounds alone in no later one.
func TestTurns(t *testing.T) {
	t.Parallel()
	var turns []string
	named := func(name string, rounds int) contender {
		return contender{name: name, rounds: rounds, run: func(context.Context) (sample, error) {
			turns = append(turns, name)
			return sample{Rows: 1, Seconds: 1}, nil
		}}
	}
	b := speedBench{runs: 3}
	got, err := b.rounds(t.Context(), "work", []contender{named("a", 0), named("b", 1), named("c", 0)})
	if err != nil || strings.Join(turns, "") != "abccaac" || len(got) != 3 || len(got[0].Samples) != 3 || len(got[1].Samples) != 1 {
		t.Errorf("turns are %v, figures %v, %v", turns, got, err)
	}
}

func TestWritten(t *testing.T) {
	t.Parallel()
	const rows = 2_000
	want := answersOf(rows)
	write := func(n int) (dir string, bytes int64) {
		dir = t.TempDir()
		parts := [2][]byte{}
		left := n
		for r := range generated(rows) {
			if left--; left >= 0 {
				parts[r.user%2] = fmt.Appendf(parts[r.user%2], "%d,%s\n", r.user, r.behavior)
			}
		}
		for i, p := range parts {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%d.csv", i)), p, 0o644); err != nil {
				t.Fatal(err)
			}
			bytes += int64(len(p))
		}
		return dir, bytes
	}
	var in input
	dir, bytes := write(rows)
	if err := checkWritten(dir, &in, want.all); err != nil || in.written != bytes {
		t.Errorf("%d bytes of %d: %v", in.written, bytes, err)
	}
	if dir, _ = write(rows - 1); checkWritten(dir, &in, want.all) == nil {
		t.Error("a row is missing, and nobody says so")
	}
}

func TestUserCheck(t *testing.T) {
	t.Parallel()
	want := &answers{users: []int64{2, 0, 1}}
	for i, counts := range []map[int64]int64{{0: 4, 2: 2}, {0: 4}, {0: 4, 2: 3}, {0: 4, 1: 1, 2: 2}, {0: 4, 7: 2}, {0: 4, -1: 2}} {
		c := userCheck{want: want, copies: 2}
		for user, n := range counts {
			c.add(user, n)
		}
		if err := c.done(); (err == nil) != (i == 0) {
			t.Errorf("%v: %v", counts, err)
		}
	}
}

func TestCopyPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	const size = 3*blockSize + 77
	if err := os.WriteFile(file, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	var wrote int64
	for i := range 2 {
		n, err := copyPart([]string{file, file}, i, 2, 0.25, filepath.Join(dir, "out"), i == 1)
		if err != nil {
			t.Fatal(err)
		}
		wrote += n
	}
	if math.Abs(float64(wrote)-2*size*0.25) > 4 {
		t.Errorf("%d bytes are written of %d", wrote, 2*size)
	}
}

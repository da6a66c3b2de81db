package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// keptFiles is where generated files stay for the next run.
func keptFiles() string { return filepath.Join(os.TempDir(), "weir-bench") }

// A row is one line of a generated file.
type row struct {
	user, item, category, ts int64
	behavior                 string
}

// fifth is the item below which are a fifth of all.
const fifth = 800_000

// users are as many as there are in the files, numbered from 0.
const users = 1_000_000

// generated gives the rows of the files, a pure function of their number: times ascend,
// everything else is drawn.
func generated(rows int) iter.Seq[row] {
	return func(yield func(row) bool) {
		random := rand.New(rand.NewPCG(20171125, 3))
		ts := int64(1_511_658_000_000)
		for range rows {
			r := row{behavior: "pv"}
			switch d := random.IntN(1000); {
			case d < 20:
				r.behavior = "buy"
			case d < 42:
				r.behavior = "fav"
			case d < 96:
				r.behavior = "cart"
			}
			ts += random.Int64N(4)
			r.user, r.item, r.category, r.ts = random.Int64N(users), random.Int64N(4_000_000), random.Int64N(10_000), ts
			if !yield(r) {
				return
			}
		}
	}
}

// append appends the row as a line of JSON.
func (r row) append(line []byte) []byte {
	line = append(line, `{"user_id":`...)
	line = strconv.AppendInt(line, r.user, 10)
	line = append(line, `,"item_id":`...)
	line = strconv.AppendInt(line, r.item, 10)
	line = append(line, `,"category_id":`...)
	line = strconv.AppendInt(line, r.category, 10)
	line = append(line, `,"behavior":"`...)
	line = append(line, r.behavior...)
	line = append(line, `","ts":`...)
	line = strconv.AppendInt(line, r.ts, 10)
	return append(line, "}\n"...)
}

// appendCSV appends the row as a line of CSV.
func (r row) appendCSV(line []byte) []byte {
	for _, n := range []int64{r.user, r.item, r.category} {
		line = append(strconv.AppendInt(line, n, 10), ',')
	}
	line = append(append(line, r.behavior...), ',')
	return append(strconv.AppendInt(line, r.ts, 10), '\n')
}

// generate writes the file of so many rows in a format, json or csv, unless it is there.
func generate(dir, format string, rows int) (file string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("the folder for generated files: %w", err)
	}
	file = filepath.Join(dir, fmt.Sprintf("rows-%d.%s", rows, format))
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	out, err := os.Create(file + ".part") // which it stays, if it is not written to its end
	if err != nil {
		return "", err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	line := make([]byte, 0, 160)
	for r := range generated(rows) {
		if format == "csv" {
			line = r.appendCSV(line[:0])
		} else {
			line = r.append(line[:0])
		}
		w.Write(line) //nolint:errcheck // Flush returns it
	}
	if err := errors.Join(w.Flush(), out.Close()); err != nil {
		return "", err
	}
	return file, os.Rename(file+".part", file)
}

// cache reads the file once, so that the page cache has it.
func cache(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// linked fills a folder with the file, so many times, under names of its own.
func linked(file, dir string, copies int) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := range copies {
		name := filepath.Join(dir, fmt.Sprintf("%03d%s", i, filepath.Ext(file)))
		if err := os.Link(file, name); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		files = append(files, name)
	}
	return files, nil
}

// answers are what is known of the rows of a generated file.
type answers struct {
	rows      int
	behaviors map[string]int64
	users     []int64 // the rows of each
	all       written
	fifth     written // those of items below fifth
}

// answersOf finds the answers for so many rows.
func answersOf(rows int) *answers {
	a := &answers{rows: rows, behaviors: map[string]int64{}, users: make([]int64, users)}
	for r := range generated(rows) {
		a.behaviors[r.behavior]++
		a.users[r.user]++
		a.all.add(r.user, r.behavior)
		if r.item < fifth {
			a.fifth.add(r.user, r.behavior)
		}
	}
	return a
}

// written is what is checked of rows of a user and a behaviour, in any order.
type written struct{ rows, sum uint64 }

func (w *written) add(user int64, behavior string) {
	h := uint64(user) + 1
	for i := range len(behavior) {
		h = h*31 + uint64(behavior[i])
	}
	h *= 0x9E3779B97F4A7C15
	w.rows++
	w.sum += h ^ h>>29
}

// times is what so many copies of the rows come to.
func (w written) times(n int) written { return written{w.rows * uint64(n), w.sum * uint64(n)} }

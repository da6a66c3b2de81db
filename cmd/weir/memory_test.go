package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// filesOf makes a file system of "-- path --" lines, each followed by a file.
func filesOf(text string) fs.FS {
	files := fstest.MapFS{}
	for _, part := range strings.Split("\n"+text, "\n-- ")[1:] {
		name, content, _ := strings.Cut(part, " --\n")
		files[name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	return files
}

// TestMemoryFound runs scripts over what a machine tells: "find" says what a worker, and what weir up
// takes of it, and how it is divided.
func TestMemoryFound(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/memory", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var given byteSize
			if d.HasArg("memory") {
				var text string
				d.ScanArgs(t, "memory", &text)
				if err := given.Set(text); err != nil {
					return err.Error() + "\n"
				}
			}
			var out strings.Builder
			for _, p := range []part{workerPart, upPart} {
				l, err := findMemory(given, filesOf(d.Input), p)
				if err != nil {
					fmt.Fprintf(&out, "warning: %v\n", err)
				}
				text := "a worker: "
				if p == upPart {
					text = "weir up: "
				}
				fmt.Fprintf(&out, "%s%s from %s\n", text, sizeText(l.bytes), l.from)
				if p == upPart {
					server, worker, err := divideUp(l, 2)
					if err != nil {
						fmt.Fprintf(&out, "  %v\n", err)
						continue
					}
					fmt.Fprintf(&out, "  server %s, two workers %s each\n", sizeText(server), sizeText(worker))
					continue
				}
				plan, err := planWorker(l)
				if err != nil {
					fmt.Fprintf(&out, "  %v\n", err)
					continue
				}
				fmt.Fprintf(&out, "  heap %s, cache %s, network %s, a channel %s\n", sizeText(plan.heap), sizeText(plan.cache), sizeText(plan.network), sizeText(plan.credit))
			}
			return out.String()
		})
	})
}

// TestSizes: sizes that are given are read as they are meant, and written so that they are read
// again.
func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "64MiB": 64 << 20, "64mb": 64 << 20, "64M": 64 << 20, "1.5G": 3 << 29, "2 GiB": 2 << 30, "1T": 1 << 40, "17k": 17 << 10, "12B": 12,
	} {
		var s byteSize
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s: %d, %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1M", "0", "1X", "1Mi B", "0x10", "1e30", "NaN", "1 2M", "infG"} {
		var s byteSize
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(1, 1<<20).Draw(t, "n") << (10 * rapid.IntRange(0, 3).Draw(t, "unit"))
		s := byteSize(want)
		var again byteSize
		if err := again.Set(s.String()); err != nil || max(again-s, s-again) > 1<<20/16 {
			t.Fatalf("%d is written %s and read %d: %v", want, s.String(), again, err)
		}
	})
}

// TestMemoryRefused: too little is a wrong command line, said before anything is opened.
func TestMemoryRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"worker --nats nats://127.0.0.1:1 --storage file:///nowhere --memory 10MiB":  "weir: --memory leaves a worker 10MiB of memory, it needs at least 64MiB\n",
		"up --data /nowhere/x --memory 100MiB":                                       "weir: --memory gives 100MiB of memory to a server and 2 workers, they need at least 192MiB\n",
		"worker --nats nats://127.0.0.1:1 --storage file:///nowhere --memory plenty": `weir: invalid argument "plenty" for "--memory" flag: "plenty" is no size: a number and one of KiB, MiB, GiB, TiB` + "\n",
	} {
		var stderr strings.Builder
		if code := execute(context.Background(), strings.Fields(args), strings.NewReader(""), &strings.Builder{}, &stderr); code != 2 || stderr.String() != want {
			t.Errorf("%s: %d %s", args, code, stderr.String())
		}
	}
}

// TestMemoryUnreadable: a limit that cannot be read is said, and the machine's counts.
func TestMemoryUnreadable(t *testing.T) {
	t.Parallel()
	files := filesOf("-- proc/self/cgroup --\n0::/\n-- proc/self/mountinfo --\n1 1 0:1 / /cg rw - cgroup2 c rw\n-- proc/meminfo --\nMemTotal: 1048576 kB").(fstest.MapFS)
	files["cg/memory.max"] = &fstest.MapFile{Mode: fs.ModeDir}
	l, err := findMemory(0, files, upPart)
	if err == nil || errors.Is(err, fs.ErrNotExist) || l.bytes != 512<<20 {
		t.Errorf("%+v %v", l, err)
	}
}

// TestSpillFolder: processes with the same data folder have folders of their own for what they
// spill, and what one left that has ended is removed.
func TestSpillFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	take := func(want string) (unlock func()) {
		t.Helper()
		dir, unlock, err := spillFolder(data)
		if err != nil || dir != filepath.Join(data, "spill", want) {
			t.Fatalf("%s, %v; want %s", dir, err, want)
		}
		return unlock
	}
	leave := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(data, "spill", name, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(data, "spill", name))
		return err == nil
	}
	first := take("0")
	second := take("1")
	leave("1")
	third := take("2")
	leave("2")
	first()
	third()
	first = take("0")
	if !there("1") || there("2") {
		t.Errorf("1 is in use and there: %v; 2 is not, and there: %v", there("1"), there("2"))
	}
	first()
	second()
	for range spillFolders {
		_, unlock, err := spillFolder(data)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
	}
	if _, _, err := spillFolder(data); err == nil || !strings.Contains(err.Error(), "no folder for spilled state below "+data+" is free") {
		t.Errorf("all are taken: %v", err)
	}
}

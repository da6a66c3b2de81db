package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A usage is what a process and its descendants have taken.
type usage struct {
	processes int
	memory    int64         // bytes, shared ones divided by who shares them (PSS)
	cpu       time.Duration // in user and kernel mode, of those that live
}

// usageOf sums over a process and its descendants.
func usageOf(pid int) (u usage, err error) {
	pids, err := descendants(pid)
	if err != nil {
		return u, err
	}
	for _, pid := range pids {
		memory, errMemory := memoryOf(pid)
		cpu, errCPU := cpuOf(pid)
		if err := errors.Join(errMemory, errCPU); err != nil {
			return u, err
		}
		u.processes++
		u.memory += memory
		u.cpu += cpu
	}
	return u, nil
}

// descendants lists a process and its descendants.
func descendants(pid int) ([]int, error) {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range stats {
		fields, err := statOf(file)
		if err != nil {
			continue // it has ended
		}
		child, errChild := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, errParent := strconv.Atoi(fields[1])
		if err := errors.Join(errChild, errParent); err != nil {
			return nil, err
		}
		children[parent] = append(children[parent], child)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

// statOf gives the fields of a stat file behind the name: state, parent and so on.
func statOf(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return nil, fmt.Errorf("%s is short: %q", file, text)
	}
	return fields, nil
}

func cpuOf(pid int) (time.Duration, error) {
	fields, err := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	kernel, errKernel := strconv.ParseInt(fields[12], 10, 64)
	const tick = time.Second / 100 // USER_HZ, the same on all machines that Go runs on
	return time.Duration(user+kernel) * tick, errors.Join(errUser, errKernel)
}

// threadTime is what the caller's thread has taken; 0 where the system does not say.
func threadTime() time.Duration {
	var t unix.Timespec // getrusage counts in ticks of 4 ms
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func memoryOf(pid int) (int64, error) {
	return figureIn(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:", 1<<10)
}

// writtenBy is what a process has handed to write, to files and sockets.
func writtenBy(pid int) (int64, error) {
	return figureIn(fmt.Sprintf("/proc/%d/io", pid), "wchar:", 1)
}

// figureIn reads the number behind a name, in units.
func figureIn(file, name string, unit int64) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n * unit, err
		}
	}
	return 0, fmt.Errorf("%s says nothing of %s", file, name)
}

// settled is the median of the memory of a process and its descendants over a while.
func settled(ctx context.Context, pid int, over time.Duration) (int64, error) {
	var all []float64
	for end := time.Now().Add(over); time.Now().Before(end); {
		u, err := usageOf(pid)
		if err != nil {
			return 0, err
		}
		all = append(all, float64(u.memory))
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return int64(median(all)), nil
}

// A watch notes the files that come to be below a folder, and how large each was at most.
type watch struct {
	dir   string
	files map[string]int64
}

// look walks the folder, without what is still being put there; it is called often, since
// files may be gone soon.
func (w *watch) look() error {
	return filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.IsDir() {
			if strings.HasPrefix(e.Name(), ".weir~") {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			w.files[path] = max(w.files[path], info.Size())
		}
		return err
	})
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"weir/exec/worker"
	"weir/transport"
)

// A byteSize is a flag like 512MiB; 0: not given.
type byteSize int64

// units are what a size may end with; all are powers of 1024.
var units = []string{"", "K", "M", "G", "T"}

// Set implements pflag.Value.
func (s *byteSize) Set(text string) error {
	number := strings.TrimRight(text, "BbiKMGTkmgt ")
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
	n, err := strconv.ParseFloat(number, 64)
	if err == nil {
		for i, u := range units {
			if bytes := n * math.Pow(1024, float64(i)); u == unit && bytes >= 1 && bytes < 1<<60 {
				*s = byteSize(bytes)
				return nil
			}
		}
	}
	return fmt.Errorf("%q is no size: a number and one of KiB, MiB, GiB, TiB", text)
}

// Type implements pflag.Value.
func (s *byteSize) Type() string { return "SIZE" }

// String implements pflag.Value.
func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	return sizeText(int64(*s))
}

// sizeText writes a size as Set reads it.
func sizeText(n int64) string {
	for i := len(units) - 1; i > 0; i-- {
		if unit := int64(1) << (10 * i); n >= unit && n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + units[i] + "iB"
		}
	}
	if n >= 1<<20 {
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "MiB"
	}
	return strconv.FormatInt(n, 10) + "B"
}

func memoryFlag(f *pflag.FlagSet, to *byteSize, help string) {
	f.Var(to, "memory", "memory, such as 2GiB (docs/memory.md; default: "+help+")")
}

const (
	leastMemory  = 64 << 20 // of a worker
	leastServer  = 64 << 20 // of the server within weir up
	mostServer   = 1 << 30
	programPages = 40 << 20 // the program's own pages, and what C libraries take, at most
)

// A part of what a process finds is its to take.
type part struct{ of, all int64 }

var (
	workerPart = part{3, 4} // of the machine's memory: others live there too
	upPart     = part{1, 2} // of it, for all processes of weir up
)

// findMemory says how much memory there is to take: what was given, or else the limit of the control group
// less a little for the kernel's pages, or else a part of the machine's memory. 0 bytes: nobody
// knows. What could not be read is beside it.
func findMemory(given byteSize, root fs.FS, p part) (limit, error) {
	if given > 0 {
		return limit{int64(given), "--memory"}, nil
	}
	group, err := cgroupLimit(root)
	machine, err2 := machineMemory(root)
	err = errors.Join(err, err2)
	if group.bytes <= machine.bytes || machine.bytes == 0 && group != none {
		group.bytes = max(group.bytes-max(group.bytes/16, 16<<20), 1) // 0 would be no limit
		return group, err
	}
	machine.bytes = machine.bytes / p.all * p.of
	return machine, err
}

// A memoryPlan is how a worker's memory is meant to be used.
type memoryPlan struct {
	budget  limit
	heap    int64 // of Go's runtime
	cache   int64 // of what is on disk; beside the heap
	network int64 // in flight to this process
	credit  int64 // of a single channel
}

// planWorker divides a worker's memory. A limit of 0 gives a plan without limits.
func planWorker(l limit) (memoryPlan, error) {
	if l.bytes == 0 {
		return memoryPlan{}, nil
	}
	if l.bytes < leastMemory {
		return memoryPlan{}, fmt.Errorf("%s leaves a worker %s of memory, it needs at least %s: %w", l.from, sizeText(l.bytes), sizeText(leastMemory), errUsage)
	}
	p := memoryPlan{budget: l, cache: min(max(l.bytes/16, 2<<20), 512<<20)}
	// The cache's blocks are of many sizes: the C library takes up to 2.4 times as much for them.
	p.heap = l.bytes - min(l.bytes/4, programPages) - p.cache*5/2
	p.network = min(p.heap/8, 32<<20)
	p.credit = min(p.heap/64, 8<<20)
	return p, nil
}

// divideUp divides the memory of weir up: the server's part, and each worker's.
func divideUp(l limit, workers int) (server, worker int64, err error) {
	if l.bytes == 0 {
		return 0, 0, nil
	}
	server = min(max(l.bytes/8, leastServer), mostServer)
	worker = (l.bytes - server) / int64(workers)
	if worker < leastMemory {
		least := int64(leastServer) + int64(workers)*leastMemory
		return 0, 0, fmt.Errorf("%s gives %s of memory to a server and %d workers, they need at least %s: %w", l.from, sizeText(l.bytes), workers, sizeText(least), errUsage)
	}
	return server, worker, nil
}

// limitHeap tells Go's runtime its limit, unless the environment has: that one counts then.
// It returns what counts.
func limitHeap(bytes int64, log *slog.Logger) int64 {
	if text := os.Getenv("GOMEMLIMIT"); text != "" {
		now := debug.SetMemoryLimit(-1)
		if bytes > 0 {
			log.Info("GOMEMLIMIT of the environment counts for the heap, not what the memory budget leaves it", "gomemlimit", text, "left", sizeText(bytes))
			return min(now, bytes)
		}
		if now == math.MaxInt64 {
			return 0
		}
		return now
	}
	if bytes > 0 {
		debug.SetMemoryLimit(bytes)
	}
	return bytes
}

// leadGC hands the garbage collector to the worker, unless the environment sets it.
func leadGC(m *worker.Memory) {
	if os.Getenv("GOGC") == "" {
		m.SetGC, m.Free = func(percent int) { debug.SetGCPercent(percent) }, debug.FreeOSMemory
	}
}

// limit gives transport its bounds.
func (p memoryPlan) limit(o transport.Options) transport.Options {
	o.Budget, o.Limits.MaxCredit = int(p.network), int(p.credit)
	return o
}

//go:build killpoints

package killpoint

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// process is what this process has in store for itself. It is the one state of a package
// that exists in test builds only: a point has nothing to carry it.
var process = sync.OnceValue(func() *passages {
	plan, err := parse(os.Getenv("WEIR_KILL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "killpoint:", err)
		os.Exit(2)
	}
	return &passages{plan: plan}
})

// passages counts those of the plan's point.
type passages struct {
	plan plan
	n    atomic.Int64
}

// Here kills or stops the process, if its plan says so.
func Here(point string) {
	p := process()
	if p.plan.point != point || !p.plan.isArmed() || p.n.Add(1) != p.plan.passage {
		return
	}
	if p.plan.stop {
		fmt.Fprintln(os.Stderr, "killpoint: stopped at", point)
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		fmt.Fprintln(os.Stderr, "killpoint: goes on from", point)
		return
	}
	fmt.Fprintln(os.Stderr, "killpoint: killed at", point)
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // not a step further
}

package exec

import (
	"syscall"
	"time"
)

// coreTime is what the calling thread has had of a core so far: of use to a goroutine that is
// locked to its thread.
func coreTime(func() time.Time) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

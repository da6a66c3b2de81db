//go:build !linux

package exec

import "time"

// coreTime is the time on the clock, where the system does not tell a thread's share of a core.
func coreTime(now func() time.Time) time.Duration { return time.Duration(now().UnixNano()) }

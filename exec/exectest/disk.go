package exectest

import (
	"testing"

	"weir/exec/state"
)

// MemoryDisk is a disk for state, in memory. The caller closes it.
func MemoryDisk(tb testing.TB) *state.Disk {
	tb.Helper()
	d, err := state.NewDisk("spill", state.DiskOptions{Memory: true})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

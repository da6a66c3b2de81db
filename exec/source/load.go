//go:build !race && (amd64 || arm64 || riscv64 || loong64 || ppc64le)

package source

import "unsafe"

// load reads eight bytes, the first one lowest. It trusts its callers that they are there,
// which saves a scanner most of its instructions; a build with the race detector looks.
func load(b []byte, p int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), p))
}

//go:build race || !(amd64 || arm64 || riscv64 || loong64 || ppc64le)

package source

import "encoding/binary"

// load reads eight bytes, the first one lowest.
func load(b []byte, p int) uint64 { return binary.LittleEndian.Uint64(b[p : p+8]) }

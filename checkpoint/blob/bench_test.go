package blob_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"weir/checkpoint/blob"
	"weir/checkpoint/blob/s3test"
)

// BenchmarkStore puts and gets objects of the sizes that checkpoints have.
func BenchmarkStore(b *testing.B) {
	server := s3test.Start(b)
	for name, s := range map[string]blob.Store{"folder": openFolder(b, b.TempDir()), "s3": server.Open(b, "bench")} {
		for _, size := range []int{1 << 10, 1 << 20, 64 << 20} {
			data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
			b.Run(fmt.Sprintf("%s/put/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				for i := range b.N {
					if err := s.Put(b.Context(), fmt.Sprintf("job/attempt/op-0/%d-%d", i, size), bytes.NewReader(data)); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("%s/get/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				for range b.N {
					r, err := s.Get(b.Context(), fmt.Sprintf("job/attempt/op-0/0-%d", size), 0, -1)
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, r); err != nil || n != int64(size) {
						b.Fatal(n, err)
					}
					_ = r.Close()
				}
			})
		}
	}
}

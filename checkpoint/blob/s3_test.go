package blob_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"weir/checkpoint/blob"
	"weir/checkpoint/blob/blobtest"
	"weir/checkpoint/blob/s3test"
)

func TestS3Conformance(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	prefix := numbered()
	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		blobtest.Run(t, func(t *testing.T) blob.Store { return server.Open(t, prefix()) })
	})
	t.Run("in parts", func(t *testing.T) {
		t.Parallel()
		blobtest.Run(t, func(t *testing.T) blob.Store {
			s := server.Open(t, prefix())
			s.(*blob.S3).AlwaysParts()
			return s
		})
	})
}

// numbered returns prefixes that no other test of the server has.
func numbered() func() string {
	var n atomic.Int64
	return func() string { return "p" + strconv.FormatInt(n.Add(1), 10) + "/q" }
}

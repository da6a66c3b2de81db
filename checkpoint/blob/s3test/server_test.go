package s3test_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"weir/checkpoint/blob/s3test"
)

// TestProgram builds the server's program if need be, which takes minutes the first
// time (make deps runs this); the server keeps its objects over a restart, and is gone
// when it is stopped.
func TestProgram(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	s := server.Open(t, "p")
	if err := s.Put(t.Context(), "k", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := net.Dial("tcp", server.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Stop: %v", err)
	}
	server.Restart(t)
	if size, err := s.Stat(t.Context(), "k"); size != 1 || err != nil {
		t.Errorf("after Restart: %d bytes, %v", size, err)
	}
}

package transport

import (
	"net"
	"sync/atomic"
)

// A dialer makes the sockets of a connection.
type dialer struct {
	dial func(network, address string) (net.Conn, error)
}

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.dial(network, address)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: conn}, nil
}

// A socket is closed by a write that fails, so that the connection is made anew. nats.go has
// forgotten what was to be written, a subscription perhaps, and would go on without it where
// a full socket has taken nothing within the time, and has room again later.
type socket struct {
	net.Conn
	failed atomic.Pointer[error] // why a write did
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		s.failed.CompareAndSwap(nil, &err)
		_ = s.Close() // what counts is said by the write
	}
	return n, err
}

// Read implements net.Conn. It says why the socket is closed: nats.go notices it here.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if why := s.failed.Load(); err != nil && why != nil {
		err = *why
	}
	return n, err
}

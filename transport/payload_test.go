package transport_test

import (
	"errors"
	"strings"
	"testing"

	"weir"
	"weir/transport"
)

// TestTinyMaxPayload: a NATS server that takes next to nothing is refused at the start.
func TestTinyMaxPayload(t *testing.T) {
	t.Parallel()
	for most, fits := range map[int]bool{4 << 10: false, 5 << 10: true} {
		ns, err := transport.StartServer(t.Context(), transport.ServerOptions{MaxPayload: most})
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Stop()
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: ns.URL(), Name: "t"})
		if err == nil {
			c.Close()
		}
		switch {
		case fits && err != nil:
			t.Error(err)
		case !fits && (!errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "the max_payload of the NATS server at "+ns.URL()+" is 4096 bytes, and weir needs at least 4")):
			t.Errorf("max_payload %d: %v", most, err)
		}
	}
}

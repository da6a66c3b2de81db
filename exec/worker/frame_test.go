package worker_test

import (
	"errors"
	"strings"
	"testing"

	"weir"
	"weir/exec/deploy"
)

// TestFrameLimit: a worker whose NATS takes less than the server's refuses its tasks
// by name, and takes them another time: NATS may have come back with less meanwhile.
func TestFrameLimit(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, endless)
	m.FrameLimit = 1 << 20
	const want = "the NATS server of worker w1 takes frames of 102400 bytes, that of the server took 261120"
	if _, err := h.ask(deploy.KindDeploy, m); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), want) {
		t.Errorf("a deployment with larger frames: %v", err)
	}
	m.FrameLimit = 100 << 10
	h.must(deploy.KindDeploy, m)
}

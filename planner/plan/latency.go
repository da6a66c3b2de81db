package plan

import (
	"fmt"
	"time"
)

// DefaultLatency and MaxLatency are the latency target of a job that names none, and the
// greatest one.
const (
	DefaultLatency = 50 * time.Millisecond
	MaxLatency     = 10 * time.Second
)

// CheckLatency reads a latency target: 0 (every batch goes at once), or 1ms to MaxLatency.
// Empty is the default.
func CheckLatency(text string) (time.Duration, error) {
	if text == "" {
		return DefaultLatency, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("is %q: give a duration such as \"50ms\", \"1s\" or \"0s\"", text)
	case d != 0 && d < time.Millisecond || d > MaxLatency:
		return 0, fmt.Errorf("is %v: give 0s (every batch goes at once), or 1ms to %v", d, MaxLatency)
	}
	return d, nil
}

// Latency is how long the tasks of a valid graph let rows wait for company while whoever
// reads them is busy.
func (g *Graph) Latency() time.Duration {
	d, err := CheckLatency(g.LatencyTarget)
	if err != nil {
		return DefaultLatency
	}
	return d
}

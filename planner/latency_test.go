package planner

import "testing"

// TestLatencyTarget: it is set by any of its names, and the job's request has to agree.
func TestLatencyTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, set, said, want string }{
		{"", "", "", ""},
		{"", "", "20ms", "20ms"},
		{"", "", "never", ""}, // refused with the request
		{"latency_target", "50 ms", "", "50ms"},
		{"latency_target", "0", "", "0s"},
		{"execution.buffer-timeout.interval", "2 s", "", "2s"},
		{"execution.buffer-timeout", "100ms", "0.1s", "100ms"},
		{"execution.buffer-timeout", "1 s", "20ms", "line 1, column 34: latency_target is '1s' here and '20ms' in the job's request (say it once)"},
		{"latency_target", "50", "", "line 1, column 24: SET 'latency_target': '50' is not a duration such as '10 s', '500 ms' or '1 min'"},
		{"latency_target", "-1 ms", "", "line 1, column 24: SET 'latency_target': '-1 ms' is negative"},
		{"latency_target", "20 s", "", "line 1, column 24: SET 'latency_target': it is 20s: give 0s (every batch goes at once), or 1ms to 10s"},
		{"latency_target", "5us", "", "line 1, column 24: SET 'latency_target': it is 5µs: give 0s (every batch goes at once), or 1ms to 10s"},
		{"execution.buffer-timeout.enabled", "false", "", "line 1, column 5: there is no option 'execution.buffer-timeout.enabled' (leave it out: SET 'latency_target' = '0 s' has every batch go at once)"},
	} {
		text := "SELECT 1"
		if c.key != "" {
			text = "SET '" + c.key + "' = '" + c.set + "'; " + text
		}
		var got string
		if r, err := Plan(text, nil, Options{LatencyTarget: c.said}); err != nil {
			got = err.Error()
		} else {
			got = r.Graph.LatencyTarget
		}
		if got != c.want {
			t.Errorf("SET %q = %q, request %q: got %q, want %q", c.key, c.set, c.said, got, c.want)
		}
	}
}

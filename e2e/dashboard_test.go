//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The user's paths through the dashboard, in headless Chromium.
func TestDashboard(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	start(t, "up", dir, "up", "--demo", "--data", filepath.Join(dir, "data"), "--listen", address)
	a := api{t, "http://" + address}
	until(t, 20*time.Second, "weir up is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	cmd := exec.CommandContext(t.Context(), "node", "e2e/dashboard.mjs", a.base)
	if shots := os.Getenv("WEIR_SCREENSHOTS"); shots != "" {
		cmd.Args = append(cmd.Args, shots)
	}
	cmd.Dir = "../web"
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

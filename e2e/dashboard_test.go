//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The user's paths through the dashboard, in headless Chromium.
func TestDashboard(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	writeRejects(t, filepath.Join(dir, "rejects"))
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

// writeRejects writes three files, of which the second has a row at fault in line 7.
func writeRejects(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"1.csv": "a,1\n", "2.csv": strings.Repeat("a,1\n", 6) + "<img src=x onerror=alert(1)>,one\nb,2\n", "3.csv": "b,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

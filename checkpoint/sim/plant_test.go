//go:build planted

package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	hunt   = flag.Bool("hunt", false, "run seeds until the first that fails, and say how many it took")
	script = flag.String("script", "", "hunt with what goes wrong in this script, instead of what each seed draws")
)

// TestHunt is what a program with a planted fault runs.
func TestHunt(t *testing.T) {
	if !*hunt {
		return
	}
	run := func(s uint64) *tape { return newTape(s) }
	if *script != "" {
		text, err := os.ReadFile(*script)
		if err != nil {
			t.Fatal(err)
		}
		same, err := parseScript(string(text))
		if err != nil {
			t.Fatal(err)
		}
		run = func(s uint64) *tape {
			same.seed = s
			return same.replay()
		}
	}
	for s := *first; s < *first+*seeds; s++ {
		played := run(s)
		if r := play(played); r.Err != nil {
			fmt.Printf("caught after %d seeds: %v\n", s-*first+1, r.Err)
			if *script != "" {
				fmt.Print(smaller(played, func(t *tape) bool { return play(t).Err != nil }).script())
			}
			return
		}
	}
	fmt.Printf("not caught by %d seeds\n", *seeds)
}

// TestPlanted plants one known fault after the other: the simulation finds each.
func TestPlanted(t *testing.T) {
	if *hunt {
		return
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caught := regexp.MustCompile(`caught after (\d+) seeds: (.*)`)
	for _, p := range plants() {
		t.Run(p.name, func(t *testing.T) {
			program := p.build(t, root)
			began := time.Now()
			if p.script != "" {
				out, err := exec.CommandContext(t.Context(), program, "-test.run=TestScripts/"+p.script+"$").CombinedOutput()
				if err == nil || !strings.Contains(string(out), "FAIL: TestScripts/"+p.script) {
					t.Fatalf("%s was not found by script %s: %v\n%s", p.name, p.script, err, out)
				}
				t.Logf("%-28s script %s", p.name, p.script)
				return
			}
			out, err := exec.CommandContext(t.Context(), program, "-hunt", "-test.run=TestHunt$", fmt.Sprintf("-seeds=%d", 20000)).CombinedOutput()
			m := caught.FindSubmatch(out)
			if err != nil || m == nil {
				t.Fatalf("%s was not found: %v\n%s", p.name, err, out)
			}
			t.Logf("%-28s %5s seeds  %4.1f s  %s", p.name, m[1], time.Since(began).Seconds(), m[2])
		})
	}
}

// build compiles this test with the fault.
func (p plant) build(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, p.file)
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), p.old); n != 1 {
		t.Fatalf("%s holds the place %d times, not once; plant it anew where the code is now:\n%s", p.file, n, p.old)
	}
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{changed: []byte(strings.Replace(string(source), p.old, p.new, 1)), overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "planted", "-overlay", overlay, "-o", program, "./checkpoint/sim")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s does not build: %v\n%s", p.name, err, out)
	}
	return program
}

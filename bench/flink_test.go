package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestJavaVersion(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment": "17.0.15",
		`openjdk version "21" 2023-09-19`:                                     "21",
		`java version "1.8.0_402"`:                                            "",
		`openjdk version "11.0.2"`:                                            "",
		"no Java here":                                                        "",
	} {
		got, err := javaVersion(out)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("javaVersion(%q) = %q, %v; want %q", out, got, err, want)
		}
	}
}

func TestFlinkAnswers(t *testing.T) {
	t.Parallel()
	got, err := flinkAnswers("2> +I[pv, 1]\n1> +I[buy, 3]\n2> -U[pv, 1]\n2> +U[pv, 12]\n{\"seconds\":1}\n")
	if want := map[string]int64{"pv": 12, "buy": 3}; err != nil || !maps.Equal(got, want) {
		t.Errorf("answers are %v, %v; want %v", got, err, want)
	}
	for _, out := range []string{"+I[pv]\n", "+I[pv, many]\n", "+I[pv, 99999999999999999999]\n", "a fault\n"} {
		if got, err := flinkAnswers(out); err == nil {
			t.Errorf("answers of %q are %v", out, got)
		}
	}
}

func TestFlinkArguments(t *testing.T) {
	t.Parallel()
	rows := t.TempDir()
	ask := flinkAsk{query: "user", path: rows, format: "csv", backend: "rocksdb", settings: []string{"parallelism.default=1"}}
	args, err := ask.args("/f", "blackhole")
	if err != nil {
		t.Fatal(err)
	}
	split := slices.Index(args, "--")
	settings, statements := args[:split], args[split+1:]
	for _, s := range []string{"state.backend.type=rocksdb", "execution.checkpointing.dir=file:///f/checkpoints", "pipeline.object-reuse=true"} {
		if !slices.Contains(settings, s) {
			t.Errorf("the settings %q lack %q", settings, s)
		}
	}
	if settings[len(settings)-1] != "parallelism.default=1" {
		t.Errorf("the asker's setting is not the last of %q", settings)
	}
	if len(statements) != 3 || !strings.Contains(statements[0], "'path'='file://"+rows+"','format'='csv'") ||
		statements[2] != "INSERT INTO snk SELECT user_id, COUNT(*) FROM src GROUP BY user_id" {
		t.Errorf("statements are %q", statements)
	}
	for _, mini := range []bool{false, true} {
		if got := slices.Contains(flinkAsk{miniBatch: mini}.flinkSettings("/f"), "table.exec.mini-batch.enabled=true"); got != mini {
			t.Errorf("mini-batch %v has the setting: %v", mini, got)
		}
	}
	if args, err := (flinkAsk{query: "nothing"}).args("/f", "blackhole"); err == nil {
		t.Errorf("an unknown query has arguments %q", args)
	}
}

// What could not be made whole is made again.
func TestMadeOnce(t *testing.T) {
	t.Parallel()
	dir, made := t.TempDir(), 0
	fill := func(fault error) func(string) error {
		return func(to string) error {
			made++
			return errors.Join(fault, os.WriteFile(filepath.Join(to, "part"), nil, 0o644))
		}
	}
	if got, err := madeOnce(dir, "it", []byte("a"), fill(os.ErrClosed)); err == nil {
		t.Errorf("made %q of what failed", got)
	}
	first, err := madeOnce(dir, "it", []byte("a"), fill(nil))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := madeOnce(dir, "it", []byte("a"), fill(nil)); err != nil || again != first || made != 2 {
		t.Errorf("made again: %q, %v, %d times", again, err, made)
	}
	if other, err := madeOnce(dir, "it", []byte("b"), fill(nil)); err != nil || other == first {
		t.Errorf("made of something else: %q, %v", other, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*half*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// The parts have all lines, whole, and none is empty where there are lines enough.
func TestInParts(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{"", "a\n", "a\nbb\nccc\n", "a\nbb\nccc", "a\n\n\n\nb\n", strings.Repeat("0123456789\n", 5000)} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		dir, err := inParts(path, filepath.Join(t.TempDir(), "parts"), 2)
		if err != nil {
			t.Fatal(err)
		}
		first, errFirst := os.ReadFile(filepath.Join(dir, "0"))
		second, errSecond := os.ReadFile(filepath.Join(dir, "1"))
		if err := errors.Join(errFirst, errSecond); err != nil {
			t.Fatal(err)
		}
		if string(first)+string(second) != lines {
			t.Errorf("the parts of %q are %q and %q", lines, first, second)
		}
		if len(second) > 0 && !strings.HasSuffix(string(first), "\n") || strings.Count(lines, "\n") > 3 && len(second) == 0 {
			t.Errorf("%q is cut into %q and %q", lines, first, second)
		}
		if same, err := inParts(dir, "", 2); err != nil || same != dir {
			t.Errorf("a folder became %q, %v", same, err)
		}
	}
}

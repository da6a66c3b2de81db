package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	//go:embed flink/pom.xml
	flinkPom []byte
	//go:embed flink/Job.java
	flinkJob []byte
)

// errNoJava says that Flink cannot run here: no Java 17 or newer, or no Maven.
var errNoJava = errors.New("flink needs a JDK of Java 17 or newer, and Maven (mvn)")

// flinkClock is the file by which Flink finds the program's clock, in the form of Java's services.
const flinkClock = "META-INF/services/org.apache.flink.metrics.reporter.MetricReporterFactory"

// flink runs jobs on Flink's embedded cluster, each in a process of its own.
type flink struct {
	java, version string
	classes       string // a class path
}

// openFlink makes Flink ready: Maven's artefacts and the compiled program are kept in
// dir/flink, under the hash of what they are made of.
func openFlink(ctx context.Context, dir string) (*flink, error) {
	f := &flink{}
	var err error
	if f.java, f.version, err = findJava(ctx); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(filepath.Join(dir, "flink")); err != nil {
		return nil, err
	}
	artefacts, err := madeOnce(dir, "artefacts", flinkPom, func(to string) error {
		pom := filepath.Join(to, "pom.xml")
		if err := os.WriteFile(pom, flinkPom, 0o644); err != nil {
			return err
		}
		return quietly(ctx, "mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+to)
	})
	if err != nil {
		return nil, fmt.Errorf("fetching Flink: %w", err)
	}
	jars := filepath.Join(artefacts, "*")
	program, err := madeOnce(dir, "program", slices.Concat(flinkPom, flinkJob), func(to string) error {
		source, services := filepath.Join(to, "Job.java"), filepath.Join(to, flinkClock)
		if err := os.MkdirAll(filepath.Dir(services), 0o755); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(source, flinkJob, 0o644), os.WriteFile(services, []byte("Job$Clock\n"), 0o644)); err != nil {
			return err
		}
		return quietly(ctx, filepath.Join(filepath.Dir(f.java), "javac"), "--release", "17", "-cp", jars, "-d", to, source)
	})
	if err != nil {
		return nil, fmt.Errorf("compiling Flink's job: %w", err)
	}
	f.classes = program + string(filepath.ListSeparator) + jars
	return f, nil
}

// findJava finds java, javac and mvn: JAVA_HOME's first, as Maven has it.
func findJava(ctx context.Context) (java, version string, err error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	} else if java, err = exec.LookPath("java"); err != nil {
		return "", "", fmt.Errorf("%w: %w", errNoJava, err)
	}
	if java, err = filepath.EvalSymlinks(java); err != nil { // javac lies beside it
		return "", "", fmt.Errorf("%w: %w", errNoJava, err)
	}
	if _, err := exec.LookPath(filepath.Join(filepath.Dir(java), "javac")); err != nil {
		return "", "", fmt.Errorf("%w: %w", errNoJava, err)
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", "", fmt.Errorf("%w: %w", errNoJava, err)
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("%w: java -version: %w", errNoJava, err)
	}
	if version, err = javaVersion(string(out)); err != nil {
		return "", "", fmt.Errorf("%w: %w", errNoJava, err)
	}
	return java, version, nil
}

var javaVersionLine = regexp.MustCompile(`version "((\d+)[^"]*)"`)

// javaVersion reads what java -version prints: 17.0.15 in `openjdk version "17.0.15" 2025-04-15`.
func javaVersion(out string) (string, error) {
	found := javaVersionLine.FindStringSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("java -version says %q", out)
	}
	if major, err := strconv.Atoi(found[2]); err != nil || major < 17 {
		return "", fmt.Errorf("this is Java %s", found[1])
	}
	return found[1], nil
}

// madeOnce returns a folder that make has filled, now or in an earlier run.
func madeOnce(dir, name string, of []byte, fill func(to string) error) (string, error) {
	made := filepath.Join(dir, fmt.Sprintf("%s-%x", name, sha256.Sum256(of))[:len(name)+17])
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		return made, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(dir, name+"-half-") // what was stopped halfway is not taken for whole
	if err != nil {
		return "", err
	}
	if err := fill(half); err != nil {
		return "", errors.Join(err, os.RemoveAll(half))
	}
	return made, os.Rename(half, made)
}

// quietly runs a command whose output is of interest only when it fails.
func quietly(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return nil
}

// A flinkRun is what one job took, in a process of its own.
type flinkRun struct {
	// Seconds are from the first row that an operator took to the last, by looks at Flink's
	// counts of records 10 ms apart: without the start of the JVM and of the cluster, planning
	// and the making of tasks before, and without the wait for the last checkpoint and the end
	// of the cluster after.
	Seconds float64 `json:"seconds"`
	// Job is Flink's own net runtime: also the making of tasks and the last checkpoint.
	Job  float64 `json:"job_seconds"`
	Wall float64 `json:"wall_seconds"` // the whole process
	CPU  float64 `json:"cpu_seconds"`  // of the whole process, user and system
	Peak int64   `json:"peak_bytes"`   // the most that was resident
}

// run runs a query into nowhere.
func (f *flink) run(ctx context.Context, a flinkAsk) (flinkRun, error) {
	var r flinkRun
	out, state, wall, err := f.start(ctx, a, "blackhole")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("flink says %q: %w", out, err)
	}
	r.Wall = wall.Seconds()
	r.CPU = (state.UserTime() + state.SystemTime()).Seconds()
	if used, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.Peak = used.Maxrss << 10
	}
	return r, nil
}

// answers runs a query that counts by a key, as run does but for a sink that prints, and
// returns each key's last count, so that they can be checked. It is not for measuring.
func (f *flink) answers(ctx context.Context, a flinkAsk) (map[string]int64, error) {
	out, _, _, err := f.start(ctx, a, "print")
	if err != nil {
		return nil, err
	}
	return flinkAnswers(string(out))
}

// flinkPrinted is a change that Flink's print sink prints: the subtask, what becomes of the
// row (+I, -U and +U: it comes, it was, it is now), and its columns.
var flinkPrinted = regexp.MustCompile(`^(?:\d+> )?([-+])[IU]\[([^,]*), (\d+)\]$`)

// flinkAnswers follows the changes: those of a key are in order, for one subtask has it.
func flinkAnswers(out string) (map[string]int64, error) {
	counts := map[string]int64{}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "{") {
			continue // how long it took
		}
		change := flinkPrinted.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if change == nil {
			return nil, fmt.Errorf("flink answers %q", line)
		}
		n, err := strconv.ParseInt(change[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("flink answers %q: %w", line, err)
		}
		if change[1] == "+" {
			counts[change[2]] = n
		}
	}
	return counts, nil
}

// start runs the program to its end. Its checkpoints and what else it writes are in a
// folder that is removed.
func (f *flink) start(ctx context.Context, a flinkAsk, sink string) (out []byte, state *os.ProcessState, wall time.Duration, err error) {
	work, err := os.MkdirTemp("", "weir-bench-flink-")
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	args, err := a.args(work, sink)
	if err != nil {
		return nil, nil, 0, err
	}
	args = append(append(flinkJVM(work), a.jvm...), append([]string{"-cp", f.classes, "Job"}, args...)...)
	cmd := exec.CommandContext(ctx, f.java, args...)
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var result bytes.Buffer
	log := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = &result, log
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, nil, 0, fmt.Errorf("flink, %s: %w\n%s", a.query, err, log)
	}
	return result.Bytes(), cmd.ProcessState, time.Since(began), nil
}

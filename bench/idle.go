package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// idleBench measures what a job takes that has nothing to do: one and many in weir up.
type idleBench struct {
	jobs, seconds int
}

func (b *idleBench) flags(f *flag.FlagSet) {
	f.IntVar(&b.jobs, "jobs", 51, "jobs of the larger run")
	f.IntVar(&b.seconds, "seconds", 60, "of looking at each, once they have run for 20 s")
}

// idleFigures are those of so many jobs.
type idleFigures struct {
	Jobs        int     `json:"jobs"`
	Parallelism int     `json:"parallelism"`
	Workers     int     `json:"workers"`
	Processes   int     `json:"processes"`
	Memory      int64   `json:"bytes"`
	Cores       float64 `json:"cores"`
	Checkpoints int     `json:"checkpoints"`
	Objects     int     `json:"objects_written"`
	Manifests   int     `json:"manifests_written"`
	Bytes       int64   `json:"bytes_written"`
	// Others are what was written besides.
	Others []string `json:"others,omitempty"`
}

func (b *idleBench) run(ctx context.Context, c common) (any, string, error) {
	var all []idleFigures
	for _, s := range []struct{ jobs, parallelism, workers, slots int }{{1, 1, 2, 4}, {1, 1, 1, 2 * b.jobs}, {b.jobs, 1, 1, 2 * b.jobs}, {1, 2, 2, 2 * b.jobs}, {b.jobs, 2, 2, 2 * b.jobs}} {
		f, err := b.measure(ctx, c, s.jobs, s.parallelism, s.workers, s.slots)
		if err != nil {
			return nil, "", err
		}
		all = append(all, f)
	}
	var w strings.Builder
	w.WriteString("| idle jobs | parallelism | workers | memory of all processes, MiB | of a core, % | checkpoints | objects written for one | of these manifests | bytes |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		n := float64(max(f.Checkpoints, 1))
		fmt.Fprintf(&w, "| %d | %d | %d | %.1f | %.2f | %d | %.2f | %.2f | %.0f |\n", f.Jobs, f.Parallelism, f.Workers, mebibytes(f.Memory), 100*f.Cores, f.Checkpoints, float64(f.Objects)/n, float64(f.Manifests)/n, float64(f.Bytes)/n)
	}
	w.WriteString("\n")
	for _, pair := range [][2]idleFigures{{all[1], all[2]}, {all[3], all[4]}} {
		one, many := pair[0], pair[1]
		more := float64(many.Jobs - one.Jobs)
		fmt.Fprintf(&w, "A further job at parallelism %d takes %.2f MiB (target < 5) and %.3f %% of a core (target < 0.1).\n", one.Parallelism, mebibytes(many.Memory-one.Memory)/more, 100*(many.Cores-one.Cores)/more)
	}
	fmt.Fprintf(&w, "weir up with one small job takes %.0f MiB (target < 150).\n", mebibytes(all[0].Memory))
	return all, w.String(), nil
}

const idleQuery = `CREATE TABLE g (user_id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0.0001');
SELECT user_id % 10 AS k, COUNT(*) AS n FROM g GROUP BY 1;`

func (b *idleBench) measure(ctx context.Context, c common, jobs, parallelism, workers, slots int) (f idleFigures, err error) {
	u, err := launchUp(ctx, c.weir, os.TempDir(), workers, slots)
	if err != nil {
		return f, err
	}
	defer u.end()
	f = idleFigures{Jobs: jobs, Parallelism: parallelism, Workers: workers}
	for i := range jobs {
		if err := u.api.submitAt(ctx, fmt.Sprintf("idle-%d", i), idleQuery, parallelism); err != nil {
			return f, err
		}
	}
	for i := range jobs {
		if err := u.api.awaitStatus(ctx, fmt.Sprintf("idle-%d", i), "RUNNING", time.Minute); err != nil {
			return f, err
		}
	}
	if err := pause(ctx, 20*time.Second); err != nil {
		return f, err
	}
	if err := b.watch(ctx, u, &f); err != nil {
		return f, err
	}
	f.Memory, err = settled(ctx, u.cmd.Process.Pid, 5*time.Second)
	fmt.Fprintf(os.Stderr, "idle: %d jobs at parallelism %d: %.1f MiB, %.2f %% of a core\n", jobs, parallelism, mebibytes(f.Memory), 100*f.Cores)
	return f, err
}

// watch sees what is used and written for a while.
func (b *idleBench) watch(ctx context.Context, u *upProcess, f *idleFigures) error {
	w := &watch{dir: filepath.Join(u.dir, "objects"), files: map[string]int64{}}
	if err := w.look(); err != nil {
		return err
	}
	known := len(w.files)
	old := map[string]bool{}
	for path := range w.files {
		old[path] = true
	}
	from := time.Now()
	before, err := usageOf(u.cmd.Process.Pid)
	if err != nil {
		return err
	}
	// Walking costs the bench's process, not the ones measured.
	for time.Since(from) < time.Duration(b.seconds)*time.Second {
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
	}
	after, err := usageOf(u.cmd.Process.Pid)
	if err != nil {
		return err
	}
	f.Processes, f.Cores = after.processes, (after.cpu-before.cpu).Seconds()/time.Since(from).Seconds()
	f.Objects = len(w.files) - known
	for path, size := range w.files {
		if !old[path] {
			f.Bytes += size
			if filepath.Base(path) == "manifest" {
				f.Manifests++
			} else {
				f.Others = append(f.Others, strings.TrimPrefix(path, w.dir))
			}
		}
	}
	return b.count(ctx, u, from, f)
}

// count counts the checkpoints since a moment.
func (b *idleBench) count(ctx context.Context, u *upProcess, from time.Time, f *idleFigures) error {
	for i := range f.Jobs {
		w := &windowed{&cluster{api: u.api}, fmt.Sprintf("idle-%d", i)}
		list, err := w.completed(ctx, from)
		if err != nil {
			return err
		}
		f.Checkpoints += len(list)
	}
	return nil
}

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A disk is a small file system of its own at a folder. Only processes that are put on it see
// it; it goes with the process that holds it, which goes with the test binary.
type disk struct {
	t      *testing.T
	holder *exec.Cmd
	path   string // as the test sees it
}

// startDisk makes a disk of that many MiB.
func startDisk(t *testing.T, at string, size int) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: needs root")
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("sh", "-c", fmt.Sprintf("mount --make-rprivate / && mount -t tmpfs -o size=%dm weir-test %q && echo mounted && exec sleep infinity", size, at))
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS}
	said := &syncBuffer{}
	holder.Stdout, holder.Stderr = said, said
	if err := holder.Start(); err != nil {
		if os.Getenv("CI") != "true" {
			t.Skip("not run: needs root")
		}
		t.Fatalf("a mount namespace: %v", err)
	}
	t.Cleanup(func() {
		holder.Process.Kill()
		holder.Wait()
		if t.Failed() {
			t.Logf("who holds the disk said: %s", said)
		}
	})
	until(t, 20*time.Second, "the disk is there", func() bool { return strings.Contains(said.String(), "mounted") })
	return &disk{t, holder, filepath.Join(fmt.Sprintf("/proc/%d/root", holder.Process.Pid), at)}
}

// on is the command, run in a folder, with the disk in its place.
func (d *disk) on(cmd *exec.Cmd, folder string) *exec.Cmd {
	proc := fmt.Sprintf("/proc/%d", d.holder.Process.Pid)
	enter := []string{"--mount=" + proc + "/ns/mnt", "--root=" + proc + "/root", "--", "sh", "-c", `cd "$0" && exec "$@"`, folder, cmd.Path}
	c := exec.Command("nsenter", append(enter, cmd.Args[1:]...)...)
	c.Env, c.Dir, c.ExtraFiles = cmd.Env, cmd.Dir, cmd.ExtraFiles
	return c
}

// fill leaves no room, and empty gives it back.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.path, ".ballast"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(piece)
	}
	d.t.Log("the disk is full: ", err)
}

func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.path, ".ballast")); err != nil {
		d.t.Fatal(err)
	}
	d.t.Log("the disk has room")
}

// R17: the disk that a sink writes to is full. The job says so, and tries again and again;
// a worker that is told to end meanwhile does, in time and well. Once there is room the job
// goes on by itself, and no row is lost or doubled.
func TestSinkFull(t *testing.T) {
	t.Parallel()
	var full *disk
	o := startOutageWith(t, nil, setting{"sqlite", "folder"}, func(d *doomed) {
		full = startDisk(t, filepath.Join(d.dir, outageJob+"-copy"), 16)
		d.disk = full
	}, 8*time.Second)
	attempt := o.job().Attempt
	full.fill()
	_, took := o.a.awaitJob(outageJob, 30*time.Second, "the third attempt fails", func(j job) bool { return j.Attempt >= attempt+3 })
	t.Logf("three attempts have failed after %d ms", took.Milliseconds())
	var life struct {
		Events []struct{ Kind, Message string } `json:"events"`
	}
	o.a.must(http.StatusOK, "GET", "/v1/jobs/"+outageJob+"/events?limit=1000", nil, &life)
	said := 0
	for _, e := range life.Events {
		if strings.HasPrefix(e.Message, "RESTARTING") && strings.Contains(e.Message, "no space left on device") {
			if said++; said == 1 {
				t.Log(e.Message)
			}
		}
	}
	if said == 0 {
		t.Errorf("nothing is said of the disk: %+v", life.Events)
	}
	o.signal("w1", syscall.SIGTERM)
	o.awaitEnd("w1", 30*time.Second)
	o.begin("w1", "")
	full.empty()
	o.awaitFlow()
	o.a.awaitJob(outageJob, time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	if err := os.CopyFS(filepath.Join(o.dir, outageJob+"-copy"), os.DirFS(full.path)); err != nil { // where the disk is, for us
		t.Fatal(err)
	}
	o.finish()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/op"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/exec/state"
	"weir/exec/worker"
	"weir/transport"
)

// workerConfig are the flags of weir worker.
type workerConfig struct {
	id            string
	nats          natsConfig
	storage       string
	cluster       string
	data          string
	slots         int
	files         []string
	level         string
	keep          int64 // MiB
	memory        byteSize
	exitWithStdin bool
}

func newWorker() *cobra.Command {
	var conf workerConfig
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "run a worker process, or list the workers",
		Long: "Worker runs tasks for the servers of its cluster. SIGTERM ends it in order: its jobs go on elsewhere at once from their last\n" +
			"checkpoint, and the exit code is 0. After 30 s, or at a second Ctrl-C, it ends as it stands; nothing is lost either way.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), conf.level)
			if err != nil {
				return err
			}
			return conf.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&conf.id, "id", "", "the worker's name, the same over restarts (default: made from the host's name)")
	natsFlags(f, &conf.nats)
	f.StringVar(&conf.storage, "storage", "", storageHelp)
	f.StringVar(&conf.cluster, "cluster", "default", "sets clusters on one NATS apart")
	f.StringVar(&conf.data, "data", "weir-worker", "the worker's own folder")
	f.IntVar(&conf.slots, "slots", 4, "slots: room for one subtask of every operator of a job each")
	f.StringArrayVar(&conf.files, "files", nil, "a folder that file tables may use (default: none)")
	memoryFlag(f, &conf.memory, "the limit of the control group, or 3/4 of the machine's")
	f.Int64Var(&conf.keep, "keep", 1024, "MiB of the state it stores in S3 to keep in --data too, for restarts after a worker's death, this one's too; 0: none")
	f.StringVar(&conf.level, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&conf.exitWithStdin, "exit-with-stdin", false, "end when standard input closes")
	_ = f.MarkHidden("exit-with-stdin")
	cmd.AddCommand(newWorkerList())
	return cmd
}

// maxKeep is the largest --keep, in MiB.
const maxKeep = 1 << 30

var notInID = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func (conf workerConfig) run(ctx context.Context, stdin io.Reader, stdout io.Writer, log *slog.Logger) error {
	if err := require(needed{"--nats", conf.nats.url}, needed{"--storage", conf.storage}); err != nil {
		return err
	}
	if conf.slots < 1 {
		return fmt.Errorf("--slots is at least 1: %w", errUsage)
	}
	if conf.keep < 0 || conf.keep > maxKeep {
		return fmt.Errorf("--keep is a number of MiB, 0 (none) to %d: %w", maxKeep, errUsage)
	}
	if strings.HasPrefix(conf.storage, "file:") {
		conf.keep = 0 // a folder is as near as a copy of it
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if conf.id == "" {
		conf.id = notInID.ReplaceAllString(host, "-") + "-" + weir.NewIncarnation()[:6]
	}
	if conf.files, err = roots(conf.files); err != nil {
		return err
	}
	found, err := findMemory(conf.memory, os.DirFS("/"), workerPart)
	if err != nil {
		log.Warn("the limit on memory is not known for sure", "err", err)
	}
	plan, err := planWorker(found)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(conf.data, 0o755); err != nil {
		return err
	}
	blobs, err := openStorage(ctx, conf.storage, log)
	if err != nil {
		return err
	}
	memory, closeDisk, err := conf.openMemory(plan, log)
	if err != nil {
		return err
	}
	opts := conf.nats.options(plan.limit(transport.Options{Name: "weir-worker-" + conf.id, Cluster: conf.cluster, Worker: weir.WorkerID(conf.id), Log: log, Objects: blob.Whole{Store: blobs}}))
	control, err := transport.OpenControl(ctx, opts)
	if err != nil {
		return natsUsage(err)
	}
	defer control.Close()
	network, err := transport.OpenNetwork(ctx, opts)
	if err != nil {
		return err
	}
	w := worker.New(worker.Config{
		ID: weir.WorkerID(conf.id), Slots: conf.slots, PID: os.Getpid(), Host: host,
		Control: control, Network: network, Blobs: blobs,
		Openers: exec.Openers{Source: source.Open, Operator: op.Open, Sink: sink.Open},
		Files:   conf.files, Logger: log,
		Keep: filepath.Join(conf.data, "kept"), KeepBytes: conf.keep << 20, Memory: memory,
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if conf.exitWithStdin {
		go func() { // ends with the process, which ends with it
			io.Copy(io.Discard, stdin) //nolint:errcheck // any end will do
			cancel()
		}()
	} else { // weir up speaks for its own
		//nolint:errcheck // a worker works, whether its line is read or not
		fmt.Fprintf(stdout, "weir worker %s is ready: %d slots, for the servers of cluster %s\n", conf.id, conf.slots, conf.cluster)
	}
	networkCtx, closeNetwork := context.WithCancel(context.WithoutCancel(ctx))
	defer closeNetwork()
	var g errgroup.Group
	g.Go(func() error { return network.Run(networkCtx) })
	err = w.Run(ctx)
	closeNetwork()
	return errors.Join(err, g.Wait(), closeDisk())
}

// openMemory limits the heap and opens the disk for what does not fit, below the worker's folder.
// close deletes what is on it.
func (conf workerConfig) openMemory(p memoryPlan, log *slog.Logger) (m worker.Memory, closeDisk func() error, err error) {
	dir, unlock, err := spillFolder(conf.data)
	if err != nil {
		return m, nil, err
	}
	disk, err := state.NewDisk(dir, state.DiskOptions{Cache: p.cache, Log: log})
	if err != nil {
		unlock()
		return m, nil, err
	}
	heap := limitHeap(p.heap, log)
	log.Info("memory", "budget", sizeText(p.budget.bytes), "from", p.budget.from, "heap", sizeText(heap))
	closeDisk = func() error {
		defer unlock()
		return disk.Close()
	}
	m = worker.Memory{Budget: p.budget.bytes, Heap: heap, State: state.NewBudget(heap / 2), Disk: disk}
	leadGC(&m)
	return m, closeDisk, nil
}

// spillFolders is how many processes may have the same data folder at a time: one that hangs
// beside the one that took its place, or workers that were given the same folder by mistake.
const spillFolders = 16

// spillFolder finds a folder for spilled state that no other process uses, and removes what
// processes that have ended left in others.
func spillFolder(data string) (dir string, unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(data, "spill"), 0o700); err != nil {
		return "", nil, err
	}
	var busy error
	for n := range spillFolders {
		one := filepath.Join(data, "spill", strconv.Itoa(n))
		if _, err := os.Stat(one + ".lock"); err != nil && dir != "" {
			break // nobody went further
		}
		free, err := lockFile(one + ".lock")
		switch {
		case err != nil:
			busy = err
		case dir == "":
			dir, unlock = one, free
		default:
			err = os.RemoveAll(one)
			free()
			busy = errors.Join(busy, err)
		}
	}
	if dir == "" {
		return "", nil, fmt.Errorf("no folder for spilled state below %s is free: %w", data, busy)
	}
	return dir, unlock, nil
}

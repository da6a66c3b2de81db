package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/metastore"
	"weir/server"
	"weir/server/job"
	"weir/transport"
)

// serverConfig says what a server works with.
type serverConfig struct {
	metastore string
	nats      natsConfig
	storage   string
	cluster   string
	migrate   bool // bring the metastore's schema up to date first
	alone     bool // no other server uses the metastore
	demo      bool // have the demo table
	hosts     []string
	checkPath func(string) error
	history   checkpoint.Thinning
	maxJobs   int
}

// demoTable is what weir up --demo has in its catalog.
const demoTable = `CREATE TABLE user_behavior (
  user_id     BIGINT,
  item_id     BIGINT,
  category_id BIGINT,
  behavior    STRING,
  ts          TIMESTAMP_LTZ(3)
) WITH (
  'connector' = 'datagen',
  'rows-per-second' = '20000',
  'seed' = '1',
  'fields.user_id.kind' = 'random', 'fields.user_id.min' = '1', 'fields.user_id.max' = '100000',
  'fields.item_id.kind' = 'random', 'fields.item_id.min' = '1', 'fields.item_id.max' = '4000000',
  'fields.category_id.kind' = 'random', 'fields.category_id.min' = '1', 'fields.category_id.max' = '10000',
  'fields.behavior.kind' = 'random', 'fields.behavior.values' = 'pv,cart,fav,buy', 'fields.behavior.weights' = '90,5,3,2',
  'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2017-11-25T01:00:00Z'
)`

func newServer() *cobra.Command {
	var conf serverConfig
	var listenOn, level string
	var insecure bool
	var files []string
	cmd := &cobra.Command{
		Use:   "server",
		Short: "run a control plane of a cluster",
		Long: "Server answers the API and, while it has the lease, runs the jobs. SIGTERM ends it in order, with exit code 0, and another server takes over at\n" +
			"once. After 30 s, or at a second Ctrl-C, it ends as it stands; nothing is lost either way.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			log, err := newLogger(cmd.ErrOrStderr(), level)
			if err != nil {
				return err
			}
			if err := require(needed{"--metastore", conf.metastore}, needed{"--nats", conf.nats.url}, needed{"--storage", conf.storage}); err != nil {
				return err
			}
			if conf.maxJobs < 1 {
				return errMaxJobs
			}
			conf.checkPath = lexically(files)
			listener, err := listen(listenOn, insecure)
			if err != nil {
				return err
			}
			defer listener.Close()
			s, err := openServer(ctx, conf, log)
			if err != nil {
				return err
			}
			defer s.close()
			//nolint:errcheck // a server serves, whether its line is read or not
			fmt.Fprintf(cmd.OutOrStdout(), "weir server is ready: http://%s\n", listener.Addr())
			return s.run(ctx, listener)
		},
	}
	f := cmd.Flags()
	f.StringVar(&conf.metastore, "metastore", "", "postgres://… or sqlite:PATH")
	natsFlags(f, &conf.nats)
	f.StringVar(&conf.storage, "storage", "", storageHelp)
	f.StringVar(&conf.cluster, "cluster", "default", "sets clusters on one NATS apart")
	f.StringVar(&listenOn, "listen", "127.0.0.1:7420", "where the API and the dashboard listen")
	f.BoolVar(&insecure, "insecure", false, "listen on an address other than loopback, without tokens")
	f.StringArrayVar(&conf.hosts, "host", nil, "a further name by which the API is addressed")
	f.StringArrayVar(&files, "files", nil, "a folder of the workers that file tables may use (default: none)")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	historyFlags(f, &conf.history)
	jobsFlag(f, &conf.maxJobs)
	return cmd
}

// errMaxJobs refuses --max-jobs.
var errMaxJobs = fmt.Errorf("--max-jobs is at least 1: %w", errUsage)

// jobsFlag adds the flag that bounds the jobs.
func jobsFlag(f *pflag.FlagSet, most *int) {
	f.IntVar(most, "max-jobs", job.DefaultMaxJobs, "jobs that have not ended, at most: each needs memory, also while it waits for slots")
}

// A needed is a flag that has to be given.
type needed struct{ flag, value string }

// require reports the flags that have no value.
func require(flags ...needed) error {
	var missing []string
	for _, f := range flags {
		if f.value == "" {
			missing = append(missing, f.flag)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("needed: %s: %w", strings.Join(missing, ", "), errUsage)
}

// lexically checks paths against roots on another machine: by their text alone. The
// worker checks again, with links resolved.
func lexically(files []string) func(string) error {
	return func(path string) error {
		if len(files) == 0 {
			return fmt.Errorf("path %s: no folder is open to file tables; start the server and the workers with --files DIR", path)
		}
		if !filepath.IsAbs(path) {
			return nil // below the worker's folder; it decides
		}
		for _, root := range files {
			if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
				return nil
			}
		}
		return fmt.Errorf("path %s is below no folder of --files %s", path, strings.Join(files, ", "))
	}
}

// located checks paths on this machine.
func located(files []string) func(string) error {
	return func(path string) error {
		if _, err := exec.Locate(files, path); err != nil {
			return errors.New(plain(err))
		}
		return nil
	}
}

// controlPlane is a server's parts, opened.
type controlPlane struct {
	store   *metastore.Store
	control *transport.Control
	service *job.Service
	http    *server.Server
}

// openServer connects to everything that a server needs; what cannot be reached is
// one clear error.
func openServer(ctx context.Context, conf serverConfig, log *slog.Logger) (*controlPlane, error) {
	if conf.migrate {
		if _, err := metastore.Migrate(ctx, conf.metastore, metastore.Options{}); err != nil {
			return nil, err
		}
	}
	blobs, err := openStorage(ctx, conf.storage, log)
	if err != nil {
		return nil, err
	}
	s := &controlPlane{}
	if s.store, err = metastore.Open(ctx, conf.metastore, metastore.Options{}); err != nil {
		return nil, err
	}
	if conf.demo {
		if err := createDemo(ctx, s.store); err != nil {
			s.close()
			return nil, err
		}
	}
	host, _ := os.Hostname()
	s.control, err = transport.OpenControl(ctx, conf.nats.options(transport.Options{Name: "weir-server@" + host, Cluster: conf.cluster, Log: log, Objects: blob.Whole{Store: blobs}}))
	if err != nil {
		s.close()
		return nil, natsUsage(err)
	}
	s.service = job.New(job.Deps{Store: s.store, Checkpoints: s.store, Blobs: blobs, Control: s.control, Reports: s.control, Logger: log}, job.Options{Alone: conf.alone, History: conf.history, MaxJobs: conf.maxJobs})
	s.http = server.New(
		server.Deps{Service: s.service, History: s.store, Tables: s.store, Logger: log},
		server.Options{
			Version:   version,
			CheckPath: conf.checkPath,
			Hosts:     conf.hosts,
			Probes: []server.Probe{
				{Name: "metastore", Check: s.store.Ping},
				{Name: "nats", Check: func(context.Context) error { return s.control.Ready() }},
			},
		})
	return s, nil
}

func createDemo(ctx context.Context, store *metastore.Store) error {
	t, err := server.NewTable(demoTable, time.Now(), nil, nil)
	if err != nil {
		return fmt.Errorf("demo table: %w", err)
	}
	there, err := store.Tables(ctx)
	if err != nil {
		return fmt.Errorf("demo table: %w", err)
	}
	if slices.ContainsFunc(there, func(other weir.Table) bool { return strings.EqualFold(other.Name, t.Name) }) {
		return nil
	}
	if err := store.ChangeTables(ctx, there, nil, []weir.Table{t}); err != nil && !errors.Is(err, weir.ErrConflict) {
		return fmt.Errorf("demo table: %w", err)
	}
	return nil
}

// storageHelp is what --storage takes.
const storageHelp = "file:///DIR or s3://BUCKET/PREFIX?region=REGION (docs/storage.md), the same for all servers and workers"

// openStorage opens object storage, makes a folder that is not there, and probes it: a
// process that could not keep its checkpoints does not start.
func openStorage(ctx context.Context, url string, log *slog.Logger) (blob.Store, error) {
	if dir, ok := strings.CutPrefix(url, "file://"); ok && filepath.IsAbs(dir) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("storage %s: %w", url, err)
		}
	}
	blobs, err := blob.Open(url)
	if err != nil {
		return nil, err
	}
	warnings, err := blob.Probe(ctx, blobs)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		log.Warn("storage", "warning", w)
	}
	return blobs, nil
}

// run serves until ctx ends.
func (s *controlPlane) run(ctx context.Context, listener net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.service.Run(ctx) })
	g.Go(func() error { return s.http.Run(ctx, listener) })
	return g.Wait()
}

// close closes what openServer opened.
func (s *controlPlane) close() {
	if s.control != nil {
		s.control.Close()
	}
	s.store.Close() //nolint:errcheck // nothing is pending in it
}

// workerExited says that the process of a worker has ended.
func (s *controlPlane) workerExited(id weir.WorkerID) { s.service.WorkerExited(id, "") }

// awaitWorkers returns once n workers are heard.
func (s *controlPlane) awaitWorkers(ctx context.Context, n int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		workers, err := s.service.Workers(ctx)
		if err != nil {
			return err
		}
		if len(workers) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func newMigrate() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "bring the metastore's schema up to date",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := require(needed{"--metastore", url}); err != nil {
				return err
			}
			applied, err := metastore.Migrate(cmd.Context(), url, metastore.Options{})
			if err != nil {
				return err
			}
			for _, name := range applied {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "applied %s\n", name); err != nil {
					return err
				}
			}
			if len(applied) == 0 {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "the schema is up to date")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&url, "metastore", "", "postgres://… or sqlite:PATH")
	return cmd
}

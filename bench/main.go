package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the sub-command that args begin with; speed without one.
func run(ctx context.Context, args []string) error {
	name := "speed"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	switch name {
	case "nats":
		return runNATS(ctx)
	case "end":
		return runEnd(ctx, args)
	case "worker":
		return runWorker(ctx, args)
	case "queries":
		var o options
		f := flag.NewFlagSet("bench queries", flag.ContinueOnError)
		o.flags(f)
		if err := f.Parse(args); err != nil {
			return err
		}
		return o.run(ctx)
	}
	return measure(ctx, name, args)
}

// A bench measures one thing and shows it.
type bench interface {
	flags(f *flag.FlagSet)
	// run returns the figures; show makes a table of them.
	run(ctx context.Context, c common) (figures any, show string, err error)
}

// common are the flags of all benches.
type common struct {
	weir string
	dir  string // for generated files
	json string
	// profile is where the bench's own worker says where its time went.
	profile string
}

func benches() map[string]bench {
	return map[string]bench{
		"speed": &speedBench{}, "channel": &channelBench{}, "exchange": &exchangeBench{}, "latency": &latencyBench{},
		"recovery": &recoveryBench{}, "trickle": &trickleBench{},
		"cut": &cutBench{}, "throughput": &throughputBench{}, "upload": &uploadBench{}, "memory": &memoryBench{},
		"spill": &spillBench{}, "growth": &growthBench{}, "idle": &idleBench{}, "delta": &deltaBench{}, "restore": &restoreBench{},
		"flink": &flinkBench{},
	}
}

// groups are names for several benches.
func groups() map[string][]string {
	return map[string][]string{
		"channels": {"channel", "exchange", "latency", "recovery", "trickle"},
		"state":    {"delta", "growth", "cut", "upload", "idle", "memory", "throughput", "spill", "restore"},
	}
}

// measure runs a bench, or all of them.
func measure(ctx context.Context, name string, args []string) error {
	all := benches()
	names := []string{name}
	if group := groups()[name]; group != nil {
		names = group
	}
	f := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	c := common{}
	f.StringVar(&c.weir, "weir", "bin/weir", "the binary")
	f.StringVar(&c.dir, "dir", keptFiles(), "where generated files are kept")
	f.StringVar(&c.json, "json", "", "write the figures to this file too")
	f.StringVar(&c.profile, "profile", "", "write where the time of the bench's worker went to this file")
	for _, n := range names {
		b := all[n]
		if b == nil {
			known := []string{"queries", "channels", "state"}
			for n := range all {
				known = append(known, n)
			}
			slices.Sort(known)
			return fmt.Errorf("nothing is named %q; there are %s", n, strings.Join(known, ", "))
		}
		if len(names) == 1 {
			b.flags(f)
		} else {
			b.flags(flag.NewFlagSet(n, flag.ContinueOnError)) // their defaults
		}
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("the folder for generated files: %w", err)
	}
	figures := map[string]any{}
	for _, n := range names {
		got, text, err := all[n].run(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		figures[n] = got
		if _, err := fmt.Printf("## %s\n\n%s\n", n, text); err != nil {
			return err
		}
	}
	if c.json == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.json, append(b, '\n'), 0o644)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // time zones, where the machine has none

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir"
)

// grace bounds the orderly end of a process that was told to end: a task may hang in storage
// or in a sink's target. Whatever it leaves undone is what a kill would leave.
const grace = 30 * time.Second

// version is set by the linker of a release.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // supervisors say it twice, and mean nothing by it
		stop()                                                  // a second Ctrl-C ends the process at once
		time.AfterFunc(grace, func() {
			fmt.Fprintf(os.Stderr, "weir: not ended within %v of being told to; ending now\n", grace)
			os.Exit(1)
		})
	})
	// A reader that goes away is an error of the write: what was started is cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage marks a wrong command line: exit code 2.
var errUsage = errors.New("usage")

// execute runs one command line and returns the process's exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return 1 // nobody listens any more
	}
	text, code := plain(err), 1
	if errors.Is(err, errUsage) {
		text, code = strings.ReplaceAll(err.Error(), ": usage", ""), 2
	}
	fmt.Fprintf(stderr, "weir: %s\n", text) //nolint:errcheck // nowhere else to say it; the exit code tells
	return code
}

// plain gives an error's text without the names of the sentinels, which are for
// programs.
func plain(err error) string {
	text := err.Error()
	for _, s := range []error{weir.ErrInvalid, weir.ErrNotFound, weir.ErrConflict} {
		text = strings.TrimPrefix(text, s.Error()+": ")
	}
	return text
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "SQL over streams that never loses count",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return flagsFromEnvironment(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", err, errUsage) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newUp(), newServer(), newWorker(), newRun(),
		newJob(), newCheckpoint(), newSavepoint(), newStorage(), newTable(), newSQL(),
		newMigrate(), newVersion(),
	)
	return root
}

// usageArgs makes a wrong number of arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w (see '%s --help'): %w", err, cmd.CommandPath(), errUsage)
		}
		return nil
	}
}

// flagsFromEnvironment gives each flag that the command line left out the value of
// WEIR_NAME, if there is one.
func flagsFromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "WEIR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && !f.Changed {
			if err := cmd.Flags().Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w: %w", name, err, errUsage))
			}
			f.Annotations = map[string][]string{fromVariable: {name}}
		}
	})
	return errors.Join(errs...)
}

// fromVariable is the annotation of a flag that came from the environment.
const fromVariable = "from variable"

// flagName is what a user has to look at to change a flag: the environment, if it came
// from there.
func flagName(f *pflag.Flag) string {
	if from := f.Annotations[fromVariable]; len(from) > 0 {
		return "--" + f.Name + " from " + from[0]
	}
	return "--" + f.Name
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			build := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				build = info.GoVersion
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weir %s (%s)\n", version, build)
			return err
		},
	}
}

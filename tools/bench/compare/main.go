// Command compare measures three servers of quorate beside what they can be compared with, in one run on one machine:
// the same servers in a guarded cluster, the prototype in tools/bench/floor, bare raft and an empty handler on the same
// stack, and etcd and PostgreSQL if they are installed.
//
// All systems run during the whole run and are measured in turn, in several rounds; those that are not measured are
// paused. Only ratios within a round count: absolute figures drift with the machine. The last thing it does is to stop
// all processes and to remove their folders, after an interrupt too.
//
//	make bench-compare
//	make bench-compare COMPARE="-time 2s -rounds 3 -markdown"
//	make bench-compare COMPARE="-only quorate,prototype-wal -cases unary-64,batch"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/tools/bench/compare/systems"
)

type options struct {
	duration, warmup time.Duration
	rounds, repeats  int
	systemNames      string
	cases            string
	out, folder      string
	binary, before   string
	markdown, list   bool
	// tables and progress are standard output and standard error.
	tables, progress io.Writer
	compile          compiler
}

// compiler compiles the main package in a folder into a file.
type compiler func(ctx context.Context, file, folder string) error

// printProgress ignores errors of writing: they are no reason to stop.
func (o options) printProgress(format string, args ...any) {
	_, _ = fmt.Fprintf(o.progress, format, args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, testbinary.BuildPlain, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// Bounds of the flags.
const (
	maxDuration = time.Minute
	maxRounds   = 99
)

func parseOptions(arguments []string, progress io.Writer) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(progress)
	f.DurationVar(&o.duration, "time", 2*time.Second, "duration of each measurement")
	f.DurationVar(&o.warmup, "warmup", 500*time.Millisecond, "time before each measurement that does not count")
	f.IntVar(&o.rounds, "rounds", 3, "rounds that count")
	f.IntVar(&o.repeats, "repeat", 2, "additional rounds, at most, in place of noisy ones")
	f.StringVar(&o.systemNames, "only", "",
		"beginnings of the names of systems to measure, separated by commas; all if empty")
	f.StringVar(&o.cases, "cases", "", "beginnings of the names of cases to measure, separated by commas; all if empty")
	f.StringVar(&o.out, "out", "", "file for all measurements as JSON; none if empty")
	f.StringVar(&o.folder, "dir", "", "folder on a disk for the data of all systems; the one for temporary files if empty")
	f.StringVar(&o.binary, "quorate", "", "server to measure; built from this source if empty")
	f.StringVar(&o.before, "before", "", "earlier server to measure too, through the present Go client; none if empty")
	f.BoolVar(&o.markdown, "markdown", false, "print the tables as Markdown")
	f.BoolVar(&o.list, "list", false, "list systems and cases")
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag; -help lists all flags", f.Arg(0))
	case o.duration <= 0 || o.duration > maxDuration:
		return o, fmt.Errorf("time is %v; allowed is up to %v", o.duration, maxDuration)
	case o.warmup <= 0 || o.warmup > maxDuration:
		return o, fmt.Errorf("warmup is %v; allowed is up to %v", o.warmup, maxDuration)
	case o.rounds < 1 || o.rounds > maxRounds || o.repeats < 0 || o.repeats > maxRounds:
		return o, fmt.Errorf("rounds are %d and repeat is %d; allowed are 1 to %d and 0 to %d",
			o.rounds, o.repeats, maxRounds, maxRounds)
	}
	return o, nil
}

// run measures, prints tables and writes the results. All that it started has ended when it returns.
func run(
	ctx context.Context, compile compiler, arguments []string, tables, progress io.Writer,
) (err error) {
	o, err := parseOptions(arguments, progress)
	if err != nil {
		return err
	}
	o.progress, o.tables, o.compile = progress, tables, compile
	folder, err := os.MkdirTemp(o.folder, "quorate-compare-")
	if err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// PostgreSQL may run as another user, who must be able to reach a folder of his own below this one.
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // the files below are private
		return fmt.Errorf("open the folder for the data: %w", err)
	}
	if err := systems.CheckDisk(folder); err != nil {
		return err
	}
	c, err := newComparison(ctx, o, folder)
	if err != nil {
		return err
	}
	if o.list {
		return c.list()
	}
	return c.measureAll(ctx)
}

type binaries struct{ quorate, prototype string }

// build compiles the server only if none was given.
func build(ctx context.Context, o options, folder string) (binaries, error) {
	folderOfProduct, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/quorate/quorate").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("go list: %w", err)
	}
	source := strings.TrimSpace(string(folderOfProduct))
	b := binaries{quorate: o.binary, prototype: filepath.Join(folder, "floor")}
	o.printProgress("building the programs\n")
	if err := o.compile(ctx, b.prototype, filepath.Join(source, "tools", "bench", "floor")); err != nil {
		return b, err
	}
	if b.quorate == "" {
		b.quorate = filepath.Join(folder, "quorate")
		return b, o.compile(ctx, b.quorate, filepath.Join(source, "cmd", "quorate"))
	}
	b.quorate, err = filepath.Abs(b.quorate)
	return b, err
}

// selected takes a list of prefixes. An empty list selects everything.
func selected(list, name string) bool {
	if list == "" {
		return true
	}
	for prefix := range strings.SplitSeq(list, ",") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

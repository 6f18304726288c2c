// Command run plays chaos runs; `make chaos` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/runner"
)

// longest bounds one run of many, so that its history can still be judged; overhead is what comes on top of the faults.
const (
	longest  = 4 * time.Minute
	overhead = 45 * time.Second
)

// options are what the command line says.
type options struct {
	scenario, workloads, sizes string
	seed                       uint64
	total, length              time.Duration
	out, binary, old, planted  string
	list, plain, selftest      bool
	clients                    int
}

func main() {
	var o options
	flag.StringVar(&o.scenario, "scenario", "", "faults, with commas between; all if empty")
	flag.StringVar(&o.workloads, "workloads", "", "workloads, with commas between; all if empty")
	flag.StringVar(&o.sizes, "nodes", "3", "numbers of nodes, with commas between; runs take turns")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the first run; 0 draws one")
	flag.DurationVar(&o.total, "time", 5*time.Minute, "how long to go on, all runs together")
	flag.DurationVar(&o.length, "length", 0, "play one run, with faults for so long")
	flag.StringVar(&o.out, "out", "", "folder for reports; a temporary one if empty")
	flag.StringVar(&o.binary, "binary", "", "server to run; built if empty")
	flag.StringVar(&o.old, "old", "", "older server that the nodes run first, a file, a released version or a git revision; if empty the previous release in runs with upgrades")
	flag.StringVar(&o.planted, "planted", "", "build the server with planted bugs and switch this one on")
	flag.BoolVar(&o.selftest, "selftest", false, "find every planted bug")
	flag.BoolVar(&o.list, "list", false, "list the faults")
	flag.BoolVar(&o.plain, "plain", false, "build the server as it is, without a clock that can be turned")
	flag.IntVar(&o.clients, "clients", 0, "clients of each workload; 0 is the usual number")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func (o options) run(ctx context.Context) error {
	if o.list {
		for _, k := range faults.All() {
			fmt.Printf("%-18s %s\n", k.Name, k.Says)
		}
		return nil
	}
	if o.out == "" {
		dir, err := os.MkdirTemp("", "chaos-")
		if err != nil {
			return err
		}
		o.out = dir
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	build := runner.Build{Source: ".", Turnable: !o.plain, Planted: o.planted != "" || o.selftest}
	turnable := o.binary == "" && build.Turnable
	if o.binary == "" {
		binary, err := build.Make(ctx, filepath.Join(".bin", "chaos"))
		if err != nil {
			return err
		}
		o.binary = binary
	}
	if o.selftest {
		return o.findPlanted(ctx)
	}
	return o.all(ctx, turnable, &oldServers{options: &o, build: build})
}

// all plays runs until the time is up, each with the next seed, and goes on after one that failed.
func (o options) all(ctx context.Context, turnable bool, older *oldServers) error {
	sizes, err := sizesOf(o.sizes)
	if err != nil {
		return err
	}
	if _, err := older.get(ctx, o.seed); err != nil { // what is built for the first run takes none of its time
		return err
	}
	began, all := time.Now(), newSummary()
	for runs := 0; ctx.Err() == nil; runs++ {
		length := min(longest, o.total-time.Since(began)-overhead)
		if o.length > 0 {
			length = o.length
		}
		if runs > 0 && (o.length > 0 || length < overhead) {
			break
		}
		seed := o.seed + uint64(runs) //nolint:gosec // counted
		old, err := older.get(ctx, seed)
		if err != nil {
			return err
		}
		config := runner.Config{
			Binary: o.binary, Old: old, OldGiven: o.old, Turnable: turnable, Planted: o.planted, Size: sizes[runs%len(sizes)],
			Seed: seed, Scenario: list(o.scenario), Workloads: list(o.workloads), Length: max(length, 10*time.Second), Clients: o.clients,
			Dir:   filepath.Join(o.out, fmt.Sprintf("run-%d", seed)),
			Watch: func(line string) { fmt.Println(line) },
		}
		result, err := play(ctx, config)
		if err != nil && all.unplayed {
			return errors.Join(err, all.write(o.out)) // two in a row: something is wrong here
		}
		if err := errors.Join(all.add(&result, err), all.write(o.out)); err != nil {
			return err
		}
	}
	fmt.Printf("%s in %v; reports in %s\n", all, runner.Elapsed(began), o.out)
	return all.err()
}

// play plays one run and says what came of it.
func play(ctx context.Context, config runner.Config) (runner.Result, error) {
	fmt.Printf("== %s\n", config.Command())
	result, err := runner.Run(ctx, config)
	if err != nil {
		err = fmt.Errorf("the run could not be played: %w", err)
		fmt.Printf("%v\nplay it again with: %s\n", err, config.Command())
		return result, err
	}
	fmt.Print(result.String())
	return result, nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func sizesOf(text string) (sizes []int, err error) {
	for _, one := range list(text) {
		size, err := strconv.Atoi(one)
		if err != nil || size != 3 && size != 5 {
			return nil, fmt.Errorf("nodes is %q; allowed are 3 and 5, with a comma between", text)
		}
		sizes = append(sizes, size)
	}
	if len(sizes) == 0 {
		return nil, errors.New("nodes is empty; allowed are 3 and 5, with a comma between")
	}
	return sizes, nil
}

// Command run plays chaos runs. "make chaos" and "make chaos-selftest" call it.
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
	"syscall"
	"time"

	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/runner"
)

// maxRunLength bounds one run of many, because a longer history takes too long to judge. runOverhead is the time of a
// run besides its faults.
const (
	maxRunLength = 4 * time.Minute
	runOverhead  = 45 * time.Second
)

// binaryFolder keeps the servers that were built.
var binaryFolder = filepath.Join(".bin", "chaos") //nolint:gochecknoglobals // a constant

func main() {
	var o options
	o.registerFlags(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2) //nolint:gocritic // nothing has begun
	}
	if err := o.execute(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func (o options) execute(ctx context.Context) error {
	if o.list {
		for _, k := range faults.All() {
			fmt.Printf("%-18s %s\n", k.Name, k.Description)
		}
		return nil
	}
	if o.out == "" {
		dir, err := os.MkdirTemp("", "chaos-")
		if err != nil {
			return err
		}
		o.out = dir
	} else if err := os.MkdirAll(o.out, 0o750); err != nil {
		return fmt.Errorf("create the report folder: %w", err)
	}
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32())
	}
	build := runner.Build{Source: ".", Turnable: !o.plain, Planted: o.planted}
	if o.selftest {
		return o.findPlanted(ctx, build)
	}
	turnable := o.binary == "" && build.Turnable
	if o.binary == "" {
		fmt.Println("building the server; the first build takes some minutes")
		binary, err := build.Make(ctx, binaryFolder)
		if err != nil {
			return err
		}
		o.binary = binary
	}
	return o.playAll(ctx, turnable, &oldServers{options: &o, build: build})
}

// playAll uses consecutive seeds until the time is up. It goes on after a failed run.
func (o options) playAll(ctx context.Context, turnable bool, older *oldServers) error {
	sizes, err := parseSizes(o.sizes)
	if err != nil {
		return err
	}
	if _, err := older.serverFor(ctx, o.seed); err != nil { // building is not part of the first run's time
		return err
	}
	began, all := time.Now(), newSummary()
	for runs := 0; ctx.Err() == nil; runs++ {
		length := min(maxRunLength, o.total-time.Since(began)-runOverhead)
		if o.length > 0 {
			length = o.length
		}
		if runs > 0 && (o.length > 0 || length < runOverhead) {
			break
		}
		seed := o.seed + uint64(runs)
		old, err := older.serverFor(ctx, seed)
		if err != nil {
			return err
		}
		config := runner.Config{
			Binary: o.binary, Old: old, OldGiven: o.old, Turnable: turnable, Planted: o.planted,
			Size: sizes[runs%len(sizes)],
			Seed: seed, Scenario: splitList(o.scenario), Workloads: splitList(o.workloads),
			Length: max(length, 10*time.Second), Clients: o.clients, Guarded: o.guarded,
			Dir:   filepath.Join(o.out, fmt.Sprintf("run-%d", seed)),
			Watch: func(line string) { fmt.Println(line) },
		}
		result, err := playRun(ctx, config)
		if err != nil && all.lastNotPlayed {
			return errors.Join(err, all.writePage(o.out)) // two in a row: the machine or the harness is broken
		}
		if err := errors.Join(all.addRun(&result, err), all.writePage(o.out)); err != nil {
			return err
		}
	}
	fmt.Printf("%s in %v; reports in %s\n", all, runner.Elapsed(began), o.out)
	return all.failureError()
}

func playRun(ctx context.Context, config runner.Config) (runner.Result, error) {
	fmt.Printf("== %s\n", config.Command())
	result, err := runner.Run(ctx, config)
	if err != nil {
		err = fmt.Errorf("the run could not be played: %w", err)
		fmt.Printf("%v\nrepeat it with: %s\n", err, config.Command())
		return result, err
	}
	fmt.Print(result.String())
	return result, nil
}

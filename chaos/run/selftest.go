package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/planted"
	"github.com/quorate/quorate/chaos/runner"
)

// maxAttempts bounds the runs that look for one planted bug.
const maxAttempts = 5

func (o options) findPlanted(ctx context.Context, build runner.Build) error {
	var missed []string
	for _, bug := range planted.Bugs() {
		if o.scenario != "" && !strings.Contains(","+o.scenario+",", ","+bug.Name+",") {
			continue
		}
		build.Planted = bug.Name
		fmt.Printf("%-20s building the server\n", bug.Name)
		binary, err := build.Make(ctx, binaryFolder)
		if err != nil {
			return err
		}
		found, err := o.findBug(ctx, bug, binary)
		if err != nil {
			return err
		}
		if !found {
			missed = append(missed, bug.Name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("not found within %d runs: %s", maxAttempts, strings.Join(missed, ", "))
	}
	return nil
}

func (o options) findBug(ctx context.Context, bug planted.Bug, binary string) (bool, error) {
	began := time.Now()
	for i := range maxAttempts {
		seed := o.seed + uint64(i)
		config := runner.Config{
			Binary: binary, Turnable: !o.plain, Planted: bug.Name, Size: 3, Seed: seed, Scenario: bug.Faults,
			Workloads: bug.Workloads, Guarded: bug.Guarded,
			Length: bug.Length, Clients: o.clients, Dir: filepath.Join(o.out, fmt.Sprintf("%s-%d", bug.Name, seed)),
		}
		result, err := runner.Run(ctx, config)
		if err != nil {
			return false, err
		}
		if v := firstBroken(verdictsFor(bug, result.Verdicts)); v != nil {
			fmt.Printf("%-20s found in run %d after %v: %s: %s\n", bug.Name, i+1, runner.Elapsed(began), v.Promise,
				truncateText(v.Messages[0]))
			return true, nil
		}
		fmt.Printf("%-20s not found in run %d of %d operations and %d faults\n", bug.Name, i+1, len(result.History.Ops),
			result.Faults.All())
	}
	return false, nil
}

// verdictsFor returns the verdicts that must find a bug: of a guarded cluster those of its accounts, which only such
// bugs try.
func verdictsFor(bug planted.Bug, all check.Verdicts) check.Verdicts {
	if !bug.Guarded {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(v *check.Verdict) bool {
		return v.Promise != guarded.Access && v.Promise != guarded.Audit
	})
}

// firstBroken returns the first broken promise, or nil. A cluster that does not become healthy in time does not
// count: on a slow machine that happens without a bug.
func firstBroken(all check.Verdicts) *check.Verdict {
	i := slices.IndexFunc(all, func(v *check.Verdict) bool { return v.Violations > 0 && v.Promise != check.Live })
	if i < 0 {
		return nil
	}
	return all[i]
}

func truncateText(text string) string {
	const most = 160
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

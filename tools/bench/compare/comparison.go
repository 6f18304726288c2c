package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/tools/bench/compare/report"
	"github.com/quorate/quorate/tools/bench/compare/systems"
)

type comparison struct {
	options
	folder  string
	systems []systems.System
	cases   []systems.Case
	run     report.Run
}

// newComparison starts nothing.
func newComparison(ctx context.Context, o options, folder string) (*comparison, error) {
	c := &comparison{options: o, folder: folder}
	programs, err := build(ctx, o, folder)
	if err != nil {
		return nil, err
	}
	c.run = report.Run{Started: time.Now(), CPUs: runtime.NumCPU(), Seconds: o.duration.Seconds()}
	version, err := exec.CommandContext(ctx, programs.quorate, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", programs.quorate, err)
	}
	c.run.Version = strings.TrimSpace(string(version))
	all, err := serversAndPrototypes(ctx, o, programs)
	if err != nil {
		return nil, err
	}
	all = c.addRivals(all)
	for _, s := range all {
		if selected(o.systemNames, s.Name()) {
			c.systems = append(c.systems, s)
		}
	}
	for _, one := range systems.Cases() {
		if selected(o.cases, one.Name) {
			c.cases = append(c.cases, one)
		}
	}
	if len(c.systems) == 0 || len(c.cases) == 0 {
		return nil, errors.New("the flags only and cases select nothing; -list lists what there is")
	}
	return c, nil
}

// serversAndPrototypes returns those with the same log store one after the other: they are compared with each other.
func serversAndPrototypes(ctx context.Context, o options, programs binaries) (all []systems.System, err error) {
	servers, err := systems.NewQuorate(ctx, programs.quorate, report.Server)
	if err != nil {
		return nil, err
	}
	if o.before != "" {
		earlier, err := systems.NewQuorate(ctx, o.before, report.EarlierServer)
		if err != nil {
			return nil, err
		}
		servers = append(servers, earlier...)
	}
	for _, store := range []string{"wal", "bolt"} {
		for _, s := range servers {
			if strings.HasSuffix(s.Name(), store) {
				all = append(all, s)
			}
			if s.Name() == report.Server+"wal" && store == "wal" { // next to the open one, with which it is compared
				all = append(all, systems.NewGuardedQuorate(programs.quorate, report.Guarded))
			}
		}
		all = append(all, systems.NewPrototype(programs.prototype, store))
	}
	return all, nil
}

// addRivals adds the systems that are installed. What is missing is reported, not installed.
func (c *comparison) addRivals(all []systems.System) []systems.System {
	for _, rival := range []struct {
		name string
		find func() (systems.System, string)
	}{{"etcd", systems.NewEtcd}, {"postgres", systems.NewPostgres}} {
		if !selected(c.systemNames, rival.name) {
			continue
		}
		found, missing := rival.find()
		if missing != "" {
			c.run.Skipped = append(c.run.Skipped, report.Skipped{System: rival.name, Reason: missing})
			c.printProgress("skipping %s: %s\n", rival.name, missing)
			continue
		}
		all = append(all, found)
	}
	return all
}

func (c *comparison) list() error {
	for _, s := range c.systems {
		var names []string
		for _, one := range c.cases {
			if s.Supports(one) {
				names = append(names, one.Name)
			}
		}
		if _, err := fmt.Fprintf(c.tables, "%s: %s\n", s.Name(), strings.Join(names, " ")); err != nil {
			return err
		}
	}
	return nil
}

// measureAll stops all systems in any case.
func (c *comparison) measureAll(ctx context.Context) (err error) {
	defer func() {
		for _, s := range c.systems {
			err = errors.Join(err, s.Stop())
		}
	}()
	for _, s := range c.systems {
		c.printProgress("starting %s\n", s.Name())
		folder := filepath.Join(c.folder, s.Name())
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("make the folder of %s: %w", s.Name(), err)
		}
		if err := errors.Join(s.Start(ctx, folder), s.Pause()); err != nil {
			return fmt.Errorf("start %s: %w", s.Name(), err)
		}
	}
	for noisy := c.rounds; noisy > 0 && len(c.run.Rounds) < c.rounds+c.repeats; {
		if err := c.measureRound(ctx); err != nil {
			return err
		}
		if noisy = c.run.JudgeNoise(c.rounds); len(c.run.Rounds) < c.rounds {
			noisy = c.rounds
		}
	}
	return c.reportAll()
}

// reportAll writes the results if a file was named. Failed measurements are an error.
func (c *comparison) reportAll() error {
	c.run.Finish()
	if err := c.run.Write(c.tables, c.markdown); err != nil {
		return err
	}
	if c.out != "" {
		if err := c.run.WriteJSON(c.out); err != nil {
			return err
		}
	}
	if failed := len(c.run.Failures()); failed > 0 {
		return fmt.Errorf("%d measurements failed", failed)
	}
	return nil
}

// measureRound measures one system after the other, while all others are paused. Every second round has the reverse
// order, so that a steady drift of the machine favors none of two neighbors.
func (c *comparison) measureRound(ctx context.Context) error {
	round := &report.Round{Number: len(c.run.Rounds) + 1}
	order := slices.Clone(c.systems)
	if round.Number%2 == 0 {
		slices.Reverse(order)
	}
	for _, s := range order {
		if err := s.Resume(ctx); err != nil {
			return fmt.Errorf("resume %s: %w", s.Name(), err)
		}
		if err := c.measureSystem(ctx, s, round); err != nil {
			return err
		}
		if err := s.Pause(); err != nil {
			return err
		}
	}
	c.run.Rounds = append(c.run.Rounds, round)
	return nil
}

func (c *comparison) measureSystem(ctx context.Context, s systems.System, round *report.Round) error {
	for _, one := range c.cases {
		if !s.Supports(one) {
			continue
		}
		sample := c.measureRepeatedly(ctx, s, one)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted: %w", err)
		}
		round.Samples = append(round.Samples, sample)
		c.printProgress("round %d  %-15s %-18s %9.0f/s  p99 %.2f ms  other CPU %.0f %%  %s\n",
			round.Number, s.Name(), one.Name, sample.PerSecond, sample.P99Ms, 100*sample.OtherCPU, sample.Failure)
	}
	return nil
}

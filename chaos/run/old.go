package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quorate/quorate/chaos/runner"
)

// previousReleaseEvery is the share of runs with all faults that begin with the previous release: one in so many.
const previousReleaseEvery = 3

// oldServers finds or builds the older server that runs begin with, when the first run needs it.
type oldServers struct {
	options *options
	build   runner.Build
	// searched is true once the server was looked for; binary is the result.
	searched bool
	binary   string
}

// neededFor reports whether the run with a seed begins with an older server: always if one is requested, or the fault
// "upgrade" is; otherwise the seed decides, so that it repeats the same run.
func (s *oldServers) neededFor(seed uint64) bool {
	o := s.options
	mixed := o.scenario == "" && seed%previousReleaseEvery == 0
	return o.old != "" || o.planted == "" && (mixed || slices.Contains(splitList(o.scenario), "upgrade"))
}

// serverFor returns the older server for the run with a seed, or "". Without the previous release, runs begin with
// the current server; a server that was requested must exist.
func (s *oldServers) serverFor(ctx context.Context, seed uint64) (_ string, err error) {
	switch {
	case !s.neededFor(seed):
		return "", nil
	case s.searched:
		return s.binary, nil
	}
	s.searched = true
	dir := filepath.Join(".bin", "chaos")
	if s.options.old != "" {
		s.binary, err = s.build.Older(ctx, dir, s.options.old)
		return s.binary, err
	}
	if s.binary, err = s.build.Previous(ctx, dir); err != nil {
		fmt.Printf("left out: runs that begin with the previous release: %v\n", err)
	}
	return s.binary, nil
}

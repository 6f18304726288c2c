package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quorate/quorate/chaos/runner"
)

// previousReleaseEvery is how many runs of a mix there are for one that begins with the previous release.
const previousReleaseEvery = 3

// oldServers finds the older server that runs begin with. It is built when the first run needs it.
type oldServers struct {
	options *options
	build   runner.Build
	// searched is true once it was looked for, and binary what was found.
	searched bool
	binary   string
}

// neededFor tells whether the run of a seed begins with an older server. Who asks for one, or for upgrades, gets one every time;
// otherwise the seed decides, so that it plays the same run again.
func (s *oldServers) neededFor(seed uint64) bool {
	o := s.options
	mixed := o.scenario == "" && seed%previousReleaseEvery == 0
	return o.old != "" || o.planted == "" && (mixed || slices.Contains(splitList(o.scenario), "upgrade"))
}

// serverFor is the older server for the run of a seed, or empty. Where the previous release cannot be had, runs do without; a
// server that was asked for must be there.
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

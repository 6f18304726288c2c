package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quorate/quorate/chaos/runner"
)

// oneIn is how many runs of a mix there are for one that begins with the previous release.
const oneIn = 3

// oldServers finds the older server that runs begin with. It is built when the first run needs it.
type oldServers struct {
	options *options
	build   runner.Build
	// sought is true once it was looked for, and binary what was found.
	sought bool
	binary string
}

// wants tells whether the run of a seed begins with an older server. Who asks for one, or for upgrades, gets one every time;
// otherwise the seed decides, so that it plays the same run again.
func (s *oldServers) wants(seed uint64) bool {
	o := s.options
	mixed := o.scenario == "" && seed%oneIn == 0
	return o.old != "" || o.planted == "" && (mixed || slices.Contains(list(o.scenario), "upgrade"))
}

// get is the older server for the run of a seed, or empty. Where the previous release cannot be had, runs do without; a
// server that was asked for must be there.
func (s *oldServers) get(ctx context.Context, seed uint64) (_ string, err error) {
	switch {
	case !s.wants(seed):
		return "", nil
	case s.sought:
		return s.binary, nil
	}
	s.sought = true
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

package server

import (
	"fmt"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/hashicorp/go-hclog"
)

// memoryShare is the part of the memory of the control group, or of the machine, that the heap may take before the
// collector works harder. The rest is for the page cache, which the log is read through, and for stacks.
const memoryShare = 0.75

// tuneCollector sets how much memory the process takes before garbage is collected. The variables GOGC and GOMEMLIMIT
// of Go's runtime win, because they are set for this process.
//
// A server that holds little collects every few megabytes at Go's default of 100, several times a second in large
// batches: collecting was 10 to 30 % of the work. The limit keeps a larger percentage from taking memory that is not
// there.
func tuneCollector(s Settings, environment func(string) string, logger hclog.Logger) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(s.GCPercent)
	}
	if environment("GOMEMLIMIT") != "" {
		return
	}
	limit, err := memoryLimit(s.MemoryLimit, memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem))
	if err != nil {
		logger.Warn("the memory of this machine is not known: memory-limit is not set", "error", err)
		return
	}
	debug.SetMemoryLimit(limit)
	logger.Debug("memory", "limit_bytes", limit, "gc_percent", s.GCPercent)
}

// memoryLimit takes what is set in MiB, or else a share of what is available.
func memoryLimit(set int, available memlimit.Provider) (int64, error) {
	if set > 0 {
		return int64(set) << 20, nil
	}
	share, err := memlimit.ApplyRatio(available, memoryShare)()
	if err != nil {
		return 0, err
	}
	return int64(min(share, math.MaxInt64)), nil
}

// Bounds of the settings of the collector.
const (
	leastGCPercent   = 10
	mostGCPercent    = 10_000
	leastMemoryLimit = 64
	mostMemoryLimit  = 1 << 30
)

func (s Settings) checkMemory() (faults []error) {
	if s.GCPercent < leastGCPercent || s.GCPercent > mostGCPercent {
		faults = append(faults, fmt.Errorf("gc-percent is %d: allowed are %d to %d",
			s.GCPercent, leastGCPercent, mostGCPercent))
	}
	if s.MemoryLimit != 0 && (s.MemoryLimit < leastMemoryLimit || s.MemoryLimit > mostMemoryLimit) {
		faults = append(faults, fmt.Errorf("memory-limit is %d: allowed are 0 (a share of the memory) and %d to %d MiB",
			s.MemoryLimit, leastMemoryLimit, mostMemoryLimit))
	}
	return faults
}

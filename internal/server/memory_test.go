package server

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestMemoryLimit(t *testing.T) {
	available := func() (uint64, error) { return 4 << 30, nil }
	unknown := func() (uint64, error) { return 0, errors.New("no control groups here") }
	for _, c := range []struct {
		name string
		set  int
		from func() (uint64, error)
		want int64
	}{
		{"a share of what there is", 0, available, 3 << 30},
		{"what is set", 100, available, 100 << 20},
		{"what is set, where nothing is known", 100, unknown, 100 << 20},
	} {
		if got, err := memoryLimit(c.set, c.from); err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
	if _, err := memoryLimit(0, unknown); err == nil {
		t.Error("a limit although nothing is known")
	}
}

// TestTuneCollector: settings reach the runtime, and its own variables win. It changes the whole process, so it does
// not run beside other tests.
func TestTuneCollector(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	none := func(string) string { return "" }
	present := func() (int, int64) {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now, debug.SetMemoryLimit(-1)
	}
	tuneCollector(Settings{GCPercent: 250, MemoryLimit: 512}, none, hclog.NewNullLogger())
	if gotPercent, gotLimit := present(); gotPercent != 250 || gotLimit != 512<<20 {
		t.Errorf("the runtime has %d %% and %d bytes", gotPercent, gotLimit)
	}
	set := func(string) string { return "1" }
	tuneCollector(Settings{GCPercent: 300, MemoryLimit: 600}, set, hclog.NewNullLogger())
	if gotPercent, gotLimit := present(); gotPercent != 250 || gotLimit != 512<<20 {
		t.Errorf("with GOGC and GOMEMLIMIT the runtime has %d %% and %d bytes", gotPercent, gotLimit)
	}
	tuneCollector(Settings{GCPercent: 250}, none, hclog.NewNullLogger())
	if _, gotLimit := present(); gotLimit == 512<<20 {
		t.Errorf("by default the limit stays %d bytes", gotLimit)
	}
}

func TestMemorySettingsHaveBounds(t *testing.T) {
	for _, s := range []Settings{
		{GCPercent: 9},
		{GCPercent: 10_001},
		{GCPercent: 100, MemoryLimit: 63},
		{GCPercent: 100, MemoryLimit: -1},
		{GCPercent: 100, MemoryLimit: 1<<30 + 1},
	} {
		if faults := s.checkMemory(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "allowed are") {
			t.Errorf("%d %%, %d MiB: %v", s.GCPercent, s.MemoryLimit, faults)
		}
	}
	if faults := (Settings{GCPercent: 10, MemoryLimit: 64}).checkMemory(); len(faults) != 0 {
		t.Error(errors.Join(faults...))
	}
}

package runner

import (
	"strings"
	"testing"
)

func TestPanicIn(t *testing.T) {
	for log, want := range map[string]string{
		"all is well\n": "",
		"panic: failed to save current term: the data folder failed in SetUint64\n": "",
		"starting\npanic: runtime error: index out of range\n\ngoroutine 1\n":       "panic: runtime error: index out of range",
		"fatal error: concurrent map writes\n":                                      "fatal error: concurrent map writes",
		"2026 [WARN] a line with panic: in its middle\n":                            "",
	} {
		if got := panicIn(log); got != want {
			t.Errorf("panicIn(%q) is %q, want %q", log, got, want)
		}
	}
}

func TestCommandNamesEverything(t *testing.T) {
	c := Config{
		Scenario: []string{"delay", "split"}, Workloads: []string{"lease"}, Seed: 7, Size: 5, Length: 90e9,
		OldGiven: "v0.4.0", Planted: "map-order",
	}
	want := "make chaos SCENARIO=delay,split WORKLOADS=lease SEED=7 NODES=5 LENGTH=1m30s GUARDED=false OLD=v0.4.0 " +
		"PLANTED=map-order"
	if got := c.Command(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.Guarded = true; strings.Contains(c.Command(), "GUARDED") {
		t.Errorf("%s: clusters are guarded by default", c.Command())
	}
}

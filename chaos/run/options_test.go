package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/planted"
)

func TestBadOptions(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "",
		"-scenario kill-leader,delay":       "",
		"-length 60s -nodes 3,5":            "",
		"-selftest -scenario queue-jump":    "",
		"-scenario nope":                    `scenario has "nope"; allowed are bridge, clock`,
		"-scenario kill-leader,":            `scenario has ""; allowed are`,
		"-selftest -scenario kill-leader":   `scenario has "kill-leader"; allowed are early-acknowledge`,
		"-workloads deep,nope":              `workloads has "nope"; allowed are batch`,
		"-planted nope":                     `planted has "nope"; allowed are early-acknowledge`,
		"-planted map-order,early-expiry":   `planted has "map-order,early-expiry"; allowed are`,
		"-planted map-order -binary q":      "binary cannot be combined",
		"-selftest -binary q":               "binary cannot be combined",
		"-nodes 4":                          "nodes is \"4\"; allowed are 3 and 5",
		"-nodes ,":                          "nodes is \",\"; allowed are 3 and 5",
		"-time 1s":                          "time is 1s; allowed are 1m0s to 168h0m0s",
		"-length -5s":                       "length is -5s; allowed are 5s to",
		"-clients -3":                       "clients is -3; allowed are 1 to 100, and 0",
		"extra":                             `"extra" is not a flag`,
		"-nodes 7 -clients 1000 -time 999h": "clients is 1000",
	} {
		var o options
		f := flag.NewFlagSet("chaos", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		o.registerFlags(f)
		if err := f.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := o.validate(f.Args())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestPlantedBugsNameWhatExists: a run with an unknown fault or workload could not be played.
func TestPlantedBugsNameWhatExists(t *testing.T) {
	for _, bug := range planted.Bugs() {
		o := options{
			scenario: strings.Join(bug.Faults, ","), workloads: strings.Join(bug.Workloads, ","), sizes: "3",
			total: minTime, length: bug.Length,
		}
		if err := o.validate(nil); err != nil || len(bug.Faults) == 0 || bug.Length == 0 {
			t.Errorf("%s: %v, %v for %v", bug.Name, err, bug.Faults, bug.Length)
		}
	}
}

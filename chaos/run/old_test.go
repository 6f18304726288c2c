package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/chaos/runner"
)

func TestRunsThatBeginWithOlderServer(t *testing.T) {
	for name, test := range map[string]struct {
		options options
		want    [4]bool // for the seeds 0 to 3
	}{
		"a mix, sometimes":        {options{}, [4]bool{true, false, false, true}},
		"upgrades are asked for":  {options{scenario: "delay,upgrade"}, [4]bool{true, true, true, true}},
		"a version is asked for":  {options{scenario: "delay", old: "v0.4.0"}, [4]bool{true, true, true, true}},
		"other faults":            {options{scenario: "delay"}, [4]bool{}},
		"a server that has a bug": {options{planted: "stale-read"}, [4]bool{}},
	} {
		older := &oldServers{options: &test.options}
		for seed, want := range test.want {
			if got := older.neededFor(uint64(seed)); got != want {
				t.Errorf("%s: with seed %d it is %v, want %v", name, seed, got, want)
			}
		}
	}
}

// TestRequestedOlderServerMustExist: without a request, a missing previous release is not an error.
func TestRequestedOlderServerMustExist(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := runner.Build{Source: t.TempDir()}
	for _, test := range []struct {
		options options
		want    string
		wrong   bool
	}{
		{options{old: file}, file, false},
		{options{old: "no-such-version"}, "", true},
		{options{scenario: "upgrade"}, "", false},
	} {
		older := &oldServers{options: &test.options, build: empty}
		if got, err := older.serverFor(t.Context(), 1); got != test.want || (err != nil) != test.wrong {
			t.Errorf("%+v: it is %q, %v", test.options, got, err)
		}
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/planted"
	"github.com/quorate/quorate/chaos/runner"
)

// resultWith has two operations and a fault, and files in its own folder.
func resultWith(t *testing.T, dir string, seed uint64, failures ...string) *runner.Result {
	t.Helper()
	config := runner.Config{Dir: filepath.Join(dir, "run"), Size: 3, Seed: seed}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		config.History(), check.FinalsBeside(config.History()), guarded.EvidenceBeside(config.History()),
	} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &runner.Result{
		Config: config, Faults: faults.Counts{"kill-leader": 1}, Failures: failures,
		History: history.History{Ops: make([]history.Op, 2)},
	}
}

func TestSummaryOfRuns(t *testing.T) {
	dir, all := t.TempDir(), newSummary()
	good := resultWith(t, filepath.Join(dir, "1"), 1)
	bad := resultWith(t, filepath.Join(dir, "2"), 2, "P1: 61 of 60\nare held")
	lost := resultWith(t, filepath.Join(dir, "3"), 3)
	if err := errors.Join(all.addRun(good, nil), all.addRun(bad, nil)); err != nil || all.lastNotPlayed {
		t.Fatal(err, all.lastNotPlayed)
	}
	if err := errors.Join(all.addRun(lost, errors.New("no leader")), all.writePage(dir)); err != nil ||
		!all.lastNotPlayed {
		t.Fatal(err, all.lastNotPlayed)
	}
	if want := "runs: 3, operations: 6, faults: 3; 2 of the runs did not pass"; all.String() != want {
		t.Errorf("%s, want %s", all, want)
	}
	page, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kill-leader 3", "| passed |", "**P1: 61 of 60 are held**", "**could not be played**",
		"SEED=2",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	for _, path := range []string{good.Config.History(), guarded.EvidenceBeside(good.Config.History())} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of a run that passed is still there: %v", path, err)
		}
	}
	if _, err := os.Stat(bad.Config.History()); err != nil {
		t.Errorf("the history of a run that failed: %v", err)
	}
	if err := all.failureError(); err == nil || !strings.Contains(err.Error(), "SEED=3") {
		t.Errorf("%v does not name the run that was not played", err)
	}
}

func TestNoRunsDoNotPass(t *testing.T) {
	if all := newSummary(); all.failureError() == nil || strings.Contains(all.String(), "kept") {
		t.Errorf("%s, %v", all, all.failureError())
	}
}

func TestSlowMachineFindsNoBug(t *testing.T) {
	slow := check.Verdicts{{Promise: "P1"}, {Promise: check.Live, Violations: 1}}
	if found := firstBroken(slow); found != nil {
		t.Errorf("%s counts as found", found.Promise)
	}
	if found := firstBroken(append(slow, &check.Verdict{Promise: "P9", Violations: 1})); found == nil ||
		found.Promise != "P9" {
		t.Errorf("found %v, want P9", found)
	}
}

// TestBugsOfAccessAreFoundByAccounts: another promise may break too, which does not show that theirs are checked.
func TestBugsOfAccessAreFoundByAccounts(t *testing.T) {
	all := check.Verdicts{{Promise: "P9", Violations: 1}, {Promise: guarded.Access}, {Promise: guarded.Audit}}
	if found := firstBroken(verdictsFor(planted.Bug{Guarded: true}, all)); found != nil {
		t.Errorf("%s counts as found", found.Promise)
	}
	all[2].Violations = 1
	if found := firstBroken(verdictsFor(planted.Bug{Guarded: true}, all)); found == nil || found.Promise != guarded.Audit {
		t.Errorf("found %v, want %s", found, guarded.Audit)
	}
	if found := firstBroken(verdictsFor(planted.Bug{}, all)); found == nil || found.Promise != "P9" {
		t.Errorf("found %v, want P9", found)
	}
}

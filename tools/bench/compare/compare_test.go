package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/tools/bench/compare/report"
	"github.com/quorate/quorate/tools/bench/compare/systems"
)

// diskFolder returns a folder that other users can enter, such as the one that runs PostgreSQL. It skips the test where
// temporary folders are in memory.
func diskFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "compare-test-") //nolint:usetesting // the parent of t.TempDir is private
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := systems.CheckDisk(folder); err != nil {
		t.Skip(err)
	}
	return folder
}

// compileForTest compiles with the flags of the test, because make test has compiled most of it with them already. Only
// make verify measures programs as users get them.
func compileForTest(ctx context.Context, file, folder string) error {
	if verify.Enabled() {
		return testbinary.BuildPlain(ctx, file, folder)
	}
	return testbinary.Build(ctx, file, folder)
}

// TestComparison measures real processes for a moment. The figures do not matter here. A measurement fails by itself if
// anything is still held after it.
func TestComparison(t *testing.T) {
	folder := diskFolder(t)
	out := filepath.Join(folder, "run.json")
	arguments := []string{"-time", "100ms", "-warmup", "20ms", "-rounds", "1", "-repeat", "0", "-dir", folder, "-out", out}
	// One case of each kind; all of them in make verify.
	arguments = append(arguments, verify.Scale(
		[]string{"-cases", "empty-1,raft-16,unary-1,batch-64x1,client-64,follower-16,reads-64,spread-64"},
		[]string{"-markdown"})...)
	var tables, progress strings.Builder
	if err := run(t.Context(), compileForTest, arguments, &tables, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var read report.Run
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	measured := checkSamples(t, read)
	for _, name := range []string{"prototype-wal", "prototype-bolt", "quorate-bolt", report.Guarded} {
		if measured[name] == 0 {
			t.Errorf("%s was not measured", name)
		}
	}
	for _, rival := range []string{"etcd", "postgres"} {
		skipped := strings.Contains(tables.String(), "Skipped "+rival)
		if skipped == (measured[rival] > 0) {
			t.Errorf("%s: %d measurements, and skipped is %v", rival, measured[rival], skipped)
		}
	}
	if len(read.Targets) == 0 || !strings.Contains(tables.String(), "one caller") {
		t.Errorf("no target was evaluated: %+v\n%s", read.Targets, tables.String())
	}
	checkEmptyFolder(t, folder, out)
}

// checkSamples expects one round and returns how many samples each system has.
func checkSamples(t *testing.T, read report.Run) map[string]int {
	t.Helper()
	if len(read.Rounds) != 1 || read.Version == "" {
		t.Fatalf("%d rounds of version %q, want one", len(read.Rounds), read.Version)
	}
	measured := make(map[string]int)
	for _, s := range read.Rounds[0].Samples {
		measured[s.System]++
		if s.Operations <= 0 || s.PerSecond <= 0 || s.Failure != "" || s.Attempts < 1 {
			t.Errorf("%s of %s did no work: %+v", s.Case, s.System, s)
		}
	}
	return measured
}

func checkEmptyFolder(t *testing.T, folder string, except ...string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if len(except) == 0 || path != except[0] {
			t.Errorf("%s is left behind", path)
		}
	}
}

func TestAnInterruptEndsAllProcesses(t *testing.T) {
	folder := diskFolder(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	progress := &watcher{text: "round 1", seen: interrupt}
	err := run(ctx, compileForTest, []string{
		"-time", "100ms", "-rounds", "99", "-dir", folder, "-only", "prototype", "-cases", "unary-1",
	}, &strings.Builder{}, progress)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v, want that it was interrupted", err)
	}
	checkEmptyFolder(t, folder)
	for deadline := time.Now().Add(time.Minute); runsProcess(t, folder); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a process still runs")
		}
	}
}

// runsProcess finds a process by the folder in its command line.
func runsProcess(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), folder) {
			return true
		}
	}
	return false
}

type watcher struct {
	text string
	seen func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.seen()
	}
	return len(p), nil
}

func TestOptionsAreChecked(t *testing.T) {
	for _, wrong := range []string{"-time=0s", "-warmup=0s", "-rounds=0", "-repeat=-1", "-rounds=100", "rest"} {
		if _, err := parseOptions([]string{wrong}, &strings.Builder{}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

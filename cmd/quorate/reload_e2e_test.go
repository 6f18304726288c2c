package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServerFollowsItsFile changes the configuration file of a running server.
func TestServerFollowsItsFile(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	file := filepath.Join(t.TempDir(), "quorate.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log-level: warn\n")
	p := startProcess(t, "server", "run", "--config", file, "--id", f.id, "--data-dir", f.dir, "--http-addr", f.http,
		"--raft-addr", f.raft, "--gossip-addr", f.gossip)
	awaitReady(t, p, f)

	says := func(line string) func() bool {
		return func() bool { return strings.Contains(p.stderr.String(), line) }
	}
	write("log-level: debug\nsnapshot-every: 99\n")
	p.sendSignal(t, syscall.SIGHUP)
	awaitCondition(t, "nothing was reloaded", says("reloaded the settings"))
	if !says("a changed setting needs a restart: setting=snapshot-every")() {
		t.Errorf("nothing was said of the setting that cannot change:\n%s", p.stderr.String())
	}
	write("log-leven: debug\n")
	p.sendSignal(t, syscall.SIGHUP)
	awaitCondition(t, "the typo was not found", says(":1:1: unknown field"))
	p.stopCleanly(t)
}

// TestHangupDuringTheStart: SIGHUP during the start neither ends the server nor is lost.
func TestHangupDuringTheStart(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	p := startProcess(t, append(f.commandLine(), "--log-level", "info")...)
	awaitCondition(t, "the server logs nothing", func() bool { return p.stderr.String() != "" })
	p.sendSignal(t, syscall.SIGHUP)
	awaitReady(t, p, f)
	awaitCondition(t, "nothing was reloaded",
		func() bool { return strings.Contains(p.stderr.String(), "reloaded the settings") })
	p.stopCleanly(t)
}

// TestServerCheck: --check accepts valid settings, refuses invalid ones, and starts nothing.
func TestServerCheck(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if end := runCommand(t, "server", "run", "--check", "--id", "n1", "--data-dir", data); end.code != 0 ||
		end.stdout != "The settings of n1 are valid.\n" {
		t.Errorf("%+v", end)
	}
	end := runCommand(t, "server", "run", "--check", "--id", "n 1", "--data-dir", data, "--bootstrap-expect", "2",
		"--log-level", "loud")
	if end.code != 2 || !strings.Contains(end.stderr, "log-level is \"loud\"") {
		t.Errorf("%+v", end)
	}
	end = runCommand(t, "server", "run", "--check", "--id", "n 1", "--data-dir", data, "--bootstrap-expect", "2")
	if end.code != 2 || !strings.Contains(end.stderr, `ID is "n 1"`) ||
		!strings.Contains(end.stderr, "BootstrapExpect is 2") {
		t.Errorf("%+v", end)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("checking made a data folder: %v", err)
	}
}

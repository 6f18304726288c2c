package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/verify"
)

// lastLevel is the version of the feature level before that of this version.
const lastLevel = "level-8"

var lastLevelBuild release

// newLines are commands that need the feature level of this version, with a tree t that has a node t:a. They end with 0
// as soon as the cluster has the level.
func newLines(t *testing.T) []string {
	t.Helper()
	advises := manifestFile(t,
		"trees: {w: {policy: open, resources: {cores: {unit: count}, gpus: {unit: count}}, "+
			"limits: {cores: \"advisory:4\", gpus: 4}}}")
	return []string{
		"allocate --id range --at t:a/b --amount cores=1..2",
		"apply -f " + advises,
		"hold w --reason moving", "resume w",
	}
}

// TestUpgradeFromTheLastLevel upgrades three servers of the level before under load. Until the level is raised, leaders
// of both versions refuse what needs the new level, and apply no part of it; afterwards it works on every server, and
// all of them have the same state.
func TestUpgradeFromTheLastLevel(t *testing.T) {
	verify.Only(t) // builds another version
	t.Parallel()
	_, old := lastLevelBuild.buildOnce(t, lastLevel)
	f := startFleet(t, old)
	f.restartServer(t, "n1", binary)
	f.restartServer(t, "n2", binary)
	lines := newLines(t)
	for range 2 {
		leads := f.awaitLeader(t)
		for _, line := range lines {
			end := f.flags[0].runLine(t, line+" --timeout 5s")
			if end.code == 0 || !strings.Contains(end.stderr, "n3 (version "+lastLevel+", feature level 8)") {
				t.Errorf("%s leads, and %s ends with %d: %s%s", leads, line, end.code, end.stdout, end.stderr)
			}
		}
		runUntil(t, f.flags[0], "level", 0, "possible  8")
		f.restartServer(t, leads, map[bool]string{true: old, false: binary}[leads == "n3"]) // another one leads now
	}
	f.restartServer(t, "n3", binary)
	runUntil(t, f.flags[0], "level --raise", 0, "level     10")
	scheduled := "limits set w gpus=+1 --until " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + " --id while"
	for i, line := range append(lines, scheduled) {
		f.flags[i%3].runUntilDone(t, line) // civil time is agreed some seconds after the level is raised
	}
	f.flags[0].runLine(t, "release range")
	if same := runUntil(t, f.flags[0], "digests --now", 0, "agrees").stdout; strings.Count(same, "agrees") != 3 {
		t.Errorf("the members do not hold the same:\n%s", same)
	}
	f.checkResults(t, f.flags)
}

// runUntilDone repeats a command until it ends with 0.
func (f serverFlags) runUntilDone(t *testing.T, line string) {
	t.Helper()
	var end outcome
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if end = f.runLine(t, line); end.code == 0 {
			return
		}
	}
	t.Errorf("%s ends with %d: %s%s", line, end.code, end.stdout, end.stderr)
}

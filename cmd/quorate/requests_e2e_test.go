package main_test

import (
	"strings"
	"testing"
	"time"
)

func TestReservationsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	const web = "--at cern:atlas/operations/web --amount cores=30"
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, ""},
		{"allocate --id kept --reserve 1h " + web, 0, "quorate allocation confirm kept keeps it"},
		{"allocate --id late " + web, 3, "missing 30"},
		{"allocation show kept", 0, "reserved"},
		{"allocation confirm kept", 0, "confirmed"},
		{"allocation confirm kept", 0, "confirmed before"},
		{"release kept --restore", 3, "release it"},
		{"release kept", 0, "released"},
		{"allocate --id dropped --reserve 1h " + web, 0, "reserved"},
		{"release dropped --restore", 0, "cancelled"},
		{"release dropped --restore", 0, "ended before"},
		{"allocation confirm dropped", 5, "ended"},
		{"allocation confirm nobody", 1, "nobody"},
		{"allocate --id short --reserve 1ms " + web, 0, "reserved"},
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		end := runCommand(t, "allocation", "show", "short", "--server", f.baseURL())
		if strings.Contains(end.stdout, "expired") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the reservation never lapses: %s%s", end.stdout, end.stderr)
		}
	}
	playSteps(t, f, []step{
		{"allocation confirm short", 5, "ended"},
		{"release short --restore", 0, "ended before"},
		{"event list --kind expired", 0, "short"},
		{"allocate --id next " + web, 0, "granted"},
	})
}

// TestRemedyAdmitsRequest runs the commands that explain proposes and expects the request to be granted then.
func TestRemedyAdmitsRequest(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	const wanted = " --at cern:atlas/operations/web --amount cores=20"
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, ""},
		{"allocate --id old;1 --at cern:atlas/operations/web --amount cores=15", 0, "granted"},
		{"allocate --id new" + wanted, 3, "missing 5"},
		{"allocate --id new --dry-run" + wanted, 3, "missing 5"},
		{"explain new", 0, "denied at"},
		{"explain" + wanted, 0, "it would be denied"},
		{"explain --at cern:atlas/operations/web --amount cores=15", 0, "it would be granted"},
		{"explain old;1", 0, "held"},
		{"explain old;1 --user ann", 2, "without flags that describe a request"},
		{"explain nobody", 1, "nobody"},
		{"event list --id new", 0, "denied"},
	})
	raises, releases := remediesOf(t, runCommand(t, "explain", "new", "--server", f.baseURL()).stdout)
	if len(raises) == 0 || len(releases) != 1 {
		t.Fatalf("raises %q, releases %q", raises, releases)
	}
	pasteCommands(t, f, releases)
	playSteps(t, f, []step{
		{"allocate --id new" + wanted, 0, "granted"},
		{"allocate --id more" + wanted, 3, "missing 10"},
	})
	raises, _ = remediesOf(t, runCommand(t, "explain", "more", "--server", f.baseURL()).stdout)
	pasteCommands(t, f, raises)
	playSteps(t, f, []step{{"allocate --id more" + wanted, 0, "granted"}})
}

// remediesOf returns the commands before "Or" and those after it.
func remediesOf(t *testing.T, explanation string) (raises, releases []string) {
	t.Helper()
	list := &raises
	for line := range strings.Lines(explanation) {
		if strings.HasPrefix(line, "Or ") {
			list = &releases
		}
		if command, found := strings.CutPrefix(strings.TrimSpace(line), "quorate "); found {
			*list = append(*list, "quorate "+command)
		}
	}
	return raises, releases
}

func pasteCommands(t *testing.T, f serverFlags, commands []string) {
	t.Helper()
	shell := newShell(t, f.baseURL(), "")
	for _, command := range commands {
		if said := shell.runInShell(t, command); strings.Contains(said, "[exit ") {
			t.Fatalf("%s: %s", command, said)
		}
	}
}

func TestForceOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, ""},
		{"allocate --id found --force --at cern:atlas/physics/higgs --amount cores=3", 0, "held by force"},
		{"usage cern:atlas/physics/higgs", 0, "3 over"},
		{"allocate --id more --at cern:atlas/physics/higgs --amount cores=0", 3, "missing 3"},
		{"release found", 0, "released"},
		{"allocate --id more --at cern:atlas/physics/higgs --amount cores=0", 0, "granted"},
	})
}

package main_test

import (
	"os"
	"strings"
	"testing"
)

// TestWatchedTables: a table is shown again when it has changed, while the server is away the command waits for it, and
// Ctrl-C is its ordinary end.
func TestWatchedTables(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	playSteps(t, f, []step{{"apply -f ../../examples/cern.yaml -f ../../examples/ci.yaml", 0, ""}})
	watched := map[string]*process{}
	shows := func(command, says string) {
		t.Helper()
		p := watched[command]
		awaitTrue(t, func() bool {
			_, last, _ := strings.Cut("\n\n"+p.stdout.String(), "\n\n")
			return strings.Contains(last[strings.LastIndex(last, "\n\n")+1:], says)
		})
	}
	const usage, queue = "usage cern:atlas/operations/web", "queue list"
	const items, status = "item list ci:aws-account", "status"
	for command, says := range map[string]string{
		usage: "HEADROOM", queue: "no request is waiting", items: "ALLOCATION", status: "MEMBER",
	} {
		watched[command] = startProcess(t, append(strings.Fields(command), "--watch", "--server", f.baseURL())...)
		shows(command, says)
	}
	playSteps(t, f, []step{
		{"allocate --id seen --at cern:atlas/operations/web --amount cores=29", 0, ""},
		{"allocate --id waits --wait 1h --async --at cern:atlas/operations/web --amount cores=2", 9, ""},
		{"allocate --id taken --at ci:tenants/web --item aws-account", 0, ""},
	})
	shows(usage, " 29 ")
	shows(queue, "waits")
	shows(items, "taken")
	server.endBySignal(t, os.Kill)
	for _, p := range watched {
		awaitTrue(t, func() bool { return strings.Contains(p.stderr.String(), "trying again; what is shown may be old") })
	}
	startServer(t, f)
	playSteps(t, f, []step{{"release seen", 0, ""}})
	shows(usage, " 2 ")
	shows(queue, "no request is waiting")
	for command, p := range watched {
		awaitTrue(t, func() bool { return strings.Contains(p.stderr.String(), "n1 answers") })
		p.sendSignal(t, os.Interrupt) // once: a second one ends a command at once, with another exit code
		if end := p.awaitEnd(t); end.code != 0 {
			t.Errorf("%s: exit code %d\n%s", command, end.code, end.stderr)
		}
	}
	playSteps(t, f, []step{
		{"usage nowhere --watch", 1, "there is no tree nowhere"}, {"usage cern --watch -o json", 2, "calls WatchChanges"},
	})
}

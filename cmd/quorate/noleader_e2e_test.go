package main_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestCommandsWithoutALeader: commands that show the cluster print the view of one server, and, like every command that
// needs a leader, exit with the code for a missing leader.
func TestCommandsWithoutALeader(t *testing.T) {
	t.Parallel()
	f := threeServers(t)[0] // the other two servers are never started
	startProcess(t, f.commandLine()...)
	awaitCondition(t, "the server does not answer",
		func() bool { status, _ := httpGet(t, f.baseURL()+"/livez"); return status == http.StatusOK })
	for command, shows := range map[string]string{
		"status": " leader none ", "status --local": " leader none ", "status -o json": `"leaderId": ""`,
		"member list":         "1 of 3 expected nodes are here",
		"member list -o json": `"leaderId": ""`, "usage cern --timeout 3s": "", "tree list --timeout 3s": "",
		"member set --role leader --timeout 3s": "", "allocate --id a --at cern --amount cores=1 --timeout 3s": "",
		"snapshot create /dev/null --timeout 3s": "",
	} {
		awaitCondition(t, command+" does not say that there is no leader", func() bool {
			end := runCommand(t, append(strings.Fields(command), "--server", f.baseURL())...)
			if end.code != 6 {
				t.Fatalf("%s: %+v", command, end)
			}
			// On a busy machine a server answers too late.
			return strings.Contains(strings.Join(strings.Fields(end.stdout), " "), shows) &&
				strings.Contains(end.stdout+end.stderr, "eader")
		})
	}
}

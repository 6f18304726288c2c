package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const limitedTree = `trees:
  lab:
    policy: open
    resources: {cores: {unit: count}, ram: {unit: bytes}}
    applications: 2
    require-reason: true
    principals:
      - {users: ["*"], limits: {cores: 4, ram: 8Gi}, applications: 1}
      - {groups: [ops, dev], limits: {cores: 6}}
    nodes:
      a: {}
`

func applyText(t *testing.T, f serverFlags, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trees.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{{"apply --actor ann -f " + file, 0, "applied"}})
}

// TestSuggestedLimitsAdmit: each command that explain prints for a limit of a node, user, group or application can be
// pasted, and together they admit the request.
func TestSuggestedLimitsAdmit(t *testing.T) {
	t.Parallel()
	f, boskos := withBoskos(t)
	startServer(t, f)
	shell := newShell(t, f.baseURL(), boskos)
	applyText(t, f, limitedTree)
	playSteps(t, f, []step{
		{"allocate --id one --user o'neill --group ops --application x --at lab:a --amount cores=4", 0, "granted"},
		{"allocate --id two --user eve --application y --at lab:a --amount cores=1", 0, "granted"},
		{"allocate --id big --user o'neill --group ops --application z --at lab:a --amount cores=3", 3, "denied"},
	})
	explained := runCommand(t, "explain", "big", "--server", f.baseURL()).stdout
	pasted := 0
	for line := range strings.Lines(explained) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "quorate limit set") {
			pasted++
			if said := shell.runInShell(t, command); !strings.Contains(said, "applied 1 change") {
				t.Errorf("%s\n%s", command, said)
			}
		}
	}
	if pasted != 4 { // the cores of the user and the group, the applications of the user and of the tree
		t.Errorf("%d commands were found in\n%s", pasted, explained)
	}
	playSteps(t, f, []step{
		{"allocate --id big-2 --user o'neill --group ops --application z --at lab:a --amount cores=3", 0, "granted"},
		{"allocate --id other --user eve --application y --at lab:a --amount cores=4", 3, "limit 4"}, // as before
	})
}

// TestLimitsOfUsersOverARealServer: limits are set and shown for a node, a user and a group.
func TestLimitsOfUsersOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	applyText(t, f, limitedTree)
	const why = " --actor ann --reason why"
	playSteps(t, f, []step{
		{"limit set lab cores=7 --group dev --actor ann", 2, "need a reason"},
		{"limit set lab cores=7 --group dev --dry-run" + why, 0, "groups dev: cores 7"},
		{"limit set lab cores=7 --group dev" + why, 0, "(revision 2)"},
		{"limit set lab cores=7 --group dev" + why, 0, "nothing to change"},
		{"limit set lab:a ram=1Gi --user ada" + why, 0, "users ada: ram 1Gi"},
		{"limit set lab:a --applications 3 cores=9" + why, 0, "applied 2 changes"},
		{"limit set lab:a --applications unset" + why, 0, "- lab:a  applications: 3"},
		{"allocate --id one --user eve --application x --at lab:a --amount cores=3", 0, "granted"},
		{"limit set lab cores=2 --user *" + why, 0, "! lab  user eve, cores: uses 3 of 2, 1 over"},
		{"limit show lab", 0, "cores         2 (*)                3"},
		{"limit show lab", 0, "1 over"},
		{"limit show lab:a", 0, "user ada  ram"},
		{"limit show lab:b", 1, "no node"},
		{"limit set lab:b cores=1 --user ada" + why, 1, "no node"},
	})
}

// TestConcurrentLimitsOfUsers: of changes of several users at the same node none is lost.
func TestConcurrentLimitsOfUsers(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	applyText(t, f, limitedTree)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			line := fmt.Sprintf("limit set lab cores=%d --user user-%d --actor ann --reason why --server %s", 10+i, i,
				f.baseURL())
			if end := runCommand(t, strings.Fields(line)...); end.code != 0 {
				t.Errorf("%s: %s", line, end.stderr)
			}
		})
	}
	all.Wait()
	shown := runCommand(t, "limit", "show", "lab", "--server", f.baseURL()).stdout
	for i := range 4 {
		if !strings.Contains(shown, fmt.Sprintf("user user-%d", i)) {
			t.Errorf("the limit of user-%d is lost:\n%s", i, shown)
		}
	}
}

package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestARestoreGivesNoRights: the bindings of nodes come from the file, so a caller that may restore, and nothing else,
// does not get back by an old file what was taken away.
func TestARestoreGivesNoRights(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	restorer := strings.Replace(guardedTree, "  bindings:\n", "  roles: {restorer: [snapshot.save, snapshot.restore]}\n"+
		"  bindings:\n    - {role: restorer, to: [\"account ops\"]}\n", 1)
	before := strings.Replace(restorer, `bindings: [{role: node-admin, to: ["account carl"]}]`,
		`bindings: [{role: operator, to: ["account ops"]}]`, 1)
	file := filepath.Join(t.TempDir(), "old.backup")
	playSteps(t, list[0], []step{
		{as("admin", "apply -f "+manifestFile(t, before)), 0, "restorer"},
		{as("ops", "access can-i data.read cern:cms"), 0, "yes"},
		{as("ops", "snapshot save "+file), 0, ""},
		{as("admin", "apply -f "+manifestFile(t, restorer)), 0, "operator"},
		{as("ops", "access can-i data.read cern:cms"), 1, "no"},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("anna", "snapshot restore "+file+" --yes"), 4, "snapshot.restore"},
			{as("ops", "snapshot restore "+file+" --yes"), 4, "access.manage"},
			{as("ops", "access can-i data.read cern:cms"), 1, "no"},
		})
	}
	playSteps(t, list[0], []step{
		{as("admin", "snapshot restore "+file+" --yes"), 0, ""},
		{as("admin", "audit"), 0, "Restore"},
	})
}

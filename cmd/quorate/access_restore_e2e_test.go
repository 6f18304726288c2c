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

// TestARestoreKeepsAccess: accounts, tokens and the mode are those of now and not those of the backup, and a credential
// stays refused that was refused before or after it.
func TestARestoreKeepsAccess(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	late, file := filepath.Join(tokens, "late"), filepath.Join(t.TempDir(), "old.backup")
	ofCarl := strings.Split(tokenIn(t, tokens, "carl"), "_")[1]
	playSteps(t, list[0], []step{
		{as("admin", "access refuse user corp/before --until 9d --reason left"), 0, ""},
		{as("admin", "snapshot save "+file), 0, ""},
		{as("admin", "access refuse user corp/after --until 9d --reason left"), 0, ""},
		{as("admin", "access token revoke "+ofCarl), 0, ""},
		{as("admin", "access account update hans --disable"), 0, ""},
		{as("admin", "access account rm heidi"), 0, ""},
		{as("admin", "access account add late"), 0, ""},
		{as("admin", "access token add late --out "+late), 0, ""},
		{as("admin", "limits set cern:cms cores=39"), 0, ""},
		{as("admin", "snapshot restore "+file+" --yes"), 0, ""},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("admin", "tree export cern"), 0, "cms:\n        limits: {cores: 40}"},
			{as("late", "access whoami"), 0, "guarded"},
			{as("carl", "access whoami"), 4, "revoked"},
			{as("hans", "access whoami"), 4, "disabled"},
			{as("heidi", "access whoami"), 4, ""},
			{as("admin", "access refused list"), 0, "corp/before"},
			{as("admin", "access refused list"), 0, "corp/after"},
			{"tree export cern", 1, "may not see it"},
		})
	}
}

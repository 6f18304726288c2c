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
		"  bindings:\n    - {role: restorer, subjects: [\"account ops\"]}\n", 1)
	before := strings.Replace(restorer, `bindings: [{role: node-admin, subjects: ["account carl"]}]`,
		`bindings: [{role: operator, subjects: ["account ops"]}]`, 1)
	file := filepath.Join(t.TempDir(), "old.backup")
	playSteps(t, list[0], []step{
		{as("admin", "apply -f "+manifestFile(t, before)), 0, "restorer"},
		{as("ops", "access check data.read cern:cms"), 0, "yes"},
		{as("ops", "snapshot create "+file), 0, ""},
		{as("admin", "apply -f "+manifestFile(t, restorer)), 0, "operator"},
		{as("ops", "access check data.read cern:cms"), 1, "no"},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("anna", "snapshot restore "+file+" --yes"), 4, "snapshot.restore"},
			{as("ops", "snapshot restore "+file+" --yes"), 4, "access.manage"},
			{as("ops", "access check data.read cern:cms"), 1, "no"},
		})
	}
	playSteps(t, list[0], []step{
		{as("admin", "snapshot restore "+file+" --yes"), 0, ""},
		{as("admin", "audit list"), 0, "Restore"},
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
		{as("admin", "refusal create user corp/before --until 9d --reason left"), 0, ""},
		{as("admin", "snapshot create "+file), 0, ""},
		{as("admin", "refusal create user corp/after --until 9d --reason left"), 0, ""},
		{as("admin", "token delete "+ofCarl), 0, ""},
		{as("admin", "account set hans --disable"), 0, ""},
		{as("admin", "account delete heidi"), 0, ""},
		{as("admin", "account create late"), 0, ""},
		{as("admin", "token create late --out "+late), 0, ""},
		{as("admin", "limit set cern:cms cores=39"), 0, ""},
		{as("admin", "snapshot restore "+file+" --yes"), 0, ""},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("admin", "manifest export cern"), 0, "cms:\n        limits: {cores: 40}"},
			{as("late", "access whoami"), 0, "guarded"},
			{as("carl", "access whoami"), 4, "revoked"},
			{as("hans", "access whoami"), 4, "disabled"},
			{as("heidi", "access whoami"), 4, ""},
			{as("admin", "refusal list"), 0, "corp/before"},
			{as("admin", "refusal list"), 0, "corp/after"},
			{"manifest export cern", 1, "may not see it"},
		})
	}
}

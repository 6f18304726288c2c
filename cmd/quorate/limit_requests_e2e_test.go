package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRequestsForLimits: one asks, two others approve, at different servers, and every other caller is refused.
func TestRequestsForLimits(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	playSteps(t, list[0], []step{
		{as("hans", "request create cern:atlas/physics cores=50"), 2, "--reason is missing"},
		{as("hans", "request create cern:atlas/physics cores=50 --reason x --for 91d"), 2, "open_ms"},
		{as("hans", "request create cern:atlas/physics cores=40 --reason x"), 2, "has these limits already"},
		{as("hans", "request create cern:cms cores=41 --reason x"), 1, "there is no"},
		{as("hans", "request create cern:atlas/physics cores=50 --reason campaign --for 2d"), 0, "cores: 40 -> 50"},
		{as("hans", "request create cern:atlas/physics cores=50 --reason campaign --for 2d"), 0, "request 1  open"},
		{as("hans", "request approve 1"), 4, "may not set the limits"},
		{as("peter", "request approve 1"), 1, "no request for limits 1"},
		{as("carl", "request list"), 0, ""},
	})
	playSteps(t, list[1], []step{
		{as("hans", "request list"), 0, "by account/hans: campaign"},
		{as("anna", "request approve 1 --digest 0123"), 5, "has cores=40 now"},
		{as("anna", "request approve 1 --dry-run"), 0, "applied"},
		{as("anna", "request approve 1"), 0, "closed"},
		{as("anna", "request approve 1"), 5, "request 1 is applied"},
		{as("admin", "revision list --limit 1"), 0, "request 1 of account/hans, approved by account/anna"},
		{as("admin", "audit list --action ApproveRequest"), 0, "request 1"},
		{as("admin", "request list --all"), 0, "applied"},
	})
	playSteps(t, list[2], []step{
		{as("hans", "request create cern:atlas/physics cores=70 --reason more"), 0, "request 2"},
		{as("anna", "request approve 2"), 0, "stale"},
		{as("hans", "request create cern:atlas/physics cores=55 --reason more"), 0, "request 3"},
		{as("anna", "request reject 3 --reason later"), 0, "by account/anna: later"},
		{as("heidi", "request create cern:atlas/physics cores=55 --reason more"), 0, "request 4"},
		{as("hans", "request delete 4"), 1, "there is no request"},
		{as("heidi", "request delete 4"), 0, "withdrawn"},
		{as("anna", "request approve zero"), 2, "is not the id of a request"},
		{as("hans", "request list"), 0, "closed requests: 3; to see who closed them"},
		{as("hans", "request list --all"), 0, "by account/anna: later"},
		{as("heidi", "request list --all"), 0, "by account/heidi"},
		{as("carl", "request list --all"), 0, ""},
	})
	removeAdministrator(t, list[0], as)
}

// removeAdministrator removes an account that has started things: they stay, and are named with the command that ends
// them.
func removeAdministrator(t *testing.T, f serverFlags, as func(name, command string) string) {
	t.Helper()
	awaitCivilTime(t, f, strings.Fields(as("anna", ""))...)
	const at = "cern:atlas/physics"
	playSteps(t, f, []step{
		{
			as("anna", "limit set "+at+" cores=45 --id later --begin 2099-01-01T00:00:00Z --until 2099-02-01T00:00:00Z"), 0,
			"scheduled: later",
		},
		{as("anna", "node cordon "+at+" --reason cables"), 0, ""},
		{as("anna", "request create cern:atlas cores=61 --reason more"), 0, "request 5"},
		{
			as("admin", "account set anna --disable"), 0,
			"the limit later of " + at + ", scheduled by account/anna, stays; to end it: quorate schedule delete later",
		},
		{
			as("admin", "account set anna --disable"), 0,
			"the hold of " + at + ", made by account/anna, stays; to end it: quorate node uncordon " + at,
		},
		{
			as("admin", "account delete anna"), 0,
			"request 5 of account/anna for limits of cern:atlas is open; to end it: quorate request reject 5 --reason TEXT",
		},
		{
			as("admin", "apply -f "+manifestFile(t, strings.ReplaceAll(guardedTree, "account anna", "account carl"))), 0,
			"quorate schedule delete later",
		},
		{as("admin", "schedule delete later"), 0, "cancelled: later"},
		{as("admin", "node uncordon "+at), 0, ""},
		{as("admin", "request reject 5 --reason left"), 0, "rejected"},
	})
}

// TestTwoApprovals: a tree may want two people.
func TestTwoApprovals(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	two := manifestFile(t, `trees:
  pair:
    approvals: 2
    resources: {cores: {unit: count}}
    limits: {cores: 10}
    bindings: [{role: node-admin, subjects: ["account anna", "account peter", "account hans"]}]
    nodes:
      a: {limits: {cores: 5}}
`)
	playSteps(t, list[0], []step{
		{as("admin", "apply -f "+two), 0, "applied"},
		{as("admin", "manifest export --at pair"), 0, "approvals: 2"},
		{as("hans", "request create pair:a cores=7 --reason more"), 0, "approvals: 0 of 2"},
		{as("hans", "request approve 1"), 4, "another user must decide"},
		{as("anna", "request approve 1"), 0, "approvals: 1 of 2 (account/anna)"},
		{as("anna", "request approve 1"), 0, "approvals: 1 of 2 (account/anna)"},
		{as("peter", "request approve 1"), 0, "closed"},
		{as("admin", "revision list --limit 1"), 0, "request 1 of account/hans, approved by account/anna, account/peter"},
	})
}

// TestAutoApprove: a rule sets the limits of a small request at once, and says of others why it has not.
func TestAutoApprove(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	ruled := manifestFile(t, `trees:
  lab:
    policy: open
    resources: {cores: {unit: count}}
    limits: {cores: 100}
    auto-approve: {at-most: 20%, every: 30d, within-headroom: true}
    bindings: [{role: node-admin, subjects: ["account anna"]}]
    nodes:
      a: {limits: {cores: 60}, bindings: [{role: holder, subjects: ["account hans"]}]}
      b: {limits: {cores: 30}, bindings: [{role: holder, subjects: ["account hans"]}]}
`)
	playSteps(t, list[0], []step{
		{as("admin", "apply -f "+ruled), 0, "auto_approve: at most 20% every 30d within headroom"},
		{as("admin", "manifest export --at lab"), 0, "auto-approve: {at-most: 20%, every: 30d, within-headroom: true}"},
		{as("hans", "request create lab:b cores=40 --reason more"), 0, "cores of lab:b may be up to 36, not 40"},
		{as("hans", "request delete 1"), 0, "withdrawn"},
		{as("hans", "request create lab:b cores=36 --reason more"), 0, "by system/auto-approve in revision"},
		{as("hans", "request create lab:b cores=36 --reason more"), 0, "request 2  applied"},
		{as("hans", "request create lab:b cores=37 --reason more"), 0, "may approve the next one 30d from now"},
		{as("hans", "request create lab:a cores=65 --reason more"), 0, "the limits above do not leave room for it"},
	})
	playSteps(t, list[1], []step{
		{as("anna", "request create lab:a cores=66 --reason more --for 1d"), 0, "headroom of lab: its limit of cores is 100"},
		{as("admin", "revision list --limit 1"), 0, "request 2 of account/hans, approved by system/auto-approve"},
		{as("admin", "audit list --action RequestLimits --limit 100"), 0, "system/auto-approve"},
	})
}

// TestRequestsInAnOpenCluster: callers cannot be told apart there, and the error says what to do.
func TestRequestsInAnOpenCluster(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f " + manifestFile(t, "trees: {t: {resources: {cores: {unit: count}}, limits: {cores: 1}}}"), 0, "applied"},
		{"request create t cores=2 --reason x", 3, "quorate token create"},
		{"request list", 0, ""},
	})
}

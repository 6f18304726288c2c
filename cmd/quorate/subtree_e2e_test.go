package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// atlasText is the text of the subtree of anna in guardedTree.
const atlasText = `at: cern:atlas
units: {cores: count}
limits: {cores: 60}
bindings: [{role: node-admin, subjects: ["account anna"]}]
nodes:
  physics:
    limits: {cores: 40}
    bindings:
      - {role: node-admin, subjects: ["account peter"]}
      - {role: holder, subjects: ["account hans", "account heidi"]}
`

const cmsText = `at: cern:cms
units: {cores: count}
limits: {cores: 40}
bindings: [{role: node-admin, subjects: ["account carl"]}]
nodes:
  web: {limits: {cores: 5}}
`

// TestTheTextsOfTwoSubtrees: administrators of two subtrees, who do not see each other, change them through different
// servers without making each other's plans stale.
func TestTheTextsOfTwoSubtrees(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	file := func(text, old, new string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		return " -f " + manifestFile(t, strings.ReplaceAll(text, old, new))
	}
	const anna, carl, peter = " --at cern:atlas", " --at cern:cms", " --at cern:atlas/physics"
	moved := file(atlasText, "at: cern:atlas", "at: cern:atlas\nmoves: {cms: atlas/cms}")
	less := file(atlasText, "cores: 40", "cores: 39")
	playSteps(t, list[1], []step{
		{as("anna", "manifest export"+anna), 0, "at: cern:atlas\nunits: {cores: count}\nlimits: {cores: 60}"},
		{as("anna", "manifest export"+anna), 0, "this is revision 3"},
		{as("anna", "manifest export"+carl), 1, "there is no node cern:cms"},
		{as("anna", "manifest export --at cern"), 1, "there is no tree cern"},
		{as("hans", "manifest export"+anna), 1, "there is no node cern:atlas"},
		{as("anna", "plan"+anna+less+" --expected-revision 3"), 0, "~ cern:atlas/physics  limit cores: 40 -> 39"},
		{as("carl", "plan"+anna+less), 1, "there is no node cern:atlas"},
		{as("anna", "apply"+less), 2, "apply it with --at cern:atlas"},
		{as("carl", "apply"+carl+less), 2, "is the text of cern:atlas, not of cern:cms"},
		{as("anna", "apply"+anna+moved), 2, "subtree.text.moves[0].node: the path \"cms\" is outside of subtree cern:atlas"},
		{as("anna", "apply"+anna+file(atlasText, "cores: count", "cores: milli")), 2, "subtree.text.resources[0].unit: "},
		{as("anna", "apply"+anna+file(atlasText, "cores: 60", "cores: 50")), 4, "limits.set at cern or above"},
		{as("anna", "apply"+anna+file(atlasText, "cores: 60", "cores: 61")), 4, "limits.set at cern or above"},
		{as("carl", "apply"+carl+" -f "+manifestFile(t, cmsText)+" --expected-revision 3"), 0, "2 changes (revision 4)"},
	})
	playSteps(t, list[2], []step{
		{as("anna", "apply"+anna+less+" --expected-revision 3 --reason less"), 0, "applied 1 change (revision 5)"},
		{as("carl", "apply"+carl+file(cmsText, "web", "grid")+" --expected-revision 4"), 0, "(revision 6)"},
		{as("peter", "manifest export"+peter), 0, "limits: {cores: 39}"},
		{
			as("anna", "apply"+anna+file(atlasText, "cores: 40", "cores: 38")+" --expected-revision 4"), 5,
			"revision 5 changed cern:atlas after revision 4; read it again",
		},
		{as("anna", "plan"+anna+file(atlasText, "cores: 40", "cores: 38")+" --expected-revision 3"), 5, "revision 5 changed"},
		{as("anna", "revision list"), 0, "--at cern:atlas  account/anna: less"},
		{as("carl", "revision list"), 0, "--at cern:cms  account/carl"},
		{as("carl", "apply -f "+manifestFile(t, guardedTree)), 4, "--at cern:cms"},
		{as("admin", "apply --at cern -f "+manifestFile(t, guardedTree)), 2, "has tree \"cern\" and nothing else"},
	})
	playSteps(t, list[0], []step{
		{as("admin", "revision rollback 4 --dry-run"), 0, "~ cern:atlas/physics  limit cores: 39 -> 40"},
		{as("admin", "revision rollback 3"), 0, "(revision 7)"},
		{as("anna", "manifest export"+anna), 0, "limits: {cores: 40}"},
		{as("carl", "plan"+carl+" -f "+manifestFile(t, cmsText)+" --expected-revision 6"), 5, "revision 7 changed cern:cms"},
	})
}

// TestWhatTenantsSeeOfTheLevelsAbove: a tree says how much callers learn of the levels above theirs.
func TestWhatTenantsSeeOfTheLevelsAbove(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	with := func(see string) string {
		text := strings.Replace(guardedTree, "policy: strict", "policy: open\n    tenants-see: "+see, 1)
		return " -f " + manifestFile(t, strings.Replace(text, "cores: 40", "cores: 90", 1))
	}
	const ask = "allocate --id y --at cern:atlas/physics --amount cores=20"
	playSteps(t, list[1], []step{
		{as("admin", "apply"+with("all")), 2, `must be totals, names or nothing, not "all"`},
		{as("admin", "apply"+with("totals")), 0, "applied"},
		{as("heidi", "allocate --id x --at cern:atlas/physics --amount cores=50"), 0, "granted"},
		{as("hans", ask), 3, "cern:atlas holds 50 of 60 cores, 20 requested, 10 missing"},
		{as("admin", "plan"+with("names")), 0, "+ cern  tenants_see: names"},
		{as("admin", "apply"+with("names")), 0, "applied 1 change"},
		{as("admin", "manifest export"), 0, "tenants-see: names"},
		{as("hans", ask), 3, "denied: too little is left at cern:atlas: 20 cores requested, 10 missing (resource_exhausted)"},
		{
			as("hans", strings.Replace(ask, "allocate", "explain", 1)), 0, "cern:atlas  cores: requested 20, missing 10",
		},
		{as("hans", "usage cern"), 0, "\ncern\n  atlas\n    physics  cores"},
		{as("anna", ask), 4, ""},
		{as("admin", "apply"+with("nothing")), 0, "~ cern  tenants_see: names -> nothing"},
	})
	playSteps(t, list[2], []step{
		{as("hans", ask), 3, "denied: too little is left at a level above, in tree cern: 20 cores requested, 10 missing"},
		{as("hans", ask), 3, "\n  a level above in cern  cores: requested 20, missing 10"},
		{as("hans", "usage cern"), 0, "OVER\ncern:atlas/physics  cores"},
		{as("hans", "usage cern:atlas"), 0, "OVER\ncern:atlas/physics  cores"},
		{as("admin", "revision rollback 4"), 0, ""},
		{as("hans", ask), 3, "cern:atlas holds 50 of 60 cores"},
	})
}

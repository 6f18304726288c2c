package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func editedCERN(t *testing.T, replacements ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/cern.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(replacements...).Replace(string(text))
	if changed == string(text) {
		t.Fatalf("nothing of %q is in the example", replacements)
	}
	file := filepath.Join(t.TempDir(), "cern.yaml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const simulation = "simulation: {limits: {cores: 10}}"

func TestPlansOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	more := editedCERN(t, simulation, "simulation: {limits: {cores: 15}}")
	less := editedCERN(t, simulation, "simulation: {limits: {cores: 5}}")
	tooMuch := editedCERN(t, simulation, "simulation: {limits: {cores: 25}}")
	without := editedCERN(t, simulation, "")
	const cern, zuul = "../../examples/cern.yaml", "../../examples/zuul.yaml"
	playSteps(t, f, []step{
		{"plan -f " + cern, 0, "+ cern  tree"},
		{"tree list", 0, "TREE"},
		{"apply -f " + cern, 0, "(revision 1)"},
		{"plan -f " + cern, 0, "nothing to change"},
		{"allocate --id held --at cern:atlas/physics/simulation --amount cores=10", 0, "granted"},
		{"allocate --id big --at cern:atlas/physics/simulation --amount cores=5", 3, "missing 5"},
		{"plan -f " + more, 0, "~ cern:atlas/physics/simulation  limit cores: 10 -> 15"},
		{"plan -f " + more, 0, "> cern:atlas/physics/simulation  cores: headroom 0 -> 5"},
		{"plan -f " + more, 0, "* big: was denied recently and would be granted"},
		{"plan -f " + less, 0, "! cern:atlas/physics/simulation  cores: uses 10 of 5, 5 over"},
		{"allocate --id waits --wait 1h --async --at cern:atlas/physics/simulation --amount cores=8", 9, "waits"},
		{"plan -f " + less, 0, "! waits: waits and would step aside until a limit is raised, because it cannot fit"},
		{"release waits", 0, "cancelled"},
		{"plan -f " + tooMuch, 3, "more than its limit of 20"},
		{"plan -f " + without, 3, "simulation"},
		{"apply -f " + without, 3, "simulation"},
		{"plan -f " + more + " --expected-revision 7", 5, "not 7"},
		{"apply -f " + more + " -f " + zuul + " --expected-revision 1", 0, "(revision 2)"},
		{"allocate --id big --at cern:atlas/physics/simulation --amount cores=5", 0, "granted"},
		{"plan -f " + more + " --prune", 0, "- tenants  tree"},
		{"apply -f " + zuul + " --prune", 3, "cern"},
		{"plan -f " + more + " --prune", 0, "apply needs --allow-removals 2: tree providers, tree tenants"},
		{"apply -f " + more + " --prune", 3, "repeat with --allow-removals 2"},
		{"apply -f " + more + " --prune --allow-removals 1", 3, "2 trees and nodes, not 1"},
		{"apply -f " + more + " --prune --allow-removals 2", 0, "(revision 3)"},
		{"apply -f " + more + " --prune --allow-removals 2", 0, "nothing to change"},
		{"usage tenants", 1, "tenants"},
	})
}

// TestEmptyFilesDeleteNothing: a file of another system without its section, and one that has lost most of its tenants,
// are refused.
func TestEmptyFilesDeleteNothing(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	three := manifestFile(t, "tenant-resource-limits:\n- {tenant-name: a, max-cores: 1}\n"+
		"- {tenant-name: b, max-cores: 1}\n- {tenant-name: c, max-cores: 1}\n")
	one := manifestFile(t, "tenant-resource-limits:\n- {tenant-name: a, max-cores: 1}\n")
	two := manifestFile(t, "tenant-resource-limits:\n- {tenant-name: a, max-cores: 1}\n- {tenant-name: b, max-cores: 1}\n")
	misspelled := manifestFile(t, "tenant_resource_limits:\n- {tenant-name: a, max-cores: 1}\n")
	steps := []step{{"apply --from zuul -f " + three, 0, "(revision 1)"}}
	for _, format := range []string{"boskos", "keystone", "quota-manager", "yunikorn", "zuul"} {
		steps = append(steps, step{"apply --yes --prune --from " + format + " -f " + manifestFile(t, ""), 2, ""})
	}
	playSteps(t, f, append(steps,
		step{"apply --yes --prune -f " + manifestFile(t, ""), 2, ""},
		step{
			"apply --from zuul -f " + misspelled, 2,
			"tenant-resource-limits is missing: the file has tenant_resource_limits",
		},
		step{"apply --from yunikorn --prune -f " + manifestFile(t, "partitions: []"), 2, "has no partition"},
		step{"apply --from zuul -f " + one, 3, "remove 2 trees and nodes: tenants:b, tenants:c"},
		step{"apply --from zuul -f " + two, 0, "- tenants:c  node"}, // fewer than half
		step{"revision rollback 0", 3, "tree tenants"},
		step{"usage tenants", 0, "b"},
	))
}

// TestExportRoundTrip: applying an exported manifest changes nothing, and a second export is identical.
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml -f ../../examples/principals.yaml -f " +
			"../../examples/borrowing.yaml -f ../../examples/cohort.yaml --actor ann", 0, "(revision 1)"},
	})
	first := runCommand(t, "manifest", "export", "--server", f.baseURL())
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(first.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	playSteps(t, f, []step{{"apply --prune --actor ann -f " + file, 0, "nothing to change"}})
	if again := runCommand(t, "manifest", "export", "--server", f.baseURL()); again.stdout != first.stdout ||
		!strings.Contains(first.stdout, "principals:") {
		t.Errorf("first\n%s\nthen\n%s", first.stdout, again.stdout)
	}
}

func TestMovesAndRollbacksOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	moved := editedCERN(t, simulation, "generation: {limits: {cores: 10}}", "    policy: strict",
		"    policy: strict\n    moves: {atlas/physics/simulation: atlas/physics/generation}")
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, "(revision 1)"},
		{"allocate --id held --at cern:atlas/physics/simulation --amount cores=8", 0, "granted"},
		{"node move cern:atlas/physics/simulation atlas/chemistry/simulation", 1, "chemistry"},
		{"node move cern:atlas/physics/simulation atlas/physics/higgs", 2, "higgs"},
		{
			"node move cern:atlas/physics/simulation atlas/physics/generation --dry-run", 0,
			"~ cern:atlas/physics/generation  path: atlas/physics/simulation -> atlas/physics/generation",
		},
		{"node move cern:atlas/physics/simulation atlas/physics/generation --reason renamed", 0, "(revision 2)"},
		{"usage cern:atlas/physics/generation", 0, "8"},
		{"apply -f " + moved, 0, "nothing to change"},
		{"limit set cern:atlas/physics/higgs cores=10", 0, "(revision 3)"},
		{"revision list", 0, "renamed"},
		{"revision rollback 9", 1, "9"},
		{"revision rollback 1 --dry-run", 0, "~ cern:atlas/physics/higgs  limit cores: 10 -> 0"},
		{"revision rollback 1 --expected-revision 1", 5, "not 1"},
		{"revision rollback 1 --reason mistake", 0, "(revision 4)"},
		{"plan -f ../../examples/cern.yaml", 0, "nothing to change"},
		{"usage cern:atlas/physics/simulation", 0, "8"},
		{"revision rollback 0", 3, "held"},
		{"release held", 0, "released"},
		{"revision rollback 0", 3, "this would remove 1 tree or node: tree cern; if that is intended"},
		{"revision rollback 0 --allow-removals 1", 0, "- cern  tree"},
	})
}

func TestWarningsOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	file := filepath.Join(t.TempDir(), "queues.yaml")
	const text = "trees: {q: {resources: {vcore: {unit: milli}}, limits: {vcore: 4},\n" +
		"  principals: [{users: [ann], limits: {vcore: 8}}]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const warning = `queues.yaml:2:16: warning: principal 1 of tree "q": its limit of vcore is 8, ` +
		`but the tree itself has the limit 4, which is reached first`
	playSteps(t, f, []step{
		{"plan -f " + file, 0, warning},
		{"apply -f " + file, 0, warning},
		{"allocate --id a --at q --amount vcore=5 --user ann", 3, "q  vcore: limit 4"},
	})
}

func TestRulesOfATreeOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	reasons := editedCERN(t, "    policy: strict", "    policy: strict\n    require-reason: true")
	playSteps(t, f, []step{
		{"apply -f ../../examples/principals.yaml --actor ann", 0, "(revision 1)"},
		{"limit set queues:batch/nightly vcore=45 --actor carl", 0, "(revision 2)"},
		{"apply -f " + reasons, 0, "(revision 3)"},
		{"limit set cern:atlas cores=110", 2, "reason"},
		{"limit set cern:atlas cores=110 --reason why", 0, "(revision 4)"},
	})
}

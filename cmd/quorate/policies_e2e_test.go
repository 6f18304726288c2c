package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func manifestFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const labTree = `trees:
  cern:
    policy: lab
    resources: {cores: {unit: count}}
    limits: {cores: 10}
    nodes:
      atlas: {limits: {cores: 8}}
      cms: {limits: {cores: 8}}
      new: {}
`

// TestPoliciesOverARealServer defines a policy, redefines it while it is used, and removes it.
func TestPoliciesOverARealServer(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	tree := manifestFile(t, labTree)
	define := func(lab string) string { return manifestFile(t, "policies: {lab: "+lab+"}\n") }
	lab, strict := define("{base: strict, unset: zero, sum: unchecked}"), define("{base: strict}")
	growing := define("{base: strict, sum: unchecked, unset: unlimited}")
	const refused = "policy lab of cern forbids it for cores: the limits of its children add up to 16"
	playSteps(t, f, []step{
		{"plan -f " + tree, 2, `there is no policy "lab"; known are borrowing`},
		{"plan -f " + lab + " -f " + tree, 0, "+ policy lab: base strict, unset zero, sum unchecked"},
		{"apply -f " + lab + " -f " + tree, 0, "(revision 1)"},
		{"apply -f " + lab + " -f " + lab, 2, `policy "lab" is in`},
		{"plan -f " + lab, 0, "nothing to change"},
		{"policy list", 0, "lab     strict  unset zero, sum unchecked"},
		{"policy list -o json", 0, `"sum": "SUM_RULE_UNCHECKED"`},
		{"tree list", 0, "cern  lab"},
		{"usage cern:atlas", 0, "8"},
		{"allocate --id a --at cern:nowhere --amount cores=1", 1, "whose policy lab refuses unknown nodes"},
		{"allocate --id n --at cern:new --amount cores=2", 3, "missing 2"},
		{"plan -f " + strict, 3, refused},
		{"apply -f " + strict, 3, refused},
		{"plan -f " + growing, 0, "~ policy lab unset: zero -> unlimited"},
		{"plan -f " + growing, 0, "> cern:new  cores: headroom 0 -> 10"},
		{"plan -f " + growing, 0, "* n: was denied recently and would be granted"},
		{"apply -f " + growing + " --reason grow", 0, "(revision 2)"},
		{"allocate --id n --at cern:new --amount cores=2", 0, "granted"},
		{"plan -f " + lab, 0, "! cern:new  cores: uses 2 of 0, 2 over"},
		{"revision list", 0, "~ policy lab unset: zero -> unlimited"},
		{"revision rollback 1 --dry-run", 0, "~ policy lab unset: unlimited -> zero"},
		{"policy delete lab", 3, "policy lab cannot be removed while trees use it: cern"},
		{"policy delete open", 2, "policy open is built in and cannot be removed"},
		{"policy delete nothing", 1, `no policy "nothing" is defined`},
		{"release n", 0, "released"},
		{"tree delete cern", 0, "(revision 3)"},
		{"policy delete lab --dry-run", 0, "- policy lab: base strict, unset unlimited, sum unchecked"},
		{"policy delete lab", 0, "(revision 4)"},
		{"policy list", 0, "POLICY"},
		{"revision rollback 1", 0, "+ policy lab: base strict, unset zero, sum unchecked"},
		{"plan -f " + lab + " -f " + tree + " --prune", 0, "nothing to change"},
		{"apply -f ../../examples/cern.yaml --prune --allow-removals 2", 0, "- policy lab"},
	})
}

// TestPoliciesThatCannotBe: mistakes are shown with line and column, before a server is asked.
func TestPoliciesThatCannotBe(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	startServer(t, f)
	for text, want := range map[string]string{
		"lab: {base: strict, preemption: all}": ":1:44: in policy lab, preemption: all excludes borrowing: none (of " +
			"the base strict), because without soft borrowing only limits are in the way of a claim; use " +
			"borrowing: soft, or preemption: none",
		"strict: {base: open}":           `:1:12: policy "strict" is built in and never changes`,
		"lab: {base: open, colour: red}": `:1:30: policy "lab" has no key "colour"; allowed are base, unset, sum`,
		"lab: {base: lab}":               ":1:24: the base of policy lab is a built-in policy",
	} {
		file := manifestFile(t, "policies: {"+text+"}\n")
		playSteps(t, f, []step{{"apply -f " + file, 2, file + want}})
	}
}

// TestExportedPoliciesRoundTrip: planning an export changes nothing, exporting one tree has the policies that it uses,
// and both can be applied elsewhere.
func TestExportedPoliciesRoundTrip(t *testing.T) {
	t.Parallel()
	f, other := singleServer(t), singleServer(t)
	startServer(t, f)
	startServer(t, other)
	const two = "policies: {lab: {base: strict, sum: unchecked}, spare: {base: cohort, unset: unlimited}}\n"
	file := manifestFile(t, two+labTree)
	playSteps(t, f, []step{{"apply -f " + file + " -f ../../examples/zuul.yaml", 0, "(revision 1)"}})
	all := runCommand(t, "manifest", "export", "--server", f.baseURL())
	if !strings.Contains(all.stdout, `lab: {base: strict, sum: unchecked}`) || !strings.Contains(all.stdout, "spare:") {
		t.Errorf("exported:\n%s", all.stdout)
	}
	one := runCommand(t, "manifest", "export", "cern", "--server", f.baseURL())
	if !strings.Contains(one.stdout, "lab:") || strings.Contains(one.stdout, "spare") {
		t.Errorf("exported:\n%s", one.stdout)
	}
	playSteps(t, f, []step{
		{"plan --prune -f " + manifestFile(t, all.stdout), 0, "nothing to change"},
		{"plan -f " + manifestFile(t, one.stdout), 0, "nothing to change"},
	})
	playSteps(t, other, []step{
		{"apply -f " + manifestFile(t, one.stdout), 0, "(revision 1)"},
		{"apply -f " + manifestFile(t, all.stdout), 0, "(revision 2)"},
	})
	if again := runCommand(t, "manifest", "export", "--server", other.baseURL()); again.stdout != all.stdout {
		t.Errorf("first\n%s\nthen\n%s", all.stdout, again.stdout)
	}
}

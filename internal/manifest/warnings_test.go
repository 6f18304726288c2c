package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func warningsOf(t *testing.T, text string) []string {
	t.Helper()
	_, warnings, err := ParseWithWarnings("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, w := range warnings {
		lines = append(lines, w.String())
	}
	return lines
}

const overNodes = `policies:
  lab: {base: strict}
  pool: {base: borrowing}
trees:
  queues:
    resources: {vcore: {unit: milli}, memory: {unit: bytes}}
    limits: {vcore: 200, memory: unlimited}
    applications: 10
    principals:
      - users: [ann]
        limits: {vcore: 200, memory: 1Pi}
        applications: 10
      - groups: [dev, "*"]
        limits: {vcore: 200001m}
        applications: 11
    nodes:
      lab:
        policy: lab
        limits: {memory: 1G}
        nodes:
          inherits: {limits: {vcore: 1}, principals: [{users: ["*"], limits: {vcore: 2, memory: 9}}]}
      free: {principals: [{users: [ann], limits: {vcore: 900}, applications: 900}]}
      pool:
        policy: pool
        nodes:
          lent: {limits: {vcore: 1}, principals: [{users: [ann], limits: {vcore: 2}}]}
      cohort: {policy: cohort, limits: {vcore: 1}, principals: [{users: [ann], limits: {vcore: 2}}]}
      other: {policy: of-the-server, limits: {vcore: 1}, principals: [{users: [ann], limits: {vcore: 2}}]}
`

func TestLimitsAboveTheirNode(t *testing.T) {
	want := []string{
		`f:13:9: warning: principal 2 of tree "queues": its limit of vcore is 200001m, but the tree itself has the limit ` +
			`200, which is reached first`,
		`f:13:9: warning: principal 2 of tree "queues": its limit of applications is 11, but the tree itself has the ` +
			`limit 10, which is reached first`,
		`f:21:55: warning: principal 1 of node "lab/inherits": its limit of vcore is 2, but the node itself has the ` +
			`limit 1, which is reached first`,
	}
	if diff := cmp.Diff(want, warningsOf(t, overNodes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWarningsOfSubtrees expects that an inherited policy, which the text does not have, is not guessed.
func TestWarningsOfSubtrees(t *testing.T) {
	const text = `at: queues:ci
units: {vcore: count}
limits: {vcore: 1}
principals: [{users: [ann], limits: {vcore: 2}}]
`
	if got := warningsOf(t, text); len(got) > 0 {
		t.Errorf("under a policy that is not known: %q", got)
	}
	if got := warningsOf(t, text+"policy: capped\n"); len(got) != 1 || !strings.HasPrefix(got[0], "f:4:14: warning:") {
		t.Errorf("got %q", got)
	}
}

func TestManyWarningsAreCounted(t *testing.T) {
	var text strings.Builder
	text.WriteString("trees:\n  t:\n    resources: {r: {unit: count}}\n    limits: {r: 1}\n    principals:\n")
	for i := range maxWarnings + 3 {
		fmt.Fprintf(&text, "      - {users: [u%d], limits: {r: 2}}\n", i)
	}
	got := warningsOf(t, text.String())
	if len(got) != maxWarnings+1 || !strings.Contains(got[maxWarnings], "f:16:9: warning: 3 more warnings") {
		t.Errorf("got %q", got)
	}
	if !slices.IsSortedFunc(got[:4], strings.Compare) {
		t.Errorf("not in the order of the text: %q", got)
	}
}

func TestMistakesHaveNoWarnings(t *testing.T) {
	_, warnings, err := ParseWithWarnings("f", []byte(overNodes+"      bad: {limits: {vcore: x}}\n"))
	if err == nil || len(warnings) > 0 || !strings.Contains(err.Error(), "f:29:") {
		t.Errorf("got %v, %v", warnings, err)
	}
}

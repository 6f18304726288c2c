package main_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// boundManifest has what an earlier version does not know: it would apply the rest, without an error.
const boundManifest = `trees:
  bound:
    approvals: 2
    resources: {cores: {unit: count}}
    limits: {cores: 10}
    bindings: [{role: viewer, to: [everyone]}]
`

// runLine runs a command against one server.
func (f serverFlags) runLine(t *testing.T, line string) outcome {
	t.Helper()
	return runCommand(t, append([]string{"--server", f.baseURL()}, strings.Fields(line)...)...)
}

// checkNewFeaturesAreRefused asks an upgraded server for what n3 does not know. Under any leader the answer names n3
// and what to do, and nothing is applied in part.
func (f *fleet) checkNewFeaturesAreRefused(t *testing.T) {
	t.Helper()
	behind := "n3 (version " + previous + ", feature level 3)"
	bound, leads := manifestFile(t, boundManifest), f.awaitLeader(t)
	for _, line := range []string{"apply -f " + bound, "plan -f " + bound} {
		for _, flags := range f.flags { // the server of the earlier version too
			if end := flags.runLine(t, line); end.code != 3 || !strings.Contains(end.stderr, behind) {
				t.Errorf("%s leads, and %s on %s ends with %d: %s", leads, line, flags.id, end.code, end.stderr)
			}
		}
	}
	for _, line := range []string{
		"access account add ci", "access token add ci --out " + t.TempDir() + "/token", "access guard watch",
		"limits request t cores=2 --reason more", "access adopt --owner account/ci",
		"resize none --at t --amount cores=1", "transfer none t t:a", "split none part --from t --at t --amount cores=1",
		"allocate --id none --at t --amount cores=1..2/1",
	} {
		if end := f.flags[0].runLine(t, line+" --timeout 5s"); end.code != 6 || !strings.Contains(end.stderr, behind) {
			t.Errorf("%s leads, and %s ends with %d: %s", leads, line, end.code, end.stderr)
		}
	}
	trees := f.flags[0].treeClient()
	_, err := trees.ApplyTrees(t.Context(), &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{
		Name: "bound", Resources: []*quoratev1.Resource{{Name: "cores"}},
		Bindings: []*quoratev1.Binding{{Role: "viewer", To: []string{"everyone"}}},
	}}})
	if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), behind) {
		t.Errorf("%s leads, and a program that applies bindings is answered %v", leads, err)
	}
	if _, err := trees.GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "bound"}); connect.CodeOf(err) !=
		connect.CodeNotFound {
		t.Errorf("%s leads, and the tree without its bindings was applied: %v", leads, err)
	}
}

package rpc

import (
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
)

func (d *testServer) parsed(t *testing.T, text string) *adminv1.ParseManifestResponse {
	t.Helper()
	answer, err := d.trees().ParseManifest(t.Context(), &adminv1.ParseManifestRequest{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestManifestsGoBothWays: what a server writes, for everything and for a subtree, it reads as a request that changes
// nothing; and with one limit changed in the text, the plan of that request has that change.
func TestManifestsGoBothWays(t *testing.T) {
	d := oneNode(t)
	for name, asked := range map[string]*adminv1.GetConfigurationRequest{
		"all": {}, "a tree": {Tree: "cern"}, "a subtree": {Tree: "cern", Node: "physics"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Manifest = true
			shown, err := d.trees().GetConfiguration(t.Context(), asked)
			if err != nil || shown.GetManifest() == "" || shown.GetTrees() != nil || shown.GetRevision() != 1 {
				t.Fatalf("got %v, %v", shown, err)
			}
			changed := strings.Replace(shown.GetManifest(), "cores: 20", "cores: 19", 1)
			for text, want := range map[string]int{shown.GetManifest(): 0, changed: 1} {
				request := d.parsed(t, text).GetRequest()
				request.DryRun = true
				plan, err := d.trees().ApplyTrees(t.Context(), request)
				if err != nil || len(plan.GetResult().GetChanges()) != want {
					t.Errorf("%s\nthe plan is %v, %v", text, plan, err)
				}
			}
		})
	}
}

// TestMistakesInManifests: every mistake has its place, and so has what is only odd.
func TestMistakesInManifests(t *testing.T) {
	d := oneNode(t)
	wrong := d.parsed(t, "trees:\n  cern:\n    polisy: strict\n    resources: {cores: {unit: counts}}\n")
	if p := wrong.GetProblems(); wrong.GetRequest() != nil || len(p) != 2 ||
		p[0].GetLine() != 3 || p[0].GetColumn() != 5 || !strings.Contains(p[0].GetMessage(), `no key "polisy"`) ||
		p[1].GetLine() != 4 {
		t.Errorf("got %v", wrong)
	}
	if got := d.parsed(t, ""); len(got.GetProblems()) != 1 || got.GetProblems()[0].GetLine() != 1 {
		t.Errorf("an empty text: %v", got)
	}
	many := d.parsed(t, "trees: {-1: a, -2: a, -3: a, -4: a, -5: a, -6: a, -7: a, -8: a, -9: a, -10: a, -11: a, -12: a}")
	if len(many.GetProblems()) != 11 {
		t.Fatalf("got %v", many)
	}
	if last := many.GetProblems()[10]; last.GetLine() != 0 || !strings.Contains(last.GetMessage(), "more") {
		t.Errorf("got %v", many)
	}
	odd := d.parsed(t, "trees: {cern: {resources: {cores: {unit: count}}, limits: {cores: 1},\n"+
		"  principals: [{users: [ann], limits: {cores: 2}}]}}")
	if len(odd.GetWarnings()) != 1 || odd.GetWarnings()[0].GetLine() != 2 || odd.GetRequest() == nil {
		t.Errorf("got %v", odd)
	}
}

// TestHostileManifestsAreRefusedUnread: the bound counts before the text is parsed, and the largest tree is below it.
func TestHostileManifestsAreRefusedUnread(t *testing.T) {
	d := oneNode(t)
	for _, text := range []string{
		"trees: [" + strings.Repeat("a,", 300_000), "trees:\n" + strings.Repeat("- a\n", 300_000), strings.Repeat("#\r", 300_001),
	} {
		_, err := d.trees().ParseManifest(t.Context(), &adminv1.ParseManifestRequest{Text: text})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || problemOf(t, err).GetField() != "text" {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	deep := strings.Repeat(strings.Repeat("n", 63)+": {nodes: {", 15)
	var nodes strings.Builder
	for i := range 5_000 {
		nodes.WriteString("n" + strconv.Itoa(i) + ": {}, ")
	}
	text := "trees: {cern: {resources: {cores: {unit: count}}, nodes: {" + deep + nodes.String() +
		strings.Repeat("}}", 15) + "}}}"
	got := d.parsed(t, text)
	if got.GetRequest() != nil || len(got.GetProblems()) != 1 ||
		!strings.Contains(got.GetProblems()[0].GetMessage(), "4 MiB") {
		t.Errorf("a request that no server takes: %d nodes, %v", len(got.GetRequest().GetTrees()), got.GetProblems())
	}
}

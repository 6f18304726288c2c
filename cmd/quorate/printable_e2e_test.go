package main_test

import (
	"strings"
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestTablesQuoteWhatIsNotPrintable: control characters in texts of callers are quoted in tables and messages, so that
// they cannot change a terminal, and are exact in JSON.
func TestTablesQuoteWhatIsNotPrintable(t *testing.T) {
	t.Parallel()
	const nasty = "\x1b[2Jgone\u202e\nFORGED"
	f := singleServer(t)
	startServer(t, f)
	if _, err := f.treeClient().ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{busyTree()}, Reason: nasty}); err != nil {
		t.Fatal(err)
	}
	r := oneClaim("a", 1)
	r.Claims[0].Tree, r.Claims[0].Node, r.Labels = busyTree().GetName(), "team/ci", map[string]string{"why": nasty}
	if _, err := f.allocationClient().Allocate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, command := range []string{
		"allocation list", "allocation show a", "revision list", "event list", "activity list " + busyTree().GetName(),
		"usage " + busyTree().GetName(), "principal list " + busyTree().GetName(), "manifest export " + busyTree().GetName(),
	} {
		end := runCommand(t, append(strings.Fields(command), "--server", f.baseURL())...)
		for _, said := range []string{end.stdout, end.stderr} {
			if strings.ContainsAny(said, "\x1b\u202e") || strings.Contains(said, "\nFORGED") {
				t.Errorf("%s sends a terminal %q", command, said)
			}
			shown += strings.Count(said, `\x1b[2Jgone\u202e\nFORGED`)
		}
	}
	if shown < 3 {
		t.Errorf("the text was shown %d times", shown)
	}
	end := runCommand(t, "allocation", "show", "a", "-o", "json", "--server", f.baseURL())
	if end.code != 0 || !strings.Contains(end.stdout, `\u001b[2Jgone`) || !strings.Contains(end.stdout, `\nFORGED"`) {
		t.Errorf("JSON is not exact: %+v", end)
	}
}

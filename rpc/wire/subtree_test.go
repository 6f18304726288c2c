package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// TestTheTextOfASubtree: it becomes the tree of the command, and refusals name it as it is in the request.
func TestTheTextOfASubtree(t *testing.T) {
	bind := func(to ...string) *quoratev1.Binding {
		return &quoratev1.Binding{Role: "viewer", Subjects: subjectsOf(to...)}
	}
	command, moved, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{
		Subtree: &quoratev1.SubtreeText{Tree: "t", Node: "a", Text: &quoratev1.Tree{
			Name:      "t",
			Resources: []*quoratev1.Resource{{Name: "d"}, {Name: "c", Unit: quoratev1.Unit_UNIT_ITEMS}},
			Nodes: []*quoratev1.Node{
				{Path: "a/y"}, {Path: "a/x", Bindings: []*quoratev1.Binding{bind("account b", "account a")}}, {Path: "a"},
			},
			Moves: []*quoratev1.NodeMove{{Node: "a/z", NewNode: "a/y"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&quota.Subtree{Tree: "t", Node: "a"}, command.At); diff != "" || len(command.Trees) != 1 {
		t.Fatalf("%+v\n%s", command, diff)
	}
	spec := command.Trees[0]
	if len(spec.Nodes) != 4 || spec.Nodes[0].Path != "" || spec.Nodes[1].Path != "a" || len(spec.Moves) != 1 ||
		spec.Resources[0].Name != "c" || spec.Resources[0].Unit != quota.Items || spec.Resources[0].Items != nil {
		t.Errorf("the text is %+v", spec)
	}
	for sorted, written := range map[string]string{
		"trees[0].name":                             "subtree.text.name",
		"trees[0].nodes":                            "subtree.text.nodes",
		"trees[0].moves[0].new_node":                "subtree.text.moves[0].new_node",
		"trees[0].resources[1].unit":                "subtree.text.resources[0].unit",
		"trees[0].nodes[0].limits":                  "subtree.text.nodes[2].limits",
		"trees[0].nodes[1].path":                    "subtree.text.nodes[1].path",
		"trees[0].nodes[1].bindings[0].subjects[0]": "subtree.text.nodes[1].bindings[0].subjects[1]",
		"trees[0].nodes[2].policy":                  "subtree.text.nodes[0].policy",
		"subtree.node":                              "subtree.node",
	} {
		if got := moved.RestoreField(&quota.Error{Field: sorted}); got.Field != written {
			t.Errorf("%s is named as %s, want %s", sorted, got.Field, written)
		}
	}
}

func TestRefusedSubtrees(t *testing.T) {
	text := &quoratev1.Tree{Name: "t"}
	me := []*quoratev1.Binding{{Subjects: subjectsOf("me")}}
	wrong := &quoratev1.Tree{Name: "t", Nodes: []*quoratev1.Node{{Path: "a", Bindings: me}}}
	at := func(text *quoratev1.Tree) *quoratev1.SubtreeText {
		return &quoratev1.SubtreeText{Tree: "t", Node: "a", Text: text}
	}
	for want, request := range map[string]*quoratev1.ApplyTreesRequest{
		"trees: it is empty with subtree":                                {Trees: []*quoratev1.Tree{text}, Subtree: at(text)},
		"subtree.text.nodes[0].bindings[0].subjects[0]: 0 is not a kind": {Subtree: at(wrong)},
	} {
		if _, _, err := ToApplyTrees(request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	command, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{
		Subtree: &quoratev1.SubtreeText{Tree: "t", Text: text},
	})
	if err != nil || command.At == nil || command.At.Node != "" || len(command.Trees) != 1 {
		t.Errorf("a whole tree is %+v, %v", command, err)
	}
	if got := FromRevision(quota.Revision{Subtree: command.At}); got.GetTree() != "t" {
		t.Errorf("the history shows %v", got)
	}
}

package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// atlasText is a text of a subtree with every key, as Format writes it.
const atlasText = `version: 1
at: cern:atlas/physics
units: {accounts: items, cpu: milli, memory: bytes}
policy: cohort
labels: {owner: ann}
queueing: strict
limits: {accounts: 2, cpu: 2500m}
defaults: {cpu: 1}
borrow: {cpu: 3}
lend: {memory: 16Gi}
applications: 7
bindings:
  - role: holder
    subjects: ["account ci"]
principals:
  - users: [ann]
    limits: {cpu: 1}
nodes:
  higgs:
    hard: true
    limits: {memory: 1Gi}
    nodes: {deep: {}}
`

func TestTheTextOfASubtree(t *testing.T) {
	got, err := Parse("f", []byte(atlasText))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Subtree{Tree: "cern", Node: "atlas/physics"}); *got.At != want {
		t.Errorf("at is %v", got.At)
	}
	tree := got.Trees[0]
	want := []*quoratev1.Resource{
		{Name: "accounts", Unit: quoratev1.Unit_UNIT_ITEMS}, {Name: "cpu", Unit: milli}, {Name: "memory", Unit: octet},
	}
	if diff := cmp.Diff(want, tree.GetResources(), protocmp.Transform()); diff != "" || tree.GetName() != "cern" {
		t.Errorf("tree %s, resources want (-), got (+):\n%s", tree.GetName(), diff)
	}
	var paths []string
	for _, n := range tree.GetNodes() {
		paths = append(paths, n.GetPath())
	}
	if got := strings.Join(paths, " "); got != "atlas/physics atlas/physics/higgs atlas/physics/higgs/deep" {
		t.Errorf("the nodes are %s", got)
	}
	text, err := Format(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(atlasText, string(text)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestMovesOfASubtree(t *testing.T) {
	got, err := Parse("f", []byte("at: t:a\nmoves: {a/x: a/y}\nnodes: {y: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []*quoratev1.NodeMove{{Node: "a/x", NewNode: "a/y"}}
	if diff := cmp.Diff(want, got.Trees[0].GetMoves(), protocmp.Transform()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestParseSaysWhatIsWrongWithSubtrees(t *testing.T) {
	deep := "at: t:" + strings.Repeat("a/", 15) + "a\nnodes: {b: {}}\n"
	for text, want := range map[string]string{
		"at: cern\n":                             "f:1:5: at must name a node below the root of a tree, such as cern:atlas/physics",
		"at: [a]\n":                              "f:1:5: at must name",
		"at: cern:atlas/\n":                      "f:1:5: at must name",
		"at: cern:/atlas\n":                      "f:1:5: at must name",
		"at: -:atlas\n":                          "f:1:5: at must name",
		"at: t:a\ntrees: {}\n":                   `f:2:1: the text of a subtree has no key "trees"; allowed are applications`,
		"at: t:a\nresources: {}\n":               `f:2:1: the text of a subtree has no key "resources"`,
		"at: t:a\naccess: {}\n":                  `f:2:1: the text of a subtree has no key "access"`,
		"at: t:a\nlimits: {c: 5}\n":              `f:2:10: node "a" limits "c", which its tree does not register`,
		"at: t:a\nunits: {c: dozen}\n":           `f:2:12: the unit of "c" must be one of count, milli, bytes, items`,
		"at: t:a\nunits: {c: {unit: count}}\n":   `f:2:12: the unit of "c" must be one of`,
		"at: t:a\nunits: {'c d': count}\n":       `f:2:9: "c d" is not a valid resource name`,
		"at: t:a\nunits: count\n":                "f:2:8: units is a map of names",
		"at: t:a\nmoves: {a/x: 'a//y'}\n":        `"a//y" is not a path`,
		"at: t:a\nnodes: {b: {resources: {}}}\n": `node "a/b" has no key "resources"`,
		deep:                                     "is too deep",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

func TestFormatRefusesSubtrees(t *testing.T) {
	at := &Subtree{Tree: "t", Node: "a"}
	node := func(paths ...string) []*quoratev1.Tree {
		tree := &quoratev1.Tree{Name: "t"}
		for _, path := range paths {
			tree.Nodes = append(tree.Nodes, &quoratev1.Node{Path: path})
		}
		return []*quoratev1.Tree{tree}
	}
	limited := node("a")
	limited[0].Nodes[0].Limits = map[string]*quoratev1.Limit{"c": amount(1)}
	for name, m := range map[string]*Manifest{
		"no tree":        {At: at},
		"another tree":   {At: &Subtree{Tree: "u", Node: "a"}, Trees: node("a")},
		"policies":       {At: at, Trees: node("a"), Policies: []*quoratev1.Policy{{Name: "p", Base: "open"}}},
		"access":         {At: at, Trees: node("a"), Access: &quoratev1.AccessSection{}},
		"no node":        {At: at, Trees: node("a/b")},
		"a node outside": {At: at, Trees: node("a", "b")},
		"a gap":          {At: at, Trees: node("a", "a/b/c")},
		"no unit":        {At: at, Trees: limited},
	} {
		if text, err := Format(m); err == nil {
			t.Errorf("%s is written as\n%s", name, text)
		}
	}
}

// TestEverySubtreeIsReadBack: the text of a random node of a random tree parses to the same nodes.
func TestEverySubtreeIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := trees().Filter(func(t *quoratev1.Tree) bool { return len(t.GetNodes()) > 0 }).Draw(t, "tree")
		top := rapid.SampledFrom(tree.GetNodes()).Draw(t, "node").GetPath()
		text := &quoratev1.Tree{Name: tree.GetName()}
		for _, n := range tree.GetNodes() {
			if n.GetPath() == top || strings.HasPrefix(n.GetPath(), top+"/") {
				text.Nodes = append(text.Nodes, n)
			}
		}
		for _, r := range tree.GetResources() {
			text.Resources = append(text.Resources, &quoratev1.Resource{Name: r.GetName(), Unit: r.GetUnit()})
		}
		m := &Manifest{At: &Subtree{Tree: tree.GetName(), Node: top}, Trees: []*quoratev1.Tree{text}}
		written, err := Format(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again", written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if *m.At != *again.At || !proto.Equal(sorted(text), sorted(again.Trees[0])) {
			t.Fatalf("want (-), got (+):\n%s", cmp.Diff(sorted(text), sorted(again.Trees[0]), protocmp.Transform()))
		}
	})
}

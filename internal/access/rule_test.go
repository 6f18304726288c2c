package access_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func row(f access.Field) string {
	text := func(c access.FieldChange) string {
		var asks []string
		for _, ask := range c.Asks() {
			asks = append(asks, fmt.Sprintf("`%s` at %s", ask.Verb, ask.Place))
		}
		return strings.Join(asks, ", ")
	}
	return fmt.Sprintf("| %s | %s | %s | %s |", f, text(access.FieldChange{Field: f}),
		text(access.FieldChange{Field: f, IsRoot: true}), text(access.FieldChange{Field: f, IsRoot: true, IsNewTree: true}))
}

// TestTableIsComplete checks that each field has a name and rules for each kind of node, that no field beyond the list
// has, and that DESIGN.md has the same table.
func TestTableIsComplete(t *testing.T) {
	page, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]access.Field{}
	for f := access.LimitField; f <= access.AccessField; f++ {
		if again, found := names[f.String()]; found || f.String() == "" {
			t.Errorf("fields %d and %d are called %q", again, f, f)
		}
		names[f.String()] = f
		for bits := range 4 {
			c := access.FieldChange{Field: f, IsRoot: bits&1 != 0, IsNewTree: bits&2 != 0}
			if len(c.Asks()) == 0 {
				t.Errorf("%+v (%s) asks for nothing", c, f)
			}
			for _, ask := range c.Asks() {
				if ask.Place == access.AtCluster != access.ClusterVerbs.Has(ask.Verb) && ask.Verb != access.BindingsGrant {
					t.Errorf("%s asks for %s at %s", f, ask.Verb, ask.Place)
				}
			}
		}
		if !strings.Contains(string(page), row(f)+"\n") {
			t.Errorf("DESIGN.md does not have the row\n%s", row(f))
		}
	}
	if len(names) != 30 {
		t.Errorf("there are %d fields", len(names))
	}
	for _, f := range []access.Field{0, access.AccessField + 1} {
		if asks := (access.FieldChange{Field: f}).Asks(); asks != nil {
			t.Errorf("unknown field %d asks for %v", f, asks)
		}
		if _, denied := (access.FieldChange{Field: f}).FirstDenied(ann(), 0, access.Path{nil}); !denied {
			t.Errorf("unknown field %d may be changed", f)
		}
	}
}

// TestRulesOfCERN plays the example of the administrator of Physics: bound at Physics, she sets the limits of Higgs and
// Simulation and of what is below them, and not her own.
func TestRulesOfCERN(t *testing.T) {
	physics := bind(access.NodeScope, access.Binding{Role: "node-admin"})
	root := access.Path{nil, nil}
	atlas := append(access.Path{nil}, root...)
	at := map[string]access.Path{
		"atlas":   atlas,
		"physics": append(access.Path{physics}, atlas...),
		"higgs":   append(access.Path{nil, physics}, atlas...),
		"boson":   append(access.Path{nil, nil, physics}, atlas...),
	}
	tests := []struct {
		change  access.FieldChange
		node    string
		allowed bool
	}{
		{access.FieldChange{Field: access.LimitField}, "higgs", true},
		{access.FieldChange{Field: access.LimitField}, "boson", true},
		{access.FieldChange{Field: access.LimitField}, "physics", false},
		{access.FieldChange{Field: access.NodeAdded}, "boson", true},
		{access.FieldChange{Field: access.PathField}, "physics", false},
		{access.FieldChange{Field: access.PolicyField}, "physics", true},
		{access.FieldChange{Field: access.PolicyField}, "atlas", false},
		{access.FieldChange{Field: access.BindingsField}, "physics", true},
		{access.FieldChange{Field: access.ConfiguringField}, "physics", false},
		{access.FieldChange{Field: access.ConfiguringField}, "higgs", true},
		{access.FieldChange{Field: access.ResourcesField}, "physics", false},
		{access.FieldChange{Field: access.TreeRemoved}, "physics", false},
	}
	for _, test := range tests {
		ask, denied := test.change.FirstDenied(ann(), 0, at[test.node])
		if denied == test.allowed {
			t.Errorf("%s of %s (%+v): denied is %v, for %v", test.change.Field, test.node, test.change, denied, ask)
		}
	}
}

// TestRulesOfRoots checks what is asked at the root of a tree and on the cluster.
func TestRulesOfRoots(t *testing.T) {
	tests := []struct {
		at, cluster string // roles
		change      access.FieldChange
		denied      string
	}{
		{"node-admin", "", access.FieldChange{Field: access.LimitField, IsRoot: true}, ""},
		{"limit-admin", "", access.FieldChange{Field: access.LimitField, IsRoot: true}, "nodes.manage"},
		{"node-admin", "", access.FieldChange{Field: access.BindingsField, IsRoot: true}, ""},
		{"node-admin", "", access.FieldChange{Field: access.ConfiguringField, IsRoot: true}, "access.manage"},
		{"viewer", "security-admin", access.FieldChange{Field: access.ConfiguringField, IsRoot: true}, ""},
		{"node-admin", "", access.FieldChange{Field: access.TreeRemoved}, "tree.create"},
		{"viewer", "root", access.FieldChange{Field: access.TreeRemoved}, ""},
		{"node-admin", "", access.FieldChange{Field: access.AccessField}, "access.manage"},
		{"viewer", "security-admin", access.FieldChange{Field: access.AccessField}, ""},
		{"viewer", "security-admin", access.FieldChange{Field: access.BindingsField, IsNewTree: true}, "tree.create"},
	}
	for _, test := range tests {
		path := access.Path{bind(access.NodeScope, access.Binding{Role: test.at}), nil}
		if test.cluster != "" {
			path[1] = bind(access.ClusterScope, access.Binding{Role: test.cluster})
		}
		ask, denied := test.change.FirstDenied(ann(), 0, path)
		if got := ask.Verb.String(); denied != (test.denied != "") || denied && got != test.denied {
			t.Errorf("%s with %s and %s: %s is denied (%v), want %q", test.change.Field, test.at, test.cluster, got, denied,
				test.denied)
		}
	}
}

// TestParentOfTheFirstLevel checks that the root of a tree is the parent of its children.
func TestParentOfTheFirstLevel(t *testing.T) {
	path := access.Path{nil, bind(access.NodeScope, access.Binding{Role: "limit-admin"}), nil}
	c := access.FieldChange{Field: access.LimitField}
	if ask, denied := c.FirstDenied(ann(), 0, path); denied {
		t.Errorf("%v is denied", ask)
	}
}

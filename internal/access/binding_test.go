package access_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func TestBindingsAreChecked(t *testing.T) {
	ann := []access.Subject{{Kind: access.User, Name: "corp/ann"}}
	everyone, anonymous := []access.Subject{{Kind: access.Everyone}}, []access.Subject{{Kind: access.AnonymousSubject}}
	roles, err := access.NewRoles([]access.Role{{Name: "reader", Verbs: access.SetOf(access.AccessRead)}})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		binding     access.Binding
		scope       access.Scope
		field, text string // no text if the binding is valid
	}{
		"holder":                   {access.Binding{Role: "holder", To: ann, MaxPriority: 5, Unpreemptable: true}, access.NodeScope, "", ""},
		"broker":                   {access.Binding{Role: "broker", To: ann, HoldAs: access.Holders{Any: true}}, access.NodeScope, "", ""},
		"custom":                   {access.Binding{Role: "reader", To: ann}, access.ClusterScope, "", ""},
		"auditor at a node":        {access.Binding{Role: "auditor", To: ann}, access.NodeScope, "", ""},
		"auditor for anonymous":    {access.Binding{Role: "auditor", To: anonymous}, access.NodeScope, "", ""},
		"viewer for anonymous":     {access.Binding{Role: "viewer", To: anonymous}, access.NodeScope, "", ""},
		"unknown role":             {access.Binding{Role: "boss", To: ann}, access.NodeScope, "role", `"boss" is not a role; allowed are viewer`},
		"cluster role at a node":   {access.Binding{Role: "cluster-operator", To: ann}, access.NodeScope, "role", "no verb that is asked at a node"},
		"custom at a node":         {access.Binding{Role: "reader", To: ann}, access.NodeScope, "role", "no verb that is asked at a node"},
		"no subject":               {access.Binding{Role: "viewer"}, access.NodeScope, "subjects", "there are 0 subjects"},
		"many subjects":            {access.Binding{Role: "viewer", To: make([]access.Subject, 101)}, access.NodeScope, "subjects", "there are 101 subjects"},
		"bad subject":              {access.Binding{Role: "viewer", To: []access.Subject{{Kind: access.User, Name: "x/*"}}}, access.NodeScope, "subjects[0]", "is not a user"},
		"holder for anonymous":     {access.Binding{Role: "holder", To: anonymous}, access.NodeScope, "subjects[0]", "gives anonymous callers hold limits.request"},
		"auditor for all":          {access.Binding{Role: "auditor", To: anonymous}, access.ClusterScope, "subjects[0]", "gives anonymous callers"},
		"root for everyone":        {access.Binding{Role: "root", To: everyone}, access.ClusterScope, "subjects[0]", "gives everyone"},
		"node-admin for everyone":  {access.Binding{Role: "node-admin", To: everyone}, access.NodeScope, "subjects[0]", "gives everyone bindings.grant"},
		"priority without hold":    {access.Binding{Role: "viewer", To: ann, MaxPriority: -1}, access.NodeScope, "max-priority", "viewer has no hold"},
		"unpreemptable without":    {access.Binding{Role: "viewer", To: ann, Unpreemptable: true}, access.NodeScope, "unpreemptable", "viewer has no hold"},
		"hold-as without hold.as":  {access.Binding{Role: "holder", To: ann, HoldAs: access.Holders{Any: true}}, access.NodeScope, "hold-as", "holder has no hold.as"},
		"any and names":            {access.Binding{Role: "broker", To: ann, HoldAs: access.Holders{Any: true, Names: []string{"a"}}}, access.NodeScope, "hold-as", "says any and has 1 names"},
		"pattern in hold-as":       {access.Binding{Role: "broker", To: ann, HoldAs: access.Holders{Names: []string{"*"}}}, access.NodeScope, "hold-as", "is not a user or group"},
		"many in hold-as":          {access.Binding{Role: "broker", To: ann, HoldAs: access.Holders{Names: make([]string, 101)}}, access.NodeScope, "hold-as", "there are 101 names"},
		"ceiling of root":          {access.Binding{Role: "root", To: ann, MaxPriority: 5}, access.ClusterScope, "max-priority", "role root has no ceilings"},
		"an end in the past times": {access.Binding{Role: "holder", To: ann, Until: -1}, access.NodeScope, "ends", "is not a time"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := access.CheckBindings([]access.Binding{test.binding}, roles, test.scope)
			switch {
			case test.text != "":
				refused(t, err, access.Invalid, "bindings[0]."+test.field, test.text)
			case err != nil:
				t.Error(err)
			}
		})
	}
	err = access.CheckBindings(make([]access.Binding, 101), roles, access.NodeScope)
	refused(t, err, access.Full, "bindings", "101 bindings")
}

// TestUntil checks the end of a binding to the millisecond.
func TestUntil(t *testing.T) {
	list := []access.Binding{{Role: "holder", To: []access.Subject{{Kind: access.User, Name: "corp/ann"}}, Until: 1000}}
	path := access.Path{access.Compile(list, access.Roles{}, access.NodeScope), nil}
	c := access.Caller{Kind: access.External, User: "corp/ann"}
	id := access.NewIdentity(&c, access.AllVerbs)
	if !access.Allows(id, access.Hold, 999, path) || access.Allows(id, access.Hold, 1000, path) {
		t.Error("the binding does not end at 1000")
	}
}

// TestUnknownRoleGivesNothing checks that a binding whose role was lost does not widen rights.
func TestUnknownRoleGivesNothing(t *testing.T) {
	list := []access.Binding{{Role: "lost", To: []access.Subject{{Kind: access.User, Name: "corp/ann"}}}}
	c := access.Caller{Kind: access.External, User: "corp/ann"}
	path := access.Path{access.Compile(list, access.Roles{}, access.ClusterScope)}
	if got := access.VerbsAt(access.NewIdentity(&c, access.AllVerbs), 0, path); got != 0 {
		t.Errorf("an unknown role gives %s", got)
	}
}

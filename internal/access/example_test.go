package access_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/access"
)

// The administrator of Physics is bound at Physics. The role applies to everything below, and for nothing beside it.
func ExampleAllows() {
	roles, _ := access.NewRoles(nil)
	peter, _ := access.ParseSubject("user corp/peter")
	physics := access.Compile([]access.Binding{{Role: "node-admin", To: []access.Subject{peter}}}, roles, access.NodeScope)

	caller := access.Caller{Kind: access.External, User: "corp/peter"}
	id := access.NewIdentity(&caller, access.AllVerbs)
	higgs := access.Path{nil, physics, nil, nil} // higgs, physics, the root, the cluster
	operations := access.Path{nil, nil, nil}
	fmt.Println(access.Allows(id, access.LimitsSet, 0, higgs), access.Allows(id, access.LimitsSet, 0, operations))
	// Output: true false
}

// A node-admin cannot give a role with verbs that it does not have itself.
func ExampleCovers() {
	roles, _ := access.NewRoles(nil)
	peter, _ := access.ParseSubject("user corp/peter")
	ci, _ := access.ParseSubject("account ci")
	physics := access.Compile([]access.Binding{{Role: "node-admin", To: []access.Subject{peter}}}, roles, access.NodeScope)
	caller := access.Caller{Kind: access.External, User: "corp/peter"}
	id := access.NewIdentity(&caller, access.AllVerbs)

	holder, _ := roles.Find("holder")
	added := access.Binding{Role: "holder", To: []access.Subject{ci}, MaxPriority: 10}
	missing := access.Covers(id, 0, access.Path{physics, nil, nil}, access.NodeScope, holder, added)
	fmt.Println("missing:", missing.String())
	// Output: missing: hold, max-priority 10
}

// Each change of a field of a node asks for verbs at places.
func ExampleFieldChange_Asks() {
	for _, change := range []access.FieldChange{
		{Field: access.LimitField},
		{Field: access.LimitField, IsRoot: true},
		{Field: access.ConfiguringField, IsRoot: true},
	} {
		for _, ask := range change.Asks() {
			fmt.Println(change.Field, "-", ask.Verb, "at", ask.Place)
		}
	}
	// Output:
	// limit - limits.set at an ancestor
	// limit - nodes.manage at the root
	// configuring bindings - bindings.grant at the root
	// configuring bindings - access.manage at the cluster
}

// A change keeps the book before it, so it can be undone.
func ExampleBook_Apply() {
	book := access.NewBook(access.Open)
	change, err := book.Apply(access.CreateAccount{Account: access.Account{Name: "ci"}}, access.Moment{Wall: 1, Index: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", change.Differences[0])
	_, err = change.After.Apply(access.DeleteAccount{Name: "bot"}, access.Moment{Wall: 2, Index: 2})
	fmt.Println(err.Kind, err)
	fmt.Println(change.After.Revision(), change.Undo().Revision())
	// Output:
	// {Object:account Name:ci Before: After:enabled}
	// NOT_FOUND name: there is no account "bot"; create it first
	// 1 0
}

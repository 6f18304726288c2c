package access_test

import (
	"math"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func bind(scope access.Scope, bindings ...access.Binding) *access.Table {
	for i := range bindings {
		bindings[i].To = []access.Subject{{Kind: access.User, Name: "corp/ann"}}
	}
	return access.Compile(access.CanonicalBindings(bindings), access.Roles{}, scope)
}

func ann() *access.Identity {
	return access.NewIdentity(&access.Caller{Kind: access.External, User: "corp/ann"}, access.AllVerbs)
}

func TestCovers(t *testing.T) {
	node := func(bindings ...access.Binding) access.Path {
		return access.Path{bind(access.NodeScope, bindings...), nil}
	}
	cluster := func(bindings ...access.Binding) access.Path {
		return access.Path{nil, bind(access.ClusterScope, bindings...)}
	}
	ab := access.Holders{Names: []string{"a", "b"}}
	operator := access.Binding{Role: "operator", MaxPriority: 5, HoldAs: ab}
	tests := map[string]struct {
		path  access.Path
		scope access.Scope
		add   access.Binding
		want  string
	}{
		"own role":                  {node(operator), access.NodeScope, operator, ""},
		"part of it":                {node(operator), access.NodeScope, access.Binding{Role: "holder"}, ""},
		"nothing":                   {node(), access.NodeScope, access.Binding{Role: "viewer"}, "usage.read, config.read"},
		"node-admin and holder":     {node(access.Binding{Role: "node-admin"}), access.NodeScope, access.Binding{Role: "holder"}, "hold, max-priority 0"},
		"both roles":                {node(access.Binding{Role: "node-admin"}, access.Binding{Role: "holder"}), access.NodeScope, access.Binding{Role: "holder"}, ""},
		"priority":                  {node(operator), access.NodeScope, access.Binding{Role: "holder", MaxPriority: 6}, "max-priority 6 (at most 5)"},
		"unpreemptable":             {node(operator), access.NodeScope, access.Binding{Role: "holder", Unpreemptable: true}, "unpreemptable"},
		"hold as another":           {node(operator), access.NodeScope, access.Binding{Role: "broker", HoldAs: access.Holders{Names: []string{"b", "c"}}}, "hold-as c"},
		"hold as any":               {node(operator), access.NodeScope, access.Binding{Role: "broker", HoldAs: access.Holders{Any: true}}, "hold-as any"},
		"own right ends":            {node(access.Binding{Role: "viewer", Until: 100}), access.NodeScope, access.Binding{Role: "viewer"}, "usage.read, config.read"},
		"own right ends together":   {node(access.Binding{Role: "viewer", Until: 100}), access.NodeScope, access.Binding{Role: "viewer", Until: 100}, ""},
		"own right ends before":     {node(access.Binding{Role: "viewer", Until: 100}), access.NodeScope, access.Binding{Role: "viewer", Until: 101}, "usage.read, config.read"},
		"own right has ended":       {node(access.Binding{Role: "viewer", Until: 9}), access.NodeScope, access.Binding{Role: "viewer", Until: 5}, "usage.read, config.read"},
		"root at a node":            {node(access.Binding{Role: "root"}), access.NodeScope, access.Binding{Role: "root"}, ""},
		"root by an operator":       {node(operator, access.Binding{Role: "node-admin"}), access.NodeScope, access.Binding{Role: "root"}, "max-priority 9223372036854775807 (at most 5), unpreemptable, hold-as any"},
		"security-admin on a node":  {cluster(access.Binding{Role: "security-admin"}), access.NodeScope, access.Binding{Role: "root"}, ""},
		"security-admin for a time": {cluster(access.Binding{Role: "security-admin", Until: 100}), access.NodeScope, access.Binding{Role: "holder"}, "usage.read, config.read, hold, limits.request, max-priority 0"},
		"security-admin on cluster": {cluster(access.Binding{Role: "security-admin"}), access.ClusterScope, access.Binding{Role: "cluster-operator"}, "cluster.read, cluster.operate, cluster.debug, metrics.read, snapshot.save"},
		"security-admin to itself":  {cluster(access.Binding{Role: "security-admin"}), access.ClusterScope, access.Binding{Role: "security-admin"}, ""},
		"security-admin at a node":  {node(access.Binding{Role: "security-admin"}), access.NodeScope, access.Binding{Role: "viewer"}, "usage.read, config.read"},
		"cluster verbs of a node":   {node(access.Binding{Role: "viewer"}), access.NodeScope, access.Binding{Role: "auditor"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			role, _ := access.Roles{}.Find(test.add.Role)
			got := access.Covers(ann(), 10, test.path, test.scope, role, test.add)
			if got.String() != test.want || got.IsEmpty() != (test.want == "") {
				t.Errorf("missing is %q, want %q", got.String(), test.want)
			}
		})
	}
}

// TestCeilingOfACredential checks that a token gives away no more than its own ceiling.
func TestCeilingOfACredential(t *testing.T) {
	path := access.Path{bind(access.ClusterScope, access.Binding{Role: "root"})}
	c := access.Caller{Kind: access.External, User: "corp/ann"}
	id := access.NewIdentity(&c, access.SetOf(access.UsageRead, access.ConfigRead, access.BindingsGrant))
	role, _ := access.Roles{}.Find("holder")
	got := access.Covers(id, 0, path, access.ClusterScope, role, access.Binding{Role: "holder"})
	if got.Verbs.String() != "hold limits.request" {
		t.Errorf("missing is %q", got.String())
	}
	r := access.RightsAt(id, 0, path)
	if r.MaxPriority != math.MinInt64 || r.Unpreemptable || r.HoldAs.Any {
		t.Errorf("a credential without hold has the ceilings %+v", r)
	}
}

func TestMayHoldFor(t *testing.T) {
	bob := access.Holders{Names: []string{"bob"}}
	path := access.Path{bind(access.NodeScope, access.Binding{Role: "broker", HoldAs: bob}), nil}
	r := access.RightsAt(ann(), 0, path)
	if !r.MayHoldFor("bob") || r.MayHoldFor("carl") || r.HoldAs.String() != "bob" {
		t.Errorf("rights are %+v", r)
	}
}

package access_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

// deepPath is a path of four nodes and the cluster with bindings at two of the nodes, and a caller with two groups
// that only the upper one names.
func deepPath(t testing.TB) (access.Path, *access.Identity) {
	t.Helper()
	roles, _ := access.NewRoles(nil)
	compile := func(scope access.Scope, to ...string) *access.Table {
		var list []access.Binding
		for _, text := range to {
			list = append(list, access.Binding{Role: "holder", To: []access.Subject{parse(t, text)}})
		}
		return access.Compile(access.CanonicalBindings(list), roles, scope)
	}
	path := access.Path{
		nil, compile(access.NodeScope, "user github/1", "group github/ops", "account ci"), nil,
		compile(access.NodeScope, "group github/deploy", "user github/2", "user github/3", "account bot"), nil,
	}
	c := access.Caller{Kind: access.External, User: "github/456789", Groups: []string{"github/deploy", "github/dev"}}
	return path, access.NewIdentity(&c, access.AllVerbs)
}

func TestAllowsDoesNotAllocate(t *testing.T) {
	path, id := deepPath(t)
	if !access.Allows(id, access.Hold, 1, path) || access.Allows(id, access.LimitsSet, 1, path) {
		t.Fatal("the decision is wrong")
	}
	if n := testing.AllocsPerRun(100, func() { access.Allows(id, access.Hold, 1, path) }); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

func BenchmarkAllows(b *testing.B) {
	path, id := deepPath(b)
	for name, verb := range map[string]access.Verb{"granted": access.Hold, "denied": access.LimitsSet} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				access.Allows(id, verb, 1, path)
			}
		})
	}
	b.Run("64 groups denied", func(b *testing.B) {
		c := access.Caller{Kind: access.External, User: "github/456789"}
		for i := range 64 {
			c.Groups = append(c.Groups, fmt.Sprintf("github/team-%02d", i))
		}
		id := access.NewIdentity(&c, access.AllVerbs)
		b.ReportAllocs()
		for b.Loop() {
			access.Allows(id, access.Hold, 1, path)
		}
	})
}

func BenchmarkRightsAt(b *testing.B) {
	path, id := deepPath(b)
	b.ReportAllocs()
	for b.Loop() {
		access.RightsAt(id, 1, path)
	}
}

func BenchmarkNewIdentity(b *testing.B) {
	c := access.Caller{Kind: access.External, User: "github/456789", Groups: []string{"github/deploy", "github/dev"}}
	b.ReportAllocs()
	for b.Loop() {
		access.NewIdentity(&c, access.AllVerbs)
	}
}

func BenchmarkCompile100(b *testing.B) {
	var list []access.Binding
	for i := range access.MaxBindings {
		list = append(list, access.Binding{
			Role: "holder", To: []access.Subject{{Kind: access.User, Name: fmt.Sprintf("corp/%d", i)}},
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		access.Compile(list, access.Roles{}, access.NodeScope)
	}
}

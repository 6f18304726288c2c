package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

// TestVerbs checks that every verb has a name of its own that leads back to it, in an order that never changes.
func TestVerbs(t *testing.T) {
	want := strings.Fields("usage.read config.read holders.read data.read hold hold.as hold.force hold.operate " +
		"items.clean items.reset limits.request limits.set nodes.manage policy.set nodes.cordon bindings.grant " +
		"tree.create cluster.read cluster.operate cluster.debug metrics.read history.read snapshot.save snapshot.restore " +
		"access.read access.manage audit.read")
	if got := access.AllVerbs.Names(); !slices.Equal(got, want) {
		t.Errorf("the verbs are %q, want %q", got, want)
	}
	for i, name := range want {
		v, err := access.ParseVerb(name)
		if err != nil || v != 1<<i || v.String() != name {
			t.Errorf("%s is verb %d %s, %v", name, v, v, err)
		}
	}
	if access.NodeVerbs&access.ClusterVerbs != 0 || access.NodeVerbs|access.ClusterVerbs != access.AllVerbs {
		t.Error("a verb is asked in both places, or in none")
	}
	if !access.NodeVerbs.Has(access.BindingsGrant) || !access.ClusterVerbs.Has(access.TreeCreate) {
		t.Error("the sets are cut at the wrong verb")
	}
	if s := access.Verb(3).String() + access.Verb(0).String() + access.Verb(1<<40).String(); s != "unknownunknownunknown" {
		t.Errorf("sets that are not verbs are called %s", s)
	}
}

func TestParseVerbs(t *testing.T) {
	set, err := access.ParseVerbs([]string{"hold.as", "usage.read", "hold"})
	if err != nil || set.String() != "usage.read hold hold.as" || set.Len() != 3 {
		t.Errorf("got %s, %v", set, err)
	}
	for first := range set.All() {
		if first != access.UsageRead {
			t.Errorf("the first verb is %s", first)
		}
		break
	}
	refused(t, second(access.ParseVerbs([]string{"hold", "hold"})), access.Invalid, "verbs[1]", "hold is given twice")
	refused(t, second(access.ParseVerbs([]string{"hold", "hold.*"})), access.Invalid, "verbs[1]", `"hold.*" is not a verb`)
}

package ledger_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestReleasesInSeveralTrees: with soft borrowing, a request that two trees deny names the first of them only. What is
// advised to release must admit it in both.
func TestReleasesInSeveralTrees(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	tree := func(name string) quota.TreeSpec {
		limits := []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(6)}}
		return quota.TreeSpec{
			Name:      name,
			Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes:     []quota.NodeSpec{{Policy: "borrowing", Limits: limits}, {Path: "a"}},
		}
	}
	request := func(id string, trees ...string) quota.Allocate {
		r := quota.Allocate{ID: id}
		for _, name := range trees {
			r.Claims = append(r.Claims, quota.Claim{
				Tree: name, Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 4}},
			})
		}
		return r
	}
	for _, c := range []quota.Command{
		quota.ApplyTrees{Trees: []quota.TreeSpec{tree("t"), tree("u")}},
		request("in-t", "t"), request("in-u", "u"),
	} {
		l.Apply(quota.Stamp{}, c)
	}
	denied := l.Sandbox().Explain(request("both", "t", "u")).Decision
	if denied == nil || denied.Granted || denied.Remedy == nil {
		t.Fatalf("the request is not denied: %+v", denied)
	}
	if want := []string{"in-t", "in-u"}; !slices.Equal(denied.Remedy.Releases, want) {
		t.Errorf("it is advised to release %v, want %v; denied: %s", denied.Remedy.Releases, want, denied.Explain())
	}
	for _, id := range []string{"in-t", "in-u"} {
		l.Apply(quota.Stamp{}, quota.Release{ID: id})
	}
	if out := l.Apply(quota.Stamp{}, request("both", "t", "u")); out.Decision == nil || !out.Decision.Granted {
		t.Errorf("after both releases it is not granted: %+v", out)
	}
}

package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestCopiesKnowDefinedPolicies: a plan on a copy sees the policies that the configuration defines.
func TestCopiesKnowDefinedPolicies(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	cores := []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(10)}}
	out := l.Apply(quota.Stamp{}, quota.ApplyTrees{
		Policies: []quota.PolicySpec{{Name: "lab", Base: "strict", Unset: "zero", Sum: "unchecked"}},
		Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "lab", Limits: cores}, {Path: "a", Limits: cores}, {Path: "b", Limits: cores}},
		}},
	})
	if out.Refused != nil {
		t.Fatal(out.Refused)
	}
	scratch, err := ledger.CopyForPlans(quota.DefaultBounds(), l.Format(), l.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	fewer := []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(9)}}
	change := quota.SetLimits{Tree: "t", Node: "a", Limits: fewer}
	if out := scratch.Sandbox().DryRun(change); out.Refused != nil || len(out.Configuration.Changes) != 1 {
		t.Errorf("the copy answers %+v", out)
	}
}

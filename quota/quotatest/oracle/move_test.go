package oracle

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// TestMoveOfHardNodes moves a hard node out of a subtree that borrows softly, to where no node is soft. A random run
// found that the oracle allowed it.
func TestMoveOfHardNodes(t *testing.T) {
	cpu := func(amount quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.Limit{Kind: quota.Limited, Amount: amount}}}
	}
	verify.Check(t, func(t *rapid.T) {
		p := newPair(quota.DefaultBounds())
		p.apply(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name:      "t",
			Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Policy: "open", Limits: cpu(8)},
				{Path: "a", Policy: "borrowing", Limits: cpu(3)},
				{Path: "a/x", Limits: cpu(2), Hard: true},
				{Path: "a/y", Limits: cpu(2)},
			},
		}}})
		for _, move := range []quota.MoveNode{
			{Tree: "t", From: "a/x", To: "x"},
			{Tree: "t", From: "a/y", To: "y"},
			{Tree: "t", From: "a/x", To: "a/z"},
		} {
			move.Meta = quota.ChangeMeta{Actor: "eva", Reason: "because"}
			p.apply(t, move)
		}
		p.compareViews(t)
	})
}

package ledger_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

var itemStates = []string{"free", "dirty", "odd"}

func itemCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch die(t, 24) {
		case 0:
			return itemTree(t)
		case 1, 2, 3, 4:
			return quota.Release{ID: quotatest.IDs[die(t, 10)], ItemState: []string{"", "free", "dirty"}[die(t, 3)]}
		case 5, 6:
			return quota.Expire{Most: 2}
		case 7, 8, 9:
			return quota.UpdateItems{Updates: []quota.ItemUpdate{{Item: anItem(t), State: itemStates[die(t, 3)]}}}
		case 10:
			return quota.ResetItems{
				Tree: "t", Resource: "acc", State: "leased", To: "free",
				Idle: quota.Span(die(t, 4)),
			}
		case 11:
			at := quota.AtMost(quota.Amount(die(t, 4)))
			return quota.SetLimits{Tree: "t", Node: "a", Limits: []quota.ResourceLimit{{Resource: "acc", Limit: at}}}
		case 12:
			return quota.Release{ID: quotatest.IDs[die(t, 10)], Items: []quota.ItemName{anItem(t)}}
		}
		return itemRequest(t)
	})
}

func anItem(t *rapid.T) quota.ItemName {
	return quota.ItemName{Tree: "t", Resource: "acc", Name: []string{"x1", "x2", "x3", "acc-1", "acc-2"}[die(t, 5)]}
}

func itemRequest(t *rapid.T) quota.Allocate {
	r := quota.Allocate{ID: quotatest.IDs[die(t, 10)], TTL: quota.Span(die(t, 2) * (1 + die(t, 9)))}
	for _, path := range []string{"a", "b"}[die(t, 2):] {
		c := quota.Claim{Tree: "t", Node: path}
		pick := quota.Pick{Resource: "acc", Count: 1 + die(t, 2), State: []string{"", "", "dirty"}[die(t, 3)]}
		if die(t, 3) == 0 {
			pick.Names = slices.Compact(slices.Sorted(slices.Values([]string{anItem(t).Name, anItem(t).Name})))
			pick.Count = len(pick.Names)
		}
		c.Picks = []quota.Pick{pick}
		if die(t, 3) == 0 {
			c.Amounts = quota.Vector{{Resource: "cpu", Amount: quota.Amount(die(t, 3))}}
		}
		r.Claims = append(r.Claims, c)
	}
	return r
}

func itemTree(t *rapid.T) quota.ApplyTrees {
	items := &quota.ItemSpec{
		Names: []string{"x1", "x2", "x3"}[:1+die(t, 3)], Queueing: quota.Queueing(die(t, 3)),
		Released: []string{"", "dirty"}[die(t, 2)],
	}
	if die(t, 2) == 0 {
		items.Names, items.Min, items.Max, items.Lifespan = nil, die(t, 2), 2+die(t, 2), quota.Span(die(t, 6))
		items.State = []string{"", "dirty"}[die(t, 2)]
	}
	if die(t, 2) == 0 {
		items.Turns = []quota.Turn{{From: "dirty", To: "free", After: quota.Span(1 + die(t, 6))}}
	}
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{
			{Name: "acc", Unit: quota.Items, Items: items},
			{Name: "cpu", Unit: quota.Count},
		},
	}
	spec.Overtake = quota.Span(die(t, 6))
	for _, path := range []string{"", "a", "b"} {
		n := quota.NodeSpec{Path: path, Queueing: quota.Queueing(die(t, 3))}
		for _, r := range spec.Resources {
			if die(t, 2) == 0 {
				n.Limits = append(
					n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: quota.AtMost(quota.Amount(1 + die(t, 4)))})
			}
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

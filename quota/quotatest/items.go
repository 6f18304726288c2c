package quotatest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// What is known of items by their names.
var (
	itemNames = []string{"a", "b", "c", "d"}
	states    = []string{"free", "dirty", "clean"}
)

// ItemTree are commands that declare one tree with items: those of r have names, those of s are created on demand, and
// now and then it is the other way round, or one of them counts only. In u claims borrow.
func ItemTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		spec := quota.TreeSpec{Name: name}
		if oneIn(t, 3, "leases") {
			spec.Leases = quota.LeaseSettings{
				Default: pick(t, []quota.Span{0, 5, 8}, "default"),
				Max:     pick(t, []quota.Span{0, 9, 20}, "max"),
			}
		}
		spec.Resources = []quota.Resource{
			{Name: "cpu", Unit: quota.Count},
			itemResource(t, "r", 0),
			itemResource(t, "s", 1),
		}
		for _, p := range []string{"", "a", "b"} {
			n := quota.NodeSpec{Path: p}
			for _, r := range spec.Resources {
				if name == "u" || oneIn(t, 5, "limited") {
					n.Limits = append(n.Limits,
						quota.ResourceLimit{
							Resource: r.Name,
							Limit:    quota.AtMost(quota.Amount(1 + Die(t, 4, "limit"))),
						})
				}
			}
			spec.Nodes = append(spec.Nodes, n)
		}
		if name == "u" {
			spec.Nodes[0].Policy = "borrowing"
		}
		return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	})
}

func itemResource(t *rapid.T, name string, kind int) quota.Resource {
	if oneIn(t, 15, "counts only") {
		return quota.Resource{Name: name, Unit: quota.Count}
	}
	spec := &quota.ItemSpec{
		State: state(t), Released: state(t), Expired: state(t), TTL: pick(t, []quota.Span{0, 0, 4, 7}, "ttl"),
	}
	if oneIn(t, 8, "other kind") {
		kind = 1 - kind
	}
	if kind == 0 {
		spec.Names = subset(t, itemNames, 3, true, "names")
	} else {
		spec.Max = 1 + Die(t, 4, "max")
		spec.Min = Die(t, spec.Max+1, "min")
		spec.Lifespan = pick(t, []quota.Span{0, 3, 6}, "lifespan")
		if oneIn(t, 3, "retires") {
			others := slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s == spec.InitialState() })
			first := Die(t, 2, "retired")
			spec.Retired, spec.Removed = others[first], others[1-first]
		}
	}
	for _, from := range subset(t, slices.Sorted(slices.Values(states)), 1, false, "turns") {
		to := pick(t, states, "to")
		if from == spec.Retired {
			to = spec.Removed
		}
		if to != from {
			spec.Turns = append(spec.Turns, quota.Turn{From: from, To: to, After: quota.Span(1 + Die(t, 9, "after"))})
		}
	}
	return quota.Resource{Name: name, Unit: quota.Items, Items: spec}
}

func state(t *rapid.T) string { return pick(t, append(make([]string, 12), states...), "state") }

// ItemCommands hold, renew, give back, take away, change and configure items. Reservations never stand in borrowing
// trees.
func ItemCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch n := Die(t, 40, "type"); {
		case n < 14:
			return holdItems(t)
		case n < 18:
			return quota.Release{ID: pick(t, itemIDs, "id"), ItemState: state(t)}
		case n < 21:
			c := quota.Release{ID: pick(t, itemIDs, "id"), ItemState: state(t)}
			for range 1 + Die(t, 2, "items") {
				c.Items = append(c.Items, itemName(t))
			}
			return c
		case n < 27:
			c := quota.Renew{ID: pick(t, itemIDs, "id"), Data: data(t)}
			if oneIn(t, 3, "other ttl") {
				c.TTL = quota.Span(Die(t, 30, "ttl"))
			}
			c.Fence = fence(t)
			if oneIn(t, 2, "items too") {
				c.Items = itemUpdates(t)
			}
			return c
		case n < 30:
			return quota.UpdateItems{Updates: itemUpdates(t)}
		case n < 32:
			return quota.ResetItems{
				Tree: pick(t, TreeNames[:2], "tree"), Resource: pick(t, []string{"r", "s"}, "resource"),
				State: pick(t, []string{"leased", "leased", "busy"}, "reset"), To: pick(t, states, "to"),
				Idle: quota.Span(Die(t, 8, "idle") - 1),
			}
		case n < 33:
			return ItemTree(pick(t, TreeNames[:2], "tree")).Draw(t, "other tree")
		case n < 34:
			return quota.Confirm{ID: pick(t, itemIDs, "id")}
		case n < 35:
			return quota.Cancel{ID: pick(t, itemIDs, "id")}
		}
		return quota.Expire{Most: pick(t, []int{1, 2, 1024}, "most")}
	})
}

func holdItems(t *rapid.T) quota.Allocate {
	c := withAlternatives(t, holdOneOf(t), holdOneOf)
	if c.HasClaim(func(c quota.Claim) bool { return c.Tree == "u" }) && c.Mode == quota.Reserve {
		c.Mode, c.ReserveFor = quota.Hold, 0
	}
	return c
}

func holdOneOf(t *rapid.T) quota.Allocate {
	c := quota.Allocate{ID: pick(t, itemIDs, "id"), Data: data(t)}
	for _, tree := range pick(t, [][]string{{"t"}, {"t"}, {"u"}, {"t", "u"}}, "trees") {
		claim := quota.Claim{Tree: tree, Node: pick(t, []string{"a", "b"}, "leaf"), Standing: standing(t)}
		if oneIn(t, 3, "cpu") {
			claim.Amounts = quota.Vector{{Resource: "cpu", Amount: quota.Amount(Die(t, 3, "amount"))}}
		}
		for _, r := range subset(t, []string{"r", "s"}, 1, len(claim.Amounts) == 0, "picks") {
			claim.Picks = append(claim.Picks, itemPick(t, r))
		}
		c.Claims = append(c.Claims, claim)
	}
	if c.Claims[0].Tree == "t" && oneIn(t, 6, "second") {
		other := c.Claims[0]
		other.Node = map[string]string{"a": "b", "b": "a"}[other.Node]
		other.Amounts, other.Picks = nil, []quota.Pick{itemPick(t, pick(t, []string{"r", "s"}, "picks"))}
		c.Claims = append(c.Claims, other)
	}
	borrows := slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return c.Tree == "u" })
	switch {
	case oneIn(t, 12, "forced"):
		c.Mode = quota.Force
	case !borrows && oneIn(t, 4, "reserve"):
		c.Mode, c.ReserveFor = quota.Reserve, quota.Span(rapid.Int64Range(1, 9).Draw(t, "span"))
	}
	if oneIn(t, 3, "ttl") {
		c.TTL = quota.Span(3 + Die(t, 12, "ttl"))
	}
	return withRanges(t, c)
}

func itemPick(t *rapid.T, resource string) quota.Pick {
	p := quota.Pick{
		Resource: resource, Count: pick(t, []int{1, 1, 1, 2, 3}, "count"), State: state(t),
		HeldState: pick(t, []string{"", "", "busy", "free"}, "held"),
	}
	if oneIn(t, 4, "by name") {
		p.Names = subset(t, itemsOf(resource), 1, true, "names")
		p.Count = len(p.Names)
	}
	return p
}

func itemsOf(resource string) []string {
	if resource == "r" {
		return append(slices.Clone(itemNames), "r-1")
	}
	return []string{"a", "s-1", "s-2", "s-3", "s-4", "s-5"}
}

func itemName(t *rapid.T) quota.ItemName {
	resource := pick(t, []string{"r", "s"}, "resource")
	return quota.ItemName{
		Tree: pick(t, []string{"t", "t", "u"}, "tree"), Resource: resource,
		Name: pick(t, itemsOf(resource), "item"),
	}
}

func itemUpdates(t *rapid.T) []quota.ItemUpdate {
	var list []quota.ItemUpdate
	for range pick(t, []int{1, 1, 1, 2}, "updates") {
		list = append(list, quota.ItemUpdate{Item: itemName(t), State: state(t), Data: data(t)})
	}
	return list
}

func data(t *rapid.T) []quota.Label {
	if Die(t, 4, "data") > 0 {
		return nil
	}
	return []quota.Label{{Key: pick(t, []string{"k", "l"}, "key"), Value: pick(t, []string{"", "1", "2"}, "value")}}
}

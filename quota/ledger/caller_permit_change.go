package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
)

// permitResize asks for the right to change the allocation, and to hold where it gets a new claim.
func (l guard) permitResize(c quota.Resize) *quota.Error {
	if err := l.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := l.allocations.findByID(c.ID)
	for i, change := range c.Claims {
		if a.claimsAt(change.Tree, change.Node) {
			continue
		}
		if err := l.permitHoldingAt(a, change.Tree, change.Node, claimField(i, ".node")); err != nil {
			return err
		}
	}
	return nil
}

// permitTransfer asks for the right to change the allocation, and to hold where it goes.
func (l guard) permitTransfer(c quota.Transfer) *quota.Error {
	if err := l.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := l.allocations.findByID(c.ID)
	for i, move := range c.Moves {
		if err := l.permitHoldingAt(a, move.Tree, move.To, fmt.Sprintf("moves[%d].to", i)); err != nil {
			return err
		}
	}
	return nil
}

// permitSplit asks for the right to change the allocation, to hold where the parts go, and to use their ids.
func (l guard) permitSplit(c quota.Split) *quota.Error {
	if err := l.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := l.allocations.findByID(c.ID)
	for i, part := range c.Parts {
		for j, claim := range part.Claims {
			if err := l.permitHoldingAt(a, claim.Tree, claim.To, partField(i, "."+claimField(j, ".to"))); err != nil {
				return err
			}
		}
		known := l.allocations.findByID(part.ID)
		if known != nil && known.owner != l.caller.user() && !l.mayOperate(known) ||
			l.reserved.Has(part.ID) && !l.ownsPrefix(part) {
			return quota.Errorf(quota.IDTaken, partField(i, ".id"), "the id %q cannot be used; use another one",
				quota.Clip(part.ID))
		}
	}
	return nil
}

// ownsPrefix is true if the caller may use the reserved id of a part where that goes.
func (l guard) ownsPrefix(part quota.Part) bool {
	return slices.ContainsFunc(part.Claims, func(c quota.PartClaim) bool {
		rights := access.RightsAt(l.caller.rights, l.now.Wall, l.pathOf(l.forest.nearestNode(c.Tree, c.To)))
		return rights.OwnsPrefixOf(part.ID)
	})
}

// permitHoldingAt asks for what it takes to hold the allocation at another node: the right to operate there, or that to
// hold there for its holder and as it ranks.
func (l guard) permitHoldingAt(a *Allocation, tree, path, field string) *quota.Error {
	n := l.forest.nearestNode(tree, path)
	if a == nil || l.may(access.HoldOperate, n) {
		return nil
	}
	if !l.may(access.Hold, n) {
		return l.needVerb(access.Hold, tree, path, field)
	}
	request := quota.Allocate{ID: a.id, Principal: a.principal()}
	for i := range a.claims {
		claim := quota.Claim{Tree: tree, Node: path, Standing: a.claims[i].standing()}
		if !l.exceedsDefaults(request, claim) {
			continue
		}
		rights := access.RightsAt(l.caller.rights, l.now.Wall, l.pathOf(n))
		if err := l.permitCeilings(request, claim, &rights, i); err != nil {
			err.Field = field
			return err
		}
	}
	return nil
}

// claimsAt is true if the allocation has a claim that was asked for at a node, or belongs there now.
func (a *Allocation) claimsAt(tree, path string) bool {
	return a != nil && slices.ContainsFunc(a.claims, func(c placedClaim) bool {
		return c.asked.treeName == tree && (c.asked.path == path || a.ended == nil && c.home().path == path)
	})
}

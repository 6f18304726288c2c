package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// permit refuses a command that its caller may not give. Of changes of the configuration it asks only that the caller
// may read what it changes, because a refused plan tells of it; the rest is known with the plan, see permitPlan.
func (g guard) permit(c quota.Command) *quota.Error {
	if g.caller.rights == nil {
		return nil
	}
	switch c := c.(type) {
	case quota.Allocate:
		return g.forbid(g.permitAllocate(c))
	case quota.Release:
		return g.forbid(g.permitRelease(c))
	case quota.Resize:
		return g.forbid(g.permitResize(c))
	case quota.Transfer:
		return g.forbid(g.permitTransfer(c))
	case quota.Split:
		return g.forbid(g.permitSplit(c))
	case quota.Renew:
		return g.forbid(g.permitOwner(c.ID, true))
	case quota.Confirm:
		return g.forbid(g.permitOwner(c.ID, true))
	case quota.Cancel:
		return g.forbid(g.permitOwner(c.ID, false))
	case quota.UpdateItems:
		return g.forbid(g.permitUpdates(c))
	case quota.ResetItems:
		return g.forbid(g.needVerb(access.ItemsReset, c.Tree, "", "tree"))
	case quota.Expire:
		return g.forbid(g.permitSystem("ends what is due"))
	case quota.AdvanceWebhooks:
		return g.forbid(g.permitSystem("reports what webhooks have delivered"))
	case quota.SetWebhook:
		return g.forbid(g.permitSetWebhook(c))
	case quota.ManageWebhook:
		return g.forbid(g.permitManageWebhook(c))
	case quota.SetCivilOffset:
		return g.forbid(g.permitSystem("sets civil time"))
	case quota.ExtendSchedule:
		return g.forbid(g.permitSystem("adds windows to a scheduled limit"))
	case quota.ScheduleLimits:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "place.node"))
	case quota.CancelScheduledLimit:
		return g.forbid(g.permitCancelScheduled(c))
	case quota.ChangeAccess:
		return g.forbid(g.permitAccess(c.Change))
	case quota.AdoptAllocations:
		return g.forbid(g.needCluster(access.AccessManage))
	case quota.RequestLimits:
		return g.forbid(g.needVerb(access.LimitsRequest, c.Tree, c.Node, "place"))
	case quota.ApproveRequest:
		return g.forbid(g.permitDecision(c.Number))
	case quota.RejectRequest:
		return g.forbid(g.permitDecision(c.Number))
	case quota.WithdrawRequest:
		return g.forbid(g.permitWithdrawal(c.Number))
	case quota.ApplyTrees:
		return g.forbid(g.permitApply(c))
	case quota.SetLimits:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "node"))
	case quota.MoveNode:
		return g.forbid(g.permitMove(c))
	case quota.SetMaintenance:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Field: "maintenance"}, "tree"))
	case quota.HoldNode:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.ResumeNode:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.DeleteTree:
		return g.forbid(g.permitBefore(quota.Change{Tree: c.Tree, Field: "tree", Kind: quota.Removed}, "name"))
	case quota.RollBack:
		return g.forbid(g.needCluster(access.ConfigRead))
	}
	return nil
}

// permitCancelScheduled asks for the right to set the limits of the node. Those who may not read the node learn nothing
// of what is scheduled there.
func (g guard) permitCancelScheduled(c quota.CancelScheduledLimit) *quota.Error {
	s := g.calendar.find(c.ID)
	if s == nil {
		return g.unknownID(noScheduledLimit(c.ID))
	}
	if !g.may(access.ConfigRead, s.node) {
		return noScheduledLimit(c.ID)
	}
	return g.permitBefore(quota.Change{Tree: s.node.treeName, Node: s.node.path, Field: "limit"}, "id")
}

// permitMove asks for the right to read both places, and to take the node away.
func (g guard) permitMove(c quota.MoveNode) *quota.Error {
	if err := g.needVerb(access.ConfigRead, c.Tree, quota.ParentPath(c.To), "to"); err != nil {
		return err
	}
	return g.permitBefore(quota.Change{Tree: c.Tree, Node: c.From, Field: "path"}, "from")
}

// permitBefore asks for what a change needs whose kind is known before it is planned. A change that makes no difference
// asks for it too, so that nobody learns from trying.
func (g guard) permitBefore(c quota.Change, field string) *quota.Error {
	if err := g.needVerb(access.ConfigRead, c.Tree, c.Node, field); err != nil {
		return err
	}
	n := g.forest.nearestNode(c.Tree, c.Node)
	if n == nil || n.path != c.Node {
		return nil // the plan says that there is none
	}
	return g.permitDifference(c, func(quota.Change) changedNode {
		return changedNode{was: n, above: n.parent, isRoot: n.parent == nil, isNewTree: c.Field == "tree"}
	})
}

// permitAllocate asks for the right to hold at each claim, for the holder, within the ceilings of the bindings there.
// Whether the id is in use is told only to callers that may hold there.
func (g guard) permitAllocate(c quota.Allocate) *quota.Error {
	reserved := g.reserved.Has(c.ID)
	if err := g.permitClaims(c, &reserved); err != nil {
		return err
	}
	for i := range c.AnyOf {
		list := c
		list.Claims = c.AnyOf[i]
		if err := g.permitClaims(list, &reserved); err != nil {
			if strings.HasPrefix(err.Field, "claims") {
				err.Field = listField(i+1, err.Field)
			}
			return err
		}
	}
	if reserved {
		return quota.Errorf(quota.Forbidden, "id", "ids that begin like %q are reserved; use another one",
			quota.Clip(c.ID))
	}
	if a := g.allocations.findByID(c.ID); a != nil && a.owner != g.caller.user() && !g.mayOperate(a) {
		return quota.Errorf(quota.IDTaken, "id", "the id %q cannot be used; use another one", quota.Clip(c.ID))
	}
	return nil
}

// permitClaims asks for the rights at the claims, and clears reserved if the caller owns the prefix of the id there.
func (g guard) permitClaims(c quota.Allocate, reserved *bool) *quota.Error {
	for i, claim := range c.Claims {
		n := g.forest.nearestNode(claim.Tree, claim.Node)
		if !g.may(access.Hold, n) { // the field of a refusal is written only for one
			return g.needVerb(access.Hold, claim.Tree, claim.Node, claimField(i, ".node"))
		}
		if c.Mode == quota.Force && !g.may(access.HoldForce, n) {
			return g.lacksVerb(access.HoldForce, n, quota.Place(claim.Tree, claim.Node), "mode")
		}
		if err := g.permitPicks(claim, n, i); err != nil {
			return err
		}
		if *reserved || g.exceedsDefaults(c, claim) {
			rights := access.RightsAt(g.caller.rights, g.now.Wall, g.pathOf(n))
			if err := g.permitCeilings(c, claim, &rights, i); err != nil {
				return err
			}
			*reserved = *reserved && !rights.OwnsPrefixOf(c.ID)
		}
	}
	return nil
}

// exceedsDefaults is true if a claim needs more than the right to hold for the caller itself.
func (g guard) exceedsDefaults(c quota.Allocate, claim quota.Claim) bool {
	p := c.Principal
	return claim.Priority > 0 || c.Priority > 0 || claim.Unpreemptable ||
		p.User != "" && p.User != g.caller.user() || len(p.Groups) > 0
}

// permitCeilings compares a claim with the highest that the caller may ask there.
func (g guard) permitCeilings(c quota.Allocate, claim quota.Claim, r *access.Rights, i int) *quota.Error {
	place := quota.Place(claim.Tree, claim.Node)
	switch {
	case claim.Priority > 0 && claim.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, claimField(i, ".priority"),
			"%s may claim at %s with priority %d at most, not %d", g.caller.name(), place, r.MaxPriority, claim.Priority)
	case c.Priority > 0 && c.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, "priority",
			"%s may wait for %s with priority %d at most, not %d", g.caller.name(), place, r.MaxPriority, c.Priority)
	case claim.Unpreemptable && !r.Unpreemptable:
		return quota.Errorf(quota.Forbidden, claimField(i, ".unpreemptable"),
			"%s may not make claims at %s unpreemptable", g.caller.name(), place)
	}
	if user := c.Principal.User; user != "" && user != g.caller.user() && !r.MayHoldFor(user) {
		return g.lacksHoldAs(user, place, "principal.user")
	}
	own := g.callerGroups()
	for _, group := range c.Principal.Groups {
		if !slices.Contains(own, group) && !r.MayHoldFor(group) {
			return g.lacksHoldAs(group, place, "principal.groups")
		}
	}
	return nil
}

func (g guard) lacksHoldAs(holder, place, field string) *quota.Error {
	return quota.Errorf(quota.Forbidden, field,
		"%s may not hold for %s at %s: a binding there with the right %s must name it, or any", g.caller.name(),
		quota.Clip(holder), place, access.HoldAs)
}

// callerGroups are the groups that count for the caller: those of an account are in the book.
func (g guard) callerGroups() []string {
	who := g.caller.who
	if who.Kind != access.AccountCaller {
		return who.Groups
	}
	account, _ := g.env.book.Account(who.User[len(access.AccountIssuer)+1:])
	return account.Groups
}

// permitPicks asks for the right to clean items, if a claim takes items that are not free, or holds them in a state of
// its own.
func (g guard) permitPicks(claim quota.Claim, n *node, i int) *quota.Error {
	usual := func(p quota.Pick) bool {
		return (p.WantedState() == quota.FreeState || p.WantedState() == "") && p.StateWhileHeld() == quota.LeasedState
	}
	for j, p := range claim.Picks {
		if !usual(p) && !g.may(access.ItemsClean, n) {
			return g.lacksVerb(access.ItemsClean, n, quota.Place(claim.Tree, claim.Node),
				claimField(i, ".picks["+quota.Clip(claim.Picks[j].Resource)+"]"))
		}
	}
	return nil
}

// mayOperate is true if the caller may change a foreign allocation: it has the right at every claim.
func (g guard) mayOperate(a *Allocation) bool { return g.mayAtClaims(access.HoldOperate, a) }

// mayAtClaims is true if the caller has a verb at every claim of an allocation. Claims of one that has ended stand for
// where they were, and a request that waits has the claims of all its alternatives.
func (g guard) mayAtClaims(verb access.Verb, a *Allocation) bool {
	_, lacks := g.nodeWithout(verb, a)
	return !lacks
}

// lackingAtClaims notes in a refusal which verb is missing at which of the nodes of an allocation.
func (g guard) lackingAtClaims(err *quota.Error, verb access.Verb, a *Allocation) *quota.Error {
	if n, lacks := g.nodeWithout(verb, a); lacks {
		return lackingVerb(err, verb, n)
	}
	return err
}

// nodeWithout is the first node of the claims of an allocation at which the caller lacks a verb; false if there is
// none.
func (g guard) nodeWithout(verb access.Verb, a *Allocation) (*node, bool) {
	if !a.isWaiting() {
		return g.nodeOfClaimsWithout(verb, a, a.claims)
	}
	for _, alt := range g.queue.waiterOf(a).alternatives {
		if n, lacks := g.nodeOfClaimsWithout(verb, a, alt.claims); lacks {
			return n, true
		}
	}
	return nil, false
}

func (g guard) nodeOfClaimsWithout(verb access.Verb, a *Allocation, claims []placedClaim) (*node, bool) {
	for i := range claims {
		if n := g.claimedNode(a, &claims[i]); !g.may(verb, n) {
			return n, true
		}
	}
	return nil, false
}

// claimedNode is the node that a claim belongs to, or the nearest that exists.
func (g guard) claimedNode(a *Allocation, c *placedClaim) *node {
	if a.ended == nil && !a.isWaiting() {
		return c.home()
	}
	info := c.info()
	return g.forest.nearestNode(info.Tree, info.Node)
}

// permitOwner refuses callers that neither own an allocation nor may operate it. If they may not see it either, it does
// not exist for them. An owner that lost the right to hold may end it, and no more.
func (g guard) permitOwner(id string, holds bool) *quota.Error {
	found := g.allocations.findToRelease(id)
	a := found.Allocation
	if a == nil {
		return g.unknownID(found.Refused)
	}
	isOwner := a.owner != "" && a.owner == g.caller.user()
	switch {
	case isOwner && (!holds || g.mayAtClaims(access.Hold, a)) || g.mayOperate(a):
		return nil // owners first, because most callers are
	case !isOwner:
		if g.mayAtClaims(access.HoldersRead, a) {
			return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
				"%s neither owns allocation %q nor has the right %s where it holds", g.caller.name(), a.id, access.HoldOperate,
			), access.HoldOperate, a)
		}
		return g.allocations.noAllocation(id)
	}
	return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
		"%s owns allocation %q, but lacks the right %s where it holds; release it", g.caller.name(), a.id, access.Hold,
	), access.Hold, a)
}

// permitRelease asks for the right to clean items too, if they are returned in a state of the caller's choice.
func (g guard) permitRelease(c quota.Release) *quota.Error {
	if err := g.permitOwner(c.ID, false); err != nil || c.ItemState == "" {
		return err
	}
	a := g.allocations.findByID(c.ID)
	if a == nil || g.mayAtClaims(access.ItemsClean, a) {
		return nil
	}
	return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "item_state",
		"%s lacks the right %s where allocation %q holds; leave the state out", g.caller.name(), access.ItemsClean, a.id,
	), access.ItemsClean, a)
}

func (g guard) permitUpdates(c quota.UpdateItems) *quota.Error {
	for _, u := range c.Updates {
		if err := g.needVerb(access.ItemsClean, u.Item.Tree, "", "updates"); err != nil {
			return err
		}
	}
	return nil
}

// completed is a command with what a guarded ledger fills in: the holder, where limits of users or groups apply and the
// caller named none, and the actor of a change. A repeated request is completed as the first one was.
func (g guard) completed(c quota.Command) quota.Command {
	if g.env.book.Mode() != access.Guarded || g.caller.user() == "" {
		return c
	}
	switch c := c.(type) {
	case quota.Allocate:
		return g.completedAllocate(c)
	case quota.ApplyTrees:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.SetLimits:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.MoveNode:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.SetMaintenance:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.HoldNode:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.ResumeNode:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.RollBack:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.DeleteTree:
		c.Meta.Actor = g.caller.user()
		return c
	case quota.ScheduleLimits:
		c.Actor = g.caller.user()
		return c
	case quota.CancelScheduledLimit:
		c.Actor = g.caller.user()
		return c
	case quota.Release, quota.Resize, quota.Transfer, quota.Split, quota.Renew, quota.UpdateItems, quota.ResetItems,
		quota.Confirm, quota.Cancel, quota.Expire, quota.SetCivilOffset, quota.ExtendSchedule,
		quota.ChangeAccess, quota.AdoptAllocations, quota.RequestLimits, quota.ApproveRequest, quota.RejectRequest,
		quota.WithdrawRequest, quota.SetWebhook, quota.ManageWebhook, quota.AdvanceWebhooks:
	}
	return c
}

func (g guard) completedAllocate(c quota.Allocate) quota.Allocate {
	if c.Principal.User != "" {
		return c
	}
	if a := g.allocations.findByID(c.ID); a != nil && a.owner == g.caller.user() {
		if first := a.principal(); first.User == a.owner {
			c.Principal.User, c.Principal.Groups = first.User, first.Groups
		}
		return c
	}
	if c.Principal.Application != "" || c.HasClaim(g.limitsHolders) {
		c.Principal.User = g.caller.user()
		if len(c.Principal.Groups) == 0 {
			c.Principal.Groups = g.callerGroups()
		}
	}
	return c
}

// limitsHolders is true if users, groups or applications are limited where a claim is counted.
func (g guard) limitsHolders(c quota.Claim) bool {
	for n := g.forest.nearestNode(c.Tree, c.Node); n != nil; n = n.parent {
		if n.rules != nil || n.spec.Applications != 0 {
			return true
		}
	}
	return false
}

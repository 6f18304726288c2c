package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
)

// permit refuses a command that its caller may not give. Of changes of the configuration it asks only that the caller
// may read what it changes, because a refused plan tells of it; the rest is known with the plan, see permitPlan.
func (l guard) permit(c quota.Command) *quota.Error {
	if l.caller.rights == nil {
		return nil
	}
	switch c := c.(type) {
	case quota.Allocate:
		return l.forbid(l.permitAllocate(c))
	case quota.Release:
		return l.forbid(l.permitRelease(c))
	case quota.Resize:
		return l.forbid(l.permitResize(c))
	case quota.Transfer:
		return l.forbid(l.permitTransfer(c))
	case quota.Split:
		return l.forbid(l.permitSplit(c))
	case quota.Renew:
		return l.forbid(l.permitOwner(c.ID, true))
	case quota.Confirm:
		return l.forbid(l.permitOwner(c.ID, true))
	case quota.Cancel:
		return l.forbid(l.permitOwner(c.ID, false))
	case quota.UpdateItems:
		return l.forbid(l.permitUpdates(c))
	case quota.ResetItems:
		return l.forbid(l.needVerb(access.ItemsReset, c.Tree, "", "tree"))
	case quota.Expire:
		return l.forbid(l.permitSystem("ends what is due"))
	case quota.AdvanceWebhooks:
		return l.forbid(l.permitSystem("reports what webhooks have delivered"))
	case quota.SetWebhook:
		return l.forbid(l.permitSetWebhook(c))
	case quota.ManageWebhook:
		return l.forbid(l.permitManageWebhook(c))
	case quota.SetCivilOffset:
		return l.forbid(l.permitSystem("sets civil time"))
	case quota.ExtendSchedule:
		return l.forbid(l.permitSystem("adds windows to a scheduled limit"))
	case quota.ScheduleLimits:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "place.node"))
	case quota.CancelScheduledLimit:
		return l.forbid(l.permitCancelScheduled(c))
	case quota.ChangeAccess:
		return l.forbid(l.permitAccess(c.Change))
	case quota.AdoptAllocations:
		return l.forbid(l.needCluster(access.AccessManage))
	case quota.RequestLimits:
		return l.forbid(l.needVerb(access.LimitsRequest, c.Tree, c.Node, "place"))
	case quota.ApproveRequest:
		return l.forbid(l.permitDecision(c.Number))
	case quota.RejectRequest:
		return l.forbid(l.permitDecision(c.Number))
	case quota.WithdrawRequest:
		return l.forbid(l.permitWithdrawal(c.Number))
	case quota.ApplyTrees:
		return l.forbid(l.permitApply(c))
	case quota.SetLimits:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "node"))
	case quota.MoveNode:
		return l.forbid(l.permitMove(c))
	case quota.SetMaintenance:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Field: "maintenance"}, "tree"))
	case quota.HoldNode:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.ResumeNode:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.DeleteTree:
		return l.forbid(l.permitBefore(quota.Change{Tree: c.Tree, Field: "tree", Kind: quota.Removed}, "name"))
	case quota.RollBack:
		return l.forbid(l.needCluster(access.ConfigRead))
	}
	return nil
}

// permitCancelScheduled asks for the right to set the limits of the node. Those who may not read the node learn nothing
// of what is scheduled there.
func (l guard) permitCancelScheduled(c quota.CancelScheduledLimit) *quota.Error {
	s := l.calendar.find(c.ID)
	if s == nil {
		return l.unknownID(noScheduledLimit(c.ID))
	}
	if !l.may(access.ConfigRead, s.node) {
		return noScheduledLimit(c.ID)
	}
	return l.permitBefore(quota.Change{Tree: s.node.treeName, Node: s.node.path, Field: "limit"}, "id")
}

// permitMove asks for the right to read both places, and to take the node away.
func (l guard) permitMove(c quota.MoveNode) *quota.Error {
	if err := l.needVerb(access.ConfigRead, c.Tree, quota.ParentPath(c.To), "to"); err != nil {
		return err
	}
	return l.permitBefore(quota.Change{Tree: c.Tree, Node: c.From, Field: "path"}, "from")
}

// permitBefore asks for what a change needs whose kind is known before it is planned. A change that makes no difference
// asks for it too, so that nobody learns from trying.
func (l guard) permitBefore(c quota.Change, field string) *quota.Error {
	if err := l.needVerb(access.ConfigRead, c.Tree, c.Node, field); err != nil {
		return err
	}
	n := l.forest.nearestNode(c.Tree, c.Node)
	if n == nil || n.path != c.Node {
		return nil // the plan says that there is none
	}
	return l.permitDifference(c, func(quota.Change) changedNode {
		return changedNode{was: n, above: n.parent, isRoot: n.parent == nil, isNewTree: c.Field == "tree"}
	})
}

// permitAllocate asks for the right to hold at each claim, for the holder, within the ceilings of the bindings there.
// Whether the id is in use is told only to callers that may hold there.
func (l guard) permitAllocate(c quota.Allocate) *quota.Error {
	reserved := l.reserved.Has(c.ID)
	if err := l.permitClaims(c, &reserved); err != nil {
		return err
	}
	for i := range c.AnyOf {
		list := c
		list.Claims = c.AnyOf[i]
		if err := l.permitClaims(list, &reserved); err != nil {
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
	if a := l.allocations.findByID(c.ID); a != nil && a.owner != l.caller.user() && !l.mayOperate(a) {
		return quota.Errorf(quota.IDTaken, "id", "the id %q cannot be used; use another one", quota.Clip(c.ID))
	}
	return nil
}

// permitClaims asks for the rights at the claims, and clears reserved if the caller owns the prefix of the id there.
func (l guard) permitClaims(c quota.Allocate, reserved *bool) *quota.Error {
	for i, claim := range c.Claims {
		n := l.forest.nearestNode(claim.Tree, claim.Node)
		if !l.may(access.Hold, n) { // the field of a refusal is written only for one
			return l.needVerb(access.Hold, claim.Tree, claim.Node, claimField(i, ".node"))
		}
		if c.Mode == quota.Force && !l.may(access.HoldForce, n) {
			return l.lacksVerb(access.HoldForce, n, quota.Place(claim.Tree, claim.Node), "mode")
		}
		if err := l.permitPicks(claim, n, i); err != nil {
			return err
		}
		if *reserved || l.exceedsDefaults(c, claim) {
			rights := access.RightsAt(l.caller.rights, l.now.Wall, l.pathOf(n))
			if err := l.permitCeilings(c, claim, &rights, i); err != nil {
				return err
			}
			*reserved = *reserved && !rights.OwnsPrefixOf(c.ID)
		}
	}
	return nil
}

// exceedsDefaults is true if a claim needs more than the right to hold for the caller itself.
func (l guard) exceedsDefaults(c quota.Allocate, claim quota.Claim) bool {
	p := c.Principal
	return claim.Priority > 0 || c.Priority > 0 || claim.Unpreemptable ||
		p.User != "" && p.User != l.caller.user() || len(p.Groups) > 0
}

// permitCeilings compares a claim with the highest that the caller may ask there.
func (l guard) permitCeilings(c quota.Allocate, claim quota.Claim, r *access.Rights, i int) *quota.Error {
	place := quota.Place(claim.Tree, claim.Node)
	switch {
	case claim.Priority > 0 && claim.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, claimField(i, ".priority"),
			"%s may claim at %s with priority %d at most, not %d", l.caller.name(), place, r.MaxPriority, claim.Priority)
	case c.Priority > 0 && c.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, "priority",
			"%s may wait for %s with priority %d at most, not %d", l.caller.name(), place, r.MaxPriority, c.Priority)
	case claim.Unpreemptable && !r.Unpreemptable:
		return quota.Errorf(quota.Forbidden, claimField(i, ".unpreemptable"),
			"%s may not make claims at %s unpreemptable", l.caller.name(), place)
	}
	if user := c.Principal.User; user != "" && user != l.caller.user() && !r.MayHoldFor(user) {
		return l.lacksHoldAs(user, place, "principal.user")
	}
	own := l.callerGroups()
	for _, group := range c.Principal.Groups {
		if !slices.Contains(own, group) && !r.MayHoldFor(group) {
			return l.lacksHoldAs(group, place, "principal.groups")
		}
	}
	return nil
}

func (l guard) lacksHoldAs(holder, place, field string) *quota.Error {
	return quota.Errorf(quota.Forbidden, field,
		"%s may not hold for %s at %s: a binding there with the right %s must name it, or any", l.caller.name(),
		quota.Clip(holder), place, access.HoldAs)
}

// callerGroups are the groups that count for the caller: those of an account are in the book.
func (l guard) callerGroups() []string {
	who := l.caller.who
	if who.Kind != access.AccountCaller {
		return who.Groups
	}
	account, _ := l.book.Account(who.User[len(access.AccountIssuer)+1:])
	return account.Groups
}

// permitPicks asks for the right to clean items, if a claim takes items that are not free, or holds them in a state of
// its own.
func (l guard) permitPicks(claim quota.Claim, n *node, i int) *quota.Error {
	usual := func(p quota.Pick) bool {
		return (p.WantedState() == quota.FreeState || p.WantedState() == "") && p.StateWhileHeld() == quota.LeasedState
	}
	for j, p := range claim.Picks {
		if !usual(p) && !l.may(access.ItemsClean, n) {
			return l.lacksVerb(access.ItemsClean, n, quota.Place(claim.Tree, claim.Node),
				claimField(i, ".picks["+quota.Clip(claim.Picks[j].Resource)+"]"))
		}
	}
	return nil
}

// mayOperate is true if the caller may change a foreign allocation: it has the right at every claim.
func (l guard) mayOperate(a *Allocation) bool { return l.mayAtClaims(access.HoldOperate, a) }

// mayAtClaims is true if the caller has a verb at every claim of an allocation. Claims of one that has ended stand for
// where they were, and a request that waits has the claims of all its alternatives.
func (l guard) mayAtClaims(verb access.Verb, a *Allocation) bool {
	_, lacks := l.nodeWithout(verb, a)
	return !lacks
}

// lackingAtClaims notes in a refusal which verb is missing at which of the nodes of an allocation.
func (l guard) lackingAtClaims(err *quota.Error, verb access.Verb, a *Allocation) *quota.Error {
	if n, lacks := l.nodeWithout(verb, a); lacks {
		return lackingVerb(err, verb, n)
	}
	return err
}

// nodeWithout is the first node of the claims of an allocation at which the caller lacks a verb; false if there is
// none.
func (l guard) nodeWithout(verb access.Verb, a *Allocation) (*node, bool) {
	if !a.isWaiting() {
		return l.nodeOfClaimsWithout(verb, a, a.claims)
	}
	for _, alt := range l.queue.waiterOf(a).alternatives {
		if n, lacks := l.nodeOfClaimsWithout(verb, a, alt.claims); lacks {
			return n, true
		}
	}
	return nil, false
}

func (l guard) nodeOfClaimsWithout(verb access.Verb, a *Allocation, claims []placedClaim) (*node, bool) {
	for i := range claims {
		if n := l.claimedNode(a, &claims[i]); !l.may(verb, n) {
			return n, true
		}
	}
	return nil, false
}

// claimedNode is the node that a claim belongs to, or the nearest that exists.
func (l guard) claimedNode(a *Allocation, c *placedClaim) *node {
	if a.ended == nil && !a.isWaiting() {
		return c.home()
	}
	info := c.info()
	return l.forest.nearestNode(info.Tree, info.Node)
}

// unknownID is the refusal of what does not exist. A guarded ledger refuses it where it refuses what is hidden, before
// the command looks at anything else, so that nothing tells the two apart. A watching one leaves it to the command.
func (l guard) unknownID(refused *quota.Error) *quota.Error {
	if l.book.Mode() != access.Guarded {
		return nil
	}
	return refused
}

// permitOwner refuses callers that neither own an allocation nor may operate it. If they may not see it either, it does
// not exist for them. An owner that lost the right to hold may end it, and no more.
func (l guard) permitOwner(id string, holds bool) *quota.Error {
	found := l.allocations.findToRelease(id)
	a := found.Allocation
	if a == nil {
		return l.unknownID(found.Refused)
	}
	isOwner := a.owner != "" && a.owner == l.caller.user()
	switch {
	case isOwner && (!holds || l.mayAtClaims(access.Hold, a)) || l.mayOperate(a):
		return nil // owners first, because most callers are
	case !isOwner:
		if l.mayAtClaims(access.HoldersRead, a) {
			return l.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
				"%s neither owns allocation %q nor has the right %s where it holds", l.caller.name(), a.id, access.HoldOperate,
			), access.HoldOperate, a)
		}
		return l.allocations.noAllocation(id)
	}
	return l.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
		"%s owns allocation %q, but lacks the right %s where it holds; release it", l.caller.name(), a.id, access.Hold,
	), access.Hold, a)
}

// permitRelease asks for the right to clean items too, if they are returned in a state of the caller's choice.
func (l guard) permitRelease(c quota.Release) *quota.Error {
	if err := l.permitOwner(c.ID, false); err != nil || c.ItemState == "" {
		return err
	}
	a := l.allocations.findByID(c.ID)
	if a == nil || l.mayAtClaims(access.ItemsClean, a) {
		return nil
	}
	return l.lackingAtClaims(quota.Errorf(quota.Forbidden, "item_state",
		"%s lacks the right %s where allocation %q holds; leave the state out", l.caller.name(), access.ItemsClean, a.id,
	), access.ItemsClean, a)
}

func (l guard) permitUpdates(c quota.UpdateItems) *quota.Error {
	for _, u := range c.Updates {
		if err := l.needVerb(access.ItemsClean, u.Item.Tree, "", "updates"); err != nil {
			return err
		}
	}
	return nil
}

// completed is a command with what a guarded ledger fills in: the holder, where limits of users or groups apply and the
// caller named none, and the actor of a change. A repeated request is completed as the first one was.
func (l guard) completed(c quota.Command) quota.Command {
	if l.book.Mode() != access.Guarded || l.caller.user() == "" {
		return c
	}
	switch c := c.(type) {
	case quota.Allocate:
		return l.completedAllocate(c)
	case quota.ApplyTrees:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.SetLimits:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.MoveNode:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.SetMaintenance:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.HoldNode:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.ResumeNode:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.RollBack:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.DeleteTree:
		c.Meta.Actor = l.caller.user()
		return c
	case quota.ScheduleLimits:
		c.Actor = l.caller.user()
		return c
	case quota.CancelScheduledLimit:
		c.Actor = l.caller.user()
		return c
	case quota.Release, quota.Resize, quota.Transfer, quota.Split, quota.Renew, quota.UpdateItems, quota.ResetItems,
		quota.Confirm, quota.Cancel, quota.Expire, quota.SetCivilOffset, quota.ExtendSchedule,
		quota.ChangeAccess, quota.AdoptAllocations, quota.RequestLimits, quota.ApproveRequest, quota.RejectRequest,
		quota.WithdrawRequest, quota.SetWebhook, quota.ManageWebhook, quota.AdvanceWebhooks:
	}
	return c
}

func (l guard) completedAllocate(c quota.Allocate) quota.Allocate {
	if c.Principal.User != "" {
		return c
	}
	if a := l.allocations.findByID(c.ID); a != nil && a.owner == l.caller.user() {
		if first := a.principal(); first.User == a.owner {
			c.Principal.User, c.Principal.Groups = first.User, first.Groups
		}
		return c
	}
	if c.Principal.Application != "" || c.HasClaim(l.limitsHolders) {
		c.Principal.User = l.caller.user()
		if len(c.Principal.Groups) == 0 {
			c.Principal.Groups = l.callerGroups()
		}
	}
	return c
}

// limitsHolders is true if users, groups or applications are limited where a claim is counted.
func (l guard) limitsHolders(c quota.Claim) bool {
	for n := l.forest.nearestNode(c.Tree, c.Node); n != nil; n = n.parent {
		if n.rules != nil || n.spec.Applications != 0 {
			return true
		}
	}
	return false
}

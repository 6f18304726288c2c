package permit

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Permit refuses a command that its caller may not give. Of changes of the configuration it asks only that the caller
// may read what it changes, because a refused plan tells of it; the rest is known with the plan, see permitPlan.
func (g Guard) Permit(c quota.Command) *quota.Error {
	if g.Caller.Rights == nil {
		return nil
	}
	switch c := c.(type) { // facts are asked of the type: asked of the interface, every command would move to the heap
	case quota.Allocate:
		return g.Forbid(g.permitAllocate(c))
	case quota.Release:
		return g.Forbid(g.permitRelease(c))
	case quota.Resize:
		return g.Forbid(g.permitResize(c))
	case quota.Transfer:
		return g.Forbid(g.permitTransfer(c))
	case quota.Split:
		return g.Forbid(g.permitSplit(c))
	case quota.Renew:
		return g.Forbid(g.permitOwner(c.ID, true))
	case quota.Confirm:
		return g.Forbid(g.permitOwner(c.ID, true))
	case quota.Cancel:
		return g.Forbid(g.permitOwner(c.ID, false))
	case quota.UpdateItems:
		return g.Forbid(g.permitUpdates(c))
	case quota.ResetItems:
		return g.Forbid(g.needVerb(quota.FactsOf(c).Verb, c.Tree, "", "tree"))
	case quota.Expire:
		return g.Forbid(g.permitSystem(quota.FactsOf(c).SystemTask))
	case quota.AdvanceWebhooks:
		return g.Forbid(g.permitSystem(quota.FactsOf(c).SystemTask))
	case quota.SetCivilOffset:
		return g.Forbid(g.permitSystem(quota.FactsOf(c).SystemTask))
	case quota.ExtendSchedule:
		return g.Forbid(g.permitSystem(quota.FactsOf(c).SystemTask))
	case quota.SetWebhook:
		return g.Forbid(g.permitSetWebhook(c))
	case quota.ManageWebhook:
		return g.Forbid(g.permitManageWebhook(c))
	case quota.ScheduleLimits:
		return g.Forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "place.node"))
	case quota.CancelScheduledLimit:
		return g.Forbid(g.permitCancelScheduled(c))
	case quota.ChangeAccess:
		return g.Forbid(g.permitAccess(c.Change))
	case quota.RequestLimits:
		return g.Forbid(g.needVerb(quota.FactsOf(c).Verb, c.Tree, c.Node, "place"))
	case quota.ApproveRequest:
		return g.Forbid(g.permitDecision(c.Number))
	case quota.RejectRequest:
		return g.Forbid(g.permitDecision(c.Number))
	case quota.WithdrawRequest:
		return g.Forbid(g.permitWithdrawal(c.Number))
	case quota.ApplyTrees:
		return g.Forbid(g.permitApply(c))
	case quota.SetLimits:
		return g.Forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "limit"}, "node"))
	case quota.MoveNode:
		return g.Forbid(g.permitMove(c))
	case quota.CordonNode:
		return g.Forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.UncordonNode:
		return g.Forbid(g.permitBefore(quota.Change{Tree: c.Tree, Node: c.Node, Field: "hold"}, "node"))
	case quota.DeleteTree:
		return g.Forbid(g.permitBefore(quota.Change{Tree: c.Tree, Field: "tree", Kind: quota.Removed}, "name"))
	case quota.RollBack:
		return g.Forbid(g.NeedCluster(quota.FactsOf(c).Verb))
	}
	return nil
}

// permitCancelScheduled asks for the right to set the limits of the node. Those who may not read the node learn nothing
// of what is scheduled there.
func (g Guard) permitCancelScheduled(c quota.CancelScheduledLimit) *quota.Error {
	s := g.calendar.Find(c.ID)
	if s == nil {
		return g.UnknownID(configure.NoScheduledLimit(c.ID))
	}
	if !g.May(access.ConfigRead, s.Node) {
		return configure.NoScheduledLimit(c.ID)
	}
	return g.permitBefore(quota.Change{Tree: s.Node.TreeName, Node: s.Node.Path, Field: "limit"}, "id")
}

// permitMove asks for the right to read both places, and to take the node away.
func (g Guard) permitMove(c quota.MoveNode) *quota.Error {
	if err := g.needVerb(access.ConfigRead, c.Tree, quota.ParentPath(c.To), "new_node"); err != nil {
		return err
	}
	return g.permitBefore(quota.Change{Tree: c.Tree, Node: c.From, Field: "path"}, "node")
}

// permitBefore asks for what a change needs whose kind is known before it is planned. A change that makes no difference
// asks for it too, so that no caller learns from trying.
func (g Guard) permitBefore(c quota.Change, field string) *quota.Error {
	if err := g.needVerb(access.ConfigRead, c.Tree, c.Node, field); err != nil {
		return err
	}
	n := g.forest.NearestNode(c.Tree, c.Node)
	if n == nil || n.Path != c.Node {
		return nil // the plan says that there is none
	}
	return g.permitDifference(c, func(quota.Change) configure.ChangedNode {
		return configure.ChangedNode{Was: n, Above: n.Parent, IsRoot: n.Parent == nil, IsNewTree: c.Field == "tree"}
	})
}

// permitAllocate asks for the right to hold at each claim, for the holder, within the ceilings of the bindings there.
// Whether the id is in use is told only to callers that may hold there.
func (g Guard) permitAllocate(c quota.Allocate) *quota.Error {
	if err := g.permitClaims(c); err != nil {
		return err
	}
	for i := range c.AnyOf {
		list := c
		list.Claims = c.AnyOf[i]
		if err := g.permitClaims(list); err != nil {
			if strings.HasPrefix(err.Field, "claims") {
				err.Field = admit.ListField(i+1, err.Field)
			}
			return err
		}
	}
	if err := g.permitNamespace(c); err != nil {
		return err
	}
	if a := g.allocations.FindByID(c.ID); a != nil && a.Owner != g.Caller.User() && !g.mayOperate(a) {
		return quota.Errorf(quota.IDTaken, "id", "the id %q cannot be used; use another one", quota.Clip(c.ID))
	}
	return nil
}

// permitNamespace asks a caller who names an allocation outside of its own namespace for the right to operate at each
// claim. Those of front ends are shared by all who may hold.
func (g Guard) permitNamespace(c quota.Allocate) *quota.Error {
	namespace := quota.NamespaceOf(c.ID)
	if namespace == g.Caller.Namespace() || strings.HasPrefix(namespace, quota.SharedNamespaces) {
		return nil
	}
	for i := range 1 + len(c.AnyOf) {
		claims := c.Claims
		if i > 0 {
			claims = c.AnyOf[i-1]
		}
		for _, claim := range claims {
			if n := g.forest.NearestNode(claim.Tree, claim.Node); !g.May(access.HoldOperate, n) {
				return g.LacksVerb(access.HoldOperate, n, quota.Place(claim.Tree, claim.Node)+
					", which ids in another namespace than "+g.Caller.Namespace()+" need", "namespace")
			}
		}
	}
	return nil
}

// permitClaims asks for the rights at the claims.
func (g Guard) permitClaims(c quota.Allocate) *quota.Error {
	for i, claim := range c.Claims {
		n := g.forest.NearestNode(claim.Tree, claim.Node)
		if !g.May(access.Hold, n) { // the field of a refusal is written only for one
			return g.needVerb(access.Hold, claim.Tree, claim.Node, admit.ClaimField(i, ".node"))
		}
		if c.Mode == quota.Force && !g.May(access.HoldForce, n) {
			return g.LacksVerb(access.HoldForce, n, quota.Place(claim.Tree, claim.Node), "mode")
		}
		if err := g.permitPicks(claim, n, i); err != nil {
			return err
		}
		if g.exceedsDefaults(c, claim) {
			rights := access.RightsAt(g.Caller.Rights, g.Now.Wall, g.PathOf(n))
			if err := g.permitCeilings(c, claim, &rights, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// exceedsDefaults is true if a claim needs more than the right to hold for the caller itself.
func (g Guard) exceedsDefaults(c quota.Allocate, claim quota.Claim) bool {
	p := c.Principal
	return claim.Priority > 0 || c.Priority > 0 || claim.Unpreemptable ||
		p.User != "" && p.User != g.Caller.User() || len(p.Groups) > 0
}

// permitCeilings compares a claim with the highest that the caller may ask there.
func (g Guard) permitCeilings(c quota.Allocate, claim quota.Claim, r *access.Rights, i int) *quota.Error {
	place := quota.Place(claim.Tree, claim.Node)
	switch {
	case claim.Priority > 0 && claim.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, admit.ClaimField(i, ".priority"),
			"%s may claim at %s with priority %d at most, not %d", g.Caller.Name(), place, r.MaxPriority, claim.Priority)
	case c.Priority > 0 && c.Priority > r.MaxPriority:
		return quota.Errorf(quota.Forbidden, "priority",
			"%s may wait for %s with priority %d at most, not %d", g.Caller.Name(), place, r.MaxPriority, c.Priority)
	case claim.Unpreemptable && !r.Unpreemptable:
		return quota.Errorf(quota.Forbidden, admit.ClaimField(i, ".unpreemptable"),
			"%s may not make claims at %s unpreemptable", g.Caller.Name(), place)
	}
	if user := c.Principal.User; user != "" && user != g.Caller.User() && !r.MayHoldFor(user) {
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

func (g Guard) lacksHoldAs(holder, place, field string) *quota.Error {
	return quota.Errorf(quota.Forbidden, field,
		"%s may not hold for %s at %s: a binding there with the right %s must name it, or any", g.Caller.Name(),
		quota.Clip(holder), place, access.HoldAs)
}

// callerGroups are the groups that count for the caller: those of an account are in the book.
func (g Guard) callerGroups() []string {
	caller := g.Caller.Who
	if caller.Kind != access.AccountCaller {
		return caller.Groups
	}
	account, _ := g.Env.Book.Account(caller.User[len(access.AccountIssuer)+1:])
	return account.Groups
}

// permitPicks asks for the right to clean items, if a claim takes items that are not free, or holds them in a state of
// its own.
func (g Guard) permitPicks(claim quota.Claim, n *state.Node, i int) *quota.Error {
	usual := func(p quota.Pick) bool {
		return (p.WantedState() == quota.FreeState || p.WantedState() == "") && p.StateWhileHeld() == quota.LeasedState
	}
	for j, p := range claim.Picks {
		if !usual(p) && !g.May(access.ItemsClean, n) {
			return g.LacksVerb(access.ItemsClean, n, quota.Place(claim.Tree, claim.Node),
				admit.ClaimField(i, ".picks["+quota.Clip(claim.Picks[j].Resource)+"]"))
		}
	}
	return nil
}

// mayOperate is true if the caller has the right at every claim.
func (g Guard) mayOperate(a *state.Allocation) bool { return g.mayAtClaims(access.HoldOperate, a) }

// mayAtClaims is true if the caller has a verb at every claim of an allocation. Claims of one that has ended stand for
// where they were, and a request that waits has the claims of all its alternatives.
func (g Guard) mayAtClaims(verb access.Verb, a *state.Allocation) bool {
	_, lacks := g.nodeWithout(verb, a)
	return !lacks
}

// lackingAtClaims notes in a refusal which verb is missing at which of the nodes of an allocation.
func (g Guard) lackingAtClaims(err *quota.Error, verb access.Verb, a *state.Allocation) *quota.Error {
	if n, lacks := g.nodeWithout(verb, a); lacks {
		return state.LackingVerb(err, verb, n)
	}
	return err
}

// nodeWithout returns the first such node; false if there is none.
func (g Guard) nodeWithout(verb access.Verb, a *state.Allocation) (*state.Node, bool) {
	if !a.IsWaiting() {
		return g.nodeOfClaimsWithout(verb, a, a.Claims)
	}
	for _, alt := range g.queue.WaiterOf(a).Alternatives {
		if n, lacks := g.nodeOfClaimsWithout(verb, a, alt.Claims); lacks {
			return n, true
		}
	}
	return nil, false
}

func (g Guard) nodeOfClaimsWithout(
	verb access.Verb, a *state.Allocation, claims []state.PlacedClaim,
) (*state.Node, bool) {
	for i := range claims {
		if n := g.claimedNode(a, &claims[i]); !g.May(verb, n) {
			return n, true
		}
	}
	return nil, false
}

func (g Guard) claimedNode(a *state.Allocation, c *state.PlacedClaim) *state.Node {
	if a.Ended == nil && !a.IsWaiting() {
		return c.Home()
	}
	info := c.Info()
	return g.forest.NearestNode(info.Tree, info.Node)
}

// permitOwner refuses callers that neither own an allocation nor may operate it. If they may not see it either, it does
// not exist for them. An owner that lost the right to hold may end it, and no more.
func (g Guard) permitOwner(id string, holds bool) *quota.Error {
	found := admit.FindToRelease(g.allocations, id)
	a := found.Allocation
	if a == nil {
		return g.UnknownID(found.Refused)
	}
	isOwner := a.Owner != "" && a.Owner == g.Caller.User()
	switch {
	case isOwner && (!holds || g.mayAtClaims(access.Hold, a)) || g.mayOperate(a):
		return nil // owners first, because most callers are
	case !isOwner:
		if g.mayAtClaims(access.HoldersRead, a) {
			return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
				"%s neither owns allocation %q nor has the right %s where it holds", g.Caller.Name(), a.ID(), access.HoldOperate,
			), access.HoldOperate, a)
		}
		return admit.NoAllocation(g.allocations, id)
	}
	return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "id",
		"%s owns allocation %q, but lacks the right %s where it holds; release it", g.Caller.Name(), a.ID(), access.Hold,
	), access.Hold, a)
}

// permitRelease asks for the right to clean items too, if they are returned in a state of the caller's choice.
func (g Guard) permitRelease(c quota.Release) *quota.Error {
	if err := g.permitOwner(c.ID, false); err != nil || c.ItemState == "" {
		return err
	}
	a := g.allocations.FindByID(c.ID)
	if a == nil || g.mayAtClaims(access.ItemsClean, a) {
		return nil
	}
	return g.lackingAtClaims(quota.Errorf(quota.Forbidden, "item_state",
		"%s lacks the right %s where allocation %q holds; leave the state out", g.Caller.Name(), access.ItemsClean, a.ID(),
	), access.ItemsClean, a)
}

func (g Guard) permitUpdates(c quota.UpdateItems) *quota.Error {
	for _, u := range c.Updates {
		if err := g.needVerb(quota.FactsOf(c).Verb, u.Item.Tree, "", "updates"); err != nil {
			return err
		}
	}
	return nil
}

// Completed is a command with what a guarded ledger fills in: the holder, where limits of users or groups apply and the
// caller named none, and the actor of a change. A repeated request is completed as the first one was.
func (g Guard) Completed(c quota.Command) quota.Command {
	if g.Env.Book.Mode() != access.Guarded || g.Caller.User() == "" {
		return c
	}
	switch c := c.(type) {
	case quota.Allocate:
		return g.completedAllocate(c)
	case quota.ApplyTrees:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.SetLimits:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.MoveNode:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.CordonNode:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.UncordonNode:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.RollBack:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.DeleteTree:
		c.Meta.Actor = g.Caller.User()
		return c
	case quota.ScheduleLimits:
		c.Actor = g.Caller.User()
		return c
	case quota.CancelScheduledLimit:
		c.Actor = g.Caller.User()
		return c
	case quota.Release, quota.Resize, quota.Transfer, quota.Split, quota.Renew, quota.UpdateItems, quota.ResetItems,
		quota.Confirm, quota.Cancel, quota.Expire, quota.SetCivilOffset, quota.ExtendSchedule,
		quota.ChangeAccess, quota.RequestLimits, quota.ApproveRequest, quota.RejectRequest,
		quota.WithdrawRequest, quota.SetWebhook, quota.ManageWebhook, quota.AdvanceWebhooks:
	}
	return c
}

func (g Guard) completedAllocate(c quota.Allocate) quota.Allocate {
	if c.Principal.User != "" {
		return c
	}
	if a := g.allocations.FindByID(c.ID); a != nil && a.Owner == g.Caller.User() {
		if first := a.Principal(); first.User == a.Owner {
			c.Principal.User, c.Principal.Groups = first.User, first.Groups
		}
		return c
	}
	if c.Principal.Application != "" || c.HasClaim(g.limitsHolders) {
		c.Principal.User = g.Caller.User()
		if len(c.Principal.Groups) == 0 {
			c.Principal.Groups = g.callerGroups()
		}
	}
	return c
}

func (g Guard) limitsHolders(c quota.Claim) bool {
	for n := g.forest.NearestNode(c.Tree, c.Node); n != nil; n = n.Parent {
		if n.Rules != nil || n.Spec.Applications.HasAmount() {
			return true
		}
	}
	return false
}

package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// permitResize asks for the right to change the allocation, and to hold where it gets a new claim.
func (g guard) permitResize(c quota.Resize) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.findByID(c.ID)
	for i, change := range c.Claims {
		if a.claimsAt(change.Tree, change.Node) {
			continue
		}
		if err := g.permitHoldingAt(a, change.Tree, change.Node, claimField(i, ".node")); err != nil {
			return err
		}
	}
	return nil
}

// permitTransfer asks for the right to change the allocation, and to hold where it goes.
func (g guard) permitTransfer(c quota.Transfer) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.findByID(c.ID)
	for i, move := range c.Moves {
		if err := g.permitHoldingAt(a, move.Tree, move.To, fmt.Sprintf("moves[%d].to", i)); err != nil {
			return err
		}
	}
	return nil
}

// permitSplit asks for the right to change the allocation, to hold where the parts go, and to use their ids.
func (g guard) permitSplit(c quota.Split) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.findByID(c.ID)
	for i, part := range c.Parts {
		for j, claim := range part.Claims {
			if err := g.permitHoldingAt(a, claim.Tree, claim.To, partField(i, "."+claimField(j, ".to"))); err != nil {
				return err
			}
		}
		known := g.allocations.findByID(part.ID)
		if known != nil && known.owner != g.caller.user() && !g.mayOperate(known) ||
			g.reserved.Has(part.ID) && !g.ownsPrefix(part) {
			return quota.Errorf(quota.IDTaken, partField(i, ".id"), "the id %q cannot be used; use another one",
				quota.Clip(part.ID))
		}
	}
	return nil
}

// ownsPrefix is true if the caller may use the reserved id of a part where that goes.
func (g guard) ownsPrefix(part quota.Part) bool {
	return slices.ContainsFunc(part.Claims, func(c quota.PartClaim) bool {
		rights := access.RightsAt(g.caller.rights, g.now.Wall, g.pathOf(g.forest.nearestNode(c.Tree, c.To)))
		return rights.OwnsPrefixOf(part.ID)
	})
}

// permitHoldingAt asks for what it takes to hold the allocation at another node: the right to operate there, or that to
// hold there for its holder and as it ranks.
func (g guard) permitHoldingAt(a *Allocation, tree, path, field string) *quota.Error {
	n := g.forest.nearestNode(tree, path)
	if a == nil || g.may(access.HoldOperate, n) {
		return nil
	}
	if !g.may(access.Hold, n) {
		return g.needVerb(access.Hold, tree, path, field)
	}
	request := quota.Allocate{ID: a.id, Principal: a.principal()}
	for i := range a.claims {
		claim := quota.Claim{Tree: tree, Node: path, Standing: a.claims[i].standing()}
		if !g.exceedsDefaults(request, claim) {
			continue
		}
		rights := access.RightsAt(g.caller.rights, g.now.Wall, g.pathOf(n))
		if err := g.permitCeilings(request, claim, &rights, i); err != nil {
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

// webhookOwner is the user who owns what it sets; empty for callers who manage the cluster.
func (g guard) webhookOwner() string {
	if g.may(access.AccessManage, nil) {
		return ""
	}
	return g.caller.user()
}

// permitSetWebhook asks for the right to manage the access of the cluster, because a receiver learns of all that its
// webhook selects, or else for that to give rights at the node: then the webhook delivers what its owner may see.
func (g guard) permitSetWebhook(c quota.SetWebhook) *quota.Error {
	refused := g.needCluster(access.AccessManage)
	if refused == nil || !g.mayOwnWebhooks() || c.Tree == "" {
		return refused
	}
	if err := g.needVerb(access.BindingsGrant, c.Tree, c.Node, "node"); err != nil {
		return err
	}
	if was := g.webhooks.find(c.Name); was != nil && !g.managesWebhook(was) {
		return quota.Errorf(quota.Forbidden, "name", "%s may not change the webhook of this name; choose another name",
			g.caller.name())
	}
	return nil
}

// permitManageWebhook asks for the same at the webhook that there is. For other users there is none.
func (g guard) permitManageWebhook(c quota.ManageWebhook) *quota.Error {
	refused := g.needCluster(access.AccessManage)
	if refused == nil || !g.mayOwnWebhooks() {
		return refused
	}
	if was := g.webhooks.find(c.Name); was == nil || !g.managesWebhook(was) {
		return quota.Errorf(quota.NotFound, "name", "there is no webhook %q, or %s may not see it", quota.Clip(c.Name),
			g.caller.name())
	}
	return nil
}

// mayOwnWebhooks is true for users, who can be asked again for their rights when an event is delivered.
func (g guard) mayOwnWebhooks() bool {
	return g.caller.who != nil && g.caller.who.IsUser()
}

func (g guard) managesWebhook(w *quota.Webhook) bool {
	return w.Owner != "" && g.may(access.BindingsGrant, g.forest.nearestNode(w.Tree, w.Node))
}

// permitSystem refuses what only the cluster itself proposes.
func (g guard) permitSystem(what string) *quota.Error {
	if g.caller.rights.Kind() == access.System {
		return nil
	}
	return quota.Errorf(quota.Forbidden, "", "only the cluster itself %s", what)
}

package permit

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func (g Guard) permitResize(c quota.Resize) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.FindByID(c.ID)
	for i, change := range c.Claims {
		if claimsAt(a, change.Tree, change.Node) {
			continue
		}
		if err := g.permitHoldingAt(a, change.Tree, change.Node, admit.ClaimField(i, ".node")); err != nil {
			return err
		}
	}
	return nil
}

func (g Guard) permitTransfer(c quota.Transfer) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.FindByID(c.ID)
	for i, move := range c.Moves {
		if err := g.permitHoldingAt(a, move.Tree, move.To, fmt.Sprintf("moves[%d].new_node", i)); err != nil {
			return err
		}
	}
	return nil
}

// permitSplit asks for the right to change the allocation, to hold where the parts go, and to use ids that are
// taken.
func (g Guard) permitSplit(c quota.Split) *quota.Error {
	if err := g.permitOwner(c.ID, true); err != nil {
		return err
	}
	a := g.allocations.FindByID(c.ID)
	for i, part := range c.Parts {
		for j, claim := range part.Claims {
			field := admit.PartField(i, "."+admit.ClaimField(j, ".new_node"))
			if err := g.permitHoldingAt(a, claim.Tree, claim.To, field); err != nil {
				return err
			}
		}
		known := g.allocations.FindByID(part.ID)
		if known != nil && known.Owner != g.Caller.User() && !g.mayOperate(known) {
			return quota.Errorf(quota.IDTaken, admit.PartField(i, ".id"), "the id %q cannot be used; use another one",
				quota.Clip(part.ID))
		}
	}
	return nil
}

// permitHoldingAt asks for what it takes to hold the allocation at another node: the right to operate there, or that to
// hold there for its holder and as it ranks.
func (g Guard) permitHoldingAt(a *state.Allocation, tree, path, field string) *quota.Error {
	n := g.forest.NearestNode(tree, path)
	if a == nil || g.May(access.HoldOperate, n) {
		return nil
	}
	if !g.May(access.Hold, n) {
		return g.needVerb(access.Hold, tree, path, field)
	}
	request := quota.Allocate{ID: a.ID(), Principal: a.Principal()}
	for i := range a.Claims {
		claim := quota.Claim{Tree: tree, Node: path, Standing: a.Claims[i].Standing()}
		if !g.exceedsDefaults(request, claim) {
			continue
		}
		rights := access.RightsAt(g.Caller.Rights, g.Now.Wall, g.PathOf(n))
		if err := g.permitCeilings(request, claim, &rights, i); err != nil {
			err.Field = field
			return err
		}
	}
	return nil
}

// claimsAt is true if the allocation has a claim that was asked for at a node, or belongs there now.
func claimsAt(a *state.Allocation, tree, path string) bool {
	return a != nil && slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool {
		return c.Asked.TreeName == tree && (c.Asked.Path == path || a.Ended == nil && c.Home().Path == path)
	})
}

// WebhookOwner is the user who owns what it sets; empty for callers who manage the cluster.
func (g Guard) WebhookOwner() string {
	if g.May(access.AccessManage, nil) {
		return ""
	}
	return g.Caller.User()
}

// permitSetWebhook asks for the right to manage the access of the cluster, because a receiver learns of all that its
// webhook selects, or else for that to give rights at the node: then the webhook delivers what its owner may see.
func (g Guard) permitSetWebhook(c quota.SetWebhook) *quota.Error {
	refused := g.NeedCluster(access.AccessManage)
	if refused == nil || !g.mayOwnWebhooks() || c.Tree == "" {
		return refused
	}
	if err := g.needVerb(access.BindingsGrant, c.Tree, c.Node, "node"); err != nil {
		return err
	}
	if previous := g.webhooks.Find(c.Name); previous != nil && !g.managesWebhook(previous) {
		return quota.Errorf(quota.Forbidden, "name", "%s may not change the webhook of this name; choose another name",
			g.Caller.Name())
	}
	return nil
}

// permitManageWebhook asks for the same at the webhook that there is. For other users there is none.
func (g Guard) permitManageWebhook(c quota.ManageWebhook) *quota.Error {
	refused := g.NeedCluster(access.AccessManage)
	if refused == nil || !g.mayOwnWebhooks() {
		return refused
	}
	if previous := g.webhooks.Find(c.Name); previous == nil || !g.managesWebhook(previous) {
		return quota.Errorf(quota.NotFound, "name", "there is no webhook %q, or %s may not see it", quota.Clip(c.Name),
			g.Caller.Name())
	}
	return nil
}

// mayOwnWebhooks is true for users, who can be asked again for their rights when an event is delivered.
func (g Guard) mayOwnWebhooks() bool {
	return g.Caller.Who != nil && g.Caller.Who.IsUser()
}

func (g Guard) managesWebhook(w *quota.Webhook) bool {
	return w.Owner != "" && g.May(access.BindingsGrant, g.forest.NearestNode(w.Tree, w.Node))
}

// permitSystem refuses what only the cluster itself proposes.
func (g Guard) permitSystem(what string) *quota.Error {
	if g.Caller.Rights.Kind() == access.System {
		return nil
	}
	return quota.Errorf(quota.Forbidden, "", "only the cluster itself %s", what)
}

package read

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// allEvents returns up to max remembered events that pass the filter, in its order. Requests, decisions and crossings
// in them must not be changed.
func (r Reader) allEvents(f quota.EventFilter, max int) quota.EventPage {
	var page quota.EventPage
	for _, e := range r.state.Journal.EventsBetween(f) {
		if f.Kind != 0 && e.Kind != f.Kind || !namesEvent(f, e) || f.Tree != "" && !r.concerns(e, f.Tree, f.Node) {
			continue
		}
		if len(page.Events) == max {
			return page
		}
		page.Events = append(page.Events, *e)
		page.Next = e.Number
	}
	page.Next = 0
	return page
}

// namesEvent is true if the filter's id is that of the event. Only the ids of allocations are in a namespace.
func namesEvent(f quota.EventFilter, e *quota.Event) bool {
	switch {
	case f.ID == "" && f.Namespace == "":
		return true
	case !e.IsOfAllocation():
		return f.ID != "" && e.ID == f.ID
	case f.ID == "":
		return quota.NamespaceOf(e.ID) == f.Namespace
	}
	return e.ID == quota.QualifiedID(f.Namespace, f.ID)
}

// concerns is true if an event is about a node of a tree or below it. What happened to an allocation that is forgotten
// meanwhile cannot be told to be there.
func (r Reader) concerns(e *quota.Event, tree, node string) bool {
	switch {
	case e.Tree != "":
		return e.Tree == tree && quota.IsWithin(e.Node, node)
	case e.Scheduled != nil:
		return e.Scheduled.Limit.Tree == tree && quota.IsWithin(e.Scheduled.Limit.Node, node)
	case e.Crossing != nil:
		return e.Crossing.Tree == tree && quota.IsWithin(e.Crossing.Node, node)
	case e.Request != nil:
		return e.Request.HasClaim(
			func(c quota.Claim) bool { return c.Tree == tree && quota.IsWithin(c.Node, node) })
	}
	a := r.state.Allocations.FindByID(e.ID)
	return a != nil && slices.ContainsFunc(a.Info().Claims,
		func(c quota.ClaimInfo) bool {
			return c.Tree == tree && (quota.IsWithin(c.Node, node) || quota.IsWithin(c.Placed, node))
		})
}

// Webhooks are those that the caller may see, by name: all with the right audit.read on the cluster, and otherwise
// those that it may manage. They must not be changed.
func (r Reader) Webhooks() (list []*quota.Webhook) {
	all := r.May(access.AuditRead, "", "")
	for _, w := range r.state.Webhooks.All {
		if all || r.ManagesWebhook(w) {
			list = append(list, w)
		}
	}
	return list
}

// ManagesWebhook is true if the caller manages the cluster, or the node of a webhook that is not of the cluster.
func (r Reader) ManagesWebhook(w *quota.Webhook) bool {
	return r.May(access.AccessManage, "", "") || w.Owner != "" && r.May(access.BindingsGrant, w.Tree, w.Node)
}

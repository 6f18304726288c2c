package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// family is the view that a policy gets of a node and its children for one resource. If swap is not nil, it stands in
// for the node or child of the same path.
func (n *node) family(r int, own quota.Amount, swap *node) policy.Family {
	f := policy.Family{
		Unit: n.tree.resources[r].Unit, Limit: n.standIn(swap).effective(r), Own: own,
		Children: make([]policy.ChildLimit, len(n.children)),
	}
	for i, child := range n.children {
		f.Children[i] = child.standIn(swap).childLimit(r)
	}
	return f
}

// amountText is an amount of a resource in a text.
func (r *resource) amountText(amount quota.Amount) string {
	return quota.FormatAmount(amount, r.Unit)
}

func (n *node) childLimit(r int) policy.ChildLimit {
	return policy.ChildLimit{
		Name: n.name(), Limit: n.effective(r),
		Set: n.limits[r].Kind != quota.Unset || n.setsLimit(r, (*scheduledLimit).isInForce),
	}
}

func (n *node) standIn(swap *node) *node {
	if swap != nil && swap.path == n.path {
		return swap
	}
	return n
}

// breachOf asks the node's policy about a family.
func (n *node) breachOf(r *resource, f policy.Family) []quota.Breach {
	text := n.policy.CheckFamily(f)
	if text == "" {
		return nil
	}
	return []quota.Breach{{Tree: n.treeName, Node: n.path, Policy: n.policy.Name, Resource: r.Name, Text: text}}
}

// breaches asks the policies about every family of a draft that differs from what is there. What is the same is not
// asked again: it was right when it was made.
func (s *treeTransition) breaches() []quota.Breach {
	var breaches []quota.Breach
	s.draft.root.walk(func(n *node) bool {
		for _, r := range s.draft.resources {
			now := n.family(r.index, n.own[r.index], nil)
			if before, known := s.familyBefore(n, r); !known || !sameLimits(before, now) {
				breaches = append(breaches, n.breachOf(r, now)...)
			}
		}
		return true
	})
	if s.old != nil {
		breaches = append(breaches, s.overfullBreaches()...)
	}
	return breaches
}

// familyBefore is the family that the draft's node had in the old tree under the same policy, if there was one.
func (s *treeTransition) familyBefore(n *node, r *resource) (policy.Family, bool) {
	was := n.from
	if was == nil || was.policy != n.policy {
		return policy.Family{}, false
	}
	known := s.old.resource(r.Name)
	if known == nil {
		return policy.Family{}, false
	}
	return was.family(known.index, was.own[known.index], nil), true
}

// sameLimits compares the limits of two families. Children that only have other names are the same.
func sameLimits(a, b policy.Family) bool {
	if a.Limit != b.Limit || len(a.Children) != len(b.Children) {
		return false
	}
	return slices.Equal(a.Children, b.Children) || slices.Equal(limitsOnly(a.Children), limitsOnly(b.Children))
}

// limitsOnly takes the names off, in an order that does not depend on them.
func limitsOnly(children []policy.ChildLimit) []policy.ChildLimit {
	list := slices.Clone(children)
	for i := range list {
		list[i].Name = ""
	}
	slices.SortFunc(list, func(a, b policy.ChildLimit) int {
		set := 0
		if a.Set != b.Set {
			set = 1
			if b.Set {
				set = -1
			}
		}
		return cmp.Or(set, cmp.Compare(a.Limit.Kind, b.Limit.Kind), cmp.Compare(a.Limit.Amount, b.Limit.Amount))
	})
	return list
}

// overfullBreaches lists the nodes that moves would put above their limits. Lowering a limit below usage is allowed,
// because nothing is taken away; but a move would be a way to hold more than a node may that no claim has. In
// maintenance nothing is held to limits, and under bounded borrowing no limit stands alone.
func (s *treeTransition) overfullBreaches() []quota.Breach {
	if s.draft.settings.Maintenance {
		return nil
	}
	var breaches []quota.Breach
	s.draft.root.walk(func(n *node) bool {
		for i, r := range s.draft.resources {
			used, limit := n.subtree[i], n.ceilings[i]
			if used <= limit || used <= s.heldBefore(n, r) || n.borrows == policy.BorrowBounded {
				continue
			}
			breaches = append(breaches, quota.Breach{
				Tree: n.treeName, Node: n.path, Policy: n.policy.Name, Resource: r.Name,
				Text: fmt.Sprintf(
					"it would hold %s with what moves below it, more than its limit of %s: raise the limit, or "+
						"release something first", r.amountText(used), r.amountText(limit)),
			})
		}
		return true
	})
	return breaches
}

// heldBefore is what the draft's node held before the change, and would have held if those who come home had not
// borrowed.
func (s *treeTransition) heldBefore(n *node, r *resource) quota.Amount {
	if n.from == nil {
		return 0
	}
	known := s.old.resource(r.Name)
	if known == nil {
		return 0
	}
	held := n.from.subtree[known.index]
	if belongs := s.heldAtHome[n.from]; belongs != nil {
		held = held.Plus(belongs[known.index])
	}
	return held
}

// maxJudged is how many denied requests a dry run of a configuration judges anew.
const maxJudged = 100

// effects says what a planned change would mean for the requests to come. A draft carries the usage that it takes over,
// so it can be asked like a tree of the ledger, and nothing needs to be changed and changed back.
func (p planner) effects(steps []*treeTransition, policies *policySet) *quota.Effects {
	e := &quota.Effects{}
	changed := map[string]bool{}
	after := New(p.ledger.bounds)
	after.now, after.format = p.ledger.now, p.ledger.format
	after.forest.policies = policies
	after.forest.trees, after.forest.nodes = maps.Clone(p.ledger.forest.trees), p.ledger.forest.nodes
	after.allocations.fence = p.ledger.allocations.fence
	after.allocations.lastArrivalSeq = p.ledger.allocations.lastArrivalSeq
	for _, s := range steps {
		if !s.isChanged() {
			continue
		}
		changed[s.treeName()] = true
		delete(after.forest.trees, s.treeName())
		if s.draft != nil {
			after.forest.trees[s.draft.name] = s.draft
			addRoomChanges(e, s)
		}
	}
	e.Admitted = p.admittedBy(after, changed)
	return e
}

// effectsOf is the same for another specification of one node.
func (p planner) effectsOf(t *tree, spec *quota.NodeSpec) *quota.Effects {
	w := treeChange{spec: t.present(), field: "limits"}
	for i := range w.spec.Nodes {
		if w.spec.Nodes[i].Path == spec.Path {
			w.spec.Nodes[i] = *spec
		}
	}
	return p.planChanges([]treeChange{w}, p.ledger.forest.keepPolicies(), p.keepAccess()).effects()
}

// addRoomChanges lists the nodes that exist before and after and whose headroom becomes zero or stops being zero.
func addRoomChanges(e *quota.Effects, s *treeTransition) {
	if s.old == nil {
		return
	}
	places := s.old.places(s.draft.resources)
	s.draft.root.walk(func(n *node) bool {
		for i, r := range s.draft.resources {
			if n.from == nil || places[i] < 0 {
				continue
			}
			c := quota.RoomChange{Tree: n.treeName, Node: n.path, Resource: r.Name}
			c.Before, c.BeforeBounded = n.from.headroom(places[i])
			c.After, c.AfterBounded = n.headroom(i)
			had, has := !c.BeforeBounded || c.Before > 0, !c.AfterBounded || c.After > 0
			if had != has && len(e.Rooms) < quota.MaxOver {
				e.Rooms = append(e.Rooms, c)
			}
		}
		return len(e.Rooms) < quota.MaxOver
	})
}

// admittedBy lists the newest requests that were denied in changed trees, would be denied again now, and would be
// granted after the change. It does not judge those that may borrow softly or want items: they depend on where claims
// are counted and on which items are free, which a draft does not know.
func (p planner) admittedBy(after *Ledger, changed map[string]bool) []string {
	var ids []string
	judged := map[string]bool{}
	for _, e := range slices.Backward(p.ledger.journal.events) {
		if e.Kind != quota.EventDenied || judged[e.ID] || p.ledger.allocations.findByID(e.ID) != nil ||
			!claimsFromAny(e.Request, changed) {
			continue
		}
		if len(judged) == maxJudged {
			break
		}
		judged[e.ID] = true
		if (planner{after}).wouldAdmit(*e.Request) && !p.grantsNow(*e.Request) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// wouldAdmit decides a request, and takes back what that books.
func (p planner) wouldAdmit(request quota.Allocate) bool {
	a, refused := p.ledger.placeClaims(&request)
	if refused != nil || a.wantsItems() || slices.ContainsFunc(a.claims,
		func(c placedClaim) bool { return c.isSoft() }) {
		return false
	}
	t := p.ledger.beginTx(a)
	decision := t.decide()
	t.rollback()
	return decision.Granted
}

// grantsNow decides a request on the present state, and changes nothing.
func (p planner) grantsNow(request quota.Allocate) bool {
	out := p.ledger.allocate(&request, dryRun)
	return out.Decision != nil && out.Decision.Granted
}

// claimsFromAny is true if a request has a claim in one of some trees.
func claimsFromAny(r *quota.Allocate, trees map[string]bool) bool {
	return r.HasClaim(func(c quota.Claim) bool { return trees[c.Tree] })
}

// claimFromAny is true if a claim is in one of some trees.
func claimFromAny(claims []quota.Claim, trees map[string]bool) bool {
	return slices.ContainsFunc(claims, func(c quota.Claim) bool { return trees[c.Tree] })
}

// overuse lists the limits of a draft that are exceeded, at most room entries.
func (s *treeTransition) overuse(room int) []quota.Overuse {
	if s.draft == nil || s.old == nil {
		return nil
	}
	return s.draft.over(room)
}

package configure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// FamilyOf is the view that a policy gets of a node and its children for one resource. If swap is not nil, it stands in
// for the node or child of the same path.
func FamilyOf(n *state.Node, r int, own quota.Amount, swap *state.Node) policy.Family {
	f := policy.Family{
		Unit: n.Tree.Resources[r].Unit, Limit: standIn(n, swap).Effective(r), Own: own,
		Children: make([]policy.ChildLimit, len(n.Children)),
	}
	for i, child := range n.Children {
		f.Children[i] = childLimit(standIn(child, swap), r)
	}
	return f
}

// AmountText is an amount of a resource in a text.
func AmountText(r *state.Resource, amount quota.Amount) string {
	return quota.FormatAmount(amount, r.Unit)
}

func childLimit(n *state.Node, r int) policy.ChildLimit {
	return policy.ChildLimit{
		Name: n.Name(), Limit: n.Effective(r),
		Set: n.Limits[r].Kind != quota.Unset || n.SetsLimit(r, (*state.ScheduledLimit).IsInForce),
	}
}

func standIn(n, swap *state.Node) *state.Node {
	if swap != nil && swap.Path == n.Path {
		return swap
	}
	return n
}

func breachOf(n *state.Node, r *state.Resource, f policy.Family) []quota.Breach {
	text := n.Policy.CheckFamily(f)
	if text == "" {
		return nil
	}
	return []quota.Breach{{Tree: n.TreeName, Node: n.Path, Policy: n.Policy.Name, Resource: r.Name, Text: text}}
}

// breaches asks the policies about every family of a draft that differs from what is there. What is the same is not
// asked again: it was right when it was made.
func (s *treeTransition) breaches() []quota.Breach {
	var breaches []quota.Breach
	s.draft.Root.Walk(func(n *state.Node) bool {
		for _, r := range s.draft.Resources {
			now := FamilyOf(n, r.Index, n.Own[r.Index], nil)
			if before, known := s.familyBefore(n, r); !known || !sameLimits(before, now) {
				breaches = append(breaches, breachOf(n, r, now)...)
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
func (s *treeTransition) familyBefore(n *state.Node, r *state.Resource) (policy.Family, bool) {
	previous := n.From
	if previous == nil || previous.Policy != n.Policy {
		return policy.Family{}, false
	}
	known := s.old.Resource(r.Name)
	if known == nil {
		return policy.Family{}, false
	}
	return FamilyOf(previous, known.Index, previous.Own[known.Index], nil), true
}

// sameLimits takes children that only have other names for the same.
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
// because nothing is taken away; but a move would be a way to hold more than a node may that no claim has. Under
// bounded borrowing no limit stands alone.
func (s *treeTransition) overfullBreaches() []quota.Breach {
	var breaches []quota.Breach
	s.draft.Root.Walk(func(n *state.Node) bool {
		for i, r := range s.draft.Resources {
			used, limit := n.Subtree[i], n.Ceilings[i]
			if used <= limit || used <= s.heldBefore(n, r) || n.Borrows == policy.BorrowBounded {
				continue
			}
			breaches = append(breaches, quota.Breach{
				Tree: n.TreeName, Node: n.Path, Policy: n.Policy.Name, Resource: r.Name,
				Text: fmt.Sprintf(
					"it would hold %s with what moves below it, more than its limit of %s: raise the limit, or "+
						"release something first", AmountText(r, used), AmountText(r, limit)),
			})
		}
		return true
	})
	return breaches
}

// heldBefore is what the draft's node held before the change, and would have held if those who come home had not
// borrowed.
func (s *treeTransition) heldBefore(n *state.Node, r *state.Resource) quota.Amount {
	if n.From == nil {
		return 0
	}
	known := s.old.Resource(r.Name)
	if known == nil {
		return 0
	}
	held := n.From.Subtree[known.Index]
	if belongs := s.heldAtHome[n.From]; belongs != nil {
		held = held.Plus(belongs[known.Index])
	}
	return held
}

// MaxJudged is how many denied requests a dry run of a configuration judges anew.
const MaxJudged = 100

// effects says what a planned change would mean for the requests to come. A draft carries the usage that it takes over,
// so it can be asked like a tree of the ledger, and nothing needs to be changed and changed back.
func (p Planner) effects(steps []*treeTransition, policies *state.PolicySet) *quota.Effects {
	e := &quota.Effects{}
	changed := map[string]bool{}
	after := state.NewState(p.State.Bounds)
	after.Now, after.Format = p.State.Now, p.State.Format
	after.Forest.Policies = policies
	after.Forest.Trees, after.Forest.Nodes = maps.Clone(p.State.Forest.Trees), p.State.Forest.Nodes
	after.Allocations.Fence = p.State.Allocations.Fence
	after.Allocations.LastArrivalSeq = p.State.Allocations.LastArrivalSeq
	for _, s := range steps {
		if !s.isChanged() {
			continue
		}
		changed[s.treeName()] = true
		delete(after.Forest.Trees, s.treeName())
		if s.draft != nil {
			after.Forest.Trees[s.draft.Name] = s.draft
			addRoomChanges(e, s)
		}
	}
	e.Admitted = p.admittedBy(after, changed)
	return e
}

func (p Planner) effectsOf(t *state.Tree, spec *quota.NodeSpec) *quota.Effects {
	w := treeChange{spec: PresentSpecOf(t), field: "limits"}
	for i := range w.spec.Nodes {
		if w.spec.Nodes[i].Path == spec.Path {
			w.spec.Nodes[i] = *spec
		}
	}
	return p.planChanges([]treeChange{w}, keepPolicies(&p.State.Forest), p.keepAccess()).Effects()
}

// addRoomChanges lists the nodes that exist before and after and whose headroom becomes zero or stops being zero.
func addRoomChanges(e *quota.Effects, s *treeTransition) {
	if s.old == nil {
		return
	}
	places := placesByPath(s.old, s.draft.Resources)
	s.draft.Root.Walk(func(n *state.Node) bool {
		for i, r := range s.draft.Resources {
			if n.From == nil || places[i] < 0 {
				continue
			}
			c := quota.RoomChange{Tree: n.TreeName, Node: n.Path, Resource: r.Name}
			c.Before, c.BeforeBounded = n.From.Headroom(places[i])
			c.After, c.AfterBounded = n.Headroom(i)
			hadRoom, hasRoom := !c.BeforeBounded || c.Before > 0, !c.AfterBounded || c.After > 0
			if hadRoom != hasRoom && len(e.Rooms) < quota.MaxOver {
				e.Rooms = append(e.Rooms, c)
			}
		}
		return len(e.Rooms) < quota.MaxOver
	})
}

// admittedBy lists the newest requests that were denied in changed trees, would be denied again now, and would be
// granted after the change. It does not judge those that may borrow softly or want items: they depend on where claims
// are counted and on which items are free, which a draft does not know.
func (p Planner) admittedBy(after *state.State, changed map[string]bool) []string {
	var ids []string
	judged := map[string]bool{}
	for _, e := range slices.Backward(p.State.Journal.Events) {
		if e.Kind != quota.EventDenied || judged[e.ID] || p.State.Allocations.FindByID(e.ID) != nil ||
			!ClaimsFromAny(e.Request, changed) {
			continue
		}
		if len(judged) == MaxJudged {
			break
		}
		judged[e.ID] = true
		if (Planner{after}).wouldAdmit(*e.Request) && !p.GrantsNow(*e.Request) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// wouldAdmit changes nothing.
func (p Planner) wouldAdmit(request quota.Allocate) bool {
	a, refused := admit.PlaceClaims(p.State, &request)
	if refused != nil || a.WantsItems() || slices.ContainsFunc(a.Claims,
		func(c state.PlacedClaim) bool { return c.IsSoft() }) {
		return false
	}
	t := admit.Begin(p.State, a)
	decision := t.Decide()
	t.Rollback()
	return decision.Granted
}

// GrantsNow decides a request on the present state, and changes nothing.
func (p Planner) GrantsNow(request quota.Allocate) bool {
	out := admit.Allocate(p.State, &request, state.DryRun)
	return out.Decision != nil && out.Decision.Granted
}

// ClaimsFromAny is true if a request has a claim in one of some trees.
func ClaimsFromAny(r *quota.Allocate, trees map[string]bool) bool {
	return r.HasClaim(func(c quota.Claim) bool { return trees[c.Tree] })
}

func claimFromAny(claims []quota.Claim, trees map[string]bool) bool {
	return slices.ContainsFunc(claims, func(c quota.Claim) bool { return trees[c.Tree] })
}

// overuse lists at most room limits.
func (s *treeTransition) overuse(room int) []quota.Overuse {
	if s.draft == nil || s.old == nil {
		return nil
	}
	return s.draft.Over(room)
}

package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// family is the view that a policy gets of a node and its children for one resource. If swap is not nil, it stands in
// for the node or child of the same path.
func (n *node) family(r int, own quota.Amount, swap *node) policy.Family {
	f := policy.Family{Limit: n.standIn(swap).effective(r), Own: own, Children: make([]policy.ChildLimit, len(n.children))}
	for i, child := range n.children {
		f.Children[i] = child.standIn(swap).childLimit(r)
	}
	return f
}

func (n *node) childLimit(r int) policy.ChildLimit {
	return policy.ChildLimit{Name: n.name(), Limit: n.effective(r), Set: n.limits[r].Kind != quota.Unset}
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

// breaches asks the policies about every family of a draft that differs from what is there. What is the same is not asked
// again: it was right when it was made.
func (s *succession) breaches() []quota.Breach {
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
		breaches = append(breaches, s.overfull()...)
	}
	return breaches
}

// familyBefore is the family that the draft's node had in the old tree under the same policy, if there was one.
func (s *succession) familyBefore(n *node, r *resource) (policy.Family, bool) {
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

// overfull lists the nodes that moves would put above their limits. Lowering a limit below usage is allowed, because
// nothing is taken away; but a move would be a way to hold more than a node may that no claim has. In maintenance nothing
// is held to limits, and under bounded borrowing no limit stands alone.
func (s *succession) overfull() []quota.Breach {
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
				Text: fmt.Sprintf("it would hold %d with what moves below it, more than its limit of %d: raise the limit, or release something first", used, limit),
			})
		}
		return true
	})
	return breaches
}

// heldBefore is what the draft's node held before the change, and would have held if those who come home had not borrowed.
func (s *succession) heldBefore(n *node, r *resource) quota.Amount {
	if n.from == nil {
		return 0
	}
	known := s.old.resource(r.Name)
	if known == nil {
		return 0
	}
	held := n.from.subtree[known.index]
	if belongs := s.belongs[n.from]; belongs != nil {
		held = held.Plus(belongs[known.index])
	}
	return held
}

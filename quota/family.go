package quota

import (
	"cmp"
	"fmt"
	"slices"
)

// family is the view that a policy gets of a node and its children for one resource. If swap is not nil, it stands in
// for the node or child of the same path.
func (n *node) family(r int, own Amount, swap *node) Family {
	f := Family{Limit: n.standIn(swap).effective(r), Own: own, Children: make([]ChildLimit, len(n.children))}
	for i, child := range n.children {
		f.Children[i] = child.standIn(swap).childLimit(r)
	}
	return f
}

func (n *node) childLimit(r int) ChildLimit {
	return ChildLimit{Name: n.name(), Limit: n.effective(r), Set: n.limits[r].Kind != Unset}
}

func (n *node) standIn(swap *node) *node {
	if swap != nil && swap.path == n.path {
		return swap
	}
	return n
}

// breachOf asks the node's policy about a family.
func (n *node) breachOf(r *resource, f Family) []Breach {
	text := n.policy.CheckFamily(f)
	if text == "" {
		return nil
	}
	return []Breach{{Tree: n.treeName, Node: n.path, Policy: n.policy.Name(), Resource: r.Name, Text: text}}
}

// breaches asks the policies about every family of a draft that differs from what is there. What is the same is not asked
// again: it was right when it was made.
func (s *succession) breaches() []Breach {
	var breaches []Breach
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
func (s *succession) familyBefore(n *node, r *resource) (Family, bool) {
	was := n.from
	if was == nil || was.policy != n.policy {
		return Family{}, false
	}
	known := s.old.resource(r.Name)
	if known == nil {
		return Family{}, false
	}
	return was.family(known.index, was.own[known.index], nil), true
}

// sameLimits compares the limits of two families. Children that only have other names are the same.
func sameLimits(a, b Family) bool {
	if a.Limit != b.Limit || len(a.Children) != len(b.Children) {
		return false
	}
	return slices.Equal(a.Children, b.Children) || slices.Equal(limitsOnly(a.Children), limitsOnly(b.Children))
}

// limitsOnly takes the names off, in an order that does not depend on them.
func limitsOnly(children []ChildLimit) []ChildLimit {
	list := slices.Clone(children)
	for i := range list {
		list[i].Name = ""
	}
	slices.SortFunc(list, func(a, b ChildLimit) int {
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
func (s *succession) overfull() []Breach {
	if s.draft.settings.Maintenance {
		return nil
	}
	var breaches []Breach
	s.draft.root.walk(func(n *node) bool {
		for i, r := range s.draft.resources {
			used, limit := n.subtree[i], n.ceilings[i]
			if used <= limit || used <= s.heldBefore(n, r) || n.borrows == BorrowBounded {
				continue
			}
			breaches = append(breaches, Breach{
				Tree: n.treeName, Node: n.path, Policy: n.policy.Name(), Resource: r.Name,
				Text: fmt.Sprintf("it would hold %d with what moves below it, more than its limit of %d: raise the limit, or release something first", used, limit),
			})
		}
		return true
	})
	return breaches
}

// heldBefore is what the draft's node held before the change, and would have held if those who come home had not borrowed.
func (s *succession) heldBefore(n *node, r *resource) Amount {
	if n.from == nil {
		return 0
	}
	known := s.old.resource(r.Name)
	if known == nil {
		return 0
	}
	held := n.from.subtree[known.index]
	if belongs := s.belongs[n.from]; belongs != nil {
		held = held.plus(belongs[known.index])
	}
	return held
}

// breached makes the refusal that lists every breach.
func breached(breaches []Breach) *Error {
	first := breaches[0]
	err := refuse(PolicyBreach, "", "policy %s of %s forbids it%s: %s", first.Policy, Place(first.Tree, first.Node), first.forResource(), first.Text)
	for _, b := range breaches[1:] {
		err.Text += "; and of " + Place(b.Tree, b.Node) + b.forResource() + ": " + b.Text
		if len(err.Text) > maxText {
			err.Text += "; and more"
			break
		}
	}
	err.Breaches = breaches[:min(len(breaches), MaxRevisionChanges)]
	return err
}

// forResource names what the rule is about, if it is about one resource.
func (b Breach) forResource() string {
	if b.Resource == "" {
		return ""
	}
	return " for " + b.Resource
}

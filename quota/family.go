package quota

import "slices"

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

// checkDraft asks the policies about every family of a draft that differs from what is there (old may be nil). What is
// the same is not asked again: it was right when it was made.
func checkDraft(draft, old *tree) []Breach {
	var breaches []Breach
	draft.root.walk(func(n *node) bool {
		for _, r := range draft.resources {
			before, own := familyBefore(n, old, r)
			now := n.family(r.index, own, nil)
			if before == nil || !sameLimits(*before, now) {
				breaches = append(breaches, n.breachOf(r, now)...)
			}
		}
		return true
	})
	return breaches
}

// familyBefore is the family that the draft's node had in the old tree under the same policy, or nil, and the own use
// of the node.
func familyBefore(n *node, old *tree, r *resource) (*Family, Amount) {
	if old == nil || old.byPath[n.path] == nil || old.resource(r.Name) == nil {
		return nil, 0
	}
	was, wasR := old.byPath[n.path], old.resource(r.Name)
	own := was.own[wasR.index]
	if was.policy != n.policy {
		return nil, own
	}
	f := was.family(wasR.index, own, nil)
	return &f, own
}

func sameLimits(a, b Family) bool { return a.Limit == b.Limit && slices.Equal(a.Children, b.Children) }

// breached makes the refusal that lists every breach.
func breached(breaches []Breach) *Error {
	first := breaches[0]
	err := refuse(PolicyBreach, "", "policy %s of %s forbids it%s: %s", first.Policy, Place(first.Tree, first.Node), first.forResource(), first.Text)
	for _, b := range breaches[1:] {
		err.Text += "; and of " + Place(b.Tree, b.Node) + b.forResource() + ": " + b.Text
		if len(err.Text) > 4*MaxReason {
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

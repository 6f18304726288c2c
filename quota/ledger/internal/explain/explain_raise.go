package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// raised is a limit that is raised during the search.
type raised struct {
	quota.Raise
	// node and resource are set for a node's own limit of a resource. For other limits node is nil: they are not changed,
	// and their violations count as resolved.
	node     *state.Node
	resource int
	before   quota.Limit
}

func (r *raised) apply() {
	if r.node != nil {
		r.node.SwapLimit(r.resource, quota.AtMost(r.To))
	}
}

// isScheduled is true if a scheduled limit is in force over the node's own, which then may not matter.
func (r *raised) isScheduled() bool { return r.node != nil && r.node.IsAdjusted(r.resource) }

func (r *raised) revert() {
	if r.node != nil {
		r.node.SwapLimit(r.resource, r.before)
	}
}

// raises finds raises in four steps: raise every violated limit until there are no violations; lower what was raised
// too far; leave out what is not needed; raise what the policies then require. The raises are in the order in which
// they can be applied, parents before children. It returns nil if a limit cannot be high enough, or a policy forbids
// it.
func (s *search) raises(denied quota.Decision) []quota.Raise {
	h := &raiseSearch{search: s}
	defer func() {
		for _, r := range h.list {
			r.revert()
		}
	}()
	for d := denied; !h.isEnough(d); d = s.ask() {
		if !h.raiseFor(d.Violations) {
			return nil
		}
	}
	// After lowering, the request may preempt an allocation that holds elsewhere too, where another raise is then
	// unnecessary.
	for h.leaveOut() || h.lower() {
		continue
	}
	if !h.satisfyPolicies() {
		return nil
	}
	list := make([]quota.Raise, len(h.list))
	for i, r := range h.list {
		list[i] = r.Raise
		list[i].NeedsReason = s.state.Forest.Trees[r.Tree].Settings.RequireReason
	}
	slices.SortStableFunc(list, compareRaises)
	return list
}

func compareRaises(a, b quota.Raise) int {
	return cmp.Or(strings.Compare(a.Tree, b.Tree), state.ComparePaths(a.Node, b.Node),
		strings.Compare(a.Resource, b.Resource))
}

// raiseSearch are the limits that are raised now.
type raiseSearch struct {
	*search
	list []*raised
}

func (h *raiseSearch) find(v quota.Violation) *raised {
	for _, r := range h.list {
		if r.Tree == v.Tree && r.Node == v.Node && r.Resource == v.Resource && r.Kind == v.Kind &&
			r.Holder == v.Holder {
			return r
		}
	}
	return nil
}

// isEnough also accepts violations of nothing but limits that are raised without being changed.
func (h *raiseSearch) isEnough(d quota.Decision) bool {
	return d.Granted || len(d.Violations) > 0 &&
		!slices.ContainsFunc(d.Violations, func(v quota.Violation) bool { return !h.covers(v) })
}

func (h *raiseSearch) covers(v quota.Violation) bool {
	r := h.find(v)
	return r != nil && r.node == nil && r.To >= v.Used.Plus(v.Requested)
}

// raiseFor is false if raising is impossible, or there are no violations.
func (h *raiseSearch) raiseFor(violations []quota.Violation) bool {
	for _, v := range violations {
		if v.Kind == quota.OfQueue || v.Kind == quota.OfHold {
			return false
		}
		if h.covers(v) {
			continue
		}
		if v.Kind == quota.OfItems && !h.moreItemsHelp(v) {
			return false
		}
		r := h.find(v)
		if r == nil {
			r = h.begin(v)
		}
		if r.isScheduled() {
			return false
		}
		if r.To = r.To.Plus(v.Missing()); r.To > quota.MaxAmount {
			return false
		}
		r.apply()
	}
	return len(violations) > 0
}

// moreItemsHelp is true if a new item would be in the wanted state. It does not help a request for a named item.
func (h *raiseSearch) moreItemsHelp(v quota.Violation) bool {
	return h.state.Forest.Trees[v.Tree].Resource(v.Resource).Items.InitialState() == v.Item
}

func (h *raiseSearch) begin(v quota.Violation) *raised {
	r := &raised{Raise: quota.Raise{
		Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder,
		From: v.Limit, To: v.Limit,
	}}
	if v.Kind == quota.OfResource && v.Holder.Kind == quota.TheNode {
		t := h.state.Forest.Trees[v.Tree]
		if n := t.ByPath[v.Node]; n != nil {
			r.at(n, t.Resource(v.Resource).Index)
		} else { // the request would create it
			r.Unconfigured = true
		}
	}
	h.list = append(h.list, r)
	return r
}

func (r *raised) at(n *state.Node, resource int) {
	r.node, r.resource, r.before, r.From = n, resource, n.Limits[resource], n.Effective(resource).Ceiling()
	r.To, r.Unconfigured = r.From, n.Dynamic
}

// leaveOut drops every raise that is unnecessary with the others, those of leaves first, because capacity shared by all
// is more expensive. It reports whether it dropped any.
func (h *raiseSearch) leaveOut() (changed bool) {
	for i := 0; len(h.list) > 1 && i < len(h.list); {
		all, r := h.list, h.list[i]
		r.revert()
		h.list = slices.Delete(slices.Clone(all), i, i+1)
		if !h.isEnough(h.ask()) {
			h.list = all
			r.apply()
			i++
			continue
		}
		changed = true
	}
	return changed
}

// lower finds the smallest sufficient raises where something may be borrowed; elsewhere the missing amount is the
// smallest. It reports whether it lowered any.
func (h *raiseSearch) lower() (changed bool) {
	for _, r := range h.list {
		if r.node == nil || !r.node.Special {
			continue
		}
		most := r.To
		for low := r.From; r.To-low > 1; {
			high := r.To
			r.To = low + (high-low)/2
			r.apply()
			if !h.isEnough(h.ask()) {
				low, r.To = r.To, high
				r.apply()
			}
		}
		changed = changed || r.To < most
	}
	return changed
}

// satisfyPolicies raises the raised nodes and their parents as far as their policies require, so that the raises can be
// applied: a change of a limit is checked against the policies of both, which may take usage into account. It returns
// false if a policy forbids the raises whatever the limits are.
func (h *raiseSearch) satisfyPolicies() bool {
	for again := true; again; {
		again = false
		for _, r := range slices.Clone(h.list) {
			if r.node == nil {
				continue
			}
			for _, n := range []*state.Node{r.node, r.node.Parent} {
				if n == nil {
					continue
				}
				switch least, ok := leastLimit(n, r.resource); {
				case !ok || n.IsAdjusted(r.resource):
					return false
				case least > n.Ceilings[r.resource]:
					h.raiseTo(n, r.resource, least)
					again = true
				}
			}
		}
	}
	return true
}

func (h *raiseSearch) raiseTo(n *state.Node, resource int, to quota.Amount) {
	name := n.Tree.Resources[resource].Name
	r := h.find(quota.Violation{Tree: n.TreeName, Node: n.Path, Resource: name})
	if r == nil {
		r = &raised{Raise: quota.Raise{Tree: n.TreeName, Node: n.Path, Resource: name}}
		r.at(n, resource)
		h.list = append(h.list, r)
	}
	r.To = to
	r.apply()
}

// leastLimit is the smallest limit, from the present one up, that the node's policy accepts with those of its children;
// false if there is none.
func leastLimit(n *state.Node, resource int) (quota.Amount, bool) {
	f := configure.FamilyOf(n, resource, n.Own[resource], nil)
	breaks := func(limit quota.Amount) bool {
		f.Limit = quota.AtMost(limit)
		return n.Policy.CheckFamily(f) != ""
	}
	low, high := n.Ceilings[resource], quota.MaxAmount
	switch {
	case n.Policy.CheckFamily(f) == "":
		return low, true
	case breaks(high):
		return 0, false
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; breaks(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high, true
}

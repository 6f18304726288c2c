package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// effectiveAt is the limit that will be in force at an instant of the future if nothing is changed until then.
func (n *node) effectiveAt(r int, at quota.CivilTime) quota.Limit {
	return n.adjusted(r, n.configuredLimit(r), isInForceAt(at))
}

// familyAt is family at an instant of the future, with the node's own use as it is now.
func (n *node) familyAt(r int, own quota.Amount, swap *node, at quota.CivilTime) policy.Family {
	f := policy.Family{
		Unit: n.tree.resources[r].Unit, Limit: n.standIn(swap).effectiveAt(r, at), Own: own,
		Children: make([]policy.ChildLimit, len(n.children)),
	}
	for i, child := range n.children {
		c := child.standIn(swap)
		f.Children[i] = policy.ChildLimit{
			Name: c.name(), Limit: c.effectiveAt(r, at),
			Set: c.limits[r].Kind != quota.Unset || c.setsLimit(r, isInForceAt(at)),
		}
	}
	return f
}

// familyInstants are the instants of the future at which limits of a resource change at the node or its children, in
// order.
func (n *node) familyInstants(resource string) []quota.CivilTime {
	list := n.instants(nil, resource)
	for _, child := range n.children {
		list = child.instants(list, resource)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// instants appends when scheduled limits of a resource begin and end at the node. A window that should have begun and
// is not yet in force counts as one of the future.
func (n *node) instants(list []quota.CivilTime, resource string) []quota.CivilTime {
	for _, s := range n.scheduled {
		if _, is := s.adjustment(resource); !is {
			continue
		}
		for i, w := range s.Windows {
			if i > 0 || !s.InForce {
				list = append(list, w.From)
			}
			list = append(list, w.Until)
		}
	}
	return list
}

// laterBreach is the first breach of the node's policy at one of the instants of the future at which its family is not
// as before; nil if there is none.
func (n *node) laterBreach(r *resource, swap *node, instants []quota.CivilTime,
	before func(at quota.CivilTime) (policy.Family, bool),
) []quota.Breach {
	for _, at := range instants {
		f := n.familyAt(r.index, n.own[r.index], swap, at)
		if was, known := before(at); known && sameLimits(was, f) {
			continue
		}
		if breaches := n.breachOf(r, f); len(breaches) > 0 {
			breaches[0].Text = fmt.Sprintf("from %s on, with what is scheduled, %s", at, breaches[0].Text)
			return breaches
		}
	}
	return nil
}

// checkSwapLater is checkSwap for the instants of the future at which scheduled limits begin and end.
func (n *node) checkSwapLater(swap *node) []quota.Breach {
	var breaches []quota.Breach
	for _, r := range n.tree.resources {
		if n.limits[r.index] == swap.limits[r.index] {
			continue
		}
		for _, top := range []*node{n.parent, n} {
			if top == nil {
				continue
			}
			before := func(at quota.CivilTime) (policy.Family, bool) {
				return top.familyAt(r.index, top.own[r.index], nil, at), true
			}
			breaches = append(breaches, top.laterBreach(r, swap, top.familyInstants(r.Name), before)...)
		}
	}
	return breaches
}

// laterBreaches is breaches for the instants of the future at which scheduled limits begin and end.
func (s *treeTransition) laterBreaches() []quota.Breach {
	var breaches []quota.Breach
	s.draft.root.walk(func(n *node) bool {
		for _, r := range s.draft.resources {
			before := func(at quota.CivilTime) (policy.Family, bool) {
				if _, known := s.familyBefore(n, r); !known {
					return policy.Family{}, false
				}
				was := s.old.resource(r.Name).index
				return n.from.familyAt(was, n.from.own[was], nil, at), true
			}
			breaches = append(breaches, n.laterBreach(r, nil, n.familyInstants(r.Name), before)...)
		}
		return true
	})
	return breaches
}

// checkFamilies asks the policies about the families of a node whose scheduled limits have changed: its own and its
// parent's, for the adjusted resources, now and at every instant at which they may have changed. before are the
// families as they were.
func (n *node) checkFamilies(adjusted []quota.LimitAdjustment, before familyTimes) []quota.Breach {
	var breaches []quota.Breach
	for _, a := range adjusted {
		r := n.tree.resource(a.Resource)
		for _, top := range []*node{n.parent, n} {
			if top == nil {
				continue
			}
			key := familyKey{top, r}
			if f := top.family(r.index, top.own[r.index], nil); !sameLimits(before.now[key], f) {
				breaches = append(breaches, top.breachOf(r, f)...)
			}
			if len(breaches) == 0 {
				breaches = top.laterBreach(r, nil, before.instantsOf(top.familyInstants(r.Name)), before.at(key))
			}
		}
	}
	return breaches
}

// familyKey is a family for one resource.
type familyKey struct {
	top      *node
	resource *resource
}

// familyTimes are families now and at the instants of a span of the future.
type familyTimes struct {
	span  quota.CivilWindow
	now   map[familyKey]policy.Family
	later map[familyKey]map[quota.CivilTime]policy.Family
}

// instantsOf are those instants of an ordered list that are within the span.
func (f familyTimes) instantsOf(list []quota.CivilTime) []quota.CivilTime {
	first, _ := slices.BinarySearch(list, f.span.From)
	end, _ := slices.BinarySearch(list, f.span.Until+1)
	return list[first:end]
}

// familiesOf are the families that checkFamilies compares before and after a change of windows of a scheduled limit, in
// order. Before the first of them and after the last nothing changes.
func (n *node) familiesOf(adjusted []quota.LimitAdjustment, changed []quota.CivilWindow) familyTimes {
	times := familyTimes{now: map[familyKey]policy.Family{}, later: map[familyKey]map[quota.CivilTime]policy.Family{}}
	if len(changed) > 0 {
		times.span = quota.CivilWindow{From: changed[0].From, Until: changed[len(changed)-1].Until}
	}
	for _, a := range adjusted {
		r := n.tree.resource(a.Resource)
		for _, top := range []*node{n.parent, n} {
			if top == nil {
				continue
			}
			key, at := familyKey{top, r}, map[quota.CivilTime]policy.Family{}
			instants := times.instantsOf(top.familyInstants(r.Name))
			for _, w := range changed {
				instants = append(instants, w.From, w.Until)
			}
			for _, instant := range instants {
				at[instant] = top.familyAt(r.index, top.own[r.index], nil, instant)
			}
			times.now[key], times.later[key] = top.family(r.index, top.own[r.index], nil), at
		}
	}
	return times
}

func (f familyTimes) at(key familyKey) func(quota.CivilTime) (policy.Family, bool) {
	return func(at quota.CivilTime) (policy.Family, bool) {
		was, known := f.later[key][at]
		return was, known
	}
}

// keptAdjustments are those whose node and resource stay.
func (s *treeTransition) keptAdjustments(limit *scheduledLimit) []quota.LimitAdjustment {
	if s.draft == nil || s.next[limit.node] == nil {
		return nil
	}
	var kept []quota.LimitAdjustment
	for _, a := range limit.Adjustments {
		was, is := s.old.resource(a.Resource), s.draft.resource(a.Resource)
		if is != nil && was.Unit == is.Unit {
			kept = append(kept, a)
		}
	}
	return kept
}

// carrySchedules lets the nodes of a draft have the scheduled limits of those that they continue.
func (s *treeTransition) carrySchedules() {
	s.draft.root.walk(func(n *node) bool {
		if n.from == nil || len(n.from.scheduled) == 0 {
			return true
		}
		for _, limit := range n.from.scheduled {
			if kept := s.keptAdjustments(limit); len(kept) > 0 {
				drafted := *limit
				drafted.Adjustments = kept
				n.scheduled = append(n.scheduled, &drafted)
			}
		}
		for r := range n.ceilings {
			n.ceilings[r] = n.ceiling(r)
		}
		return true
	})
}

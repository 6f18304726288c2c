package configure

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// effectiveAt is the limit that will be in force at an instant of the future if nothing is changed until then.
func effectiveAt(n *state.Node, r int, at quota.CivilTime) quota.Limit {
	return n.Adjusted(r, n.ConfiguredLimit(r), state.IsInForceAt(at))
}

// FamilyAt is FamilyOf at an instant of the future, with the node's own use as it is now.
func FamilyAt(n *state.Node, r int, own quota.Amount, swap *state.Node, at quota.CivilTime) policy.Family {
	f := policy.Family{
		Unit: n.Tree.Resources[r].Unit, Limit: effectiveAt(standIn(n, swap), r, at), Own: own,
		Children: make([]policy.ChildLimit, len(n.Children)),
	}
	for i, child := range n.Children {
		c := standIn(child, swap)
		f.Children[i] = policy.ChildLimit{
			Name: c.Name(), Limit: effectiveAt(c, r, at),
			Set: c.Limits[r].Kind != quota.Unset || c.SetsLimit(r, state.IsInForceAt(at)),
		}
	}
	return f
}

// familyInstants are the instants of the future at which limits of a resource change at the node or its children, in
// order.
func familyInstants(n *state.Node, resource string) []quota.CivilTime {
	list := instantsOf(n, nil, resource)
	for _, child := range n.Children {
		list = instantsOf(child, list, resource)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// instantsOf appends when scheduled limits of a resource begin and end at the node. A window that should have begun and
// is not yet in force counts as one of the future.
func instantsOf(n *state.Node, list []quota.CivilTime, resource string) []quota.CivilTime {
	for _, s := range n.Scheduled {
		if _, found := s.Adjustment(resource); !found {
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

// laterBreach asks only about instants of the future at which the family of the node is not as before.
func laterBreach(n *state.Node, r *state.Resource, swap *state.Node, instants []quota.CivilTime,
	before func(at quota.CivilTime) (policy.Family, bool),
) []quota.Breach {
	for _, at := range instants {
		f := FamilyAt(n, r.Index, n.Own[r.Index], swap, at)
		if previous, known := before(at); known && sameLimits(previous, f) {
			continue
		}
		if breaches := breachOf(n, r, f); len(breaches) > 0 {
			breaches[0].Text = fmt.Sprintf("from %s on, with what is scheduled, %s", at, breaches[0].Text)
			return breaches
		}
	}
	return nil
}

// checkSwapLater is checkSwap for the instants at which scheduled limits begin and end.
func checkSwapLater(n, swap *state.Node) []quota.Breach {
	var breaches []quota.Breach
	for _, r := range n.Tree.Resources {
		if n.Limits[r.Index] == swap.Limits[r.Index] {
			continue
		}
		for _, top := range []*state.Node{n.Parent, n} {
			if top == nil {
				continue
			}
			before := func(at quota.CivilTime) (policy.Family, bool) {
				return FamilyAt(top, r.Index, top.Own[r.Index], nil, at), true
			}
			breaches = append(breaches, laterBreach(top, r, swap, familyInstants(top, r.Name), before)...)
		}
	}
	return breaches
}

// laterBreaches is breaches for the instants at which scheduled limits begin and end.
func (s *treeTransition) laterBreaches() []quota.Breach {
	var breaches []quota.Breach
	s.draft.Root.Walk(func(n *state.Node) bool {
		for _, r := range s.draft.Resources {
			before := func(at quota.CivilTime) (policy.Family, bool) {
				if _, known := s.familyBefore(n, r); !known {
					return policy.Family{}, false
				}
				previous := s.old.Resource(r.Name).Index
				return FamilyAt(n.From, previous, n.From.Own[previous], nil, at), true
			}
			breaches = append(breaches, laterBreach(n, r, nil, familyInstants(n, r.Name), before)...)
		}
		return true
	})
	return breaches
}

// checkFamilies asks the policies about the families of a node whose scheduled limits have changed: its own and its
// parent's, for the adjusted resources, now and at every instant at which they may have changed. before are the
// families as they were.
func checkFamilies(n *state.Node, adjusted []quota.LimitAdjustment, before familyTimes) []quota.Breach {
	var breaches []quota.Breach
	for _, a := range adjusted {
		r := n.Tree.Resource(a.Resource)
		for _, top := range []*state.Node{n.Parent, n} {
			if top == nil {
				continue
			}
			key := familyKey{top, r}
			if f := FamilyOf(top, r.Index, top.Own[r.Index], nil); !sameLimits(before.now[key], f) {
				breaches = append(breaches, breachOf(top, r, f)...)
			}
			if len(breaches) == 0 {
				breaches = laterBreach(top, r, nil, before.instantsOf(familyInstants(top, r.Name)), before.at(key))
			}
		}
	}
	return breaches
}

type familyKey struct {
	top      *state.Node
	resource *state.Resource
}

// familyTimes are families now and at the instants of a span of the future.
type familyTimes struct {
	span  quota.CivilWindow
	now   map[familyKey]policy.Family
	later map[familyKey]map[quota.CivilTime]policy.Family
}

func (f familyTimes) instantsOf(list []quota.CivilTime) []quota.CivilTime {
	first, _ := slices.BinarySearch(list, f.span.From)
	end, _ := slices.BinarySearch(list, f.span.Until+1)
	return list[first:end]
}

// familiesOf are the families that checkFamilies compares before and after a change of windows of a scheduled limit, in
// order. Before the first of them and after the last nothing changes.
func familiesOf(n *state.Node, adjusted []quota.LimitAdjustment, changed []quota.CivilWindow) familyTimes {
	times := familyTimes{now: map[familyKey]policy.Family{}, later: map[familyKey]map[quota.CivilTime]policy.Family{}}
	if len(changed) > 0 {
		times.span = quota.CivilWindow{From: changed[0].From, Until: changed[len(changed)-1].Until}
	}
	for _, a := range adjusted {
		r := n.Tree.Resource(a.Resource)
		for _, top := range []*state.Node{n.Parent, n} {
			if top == nil {
				continue
			}
			key, at := familyKey{top, r}, map[quota.CivilTime]policy.Family{}
			instants := times.instantsOf(familyInstants(top, r.Name))
			for _, w := range changed {
				instants = append(instants, w.From, w.Until)
			}
			for _, instant := range instants {
				at[instant] = FamilyAt(top, r.Index, top.Own[r.Index], nil, instant)
			}
			times.now[key], times.later[key] = FamilyOf(top, r.Index, top.Own[r.Index], nil), at
		}
	}
	return times
}

func (f familyTimes) at(key familyKey) func(quota.CivilTime) (policy.Family, bool) {
	return func(at quota.CivilTime) (policy.Family, bool) {
		previous, known := f.later[key][at]
		return previous, known
	}
}

// keptAdjustments are those whose node and resource stay.
func (s *treeTransition) keptAdjustments(limit *state.ScheduledLimit) []quota.LimitAdjustment {
	if s.draft == nil || s.next[limit.Node] == nil {
		return nil
	}
	var kept []quota.LimitAdjustment
	for _, a := range limit.Adjustments {
		previous, updated := s.old.Resource(a.Resource), s.draft.Resource(a.Resource)
		if updated != nil && previous.Unit == updated.Unit {
			kept = append(kept, a)
		}
	}
	return kept
}

func (s *treeTransition) carrySchedules() {
	s.draft.Root.Walk(func(n *state.Node) bool {
		if n.From == nil || len(n.From.Scheduled) == 0 {
			return true
		}
		for _, limit := range n.From.Scheduled {
			if kept := s.keptAdjustments(limit); len(kept) > 0 {
				drafted := *limit
				drafted.Adjustments = kept
				n.Scheduled = append(n.Scheduled, &drafted)
			}
		}
		for r := range n.Ceilings {
			n.Ceilings[r] = n.Ceiling(r)
		}
		return true
	})
}

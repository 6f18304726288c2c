package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// allocate decides a request: repetitions, its form, where its claims belong, and whether there is room.
func (o *oracle) allocate(c quota.Allocate) verdict {
	if a := o.find(c.ID); a != nil {
		switch {
		case !sameRequest(a, c):
			return refusal(quota.IDTaken, "id")
		case a.ended != nil:
			return refusal(quota.Ended, "id")
		case a.state == quota.Waiting:
			o.keep(a.waiter)
			return verdict{decided: true, repeated: true, waits: true, violations: o.inTheWayOf(a.waiter)}
		}
		o.collect(a)
		return verdict{
			decided: true, repeated: true, alternative: a.alternative, fence: a.fence, preempted: a.preempted,
		}
	}
	if len(c.AnyOf) > 0 {
		return o.allocateAny(c)
	}
	claimed, refused := o.findNodes(c)
	if refused.refused != 0 {
		return refused
	}
	a := o.newAllocation(c, claimed)
	before := o.savePlaces()
	violations, t := o.admit(a)
	if len(violations) > 0 {
		return o.deny(c, []*allocation{a}, [][]quota.Violation{violations})
	}
	return o.grant(a, t, before)
}

// deny lets a request wait, or records what is in the way of each of its lists.
func (o *oracle) deny(c quota.Allocate, lists []*allocation, each [][]quota.Violation) verdict {
	all := slices.Concat(each...)
	waits := c.Mode == quota.Wait && o.enqueue(lists, each)
	for i, a := range lists {
		o.createWanted(a.asked, each[i])
	}
	if !waits {
		c.Data = nil
		o.recordEvent(quota.Event{
			Kind: quota.EventDenied, ID: c.ID, Request: &c, Decision: &quota.Decision{Violations: all},
		})
	}
	return verdict{decided: true, waits: waits, violations: all}
}

// grant holds what has been admitted. before is where everything was counted without it.
func (o *oracle) grant(a *allocation, t *placementTrial, before places) verdict {
	a, t = o.widen(a, t, before)
	if len(o.held())-len(t.victims) >= o.bounds.Held {
		o.restorePlaces(before)
		return refusal(quota.Full, "")
	}
	if a.asked.Mode == quota.Reserve {
		a.state, a.until, a.expires = quota.Reserved, o.now.At+quota.Instant(a.asked.ReserveFor), 0
	}
	o.hold(a, t)
	return verdict{decided: true, alternative: a.alternative, fence: a.fence, preempted: a.preempted}
}

func (o *oracle) newAllocation(c quota.Allocate, claimed []string) *allocation {
	a := &allocation{
		request: counted(c), asked: c, whole: c, claimed: claimed, placed: slices.Clone(claimed),
		arrivals: make([]uint64, len(claimed)), fence: uint64(len(o.allocations) + 1), granted: o.now,
		lease: o.leaseOf(c),
	}
	a.forced = isForced(c)
	o.assignGroups(a)
	return a
}

// isForced is true if a request is granted whatever the limits are.
func isForced(c quota.Allocate) bool { return c.Mode == quota.Force }

// hold makes an allocation held and ends those that it preempts.
func (o *oracle) hold(a *allocation, t *placementTrial) {
	o.excluded = nil
	items := o.copiesOfItems()
	for i, c := range a.request.Claims {
		if a.arrivals[i] == 0 && o.borrows(c.Tree, a.placed[i]) {
			o.countAt(claimRef{a, i}, a.placed[i])
		}
	}
	for _, v := range t.victims {
		at := o.now
		v.ended, v.by, v.state = &at, a.request.ID, quota.WasPreempted
		o.recordEvent(quota.Event{Kind: quota.EventPreempted, ID: v.request.ID, By: a.request.ID})
		o.ends = append(o.ends, v)
		first := slices.IndexFunc(t.evicted, func(c claimRef) bool { return c.allocation == v })
		a.preempted = append(a.preempted,
			quota.Preempted{ID: v.request.ID, Tree: t.evicted[first].claim().Tree, Node: t.evictedFrom[first]})
	}
	for _, v := range t.victims {
		o.returnItems(v, quota.WasPreempted)
	}
	o.allocations = append(o.allocations, a)
	o.takeItems(a)
	o.markAllocated(a, t.victims, items)
}

// findNodes finds the node that each claim belongs to, or the first thing that is wrong with the request.
func (o *oracle) findNodes(c quota.Allocate) ([]string, verdict) {
	if v := o.checkRequest(c); v.refused != 0 {
		return nil, v
	}
	var claimed []string
	for i, claim := range c.Claims {
		at, v := o.findClaim(c, i)
		if v.refused != 0 {
			return nil, v
		}
		for _, before := range c.Claims[:i] {
			if before.Tree == claim.Tree && before.Node == claim.Node {
				return nil, refusal(quota.Invalid, fmt.Sprintf("claims[%d].node", i))
			}
		}
		claimed = append(claimed, at)
	}
	checks := []func() verdict{
		func() verdict { return o.checkForests(c) },
		func() verdict { return o.checkSoft(c, claimed) },
		func() verdict { return namedOnce(c) },
		func() verdict { return o.checkUser(c, claimed) },
		func() verdict { return o.checkLease(c) },
		func() verdict { return o.checkDynamicNodes(c, claimed) },
	}
	for _, check := range checks {
		if v := check(); v.refused != 0 {
			return nil, v
		}
	}
	return claimed, verdict{}
}

func (o *oracle) checkRequest(c quota.Allocate) verdict {
	switch {
	case !idPattern.MatchString(c.ID):
		return refusal(quota.Invalid, "id")
	case len(c.Claims) == 0 || len(c.Claims) > o.bounds.Claims:
		return refusal(quota.Invalid, "claims")
	case c.Mode > quota.Wait:
		return refusal(quota.Invalid, "mode")
	case (c.Mode == quota.Reserve) != (c.ReserveFor != 0) || c.ReserveFor < 0 || c.ReserveFor > quota.MaxReserve:
		return refusal(quota.Invalid, "reserve_ms")
	case c.Mode == quota.Force && firstRange(c) != "":
		return refusal(quota.Invalid, firstRange(c))
	case !o.goodLabels(c.Labels):
		return refusal(quota.Invalid, "labels")
	}
	return verdict{}
}

// findClaim finds the node that a claim belongs to.
func (o *oracle) findClaim(c quota.Allocate, i int) (string, verdict) {
	claim, field := c.Claims[i], fmt.Sprintf("claims[%d].", i)
	spec, known := o.trees[claim.Tree]
	if !known {
		return "", refusal(quota.NotFound, field+"tree")
	}
	at, kind := o.findNode(spec, claim.Node)
	if kind != 0 {
		return "", refusal(kind, field+"node")
	}
	if !isForced(c) && o.rulesAt(spec, at).ClaimNodes == "leaves" && !o.isLeaf(claim.Tree, at) {
		return "", refusal(quota.Invalid, field+"node")
	}
	if kind, of := wrongAmount(spec, claim); kind != 0 {
		return "", refusal(kind, field+of)
	}
	return at, verdict{}
}

// findNode finds the node of a path that a claim names: under some policies that is the nearest that exists, under
// others a dynamic one.
func (o *oracle) findNode(spec quota.TreeSpec, path string) (string, quota.Kind) {
	existing := o.nodesOf(spec.Name)
	if !slices.Contains(existing, path) && !o.goodPath(path) {
		return "", quota.Invalid
	}
	for at := path; ; at = quotatest.Above(at) {
		if !slices.Contains(existing, at) {
			continue
		}
		switch r := o.rulesAt(spec, at); {
		case at == path || r.UnknownNodes == "count-at-ancestor":
			return at, 0
		case r.UnknownNodes == "create":
			return path, 0
		}
		return "", quota.NotFound
	}
}

func wrongAmount(spec quota.TreeSpec, c quota.Claim) (quota.Kind, string) {
	amounts := c.Amounts
	if len(amounts)+len(c.Picks) == 0 {
		return quota.Invalid, "amounts"
	}
	for i, a := range amounts {
		of := "amounts[" + a.Resource + "]"
		switch {
		case !registers(spec, a.Resource):
			return quota.NotFound, of
		case itemized(spec, a.Resource) != nil:
			return quota.Invalid, of
		case a.Amount < 0 || a.Amount > quota.MaxAmount || i > 0 && amounts[i-1].Resource >= a.Resource:
			return quota.Invalid, of
		}
	}
	for _, p := range c.Picks {
		if itemized(spec, p.Resource) == nil {
			return map[bool]quota.Kind{true: quota.Invalid, false: quota.NotFound}[registers(spec, p.Resource)],
				"items[" + p.Resource + "]"
		}
	}
	return 0, ""
}

func registers(spec quota.TreeSpec, name string) bool {
	return slices.ContainsFunc(spec.Resources, func(r quota.Resource) bool { return r.Name == name })
}

// checkForests refuses a request with trees of two forests.
func (o *oracle) checkForests(c quota.Allocate) verdict {
	forest := ""
	for i, claim := range c.Claims {
		f := o.trees[claim.Tree].Forest
		if forest != "" && f != "" && f != forest {
			return refusal(quota.Invalid, fmt.Sprintf("claims[%d].tree", i))
		}
		forest = cmp.Or(forest, f)
	}
	return verdict{}
}

// checkSoft refuses what borrowing cannot decide: two claims of one tree.
func (o *oracle) checkSoft(c quota.Allocate, claimed []string) verdict {
	isSoft := func(i int) bool {
		return !isForced(c) && o.borrows(c.Claims[i].Tree, claimed[i])
	}
	for i, claim := range c.Claims {
		for j, other := range c.Claims[:i] {
			if other.Tree == claim.Tree && isSoft(i) && isSoft(j) {
				return refusal(quota.Invalid, fmt.Sprintf("claims[%d].node", i))
			}
		}
	}
	return verdict{}
}

// checkDynamicNodes refuses a request whose dynamic nodes would be too many.
func (o *oracle) checkDynamicNodes(c quota.Allocate, claimed []string) verdict {
	with := *o
	with.allocations = append(slices.Clone(o.allocations), &allocation{request: c, claimed: claimed, placed: claimed})
	nodes, full := 0, false
	for tree := range o.trees {
		n := len(with.nodesOf(tree))
		nodes += n
		full = full || n > o.bounds.NodesPerTree && n > len(o.nodesOf(tree))
	}
	if full || nodes > o.bounds.Nodes {
		return refusal(quota.Full, "claims")
	}
	return verdict{}
}

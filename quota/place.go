package quota

import (
	"fmt"
	"strings"
)

// place checks the shape of a request and finds the node where each claim is counted. It answers an allocation that has
// its claims but is not held yet.
func (l *Ledger) place(request Allocate) (*Allocation, *Error) {
	if err := l.checkRequest(request); err != nil {
		return nil, err
	}
	a := newAllocation(request.Claims)
	a.id, a.labels, a.more = request.ID, request.Labels, request.particulars()
	for i, c := range request.Claims {
		if err := l.placeClaim(a, c, i); err != nil {
			return nil, err
		}
		for j, other := range request.Claims[:i] {
			if other.Tree == c.Tree && other.Node == c.Node {
				return nil, refuse(Invalid, claimField(i, ".node"), "%s is claimed twice in one request, by claims[%d] too; join the amounts in one claim", Place(c.Tree, c.Node), j)
			}
		}
	}
	if err := checkForests(a); err != nil {
		return nil, err
	}
	if err := a.checkSoft(); err != nil {
		return nil, err
	}
	if err := a.checkNamedOnce(); err != nil {
		return nil, err
	}
	if err := a.settleLease(request); err != nil {
		return nil, err
	}
	return a, l.roomForSprouts(a)
}

// checkForests refuses a request that draws from two forests.
func checkForests(a *Allocation) *Error {
	var first *tree
	for i := range a.claims {
		t := a.claims[i].at.tree
		switch {
		case t.settings.Forest == "":
		case first == nil:
			first = t
		case first.settings.Forest != t.settings.Forest:
			return refuse(Invalid, claimField(i, ".tree"), "tree %s is in forest %s, but tree %s in forest %s; a request may draw from one forest only",
				t.name, t.settings.Forest, first.name, first.settings.Forest)
		}
	}
	return nil
}

// particulars are nil for what most requests are.
func (r Allocate) particulars() *particulars {
	if r.Mode == Hold && r.Principal.User == "" && r.Priority == 0 {
		return nil
	}
	return &particulars{mode: r.Mode, principal: r.Principal, reserveFor: r.ReserveFor, forced: r.Mode == Force,
		waitFor: r.WaitFor, keep: r.Keep, priority: r.Priority}
}

// force marks a claim that is held at its node whatever the limits say.
func (a *Allocation) force(i int) {
	if a.more == nil {
		a.more = &particulars{}
	}
	a.more.forced = true
	c := &a.claims[i]
	if c.more == nil {
		c.more = &claimParticulars{}
	}
	c.more.forced = true
}

func (l *Ledger) checkRequest(request Allocate) *Error {
	if err := checkID(request.ID); err != nil {
		return err
	}
	if n := len(request.Claims); n < 1 || n > l.bounds.Claims {
		return refuse(Invalid, "claims", "the request has %d claims; 1 to %d are allowed", n, l.bounds.Claims)
	}
	if err := l.checkPicks(request.Claims); err != nil {
		return err
	}
	if err := l.checkMode(request); err != nil {
		return err
	}
	if err := l.checkLease(request); err != nil {
		return err
	}
	if err := l.checkPrincipal(request.Principal); err != nil {
		return err
	}
	return l.checkLabels(request.Labels, "labels")
}

func (l *Ledger) checkMode(request Allocate) *Error {
	switch {
	case request.Mode > Wait:
		return refuse(Invalid, "mode", "mode %d is unknown", request.Mode)
	case request.Mode == Reserve && (request.ReserveFor < 1 || request.ReserveFor > MaxReserve):
		return refuse(Invalid, "reserve_ms", "a reservation stands for 1 to %d ms, not %d", MaxReserve, request.ReserveFor)
	case request.Mode != Reserve && request.ReserveFor != 0:
		return refuse(Invalid, "reserve_ms", "only a reservation has a time to stand; leave it out, or reserve")
	}
	return checkWait(request)
}

// checkWait refuses spans of waiting that cannot be.
func checkWait(request Allocate) *Error {
	switch {
	case request.Mode != Wait && request.WaitFor != 0:
		return refuse(Invalid, "wait_ms", "only a request that waits has a time to wait; leave it out, or wait")
	case request.Mode != Wait && request.Keep != 0:
		return refuse(Invalid, "keep_ms", "only a request that waits is kept in the queue; leave it out, or wait")
	case request.WaitFor < 0 || request.WaitFor > MaxWait:
		return refuse(Invalid, "wait_ms", "a request waits for 1 to %d ms, or as long as it may if that is left out, not %d", MaxWait, request.WaitFor)
	case request.Keep != 0 && (request.Keep < MinKeep || request.Keep > MaxKeep):
		return refuse(Invalid, "keep_ms", "a request is kept for %d to %d ms, or for %d if that is left out, not %d", MinKeep, MaxKeep, DefaultKeep, request.Keep)
	}
	return nil
}

func (l *Ledger) checkPrincipal(p Principal) *Error {
	switch {
	case p.User == "" && (p.Application != "" || len(p.Groups) > 0):
		return refuse(Invalid, "principal.user", "groups and an application belong to a user; name the user")
	case len(p.Groups) > l.bounds.Groups:
		return refuse(Invalid, "principal.groups", "there are %d groups; at most %d are allowed", len(p.Groups), l.bounds.Groups)
	case len(p.User) > MaxPrincipal:
		return refuse(Invalid, "principal.user", "the user has %d bytes; at most %d are allowed", len(p.User), MaxPrincipal)
	case len(p.Application) > MaxPrincipal:
		return refuse(Invalid, "principal.application", "the application has %d bytes; at most %d are allowed", len(p.Application), MaxPrincipal)
	case p.User == Wildcard:
		return refuse(Invalid, "principal.user", "%q stands for all users in limits; name the user", Wildcard)
	}
	for i, g := range p.Groups {
		if g == "" || g == Wildcard || len(g) > MaxPrincipal {
			return refuse(Invalid, fmt.Sprintf("principal.groups[%d]", i), "a group is a name of 1 to %d bytes other than %q, got %q", MaxPrincipal, Wildcard, clip(g))
		}
	}
	return nil
}

func checkID(id string) *Error {
	if id == "" || !validVisible(id, MaxID) {
		return refuse(Invalid, "id", "an id is 1 to %d visible ASCII characters without spaces, got %q", MaxID, clip(id))
	}
	return nil
}

// clip keeps quoted input short in messages.
func clip(s string) string {
	if len(s) > 2*MaxID {
		return s[:2*MaxID] + "..."
	}
	return s
}

func (l *Ledger) checkLabels(labels []Label, field string) *Error {
	if len(labels) > l.bounds.Labels {
		return refuse(Invalid, field, "there are %d labels; at most %d are allowed", len(labels), l.bounds.Labels)
	}
	for i, label := range labels {
		switch {
		case label.Key == "" || len(label.Key) > MaxLabelKey:
			return refuse(Invalid, field, "label key %q has %d bytes; 1 to %d are allowed", clip(label.Key), len(label.Key), MaxLabelKey)
		case len(label.Value) > MaxLabelValue:
			return refuse(Invalid, field, "the value of label %q has %d bytes; at most %d are allowed", label.Key, len(label.Value), MaxLabelValue)
		case i > 0 && labels[i-1].Key >= label.Key:
			return refuse(Invalid, field, "label %q is not in order, or there twice", label.Key)
		}
	}
	return nil
}

func (l *Ledger) placeClaim(a *Allocation, c Claim, i int) *Error {
	placed := &a.claims[i]
	t := l.trees[c.Tree]
	if t == nil {
		return refuse(NotFound, claimField(i, ".tree"), "there is no tree %q", clip(c.Tree))
	}
	forced := a.more != nil && a.more.mode == Force || t.settings.Maintenance
	at, err := t.placeAt(a, c.Node, i, l.bounds.Depth)
	if err != nil {
		return err
	}
	if !forced && len(at.children) > 0 && at.policy.LeavesOnly() {
		return refuse(Invalid, claimField(i, ".node"), "%s has nodes below it, and policy %s admits claims at leaves only; claim at one of them, for example %s",
			at.place(), at.policy.Name(), at.children[0].place())
	}
	placed.at, placed.placed, placed.asked = at, at.address, at.address
	if at.path != c.Node {
		placed.asked = &address{t.name, strings.Clone(c.Node)}
	}
	if c.Standing != (Standing{}) {
		placed.more = &claimParticulars{Standing: c.Standing}
	}
	if forced {
		a.force(i)
	}
	if len(c.Amounts)+len(c.Picks) == 0 {
		return refuse(Invalid, claimField(i, ".amounts"), "a claim names at least one resource; tree %s has %s", t.name, t.resourceNames())
	}
	if err := t.placeAmounts(placed.amounts, c.Amounts, i); err != nil {
		return err
	}
	return placed.placePicks(t, c.Picks, i)
}

// placeAt finds the node of a claim. For an unknown one, the nearest known ancestor's policy decides.
func (t *tree) placeAt(a *Allocation, path string, i, depth int) (*node, *Error) {
	if n := t.byPath[path]; n != nil {
		return n, nil
	}
	if err := checkPath(path, claimField(i, ".node"), depth); err != nil {
		return nil, err
	}
	n := t.nearest(path)
	switch n.policy.Unknown() {
	case UnknownToAncestor:
		return n, nil
	case MakeUnknown:
		return a.sprout(n, path), nil
	case RefuseUnknown:
	}
	return nil, refuse(NotFound, claimField(i, ".node"), "tree %s has no node %q; the nearest that exists is %s, whose policy %s refuses unknown nodes",
		t.name, path, n.place(), n.policy.Name())
}

func (t *tree) placeAmounts(placed []placedAmount, v Vector, i int) *Error {
	for j, c := range v {
		r := t.resource(c.Resource)
		switch {
		case r == nil:
			return refuse(NotFound, amountField(i, c), "tree %s has no resource %q; it has %s", t.name, clip(c.Resource), t.resourceNames())
		case r.Unit == Items:
			return refuse(Invalid, amountField(i, c), "resource %s of tree %s is made of items; ask for items, not for an amount", r.Name, t.name)
		case c.Amount < 0:
			return refuse(Invalid, amountField(i, c), "%d %s is negative", c.Amount, c.Resource)
		case c.Amount > MaxAmount:
			return refuse(Invalid, amountField(i, c), "%d %s is more than any request may name (%d)", c.Amount, c.Resource, MaxAmount)
		case j > 0 && v[j-1].Resource >= c.Resource:
			return refuse(Invalid, amountField(i, c), "resource %s is not in order, or there twice", c.Resource)
		}
		placed[j] = placedAmount{resource: r, amount: c.Amount}
	}
	return nil
}

func claimField(i int, rest string) string { return fmt.Sprintf("claims[%d]%s", i, rest) }

func amountField(i int, c Component) string { return claimField(i, ".amounts["+clip(c.Resource)+"]") }

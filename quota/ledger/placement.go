package ledger

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// placeClaims checks the form of a request and finds the node of each claim. It returns an allocation with placed
// claims that is not held yet. Of ranges it has the least amounts.
func (l *Ledger) placeClaims(request *quota.Allocate) (*Allocation, *quota.Error) {
	return l.placeAtStep(request, 0)
}

// placeAtStep is placeClaims with the amounts after so many steps of the ranges.
func (l *Ledger) placeAtStep(request *quota.Allocate, step int) (*Allocation, *quota.Error) {
	if err := l.checkRequest(request); err != nil {
		return nil, err
	}
	a := l.allocations.shared.begin(request)
	a.more = newDetails(request)
	for i := range request.Claims {
		c := &request.Claims[i]
		if step > 0 {
			widened := c.AtStep(step)
			c = &widened
		}
		if err := l.forest.placeClaim(a, c, i); err != nil {
			return nil, err
		}
		for j := range request.Claims[:i] {
			if other := &request.Claims[j]; other.Tree == c.Tree && other.Node == c.Node {
				return nil, quota.Errorf(quota.Invalid, claimField(i, ".node"),
					"%s is claimed twice in one request, by claims[%d] too; join the amounts in one claim",
					quota.Place(c.Tree, c.Node), j)
			}
		}
	}
	if err := a.checkTogether(); err != nil {
		return nil, err
	}
	if request.Principal.User == "" {
		if err := a.checkNamesUser(); err != nil {
			return nil, err
		}
	}
	if a.mayBeLease(request) {
		if err := a.initLease(request); err != nil {
			return nil, err
		}
	}
	if err := l.forest.checkDynamicNodes(a); err != nil {
		return nil, err
	}
	return l.allocations.shared.keep(true), nil
}

// checkTogether refuses claims that do not go together in one request.
func (a *Allocation) checkTogether() *quota.Error {
	if len(a.claims) < 2 {
		return nil
	}
	if err := checkForests(a); err != nil {
		return err
	}
	if err := a.checkSoft(); err != nil {
		return err
	}
	return a.checkNamedOnce()
}

// checkNamesUser refuses a request without a user in a tree that requires one, if users or groups are limited at the
// home of a claim or above it: the limits of users would not apply to it. Forced requests and maintenance are no
// exception, because they suspend limits and not the record of who holds. The text names the claim only, because the
// caller may not see the levels above it.
func (a *Allocation) checkNamesUser() *quota.Error {
	for i := range a.claims {
		if c := &a.claims[i]; c.needsUser() {
			return quota.Errorf(quota.Invalid, "principal.user",
				"tree %s requires a user where users or groups are limited, as they are for claims at %s; name the user",
				c.at.treeName, quota.Place(c.at.treeName, c.asked.path))
		}
	}
	return nil
}

// needsUser is true if users or groups are limited at the home of a claim or above it, and its tree requires a user
// there.
func (c *placedClaim) needsUser() bool {
	if !c.at.tree.settings.RequirePrincipal {
		return false
	}
	for n := c.home(); n != nil; n = n.parent {
		if n.rules != nil {
			return true
		}
	}
	return false
}

// mayBeLease is true if the request, a tree or an item may give the allocation a TTL or user data.
func (a *Allocation) mayBeLease(request *quota.Allocate) bool {
	if request.TTL != 0 || len(request.Data) > 0 {
		return true
	}
	for i := range a.claims {
		if c := &a.claims[i]; c.at.tree.settings.Leases.Default != 0 || len(request.Claims[i].Picks) > 0 {
			return true
		}
	}
	return false
}

// checkForests refuses a request with trees of two forests.
func checkForests(a *Allocation) *quota.Error {
	var first *tree
	for i := range a.claims {
		t := a.claims[i].at.tree
		switch {
		case t.settings.Forest == "":
		case first == nil:
			first = t
		case first.settings.Forest != t.settings.Forest:
			return quota.Errorf(quota.Invalid, claimField(i, ".tree"),
				"tree %s is in forest %s, but tree %s in forest %s; a request may draw from one forest only",
				t.name, t.settings.Forest, first.name, first.settings.Forest)
		}
	}
	return nil
}

// newDetails returns nil for ordinary requests.
func newDetails(r *quota.Allocate) *details {
	ranged := asksForRanges(r.Claims)
	if r.Mode == quota.Hold && r.Principal.User == "" && r.Priority == 0 && !ranged && r.AnyOf == nil && r.For == 0 {
		return nil
	}
	m := &details{
		mode: r.Mode, principal: r.Principal, reserveFor: r.ReserveFor, forced: r.Mode == quota.Force,
		waitFor: r.WaitFor, keep: r.Keep, priority: r.Priority, declared: r.For,
	}
	if ranged {
		m.resized = &resized{first: r.Claims}
	}
	if r.AnyOf != nil {
		m.resized = &resized{anyOf: r.AnyOf}
		if ranged {
			m.resized.first = r.Claims
		}
	}
	return m
}

// forceClaims marks a claim that is granted at its node regardless of limits.
func (a *Allocation) forceClaims(i int) {
	if a.more == nil {
		a.more = &details{}
	}
	a.more.forced = true
	c := &a.claims[i]
	if c.more == nil {
		c.more = &claimDetails{}
	}
	c.more.forced = true
}

func (e *environment) checkRequest(request *quota.Allocate) *quota.Error {
	if err := checkID(request.ID); err != nil {
		return err
	}
	if n := len(request.Claims); n < 1 || n > e.bounds.Claims {
		return quota.Errorf(quota.Invalid, "claims", "the request has %d claims; 1 to %d are allowed", n,
			e.bounds.Claims)
	}
	if asksForItems(request.Claims) {
		if err := e.checkPicks(request.Claims); err != nil {
			return err
		}
	}
	if err := e.checkMode(request); err != nil {
		return err
	}
	if asksForRanges(request.Claims) {
		if err := checkRanges(request); err != nil {
			return err
		}
	}
	if request.TTL != 0 || len(request.Data) > 0 {
		if err := e.checkLease(request); err != nil {
			return err
		}
	}
	if request.For < 0 || request.For > quota.MaxFor {
		return quota.Errorf(quota.Invalid, "for_ms",
			"an allocation declares 1 to %d ms, not %d; leave it out if its end is not known", quota.MaxFor, request.For)
	}
	if err := e.checkPrincipal(request.Principal); err != nil {
		return err
	}
	return e.checkLabels(request.Labels, "labels")
}

func asksForItems(claims []quota.Claim) bool {
	for i := range claims {
		if len(claims[i].Picks) > 0 {
			return true
		}
	}
	return false
}

func (e *environment) checkMode(request *quota.Allocate) *quota.Error {
	switch {
	case request.Mode > quota.Wait:
		return quota.Errorf(quota.Invalid, "mode", "mode %d is unknown", request.Mode)
	case request.Mode == quota.Reserve && (request.ReserveFor < 1 || request.ReserveFor > quota.MaxReserve):
		return quota.Errorf(quota.Invalid, "reserve_ms", "a reservation stands for 1 to %d ms, not %d",
			quota.MaxReserve, request.ReserveFor)
	case request.Mode != quota.Reserve && request.ReserveFor != 0:
		return quota.Errorf(quota.Invalid, "reserve_ms",
			"only a reservation has a time to stand; leave it out, or reserve")
	}
	return checkWait(request)
}

// checkWait refuses invalid queueing parameters.
func checkWait(request *quota.Allocate) *quota.Error {
	switch {
	case request.Mode != quota.Wait && request.WaitFor != 0:
		return quota.Errorf(quota.Invalid, "wait_ms",
			"only a request that waits has a time to wait; leave it out, or wait")
	case request.Mode != quota.Wait && request.Keep != 0:
		return quota.Errorf(quota.Invalid, "keep_ms",
			"only a request that waits is kept in the queue; leave it out, or wait")
	case request.WaitFor < 0 || request.WaitFor > quota.MaxWait:
		return quota.Errorf(quota.Invalid, "wait_ms",
			"a request waits for 1 to %d ms, or as long as it may if that is left out, not %d", quota.MaxWait,
			request.WaitFor)
	case request.Keep != 0 && (request.Keep < quota.MinKeep || request.Keep > quota.MaxKeep):
		return quota.Errorf(quota.Invalid, "keep_ms",
			"a request is kept for %d to %d ms, or for %d if that is left out, not %d", quota.MinKeep, quota.MaxKeep,
			quota.DefaultKeep, request.Keep)
	}
	return nil
}

func (e *environment) checkPrincipal(p quota.Principal) *quota.Error {
	switch {
	case p.User == "" && (p.Application != "" || len(p.Groups) > 0):
		return quota.Errorf(quota.Invalid, "principal.user",
			"groups and an application belong to a user; name the user")
	case len(p.Groups) > e.bounds.Groups:
		return quota.Errorf(quota.Invalid, "principal.groups", "there are %d groups; at most %d are allowed",
			len(p.Groups), e.bounds.Groups)
	case len(p.User) > quota.MaxPrincipal:
		return quota.Errorf(quota.Invalid, "principal.user", "the user has %d bytes; at most %d are allowed",
			len(p.User), quota.MaxPrincipal)
	case len(p.Application) > quota.MaxPrincipal:
		return quota.Errorf(quota.Invalid, "principal.application",
			"the application has %d bytes; at most %d are allowed", len(p.Application), quota.MaxPrincipal)
	case p.User == quota.Wildcard:
		return quota.Errorf(quota.Invalid, "principal.user",
			"%q stands for all users in limits; name the user", quota.Wildcard)
	}
	for i, g := range p.Groups {
		if g == "" || g == quota.Wildcard || len(g) > quota.MaxPrincipal {
			return quota.Errorf(quota.Invalid, fmt.Sprintf("principal.groups[%d]", i),
				"a group is a name of 1 to %d bytes other than %q, got %q", quota.MaxPrincipal,
				quota.Wildcard, quota.Clip(g))
		}
	}
	return nil
}

func checkID(id string) *quota.Error {
	if id == "" || !quota.IsVisible(id, quota.MaxID) {
		return quota.Errorf(quota.Invalid, "id", "an id is 1 to %d visible ASCII characters without spaces, got %q",
			quota.MaxID, quota.Clip(id))
	}
	return nil
}

func (e *environment) checkLabels(labels []quota.Label, field string) *quota.Error {
	if len(labels) > e.bounds.Labels {
		return quota.Errorf(quota.Invalid, field, "there are %d labels; at most %d are allowed", len(labels),
			e.bounds.Labels)
	}
	for i, label := range labels {
		switch {
		case label.Key == "" || len(label.Key) > quota.MaxLabelKey:
			return quota.Errorf(quota.Invalid, field, "label key %q has %d bytes; 1 to %d are allowed",
				quota.Clip(label.Key), len(label.Key), quota.MaxLabelKey)
		case len(label.Value) > quota.MaxLabelValue:
			return quota.Errorf(quota.Invalid, field, "the value of label %q has %d bytes; at most %d are allowed",
				label.Key, len(label.Value), quota.MaxLabelValue)
		case i > 0 && labels[i-1].Key >= label.Key:
			return quota.Errorf(quota.Invalid, field, "label %q is not in order, or there twice", label.Key)
		}
	}
	return nil
}

func (f *forest) placeClaim(a *Allocation, c *quota.Claim, i int) *quota.Error {
	placed := &a.claims[i]
	t := f.trees[c.Tree]
	if t == nil {
		return quota.Errorf(quota.NotFound, claimField(i, ".tree"), "there is no tree %q", quota.Clip(c.Tree))
	}
	forced := a.more != nil && a.more.mode == quota.Force || t.settings.Maintenance
	at, err := t.placeAt(a, c.Node, i, f.bounds.Depth)
	if err != nil {
		return err
	}
	if !forced && len(at.children) > 0 && at.policy.LeavesOnly {
		return quota.Errorf(quota.Invalid, claimField(i, ".node"),
			"%s has nodes below it, and policy %s admits claims at leaves only; claim at one of them, for example %s",
			at.place(), at.policy.Name, at.children[0].place())
	}
	placed.at, placed.placed, placed.asked = at, at.address, at.address
	if at.path != c.Node {
		placed.asked = &address{t.name, strings.Clone(c.Node)}
	}
	if c.Standing != (quota.Standing{}) {
		placed.more = &claimDetails{Standing: c.Standing}
	}
	if forced {
		a.forceClaims(i)
	}
	if len(c.Amounts)+len(c.Picks) == 0 {
		return quota.Errorf(quota.Invalid, claimField(i, ".amounts"),
			"a claim names at least one resource; tree %s has %s", t.name, t.resourceNames())
	}
	if err := t.placeAmounts(placed.amounts, c.Amounts, i); err != nil {
		return err
	}
	if len(c.Picks) == 0 {
		return nil
	}
	return placed.placePicks(t, c.Picks, i)
}

// placeAt finds the node of a claim. For an unknown path, the policy of the nearest existing ancestor decides.
func (t *tree) placeAt(a *Allocation, path string, i, depth int) (*node, *quota.Error) {
	if n := t.byPath[path]; n != nil {
		return n, nil
	}
	if err := quota.CheckPath(path, claimField(i, ".node"), depth); err != nil {
		return nil, err
	}
	n := t.nearest(path)
	switch n.policy.UnknownNodes {
	case policy.CountAtAncestor:
		return n, nil
	case policy.CreateUnknown:
		return a.addDynamicNodes(n, path), nil
	case policy.RefuseUnknown:
	}
	return nil, quota.Errorf(quota.NotFound, claimField(i, ".node"),
		"tree %s has no node %q; the nearest that exists is %s, whose policy %s refuses unknown nodes",
		t.name, path, n.place(), n.policy.Name)
}

func (t *tree) placeAmounts(placed []placedAmount, v quota.Vector, i int) *quota.Error {
	for j, c := range v {
		r := t.resource(c.Resource)
		switch {
		case r == nil:
			return quota.Errorf(quota.NotFound, amountField(i, c), "tree %s has no resource %q; it has %s", t.name,
				quota.Clip(c.Resource), t.resourceNames())
		case r.Unit == quota.Items:
			return quota.Errorf(quota.Invalid, amountField(i, c),
				"resource %s of tree %s is made of items; ask for items, not for an amount", r.Name, t.name)
		case c.Amount < 0:
			return quota.Errorf(quota.Invalid, amountField(i, c), "%d %s is negative", c.Amount, c.Resource)
		case c.Amount > quota.MaxAmount:
			return quota.Errorf(quota.Invalid, amountField(i, c), "%d %s is more than any request may name (%d)",
				c.Amount, c.Resource, quota.MaxAmount)
		case j > 0 && v[j-1].Resource >= c.Resource:
			return quota.Errorf(quota.Invalid, amountField(i, c),
				"resource %s is not in order, or there twice", c.Resource)
		}
		placed[j] = placedAmount{resource: r, amount: c.Amount}
	}
	return nil
}

func claimField(i int, rest string) string { return fmt.Sprintf("claims[%d]%s", i, rest) }

func amountField(i int, c quota.Component) string {
	return claimField(i, ".amounts["+quota.Clip(c.Resource)+"]")
}

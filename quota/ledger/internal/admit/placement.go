package admit

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// PlaceClaims checks the form of a request and finds the node of each claim. It returns an allocation with placed
// claims that is not held yet. Of ranges it has the least amounts.
func PlaceClaims(s *state.State, request *quota.Allocate) (*state.Allocation, *quota.Error) {
	return placeAtStep(s, request, 0)
}

func placeAtStep(s *state.State, request *quota.Allocate, step int) (*state.Allocation, *quota.Error) {
	if err := checkAllocate(&s.Environment, request); err != nil {
		return nil, err
	}
	a := s.Allocations.Shared.Begin(request)
	a.More = newDetails(request)
	for i := range request.Claims {
		c := &request.Claims[i]
		if step > 0 {
			widened := c.AtStep(step)
			c = &widened
		}
		if err := placeClaim(&s.Forest, a, c, i); err != nil {
			return nil, err
		}
		for j := range request.Claims[:i] {
			if other := &request.Claims[j]; other.Tree == c.Tree && other.Node == c.Node {
				return nil, quota.Errorf(quota.Invalid, ClaimField(i, ".node"),
					"%s is claimed twice in one request, by claims[%d] too; join the amounts in one claim",
					quota.Place(c.Tree, c.Node), j)
			}
		}
	}
	if err := checkTogether(a); err != nil {
		return nil, err
	}
	if request.Principal.User == "" {
		if err := checkNamesUser(a); err != nil {
			return nil, err
		}
	}
	if mayBeLease(a, request) {
		if err := initLease(a, request); err != nil {
			return nil, err
		}
	}
	if err := s.Forest.CheckDynamicNodes(a); err != nil {
		return nil, err
	}
	return s.Allocations.Shared.Keep(true), nil
}

func checkTogether(a *state.Allocation) *quota.Error {
	if len(a.Claims) < 2 {
		return nil
	}
	if err := checkForests(a); err != nil {
		return err
	}
	if err := checkSoft(a); err != nil {
		return err
	}
	return checkNamedOnce(a)
}

// checkNamesUser refuses a request without a user in a tree that requires one, if users or groups are limited at the
// home of a claim or above it: the limits of users would not apply to it. Forced requests are no exception,
// because they suspend limits and not the record of who holds. The text names the claim only, because the caller may
// not see the levels above it.
func checkNamesUser(a *state.Allocation) *quota.Error {
	for i := range a.Claims {
		if c := &a.Claims[i]; needsUser(c) {
			return quota.Errorf(quota.Invalid, "principal.user",
				"tree %s requires a user where users or groups are limited, as they are for claims at %s; name the user",
				c.At.TreeName, quota.Place(c.At.TreeName, c.Asked.Path))
		}
	}
	return nil
}

// needsUser is true if users or groups are limited at the home of a claim or above it, and its tree requires a user
// there.
func needsUser(c *state.PlacedClaim) bool {
	if !c.At.Tree.Settings.RequirePrincipal {
		return false
	}
	for n := c.Home(); n != nil; n = n.Parent {
		if n.Rules != nil {
			return true
		}
	}
	return false
}

// mayBeLease is true if the request, a tree or an item may give the allocation a TTL or user data.
func mayBeLease(a *state.Allocation, request *quota.Allocate) bool {
	if request.TTL != 0 || len(request.Data) > 0 {
		return true
	}
	for i := range a.Claims {
		if c := &a.Claims[i]; c.At.Tree.Settings.Leases.Default != 0 || len(request.Claims[i].Picks) > 0 {
			return true
		}
	}
	return false
}

func checkForests(a *state.Allocation) *quota.Error {
	var first *state.Tree
	for i := range a.Claims {
		t := a.Claims[i].At.Tree
		switch {
		case t.Settings.Forest == "":
		case first == nil:
			first = t
		case first.Settings.Forest != t.Settings.Forest:
			return quota.Errorf(quota.Invalid, ClaimField(i, ".tree"),
				"tree %s is in forest %s, but tree %s in forest %s; a request may draw from one forest only",
				t.Name, t.Settings.Forest, first.Name, first.Settings.Forest)
		}
	}
	return nil
}

func newDetails(r *quota.Allocate) *state.Details {
	ranged := state.AsksForRanges(r.Claims)
	if r.Mode == quota.Hold && r.Principal.User == "" && r.Priority == 0 && !ranged && r.AnyOf == nil && r.For == 0 {
		return nil
	}
	m := &state.Details{
		Mode: r.Mode, Principal: r.Principal, ReserveFor: r.ReserveFor, Forced: r.Mode == quota.Force,
		WaitFor: r.WaitFor, Keep: r.Keep, Priority: r.Priority, Declared: r.For,
	}
	if ranged {
		m.Resized = &state.Resized{First: r.Claims}
	}
	if r.AnyOf != nil {
		m.Resized = &state.Resized{AnyOf: r.AnyOf}
		if ranged {
			m.Resized.First = r.Claims
		}
	}
	return m
}

func forceClaims(a *state.Allocation, i int) {
	if a.More == nil {
		a.More = &state.Details{}
	}
	a.More.Forced = true
	c := &a.Claims[i]
	if c.More == nil {
		c.More = &state.ClaimDetails{}
	}
	c.More.Forced = true
}

func checkAllocate(e *state.Environment, request *quota.Allocate) *quota.Error {
	if err := CheckID(request.ID); err != nil {
		return err
	}
	if n := len(request.Claims); n < 1 || n > e.Bounds.Claims {
		return quota.Errorf(quota.Invalid, "claims", "the request has %d claims; 1 to %d are allowed", n,
			e.Bounds.Claims)
	}
	if asksForItems(request.Claims) {
		if err := checkPicks(e, request.Claims); err != nil {
			return err
		}
	}
	if err := checkMode(request); err != nil {
		return err
	}
	if state.AsksForRanges(request.Claims) {
		if err := checkRanges(request); err != nil {
			return err
		}
	}
	if request.TTL != 0 || len(request.Data) > 0 {
		if err := checkLease(e, request); err != nil {
			return err
		}
	}
	if request.For < 0 || request.For > quota.MaxFor {
		return quota.Errorf(quota.Invalid, "for_ms",
			"an allocation declares 1 to %d ms, not %d; leave it out if its end is not known", quota.MaxFor, request.For)
	}
	if err := checkPrincipal(e, request.Principal); err != nil {
		return err
	}
	return CheckLabels(e, request.Labels, "labels")
}

func asksForItems(claims []quota.Claim) bool {
	for i := range claims {
		if len(claims[i].Picks) > 0 {
			return true
		}
	}
	return false
}

func checkMode(request *quota.Allocate) *quota.Error {
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

func checkPrincipal(e *state.Environment, p quota.Principal) *quota.Error {
	switch {
	case p.User == "" && (p.Application != "" || len(p.Groups) > 0):
		return quota.Errorf(quota.Invalid, "principal.user",
			"groups and an application belong to a user; name the user")
	case len(p.Groups) > e.Bounds.Groups:
		return quota.Errorf(quota.Invalid, "principal.groups", "there are %d groups; at most %d are allowed",
			len(p.Groups), e.Bounds.Groups)
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

func CheckID(id string) *quota.Error {
	if quota.IsQualifiedID(id) {
		return nil
	}
	namespace, short := quota.SplitID(id)
	if len(short) != len(id) && !quota.IsNamespace(namespace) {
		return quota.Errorf(quota.Invalid, "namespace",
			"a namespace is 1 to %d visible ASCII characters without * and spaces, got %q", quota.MaxNamespace,
			quota.Clip(namespace))
	}
	return quota.Errorf(quota.Invalid, "id", "an id is 1 to %d visible ASCII characters without spaces, got %q",
		quota.MaxID, quota.Clip(short))
}

func CheckLabels(e *state.Environment, labels []quota.Label, field string) *quota.Error {
	if len(labels) > e.Bounds.Labels {
		return quota.Errorf(quota.Invalid, field, "there are %d labels; at most %d are allowed", len(labels),
			e.Bounds.Labels)
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

func placeClaim(f *state.Forest, a *state.Allocation, c *quota.Claim, i int) *quota.Error {
	placed := &a.Claims[i]
	t := f.Trees[c.Tree]
	if t == nil {
		return quota.Errorf(quota.NotFound, ClaimField(i, ".tree"), "there is no tree %q", quota.Clip(c.Tree))
	}
	forced := a.More != nil && a.More.Mode == quota.Force
	at, err := placeInTree(t, a, c.Node, i, f.Bounds.Depth)
	if err != nil {
		return err
	}
	if !forced && len(at.Children) > 0 && at.Policy.LeavesOnly {
		return quota.Errorf(quota.Invalid, ClaimField(i, ".node"),
			"%s has nodes below it, and policy %s admits claims at leaves only; claim at one of them, for example %s",
			at.Place(), at.Policy.Name, at.Children[0].Place())
	}
	placed.At, placed.Placed, placed.Asked = at, at.Address, at.Address
	if at.Path != c.Node {
		placed.Asked = &state.Address{TreeName: t.Name, Path: strings.Clone(c.Node)}
	}
	if c.Standing != (quota.Standing{}) {
		placed.More = &state.ClaimDetails{Standing: c.Standing}
	}
	if forced {
		forceClaims(a, i)
	}
	if len(c.Amounts)+len(c.Picks) == 0 {
		return quota.Errorf(quota.Invalid, ClaimField(i, ".amounts"),
			"a claim names at least one resource; tree %s has %s", t.Name, t.ResourceNames())
	}
	if err := placeAmounts(t, placed.Amounts, c.Amounts, i); err != nil {
		return err
	}
	if len(c.Picks) == 0 {
		return nil
	}
	return placePicks(placed, t, c.Picks, i)
}

// placeInTree finds the node of a claim. For an unknown path, the policy of the nearest existing ancestor decides.
func placeInTree(t *state.Tree, a *state.Allocation, path string, i, depth int) (*state.Node, *quota.Error) {
	if n := t.ByPath[path]; n != nil {
		return n, nil
	}
	if err := quota.CheckPath(path, ClaimField(i, ".node"), depth); err != nil {
		return nil, err
	}
	n := t.Nearest(path)
	switch n.Policy.UnknownNodes {
	case policy.CountAtAncestor:
		return n, nil
	case policy.CreateUnknown:
		return addDynamicNodes(a, n, path), nil
	case policy.RefuseUnknown:
	}
	return nil, quota.Errorf(quota.NotFound, ClaimField(i, ".node"),
		"tree %s has no node %q; the nearest that exists is %s, whose policy %s refuses unknown nodes",
		t.Name, path, n.Place(), n.Policy.Name)
}

func placeAmounts(t *state.Tree, placed []state.PlacedAmount, v quota.Vector, i int) *quota.Error {
	for j, c := range v {
		r := t.Resource(c.Resource)
		switch {
		case r == nil:
			return quota.Errorf(quota.NotFound, amountField(i, c), "tree %s has no resource %q; it has %s", t.Name,
				quota.Clip(c.Resource), t.ResourceNames())
		case r.Unit == quota.Items:
			return quota.Errorf(quota.Invalid, amountField(i, c),
				"resource %s of tree %s is made of items; ask for items, not for an amount", r.Name, t.Name)
		case c.Amount < 0:
			return quota.Errorf(quota.Invalid, amountField(i, c), "%d %s is negative", c.Amount, c.Resource)
		case c.Amount > quota.MaxAmount:
			return quota.Errorf(quota.Invalid, amountField(i, c), "%d %s is more than any request may name (%d)",
				c.Amount, c.Resource, quota.MaxAmount)
		case j > 0 && v[j-1].Resource >= c.Resource:
			return quota.Errorf(quota.Invalid, amountField(i, c),
				"resource %s is not in order, or there twice", c.Resource)
		}
		placed[j] = state.PlacedAmount{Resource: r, Amount: c.Amount}
	}
	return nil
}

func ClaimField(i int, rest string) string { return fmt.Sprintf("claims[%d]%s", i, rest) }

func amountField(i int, c quota.Component) string {
	return ClaimField(i, ".amounts["+quota.Clip(c.Resource)+"]")
}

package configure

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Differ collects the changes of one tree, and how to take them back.
type Differ struct {
	Tree    string
	Changes []quota.Change
	undo    quota.TreeUndo
	// was and is have the units of the amounts before and after.
	was, is *state.Tree
}

// DifferIn collects the changes of nodes of a tree whose resources stay as they are.
func DifferIn(t *state.Tree) Differ { return Differ{Tree: t.Name, was: t, is: t} }

// diff leaves out dynamic nodes, which are not configuration.
func (s *treeTransition) diff() *Differ {
	d := &Differ{}
	switch before, after := s.old, s.draft; {
	case after == nil:
		d.Tree, d.undo, d.was, d.is = before.Name, undoOfTree(before), before, before
		d.undo.Removed, d.undo.Nodes = true, specsOfTree(before)
		d.add("", "tree", before.Name, "")
	case before == nil:
		d.Tree, d.undo, d.was, d.is = after.Name, quota.TreeUndo{Name: after.Name, Added: true}, after, after
		d.add("", "tree", "", after.Name)
		d.settle(&state.Tree{}, after)
		d.nodes(s)
		d.undo.AddedPaths = nil // with the tree
	default:
		d.Tree, d.undo, d.was, d.is = after.Name, undoOfTree(before), before, after
		d.settle(before, after)
		if !slices.ContainsFunc(d.Changes, isResourceChange) {
			omitResources(&d.undo)
		}
		d.nodes(s)
		d.removed(s)
		d.undo.Moves = s.inverseMoves()
	}
	return d
}

// undoOfTree is how to take back a change of nothing but the tree as a whole.
func undoOfTree(t *state.Tree) quota.TreeUndo {
	return quota.TreeUndo{Name: t.Name, TreeSettings: t.Settings, Resources: t.Registered()}
}

// omitResources forgets the resources, which have not changed, if some are itemized.
func omitResources(u *quota.TreeUndo) {
	if slices.ContainsFunc(u.Resources, func(r quota.Resource) bool { return r.Items != nil }) {
		u.Resources = nil
	}
}

func isResourceChange(c quota.Change) bool {
	return strings.HasPrefix(c.Field, "resource ") || strings.HasPrefix(c.Field, "unit ") ||
		strings.HasPrefix(c.Field, "items ")
}

func (d *Differ) settle(before, after *state.Tree) {
	d.resources(before, after)
	previous, updated := before.Settings, after.Settings
	d.add("", "forest", previous.Forest, updated.Forest)
	d.add("", "require_reason", switchText(previous.RequireReason), switchText(updated.RequireReason))
	d.add("", "require_principal", switchText(previous.RequirePrincipal), switchText(updated.RequirePrincipal))
	d.add("", "lease default", spanText(previous.Leases.Default), spanText(updated.Leases.Default))
	d.add("", "lease max", spanText(previous.Leases.Max), spanText(updated.Leases.Max))
	d.add("", "lease grace", spanText(previous.Leases.Grace), spanText(updated.Leases.Grace))
	d.add("", "overtake", spanText(previous.Overtake), spanText(updated.Overtake))
	d.add("", "tenants_see", tenantsText(previous.TenantsSee), tenantsText(updated.TenantsSee))
	d.add("", "approvals", countText(quota.Amount(previous.Approvals)),
		countText(quota.Amount(updated.Approvals)))
}

func (d *Differ) nodes(s *treeTransition) {
	s.draft.Root.Walk(func(n *state.Node) bool {
		if !n.Dynamic {
			d.node(n)
		}
		return true
	})
}

func (d *Differ) removed(s *treeTransition) {
	s.old.Root.Walk(func(n *state.Node) bool {
		if !n.Dynamic && s.next[n] == nil {
			d.undo.Nodes = append(d.undo.Nodes, *n.Spec)
			d.add(n.Path, "node", n.Path, "")
		}
		return true
	})
}

func (d *Differ) add(path, field, before, after string) {
	kind := quota.Changed
	switch {
	case before == after:
		return
	case before == "":
		kind = quota.Added
	case after == "":
		kind = quota.Removed
	}
	d.Changes = append(d.Changes, quota.Change{
		Kind: kind, Tree: d.Tree, Node: path, Field: field,
		Before: before, After: after,
	})
}

func (d *Differ) resources(before, after *state.Tree) {
	for _, r := range after.Resources {
		previous := before.Resource(r.Name)
		if previous == nil {
			d.add("", "resource "+r.Name, "", r.Unit.String())
			d.items(r.Name, nil, r.Items)
			continue
		}
		d.add("", "unit "+r.Name, previous.Unit.String(), r.Unit.String())
		d.items(r.Name, previous.Items, r.Items)
	}
	for _, r := range before.Resources {
		if after.Resource(r.Name) == nil {
			d.add("", "resource "+r.Name, r.Unit.String(), "")
		}
	}
}

func (d *Differ) node(n *state.Node) {
	if isNewNode(n) {
		if n.Path != "" {
			d.add(n.Path, "node", "", n.Path)
		}
		d.undo.AddedPaths = append(d.undo.AddedPaths, n.Path)
		d.Spec(n.Path, &quota.NodeSpec{}, n.Spec, false)
		return
	}
	if !staysInPlace(n) {
		d.add(n.Path, "path", n.From.Path, n.Path)
	}
	differs := d.Spec(n.Path, n.From.Spec, n.Spec, true)
	if differs || n.From.Spec.Policy != n.Spec.Policy { // a root that says "open" differs in words only
		d.undo.Nodes = append(d.undo.Nodes, *n.From.Spec)
	}
}

// Spec compares what is said of one node, and answers whether it differs. There is false for a node that was not.
func (d *Differ) Spec(path string, previous, updated *quota.NodeSpec, there bool) bool {
	before := len(d.Changes)
	d.add(path, "policy", policyText(previous, there), policyText(updated, true))
	d.limits(path, "limit ", previous.Limits, updated.Limits)
	d.limits(path, "default ", previous.Defaults, updated.Defaults)
	d.limits(path, "borrow ", previous.Borrow, updated.Borrow)
	d.limits(path, "lend ", previous.Lend, updated.Lend)
	d.add(path, "queueing", queueingText(previous.Queueing), queueingText(updated.Queueing))
	d.add(path, "auto_approve", autoApproveText(previous.AutoApprove), autoApproveText(updated.AutoApprove))
	d.add(path, "thresholds", previous.Thresholds.String(), updated.Thresholds.String())
	d.add(path, "hard", switchText(previous.Hard), switchText(updated.Hard))
	d.principals(path, previous, updated)
	d.bindings(path, previous.Bindings, updated.Bindings)
	d.labels(path, previous.Labels, updated.Labels)
	return len(d.Changes) > before
}

// merge expects two lists that are sorted by key.
func merge[T any](before, after []T, key func(T) string, visit func(key string, previous, updated *T)) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		var order int
		switch {
		case i == len(before):
			order = 1
		case j == len(after):
			order = -1
		default:
			order = cmp.Compare(key(before[i]), key(after[j]))
		}
		var previous, updated *T
		if order <= 0 {
			previous = &before[i]
			i++
		}
		if order >= 0 {
			updated = &after[j]
			j++
		}
		if previous != nil {
			visit(key(*previous), previous, updated)
		} else {
			visit(key(*updated), previous, updated)
		}
	}
}

// policyText is the policy as configured; a new node that inherits one has no difference.
func policyText(s *quota.NodeSpec, there bool) string {
	if there && s.Policy == "" && s.Path == "" {
		return quota.DefaultPolicy
	}
	return s.Policy
}

func (d *Differ) limits(path, kind string, before, after []quota.ResourceLimit) {
	merge(before, after, func(l quota.ResourceLimit) string { return l.Resource },
		func(name string, previous, updated *quota.ResourceLimit) {
			if previous != nil && updated != nil && previous.Limit == updated.Limit {
				return // in another unit it reads differently
			}
			was, is := limitText(d.was, previous), limitText(d.is, updated)
			if was == is {
				is += " " + d.is.UnitOf(name).String()
			}
			d.add(path, kind+name, was, is)
		})
}

func limitText(t *state.Tree, l *quota.ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.In(t.UnitOf(l.Resource))
}

func (d *Differ) labels(path string, before, after []quota.Label) {
	merge(before, after, func(l quota.Label) string { return l.Key }, func(key string, previous, updated *quota.Label) {
		d.add(path, "label "+key, labelText(previous), labelText(updated))
	})
}

// labelText quotes the value, so that an empty one is not taken for absent.
func labelText(l *quota.Label) string {
	if l == nil {
		return ""
	}
	return `"` + l.Value + `"`
}

// switchText is absent for what is off.
func switchText(on bool) string {
	if on {
		return "on"
	}
	return ""
}

// tenantsText is absent for the default.
func tenantsText(s quota.TenantsSee) string {
	if s == quota.SeeTotals {
		return ""
	}
	return s.String()
}

// spanText is absent for what is not set.
func spanText(s quota.Span) string {
	if s == 0 {
		return ""
	}
	for _, u := range []struct {
		span quota.Span
		name string
	}{{60 * 60 * 1000, "h"}, {60 * 1000, "m"}, {1000, "s"}} {
		if s%u.span == 0 {
			return strconv.FormatInt(int64(s/u.span), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "ms"
}

// queueingText is absent for what is inherited.
func queueingText(q quota.Queueing) string {
	switch q {
	case quota.Strict:
		return "strict"
	case quota.BestEffort:
		return "best-effort"
	case quota.InheritQueueing:
	}
	return ""
}

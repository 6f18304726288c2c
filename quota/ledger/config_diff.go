package ledger

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// differ collects the changes of one tree, and how to take them back.
type differ struct {
	tree    string
	changes []quota.Change
	undo    quota.TreeUndo
}

// diff lists every difference that a succession makes. Dynamic nodes are not configuration.
func (s *treeTransition) diff() *differ {
	d := &differ{}
	switch before, after := s.old, s.draft; {
	case after == nil:
		d.tree, d.undo = before.name, before.undo()
		d.undo.Removed, d.undo.Nodes = true, before.specs()
		d.add("", "tree", before.name, "")
	case before == nil:
		d.tree, d.undo = after.name, quota.TreeUndo{Name: after.name, Added: true}
		d.add("", "tree", "", after.name)
		d.settle(&tree{}, after)
		d.nodes(s)
		d.undo.AddedPaths = nil // with the tree
	default:
		d.tree, d.undo = after.name, before.undo()
		d.settle(before, after)
		if !slices.ContainsFunc(d.changes, isResourceChange) {
			omitResources(&d.undo)
		}
		d.nodes(s)
		d.removed(s)
		d.undo.Moves = s.inverseMoves()
	}
	return d
}

// undo is how to take back a change of nothing but the tree as a whole.
func (t *tree) undo() quota.TreeUndo {
	return quota.TreeUndo{Name: t.name, TreeSettings: t.settings, Resources: t.registered()}
}

// omitResources forgets the resources, which have not changed, if some are itemized.
func omitResources(u *quota.TreeUndo) {
	if slices.ContainsFunc(u.Resources, func(r quota.Resource) bool { return r.Items != nil }) {
		u.Resources = nil
	}
}

// isResourceChange is true for a change of what is registered.
func isResourceChange(c quota.Change) bool {
	return strings.HasPrefix(c.Field, "resource ") || strings.HasPrefix(c.Field, "unit ") ||
		strings.HasPrefix(c.Field, "items ")
}

// settle compares what is said of the tree as a whole.
func (d *differ) settle(before, after *tree) {
	d.resources(before, after)
	was, is := before.settings, after.settings
	d.add("", "forest", was.Forest, is.Forest)
	d.add("", "require_reason", switchText(was.RequireReason), switchText(is.RequireReason))
	d.add("", "require_principal", switchText(was.RequirePrincipal), switchText(is.RequirePrincipal))
	d.add("", "maintenance", switchText(was.Maintenance), switchText(is.Maintenance))
	d.add("", "lease default", spanText(was.Leases.Default), spanText(is.Leases.Default))
	d.add("", "lease max", spanText(was.Leases.Max), spanText(is.Leases.Max))
	d.add("", "lease grace", spanText(was.Leases.Grace), spanText(is.Leases.Grace))
	d.add("", "overtake", spanText(was.Overtake), spanText(is.Overtake))
	d.add("", "tenants_see", tenantsText(was.TenantsSee), tenantsText(is.TenantsSee))
	d.add("", "approvals", countText(quota.Amount(was.Approvals)),
		countText(quota.Amount(is.Approvals)))
}

func (d *differ) nodes(s *treeTransition) {
	s.draft.root.walk(func(n *node) bool {
		if !n.dynamic {
			d.node(n)
		}
		return true
	})
}

// removed lists the nodes that nothing continues.
func (d *differ) removed(s *treeTransition) {
	s.old.root.walk(func(n *node) bool {
		if !n.dynamic && s.next[n] == nil {
			d.undo.Nodes = append(d.undo.Nodes, *n.spec)
			d.add(n.path, "node", n.path, "")
		}
		return true
	})
}

// add notes a difference of two texts; an empty text means absent.
func (d *differ) add(path, field, before, after string) {
	kind := quota.Changed
	switch {
	case before == after:
		return
	case before == "":
		kind = quota.Added
	case after == "":
		kind = quota.Removed
	}
	d.changes = append(d.changes, quota.Change{
		Kind: kind, Tree: d.tree, Node: path, Field: field,
		Before: before, After: after,
	})
}

func (d *differ) resources(before, after *tree) {
	for _, r := range after.resources {
		was := before.resource(r.Name)
		if was == nil {
			d.add("", "resource "+r.Name, "", r.Unit.String())
			d.items(r.Name, nil, r.Items)
			continue
		}
		d.add("", "unit "+r.Name, was.Unit.String(), r.Unit.String())
		d.items(r.Name, was.Items, r.Items)
	}
	for _, r := range before.resources {
		if after.resource(r.Name) == nil {
			d.add("", "resource "+r.Name, r.Unit.String(), "")
		}
	}
}

// node compares one node of a draft with the one that it continues.
func (d *differ) node(n *node) {
	if n.isNew() {
		if n.path != "" {
			d.add(n.path, "node", "", n.path)
		}
		d.undo.AddedPaths = append(d.undo.AddedPaths, n.path)
		d.spec(n.path, &quota.NodeSpec{}, n.spec, false)
		return
	}
	if !n.stays() {
		d.add(n.path, "path", n.from.path, n.path)
	}
	differs := d.spec(n.path, n.from.spec, n.spec, true)
	if differs || n.from.spec.Policy != n.spec.Policy { // a root that says "open" differs in words only
		d.undo.Nodes = append(d.undo.Nodes, *n.from.spec)
	}
}

// spec compares what is said of one node, and answers whether it differs. There is false for a node that was not.
func (d *differ) spec(path string, was, is *quota.NodeSpec, there bool) bool {
	before := len(d.changes)
	d.add(path, "policy", policyText(was, there), policyText(is, true))
	d.limits(path, "limit ", was.Limits, is.Limits)
	d.limits(path, "default ", was.Defaults, is.Defaults)
	d.limits(path, "borrow ", was.Borrow, is.Borrow)
	d.limits(path, "lend ", was.Lend, is.Lend)
	d.add(path, "queueing", queueingText(was.Queueing), queueingText(is.Queueing))
	d.add(path, "auto_approve", autoApproveText(was.AutoApprove), autoApproveText(is.AutoApprove))
	d.add(path, "warn_at", was.WarnAt.String(), is.WarnAt.String())
	d.add(path, "hard", switchText(was.Hard), switchText(is.Hard))
	d.principals(path, was, is)
	d.add(path, "admins", strings.Join(was.Admins, " "), strings.Join(is.Admins, " "))
	d.bindings(path, was.Bindings, is.Bindings)
	d.labels(path, was.Labels, is.Labels)
	return len(d.changes) > before
}

// merge walks two lists that are sorted by key side by side.
func merge[T any](before, after []T, key func(T) string, visit func(key string, was, is *T)) {
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
		var was, is *T
		if order <= 0 {
			was = &before[i]
			i++
		}
		if order >= 0 {
			is = &after[j]
			j++
		}
		if was != nil {
			visit(key(*was), was, is)
		} else {
			visit(key(*is), was, is)
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

func (d *differ) limits(path, kind string, before, after []quota.ResourceLimit) {
	merge(before, after, func(l quota.ResourceLimit) string { return l.Resource },
		func(name string, was, is *quota.ResourceLimit) {
			d.add(path, kind+name, limitText(was), limitText(is))
		})
}

func limitText(l *quota.ResourceLimit) string {
	if l == nil {
		return ""
	}
	return l.Limit.String()
}

func (d *differ) labels(path string, before, after []quota.Label) {
	merge(before, after, func(l quota.Label) string { return l.Key }, func(key string, was, is *quota.Label) {
		d.add(path, "label "+key, labelText(was), labelText(is))
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

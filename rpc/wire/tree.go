package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// units is the one table of units; the wire's default is count.
var units = map[quoratev1.Unit]quota.Unit{
	quoratev1.Unit_UNIT_UNSPECIFIED: quota.Count,
	quoratev1.Unit_UNIT_COUNT:       quota.Count,
	quoratev1.Unit_UNIT_MILLI:       quota.Milli,
	quoratev1.Unit_UNIT_BYTES:       quota.Bytes,
	quoratev1.Unit_UNIT_ITEMS:       quota.Items,
}

// FromUnit writes a unit.
func FromUnit(unit quota.Unit) quoratev1.Unit {
	switch unit {
	case quota.Count:
		return quoratev1.Unit_UNIT_COUNT
	case quota.Milli:
		return quoratev1.Unit_UNIT_MILLI
	case quota.Bytes:
		return quoratev1.Unit_UNIT_BYTES
	case quota.Items:
		return quoratev1.Unit_UNIT_ITEMS
	}
	return quoratev1.Unit_UNIT_UNSPECIFIED
}

// toTreeSpec reads a tree: resources by name, the root first, every parent before its children.
func toTreeSpec(t *quoratev1.Tree, field string, moved FieldPaths) (quota.TreeSpec, error) {
	resources, err := toResources(t.GetResources(), field, moved)
	if err != nil {
		return quota.TreeSpec{}, err
	}
	first, err := toNodeSpec(rootNode(t), field)
	if err != nil {
		return quota.TreeSpec{}, err
	}
	spec := quota.TreeSpec{
		Name: t.GetName(), Resources: resources, Nodes: make([]quota.NodeSpec, 0, 1+len(t.GetNodes())),
		TreeSettings: quota.TreeSettings{
			Forest: t.GetForest(), RequireReason: t.GetRequireReason(),
			Leases: toLeaseSettings(t.GetLeases()), Overtake: quota.Span(t.GetOvertakeMs()),
			TenantsSee: toTenantsSee(t.GetTenantsSee()),
			Approvals:  int(t.GetApprovals()), RequirePrincipal: t.GetRequirePrincipal(),
		},
	}
	for _, m := range t.GetMoves() { // they are done in this order
		spec.Moves = append(spec.Moves, quota.Move{From: m.GetNode(), To: m.GetNewNode()})
	}
	spec.Nodes = append(spec.Nodes, first)
	moved.recordBindings(field+".bindings", field+".bindings", t.GetBindings())
	order := sortedOrder(t.GetNodes(), func(a, b *quoratev1.Node) int { return comparePaths(a.GetPath(), b.GetPath()) })
	for to, from := range moved.recordOrder(field+".nodes", order) {
		at := fmt.Sprintf("%s.nodes[%d]", field, from)
		node, err := toNodeSpec(t.GetNodes()[from], at)
		if err != nil {
			return quota.TreeSpec{}, err
		}
		moved.recordBindings(
			fmt.Sprintf("%s.nodes[%d].bindings", field, to), at+".bindings", t.GetNodes()[from].GetBindings())
		spec.Nodes = append(spec.Nodes, node)
	}
	return spec, nil
}

func toLeaseSettings(s *quoratev1.LeaseSettings) quota.LeaseSettings {
	return quota.LeaseSettings{
		Default: quota.Span(s.GetDefaultTtlMs()), Max: quota.Span(s.GetMaxTtlMs()), Grace: quota.Span(s.GetGraceMs()),
	}
}

// fromLeaseSettings is nil if everything is the default.
func fromLeaseSettings(s quota.LeaseSettings) *quoratev1.LeaseSettings {
	if s == (quota.LeaseSettings{}) {
		return nil
	}
	return &quoratev1.LeaseSettings{DefaultTtlMs: int64(s.Default), MaxTtlMs: int64(s.Max), GraceMs: int64(s.Grace)}
}

func toResources(resources []*quoratev1.Resource, field string, moved FieldPaths) ([]quota.Resource, error) {
	list := make([]quota.Resource, len(resources))
	order := sortedOrder(
		resources, func(a, b *quoratev1.Resource) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i, from := range moved.recordOrder(field+".resources", order) {
		r := resources[from]
		unit, known := units[r.GetUnit()]
		if !known {
			return nil, InvalidField(fmt.Sprintf("%s.resources[%d].unit", field, from),
				"unit %d does not exist", r.GetUnit())
		}
		list[i] = quota.Resource{Name: r.GetName(), Unit: unit, Items: toItemSpec(r.GetItems())}
	}
	return list, nil
}

// rootNode is the root as a node: its configuration stands in the tree itself.
func rootNode(t *quoratev1.Tree) *quoratev1.Node {
	return &quoratev1.Node{
		Policy: t.GetPolicy(), Limits: t.GetLimits(), Labels: t.GetLabels(), Principals: t.GetPrincipals(),
		Defaults: t.GetDefaults(), Applications: t.GetApplications(), Queueing: t.GetQueueing(),
		Bindings: t.GetBindings(), AutoApprove: t.GetAutoApprove(), Thresholds: t.GetThresholds(),
	}
}

func toAutoApprove(a *quoratev1.AutoApprove) quota.AutoApprove {
	return quota.AutoApprove{
		AtMost: int(a.GetAtMostPercent()), Every: quota.Span(a.GetEveryMs()), WithinHeadroom: a.GetWithinHeadroom(),
	}
}

// fromAutoApprove is nil for no rule.
func fromAutoApprove(a quota.AutoApprove) *quoratev1.AutoApprove {
	if a == (quota.AutoApprove{}) {
		return nil
	}
	return &quoratev1.AutoApprove{
		AtMostPercent: int32(a.AtMost), EveryMs: int64(a.Every), WithinHeadroom: a.WithinHeadroom,
	}
}

func toNodeSpec(n *quoratev1.Node, field string) (quota.NodeSpec, error) {
	spec := quota.NodeSpec{
		Path: n.GetPath(), Policy: n.GetPolicy(), Labels: ToLabels(n.GetLabels()), Hard: n.GetHard(),
		Queueing: queueings[n.GetQueueing()], AutoApprove: toAutoApprove(n.GetAutoApprove()),
		Thresholds: toThresholds(n.GetThresholds()),
	}
	for _, part := range []struct {
		to   *[]quota.ResourceLimit
		from map[string]*quoratev1.Limit
		name string
	}{
		{&spec.Limits, n.GetLimits(), ".limits"},
		{&spec.Defaults, n.GetDefaults(), ".defaults"},
		{&spec.Borrow, n.GetBorrow(), ".borrow"},
		{&spec.Lend, n.GetLend(), ".lend"},
	} {
		var err error
		if *part.to, err = ToLimits(part.from, field+part.name, false); err != nil {
			return quota.NodeSpec{}, err
		}
	}
	var err error
	if spec.Applications, err = toBound(n.GetApplications(), field+".applications"); err != nil {
		return quota.NodeSpec{}, err
	}
	if spec.Principals, err = toPrincipalLimits(n.GetPrincipals(), field+".principals"); err != nil {
		return quota.NodeSpec{}, err
	}
	spec.Bindings, err = ToBindings(field+".bindings", n.GetBindings())
	return spec, err
}

// toPrincipalLimits keeps every order: it is the one in which names are looked for.
func toPrincipalLimits(limits []*quoratev1.PrincipalLimit, field string) ([]quota.PrincipalLimit, error) {
	var list []quota.PrincipalLimit
	for i, l := range limits {
		at := ElementOf(field, i)
		entry := quota.PrincipalLimit{Users: l.GetUsers(), Groups: l.GetGroups(), Description: l.GetDescription()}
		for _, resource := range slices.Sorted(maps.Keys(l.GetLimits())) {
			most, err := toBound(l.GetLimits()[resource], fmt.Sprintf("%s.limits[%s]", at, resource))
			if err != nil {
				return nil, err
			}
			if most.HasAmount() {
				entry.Limits = append(entry.Limits, quota.Component{Resource: resource, Amount: most.Amount})
			}
		}
		var err error
		if entry.Applications, err = toBound(l.GetApplications(), at+".applications"); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}

// toBound converts a limit that is an amount or none: that of a user, a group, or a number of applications. No policy
// gives it another meaning if it is absent, so that absent and unlimited are the same.
func toBound(l *quoratev1.Limit, field string) (quota.Limit, error) {
	switch v := l.GetValue().(type) {
	case nil, *quoratev1.Limit_Unlimited:
		return quota.Limit{}, nil
	case *quoratev1.Limit_Amount:
		return quota.AtMost(quota.Amount(v.Amount)), nil
	}
	return quota.Limit{}, InvalidField(field, "the limit is an amount or unlimited; leave it out for no limit")
}

// fromBound is the inverse of toBound; nil for no limit.
func fromBound(l quota.Limit) *quoratev1.Limit {
	if !l.HasAmount() {
		return nil
	}
	return FromLimit(l)
}

// fromBounds are the limits of a user or group.
func fromBounds(limits quota.Vector) map[string]*quoratev1.Limit {
	wire := make(map[string]*quoratev1.Limit, len(limits))
	for _, c := range limits {
		wire[c.Resource] = FromLimit(quota.AtMost(c.Amount))
	}
	return wire
}

// comparePaths orders paths as a walk through the tree meets them: a parent before its children, siblings by name.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return +1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

// FromTreeSpec converts a tree.
func FromTreeSpec(spec quota.TreeSpec) *quoratev1.Tree {
	wire := &quoratev1.Tree{
		Name: spec.Name, Resources: fromResources(spec.Resources),
		Forest: spec.Forest, RequireReason: spec.RequireReason,
		Leases: fromLeaseSettings(spec.Leases), OvertakeMs: int64(spec.Overtake),
		TenantsSee: tenantsSee[spec.TenantsSee],
		Approvals:  int32(spec.Approvals), RequirePrincipal: spec.RequirePrincipal,
	}
	for _, n := range spec.Nodes {
		node := fromNodeSpec(n)
		if n.Path != "" {
			wire.Nodes = append(wire.Nodes, node)
			continue
		}
		wire.Policy, wire.Limits, wire.Labels, wire.Principals = node.GetPolicy(), node.GetLimits(), node.GetLabels(),
			node.GetPrincipals()
		wire.Defaults, wire.Applications, wire.Queueing = node.GetDefaults(), node.GetApplications(), node.GetQueueing()
		wire.Bindings, wire.AutoApprove, wire.Thresholds = node.GetBindings(), node.GetAutoApprove(), node.GetThresholds()
	}
	return wire
}

func fromNodeSpec(n quota.NodeSpec) *quoratev1.Node {
	wire := &quoratev1.Node{
		Path: n.Path, Policy: n.Policy, Limits: fromLimits(n.Limits), Labels: fromLabels(n.Labels), Hard: n.Hard,
		Defaults: fromLimits(n.Defaults), Borrow: fromLimits(n.Borrow), Lend: fromLimits(n.Lend),
		Applications: fromBound(n.Applications), Queueing: fromQueueing(n.Queueing),
		Bindings: FromBindings(n.Bindings), AutoApprove: fromAutoApprove(n.AutoApprove),
		Thresholds: fromThresholds(n.Thresholds),
	}
	for _, l := range n.Principals {
		wire.Principals = append(wire.Principals, &quoratev1.PrincipalLimit{
			Users: l.Users, Groups: l.Groups, Limits: fromBounds(l.Limits),
			Applications: fromBound(l.Applications), Description: l.Description,
		})
	}
	return wire
}

func fromResources(resources []quota.Resource) []*quoratev1.Resource {
	wire := make([]*quoratev1.Resource, len(resources))
	for i, r := range resources {
		wire[i] = &quoratev1.Resource{Name: r.Name, Unit: FromUnit(r.Unit), Items: fromItemSpec(r.Items)}
	}
	return wire
}

// FromTreeSummary leaves out which items there are: that may be many names, and ListItems has them.
func FromTreeSummary(t quota.TreeSummary) *quoratev1.TreeSummary {
	resources := fromResources(t.Resources)
	for _, r := range resources {
		r.Items = nil
	}
	waiting := t.Requests.Waiting
	return &quoratev1.TreeSummary{
		Name: t.Name, Policy: t.Policy, Resources: resources,
		NodeCount: int32(t.Nodes), ClaimCount: int64(t.Claims),
		WaitingRequests: int64(waiting.Requests), WaitingSinceLedgerMs: int64(waiting.Since),
		DeniedRequests: int64(t.Requests.Denied),
	}
}

// FromNodeUsage converts the usage of a node.
func FromNodeUsage(n quota.NodeUsage) *quoratev1.NodeUsage {
	wire := &quoratev1.NodeUsage{
		Node: n.Path, Policy: n.Policy, Resources: make([]*quoratev1.ResourceUsage, len(n.Resources)),
		RunningApplications: int64(n.Applications), MaxApplications: fromBound(n.MaxApplications),
		Cordon: FromNodeCordon(n.Hold), ChildCount: int64(n.Children),
		WaitingRequests: int64(n.Waiting.Requests), WaitingSinceLedgerMs: int64(n.Waiting.Since),
	}
	for i, r := range n.Resources {
		usage := &quoratev1.ResourceUsage{
			Resource: r.Resource.Name, Unit: FromUnit(r.Resource.Unit), Limit: FromLimit(r.Set),
			Effective: FromLimit(r.Effective), HasDefault: r.HasDefault, DefaultNode: fromDefaultAt(r),
			LimitChangesAt: FromCivil(r.ChangesAt),
			Own:            int64(r.Own), Subtree: int64(r.Subtree), Over: int64(r.Over),
			Borrowed: int64(r.Borrowed), Lends: int64(r.Lends),
		}
		if r.Bounded {
			usage.Headroom = new(int64(r.Headroom))
		}
		wire.Resources[i] = usage
	}
	return wire
}

var tenantsSee = map[quota.TenantsSee]quoratev1.TenantsSee{
	quota.SeeTotals:  quoratev1.TenantsSee_TENANTS_SEE_TOTALS,
	quota.SeeNames:   quoratev1.TenantsSee_TENANTS_SEE_NAMES,
	quota.SeeNothing: quoratev1.TenantsSee_TENANTS_SEE_NOTHING,
}

// toTenantsSee is totals for a request that does not say.
func toTenantsSee(see quoratev1.TenantsSee) quota.TenantsSee {
	for known, shown := range tenantsSee {
		if shown == see {
			return known
		}
	}
	return quota.SeeTotals
}

// fromSeen is nil where nothing is hidden.
func fromSeen(see quota.TenantsSee) *quoratev1.TenantsSee {
	if see == quota.SeeTotals {
		return nil
	}
	return tenantsSee[see].Enum()
}

// fromDefaultAt is nil if no default stands for the limit, or the caller may not know whose.
func fromDefaultAt(r quota.ResourceUsage) *string {
	if !r.HasDefault || r.DefaultHidden {
		return nil
	}
	return &r.DefaultAt
}

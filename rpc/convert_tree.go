package rpc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// units is the one table of units; the wire's default is count.
var units = map[quoratev1.Unit]quota.Unit{
	quoratev1.Unit_UNIT_UNSPECIFIED: quota.Count,
	quoratev1.Unit_UNIT_COUNT:       quota.Count,
	quoratev1.Unit_UNIT_MILLI:       quota.Milli,
	quoratev1.Unit_UNIT_BYTES:       quota.Bytes,
}

func fromUnit(unit quota.Unit) quoratev1.Unit {
	switch unit {
	case quota.Count:
		return quoratev1.Unit_UNIT_COUNT
	case quota.Milli:
		return quoratev1.Unit_UNIT_MILLI
	case quota.Bytes:
		return quoratev1.Unit_UNIT_BYTES
	}
	return quoratev1.Unit_UNIT_UNSPECIFIED
}

// toTreeSpec reads a tree: resources by name, the root first, every parent before its children.
func toTreeSpec(t *quoratev1.Tree, field string, moved moves) (quota.TreeSpec, error) {
	resources, err := toResources(t.GetResources(), field, moved)
	if err != nil {
		return quota.TreeSpec{}, err
	}
	root := &quoratev1.Node{Policy: t.GetPolicy(), Limits: t.GetLimits(), Labels: t.GetLabels()}
	first, err := toNodeSpec(root, field)
	if err != nil {
		return quota.TreeSpec{}, err
	}
	spec := quota.TreeSpec{Name: t.GetName(), Resources: resources, Nodes: make([]quota.NodeSpec, 0, 1+len(t.GetNodes()))}
	spec.Nodes = append(spec.Nodes, first)
	order := sorted(t.GetNodes(), func(a, b *quoratev1.Node) int { return comparePaths(a.GetPath(), b.GetPath()) })
	for _, from := range moved.note(field+".nodes", order) {
		node, err := toNodeSpec(t.GetNodes()[from], fmt.Sprintf("%s.nodes[%d]", field, from))
		if err != nil {
			return quota.TreeSpec{}, err
		}
		spec.Nodes = append(spec.Nodes, node)
	}
	return spec, nil
}

func toResources(resources []*quoratev1.Resource, field string, moved moves) ([]quota.Resource, error) {
	list := make([]quota.Resource, len(resources))
	order := sorted(resources, func(a, b *quoratev1.Resource) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i, from := range moved.note(field+".resources", order) {
		r := resources[from]
		unit, known := units[r.GetUnit()]
		if !known {
			return nil, invalid(fmt.Sprintf("%s.resources[%d].unit", field, from), "there is no unit number %d", r.GetUnit())
		}
		list[i] = quota.Resource{Name: r.GetName(), Unit: unit}
	}
	return list, nil
}

func toNodeSpec(n *quoratev1.Node, field string) (quota.NodeSpec, error) {
	limits, err := toLimits(n.GetLimits(), field+".limits", false)
	if err != nil {
		return quota.NodeSpec{}, err
	}
	return quota.NodeSpec{Path: n.GetPath(), Policy: n.GetPolicy(), Limits: limits, Labels: toLabels(n.GetLabels())}, nil
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

func fromTreeSpec(spec quota.TreeSpec) *quoratev1.Tree {
	wire := &quoratev1.Tree{Name: spec.Name, Resources: fromResources(spec.Resources)}
	for _, n := range spec.Nodes {
		if n.Path == "" {
			wire.Policy, wire.Limits, wire.Labels = n.Policy, fromLimits(n.Limits), fromLabels(n.Labels)
			continue
		}
		wire.Nodes = append(wire.Nodes, &quoratev1.Node{Path: n.Path, Policy: n.Policy, Limits: fromLimits(n.Limits), Labels: fromLabels(n.Labels)})
	}
	return wire
}

func fromResources(resources []quota.Resource) []*quoratev1.Resource {
	wire := make([]*quoratev1.Resource, len(resources))
	for i, r := range resources {
		wire[i] = &quoratev1.Resource{Name: r.Name, Unit: fromUnit(r.Unit)}
	}
	return wire
}

func fromTreeSummary(t quota.TreeSummary) *quoratev1.TreeSummary {
	return &quoratev1.TreeSummary{
		Name: t.Name, Policy: t.Policy, Resources: fromResources(t.Resources),
		NodeCount: int32(t.Nodes), ClaimCount: int64(t.Claims), //nolint:gosec // both are bounded far below
	}
}

func fromNodeUsage(n quota.NodeUsage) *quoratev1.NodeUsage {
	wire := &quoratev1.NodeUsage{Node: n.Path, Policy: n.Policy, Resources: make([]*quoratev1.ResourceUsage, len(n.Resources))}
	for i, r := range n.Resources {
		usage := &quoratev1.ResourceUsage{
			Resource: r.Resource.Name, Unit: fromUnit(r.Resource.Unit), Limit: fromLimit(r.Set), Effective: fromLimit(r.Effective),
			Own: int64(r.Own), Subtree: int64(r.Subtree), Over: int64(r.Over),
		}
		if r.Bounded {
			usage.Headroom = new(int64(r.Headroom))
		}
		wire.Resources[i] = usage
	}
	return wire
}

// changeKinds is the one table of kinds of change.
var changeKinds = map[quota.ChangeKind]quoratev1.ChangeKind{
	quota.Added:   quoratev1.ChangeKind_CHANGE_KIND_ADDED,
	quota.Changed: quoratev1.ChangeKind_CHANGE_KIND_CHANGED,
	quota.Removed: quoratev1.ChangeKind_CHANGE_KIND_REMOVED,
}

func fromChanges(changes []quota.Change) []*quoratev1.Change {
	wire := make([]*quoratev1.Change, len(changes))
	for i, c := range changes {
		wire[i] = &quoratev1.Change{Kind: changeKinds[c.Kind], Tree: c.Tree, Node: c.Node, Field: c.Field, Before: c.Before, After: c.After}
	}
	return wire
}

func fromConfiguration(c quota.Configuration, index uint64, repeated bool) *quoratev1.ConfigurationResult {
	wire := &quoratev1.ConfigurationResult{Revision: c.Revision, Changes: fromChanges(c.Changes), Index: index, Repeated: repeated}
	for _, o := range c.Over {
		wire.Over = append(wire.Over, &quoratev1.Overuse{Tree: o.Tree, Node: o.Node, Resource: o.Resource, Limit: int64(o.Limit), Used: int64(o.Used)})
	}
	return wire
}

func fromRevision(r quota.Revision) *quoratev1.Revision {
	return &quoratev1.Revision{
		Revision: r.Number, Actor: r.Actor, Reason: r.Reason, At: fromWall(r.Wall), RequestId: r.RequestID,
		Changes: fromChanges(r.Changes), ChangeCount: int32(r.ChangeCount), //nolint:gosec // bounded by a request's size
	}
}

// configurationRequest is what the three changes of configuration have in common.
type configurationRequest interface {
	proto.Message
	GetActor() string
	GetReason() string
	GetRequestId() string
	GetDryRun() bool
}

func toMeta(r configurationRequest, expected *uint64) (quota.ChangeMeta, error) {
	digest, err := fingerprint(r)
	return quota.ChangeMeta{
		Actor: r.GetActor(), Reason: r.GetReason(), RequestID: r.GetRequestId(), Fingerprint: digest, ExpectedRevision: expected,
	}, err
}

// fingerprint is a digest of what a change asks for; empty without a request id. Who asks, why, and under which name is
// not part of it, and neither is the expected revision: after the first success a repeat cannot meet it any more.
func fingerprint(r configurationRequest) (string, error) {
	if r.GetRequestId() == "" {
		return "", nil
	}
	content := proto.Clone(r).ProtoReflect()
	fields := content.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"request_id", "actor", "reason", "dry_run", "expected_revision"} {
		content.Clear(fields.ByName(name))
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(content.Interface())
	if err != nil {
		return "", invalid("", "the request cannot be encoded again: %v", err)
	}
	sum := sha256.Sum256(append([]byte(content.Descriptor().FullName()), encoded...))
	return hex.EncodeToString(sum[:]), nil
}

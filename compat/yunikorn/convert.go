package yunikorn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/compat"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Bounds of the API that only this configuration meets.
const (
	maxPrincipals = 1000 // entries of a node, and names of an entry
	maxHolder     = 256  // bytes of a user's or group's name
	maxText       = 256  // bytes of a description or a label
)

// Rules of a conversion. They are ours: YuniKorn accepts what they refuse.
const (
	ruleConvertPartition = "convert-partition"
	ruleConvertQueue     = "convert-queue"
	ruleConvertResource  = "convert-resource"
	ruleConvertLimit     = "convert-limit"
)

// Convert makes a tree of each partition of a queue configuration, under the policy "capped"; vcore is in thousandths,
// memory in bytes, everything else counted. The root of a tree is the queue root, with the limits of the partition; a
// queue is a node of the same name in lower case, as [compat.Name] writes it (see [LabelQueue]).
//
// An amount or count above 2^62-1, which nobody can hold, becomes 2^62-1. The error is of type [ConfigErrors]: what
// [Validate] refuses, or else what trees cannot be: more than 100 partitions, 16 levels below root, 64 types, 1,000
// entries on a queue or names in an entry, and a type that is no name of a resource.
func Convert(text []byte, options ...Option) (*compat.Conversion, error) {
	valid, problems := validated(text, options)
	if len(problems) > 0 {
		return nil, problems
	}
	c := &converter{}
	if len(valid.Partitions) > compat.MaxTrees {
		c.fail("partitions", "", ruleConvertPartition,
			"%d partitions; %d trees can be applied together", len(valid.Partitions), compat.MaxTrees)
	}
	c.noteIf(valid.Checksum != "", "checksum", "", "the checksum is ignored")
	for i, root := range valid.roots {
		c.Trees = append(c.Trees, c.tree(&valid.Partitions[i], root, fmt.Sprintf("partitions[%d]", i)))
	}
	if err := c.found().err(); err != nil {
		return nil, err
	}
	compat.Sort(c.Trees)
	return &c.Conversion, nil
}

// converter gathers trees, notes and what stands in the way.
type converter struct {
	compat.Conversion
	validator // for its problems

	kinds map[string]bool // resource types of the present tree
}

func (c *converter) note(path, queue, format string, args ...any) {
	if queue != "" {
		path += " (" + queue + ")"
	}
	c.Note("%s: %s", path, fmt.Sprintf(format, args...))
}

func (c *converter) noteIf(is bool, path, queue, format string, args ...any) {
	if is {
		c.note(path, queue, format, args...)
	}
}

func (c *converter) tree(p *partition, root *node, path string) *quoratev1.Tree {
	name := partitionName(p)
	tree := &quoratev1.Tree{Name: treeName(name), Policy: "capped"}
	if tree.GetName() != name {
		tree.Labels = map[string]string{LabelPartition: compat.Label(name)}
		c.note(path+".name", "", "the partition is the tree %q", tree.GetName())
	}
	c.dropped(p, path)
	c.noteIf(root.Name != rootName, root.path+".name", rootName,
		"%q is taken as root; YuniKorn could not run it", root.Name)
	c.kinds = map[string]bool{vcore: true, memory: true}
	first := c.node(root, "") // root has no quantities, so it has no labels
	tree.Limits, tree.Principals, tree.Applications = first.GetLimits(), first.GetPrincipals(), first.GetApplications()
	tree.Nodes = c.below(root, "", nil)
	if len(tree.GetNodes()) > compat.MaxNodes {
		c.fail(path+".queues", "", ruleConvertQueue, "%d queues; a tree may have %d", len(tree.GetNodes()), compat.MaxNodes)
	}
	tree.Resources = c.resources(path)
	return tree
}

// dropped notes what of a partition has no meaning here.
func (c *converter) dropped(p *partition, path string) {
	c.noteIf(len(p.PlacementRules) > 0, path+".placementrules", "",
		"placement rules are ignored: a request names its queue")
	c.noteIf(p.NodeSortPolicy.Type != "" || len(p.NodeSortPolicy.ResourceWeights) > 0, path+".nodesortpolicy", "",
		"the order of machines is ignored: no machines are chosen here")
	c.noteIf(p.Preemption.Enabled != nil || p.Preemption.QuotaPreemptionEnabled != nil, path+".preemption", "",
		"preemption is ignored: nothing is taken from anybody under the policy capped")
	c.noteIf(p.UserGroupResolver.Type != "", path+".usergroupresolver", "",
		"ignored: a request names the groups of its user")
}

// resources registers the types that were met in a partition.
func (c *converter) resources(path string) []*quoratev1.Resource {
	if len(c.kinds) > compat.MaxResources {
		c.fail(path, "", ruleConvertResource, "%d types of resources, %s and %s included; a tree may have %d",
			len(c.kinds), vcore, memory, compat.MaxResources)
	}
	c.noteIf(c.kinds["cpu"], path, "",
		"cpu is a resource of its own, counted in whole numbers; cores are called %s", vcore)
	var registered []*quoratev1.Resource
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		registered = append(registered, &quoratev1.Resource{Name: kind, Unit: unitOf(kind)})
	}
	return registered
}

func unitOf(kind string) quoratev1.Unit {
	switch kind {
	case vcore:
		return quoratev1.Unit_UNIT_MILLI
	case memory:
		return quoratev1.Unit_UNIT_BYTES
	default:
		return quoratev1.Unit_UNIT_COUNT
	}
}

// below appends the nodes below a queue, parents before children.
func (c *converter) below(n *node, path string, nodes []*quoratev1.Node) []*quoratev1.Node {
	for _, child := range n.children {
		name := nodeName(child.Name)
		if child.depth > compat.MaxDepth {
			c.fail(child.path, child.name, ruleConvertQueue,
				"the queue is %d levels below root; a node may be %d", child.depth, compat.MaxDepth)
			continue
		}
		at := strings.TrimPrefix(path+"/"+name, "/")
		converted := c.node(child, at)
		if name != child.Name {
			converted.Labels = labelled(converted.GetLabels(), LabelQueue, child.Name)
			c.note(child.path+".name", child.name, "the queue is the node %q", at)
		}
		nodes = c.below(child, at, append(nodes, converted))
	}
	return nodes
}

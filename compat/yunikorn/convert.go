package yunikorn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Bounds of the API that a configuration may meet.
const (
	maxTrees      = 100
	maxNodes      = 20_000 - 1 // the root is one more
	maxDepth      = 16
	maxResources  = 64
	maxPrincipals = 1000 // entries of a node, and names of an entry
	maxHolder     = 256  // bytes of a user's or group's name
	maxText       = 256  // bytes of a description or a label
	maxAmount     = 1<<62 - 1
)

// Rules of a conversion. They are ours: YuniKorn accepts what they refuse.
const (
	ruleConvertPartition = "convert-partition"
	ruleConvertQueue     = "convert-queue"
	ruleConvertResource  = "convert-resource"
	ruleConvertLimit     = "convert-limit"
)

// Conversion is a queue configuration in our terms.
type Conversion struct {
	// Trees has one for each partition, sorted by name, nodes by path and resources by name. The policy is "capped"; vcore
	// is in thousandths, memory in bytes, everything else counted.
	Trees []*quoratev1.Tree
	// Notes say, with the place and in the order of the file, what the trees do not carry, or carry otherwise than it was
	// written.
	Notes []string
}

// Convert makes trees of a queue configuration. The root of a tree is the queue root, with the limits of the partition;
// a queue is a node of the same name in lower case, escaped where it must be (see [LabelQueue]).
//
// An amount or count above 2^62-1, which nobody can hold, becomes 2^62-1. The error is of type [ConfigErrors]: what
// [Validate] refuses, or else what a tree cannot be: a partition's or queue's name of more than 63 bytes once escaped,
// more than 16 levels below root, more than 64 types, a type that is no name of a resource, or more than 1,000 entries
// on a queue, or names in an entry.
func Convert(text []byte, options ...Option) (*Conversion, error) {
	valid, problems := validated(text, options)
	if len(problems) > 0 {
		return nil, problems
	}
	c := &converter{}
	if len(valid.Partitions) > maxTrees {
		c.fail("partitions", "", ruleConvertPartition,
			"%d partitions; %d trees can be applied together", len(valid.Partitions), maxTrees)
	}
	c.noteIf(valid.Checksum != "", "checksum", "", "the checksum is ignored")
	names := map[string]bool{}
	for i, root := range valid.roots {
		p, path := &valid.Partitions[i], fmt.Sprintf("partitions[%d]", i)
		tree := c.tree(p, root, path)
		if len(tree.GetName()) > maxName || names[tree.GetName()] {
			c.fail(path+".name", "", ruleConvertPartition,
				"the name %q would be the tree %q, which is another partition's or longer than %d bytes",
				clip(p.Name), clip(tree.GetName()), maxName)
		}
		names[tree.GetName()] = true
		c.trees = append(c.trees, tree)
	}
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	slices.SortFunc(c.trees, func(a, b *quoratev1.Tree) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return &Conversion{Trees: c.trees, Notes: c.notes}, nil
}

// converter gathers trees, notes and what stands in the way.
type converter struct {
	validator // for its problems

	trees []*quoratev1.Tree
	notes []string
	kinds map[string]bool // resource types of the present tree
}

func (c *converter) note(path, queue, format string, args ...any) {
	if queue != "" {
		path += " (" + queue + ")"
	}
	c.notes = append(c.notes, path+": "+fmt.Sprintf(format, args...))
}

func (c *converter) noteIf(is bool, path, queue, format string, args ...any) {
	if is {
		c.note(path, queue, format, args...)
	}
}

func (c *converter) tree(p *partition, root *node, path string) *quoratev1.Tree {
	c.noteIf(len(p.PlacementRules) > 0, path+".placementrules", "",
		"placement rules are ignored: a request names its queue")
	c.noteIf(p.NodeSortPolicy.Type != "" || len(p.NodeSortPolicy.ResourceWeights) > 0, path+".nodesortpolicy", "",
		"the order of machines is ignored: no machines are chosen here")
	c.noteIf(p.Preemption.Enabled != nil || p.Preemption.QuotaPreemptionEnabled != nil, path+".preemption", "",
		"preemption is ignored: nothing is taken from anybody under the policy capped")
	c.noteIf(p.UserGroupResolver.Type != "", path+".usergroupresolver", "",
		"ignored: a request names the groups of its user")
	c.noteIf(root.Name != rootName, root.path+".name", rootName,
		"%q is taken as root; YuniKorn could not run it", root.Name)
	c.kinds = map[string]bool{vcore: true, memory: true}
	first := c.node(root, "")
	tree := &quoratev1.Tree{
		Name: treeName(partitionName(p)), Policy: "capped", Limits: first.GetLimits(), Labels: first.GetLabels(),
		Principals: first.GetPrincipals(), Applications: first.GetApplications(), Nodes: c.below(root, "", nil),
	}
	if len(tree.GetNodes()) > maxNodes {
		c.fail(path+".queues", "", ruleConvertQueue, "%d queues; a tree may have %d", len(tree.GetNodes()), maxNodes)
	}
	slices.SortFunc(tree.GetNodes(), func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	if len(c.kinds) > maxResources {
		c.fail(path, "", ruleConvertResource, "%d types of resources, %s and %s included; a tree may have %d",
			len(c.kinds), vcore, memory, maxResources)
	}
	c.noteIf(c.kinds["cpu"], path, "",
		"cpu is a resource of its own, counted in whole numbers; cores are called %s", vcore)
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		tree.Resources = append(tree.Resources, &quoratev1.Resource{Name: kind, Unit: unitOf(kind)})
	}
	return tree
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
		if len(name) > maxName {
			c.fail(child.path+".name", child.name, ruleConvertQueue,
				"the queue would be the node %q, %d bytes long; a node's name may have %d", clip(name), len(name), maxName)
		}
		if child.depth > maxDepth {
			c.fail(child.path, child.name, ruleConvertQueue,
				"the queue is %d levels below root; a node may be %d", child.depth, maxDepth)
			continue
		}
		at := strings.TrimPrefix(path+"/"+name, "/")
		converted := c.node(child, at)
		if name != child.Name {
			label(converted, LabelQueue, child.Name)
			c.note(child.path+".name", child.name, "the queue is the node %q", at)
		}
		nodes = c.below(child, at, append(nodes, converted))
	}
	return nodes
}

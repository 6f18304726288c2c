package yunikorn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
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

// envelope is where configurations lie: in the ConfigMap of the scheduler, and in the values of its chart, now and
// before release 1.0.
var envelope = compat.Envelope{Keys: []string{"queues.yaml", "configuration"}, Top: []string{"partitions"}}

// Convert makes a tree of each partition of a queue configuration, under the policy "capped" or, where placement rules
// make queues, "project" with the template of those queues as defaults; vcore is in thousandths,
// memory in bytes, everything else counted. The root of a tree is the queue root, with the limits of the partition; a
// queue is a node of the same name in lower case, as [compat.Name] writes it (see [LabelQueue]).
//
// A tree registers the types that its configuration names, those of [Count], and memory, vcore and pods. What has no
// limit is counted and free, as in the original; pods is left out if there is no room for it.
//
// An amount or count above 2^62-1, which cannot be held, becomes 2^62-1. The error is of type [ConfigErrors]: what
// [Validate] refuses, or else what trees cannot be: more than 100 partitions, 16 levels below root, 64 types, 1,000
// entries on a queue or names in an entry, and a type that is not a name of a resource. Of a ConfigMap and of values of
// the chart, the text of queues.yaml is converted; if there is none or several, the error is of type [compat.Problems].
func Convert(text []byte, options ...Option) (*compat.Conversion, error) {
	text, note, err := envelope.Open(text)
	if err != nil {
		return nil, err
	}
	valid, problems := validateConfig(text, options)
	if len(problems) > 0 {
		return nil, problems
	}
	c := &converter{}
	if note != "" {
		c.Note("%s", note)
	}
	for _, option := range options {
		option(&c.validator)
	}
	c.checkCounted()
	if len(valid.Partitions) == 0 { // the scheduler takes it; here it would mean that every tree goes
		c.addProblem("partitions", "", ruleConvertPartition, "the configuration has no partition")
	}
	if len(valid.Partitions) > compat.MaxTrees {
		c.addProblem("partitions", "", ruleConvertPartition,
			"%d partitions; %d trees can be applied together", len(valid.Partitions), compat.MaxTrees)
	}
	c.noteIf(valid.Checksum != "", "checksum", "", "the checksum is ignored")
	for i, root := range valid.roots {
		c.Trees = append(c.Trees, c.convertTree(&valid.Partitions[i], root, fmt.Sprintf("partitions[%d]", i)))
	}
	if err := c.allProblems().errOrNil(); err != nil {
		return nil, err
	}
	compat.Sort(c.Trees)
	return &c.Conversion, nil
}

type converter struct {
	compat.Conversion
	validator // for its problems

	// of the present tree
	kinds    map[string]bool // resource types
	creating map[*node]bool  // queues where placement rules make others
}

func (c *converter) addNote(path, queue, format string, args ...any) {
	if queue != "" {
		path += " (" + queue + ")"
	}
	c.Note("%s: %s", path, fmt.Sprintf(format, args...))
}

func (c *converter) noteIf(applies bool, path, queue, format string, args ...any) {
	if applies {
		c.addNote(path, queue, format, args...)
	}
}

func (c *converter) convertTree(p *partition, root *node, path string) *quoratev1.Tree {
	name := partitionName(p)
	c.creating = queuesThatCreate(p.PlacementRules, root)
	tree := &quoratev1.Tree{Name: treeName(name), Policy: c.policyOf(root)}
	if tree.GetName() != name {
		tree.Labels = map[string]string{LabelPartition: compat.Label(name)}
		c.addNote(path+".name", "", "the partition is the tree %q", tree.GetName())
	}
	c.noteDropped(p, path)
	c.noteIf(root.Name != rootName, root.path+".name", rootName,
		"%q is taken as root; YuniKorn could not run it", root.Name)
	c.kinds = map[string]bool{vcore: true, memory: true}
	for _, kind := range c.counted {
		c.kinds[kind] = true
	}
	first := c.convertNode(root, "") // root has no quantities, so it has no labels
	below := c.applySurroundings(root, first, surroundings{
		policy: tree.GetPolicy(), defaults: map[string]*quoratev1.Limit{}, most: amounts{},
	})
	tree.Limits, tree.Principals, tree.Applications = first.GetLimits(), first.GetPrincipals(), first.GetApplications()
	tree.Defaults = first.GetDefaults()
	tree.Nodes = c.appendChildren(root, "", below, nil)
	if len(tree.GetNodes()) > compat.MaxNodes {
		c.addProblem(
			path+".queues",
			"",
			ruleConvertQueue,
			"%d queues; a tree may have %d",
			len(tree.GetNodes()),
			compat.MaxNodes,
		)
	}
	tree.Resources = c.registerResources(path)
	return tree
}

func (c *converter) noteDropped(p *partition, path string) {
	c.noteIf(len(p.PlacementRules) > 0 && len(c.creating) == 0, path+".placementrules", "",
		"placement rules are ignored: a request names its queue")
	c.noteIf(len(c.creating) > 0, path+".placementrules", "", "a request names its queue; where rules make queues, it "+
		"makes nodes (policy %s)", policyDynamic)
	c.noteIf(p.NodeSortPolicy.Type != "" || len(p.NodeSortPolicy.ResourceWeights) > 0, path+".nodesortpolicy", "",
		"the order of machines is ignored: no machines are chosen here")
	c.noteIf(p.Preemption.Enabled != nil || p.Preemption.QuotaPreemptionEnabled != nil, path+".preemption", "",
		"preemption is ignored: the policy capped preempts nothing")
	c.noteIf(p.UserGroupResolver.Type != "", path+".usergroupresolver", "",
		"ignored: a request names the groups of its user")
}

func (c *converter) checkCounted() {
	for _, kind := range c.counted {
		if !compat.IsResource(kind) {
			c.addProblem("", "", ruleConvertResource, "%q cannot be counted: %s", clipText(kind), resourceNameRule)
		}
	}
}

// registerResources registers the types that were met in a partition, and pods, which a scheduler asks for with every
// pod although few configurations limit it.
func (c *converter) registerResources(path string) []*quoratev1.Resource {
	if len(c.kinds) > compat.MaxResources {
		c.addProblem(path, "", ruleConvertResource, "%d types of resources, %s and %s included; a tree may have %d",
			len(c.kinds), vcore, memory, compat.MaxResources)
	}
	if len(c.kinds) < compat.MaxResources {
		c.kinds[pods] = true
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

// appendChildren appends the nodes below a queue, parents before children.
func (c *converter) appendChildren(
	n *node,
	path string,
	above surroundings,
	nodes []*quoratev1.Node,
) []*quoratev1.Node {
	for _, child := range n.children {
		name := nodeName(child.Name)
		if child.depth > compat.MaxDepth {
			c.addProblem(child.path, child.name, ruleConvertQueue,
				"the queue is %d levels below root; a node may be %d", child.depth, compat.MaxDepth)
			continue
		}
		at := strings.TrimPrefix(path+"/"+name, "/")
		converted := c.convertNode(child, at)
		if name != child.Name {
			converted.Labels = withLabel(converted.GetLabels(), LabelQueue, child.Name)
			c.addNote(child.path+".name", child.name, "the queue is the node %q", at)
		}
		below := c.applySurroundings(child, converted, above)
		nodes = c.appendChildren(child, at, below, append(nodes, converted))
	}
	return nodes
}

// Labels that converted trees and nodes carry.
const (
	// LabelPartition is the name of a partition as the configuration spells it, where the tree's name differs; cut to 256
	// bytes.
	LabelPartition = "yunikorn/partition"
	// LabelQueue is the name of a queue as the configuration spells it, where the node's name differs.
	LabelQueue = "yunikorn/queue"
	// LabelGuaranteed is what a queue is guaranteed, in base units: "memory=1000000000 vcore=500". Nothing enforces it.
	LabelGuaranteed = "yunikorn/guaranteed"
)

// nodeName is the name of a queue as a node: in lower case, as YuniKorn runs it, and as [compat.Name] writes it. A
// queue's name is never empty.
func nodeName(queue string) string { return treeName(strings.ToLower(queue)) }

// treeName never gets an empty name.
func treeName(partition string) string {
	name, _ := compat.Name(partition) // only the empty text has none
	return name
}

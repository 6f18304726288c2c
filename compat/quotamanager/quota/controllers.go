package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/quotamanager"
)

// Controller shows one tree and its consumers as they were when GetTreeController was called.
type Controller struct {
	name      string
	resources []string
	nodes     []NodeState       // a parent before its children
	consumers map[string]string // the node where a consumer is counted, by id
}

// NodeState is one node of a tree.
type NodeState struct {
	// Name is the name of the node.
	Name string
	// Depth is the number of nodes above it.
	Depth int
	// IsHard is true if claims that do not fit may not borrow further up.
	IsHard bool
	// Quota and Allocated are the limit of the node, and what is held at and below it, in the order of the resources.
	Quota, Allocated []int64
	// ConsumerIDs are the consumers that are counted at the node itself, sorted.
	ConsumerIDs []string
}

// GetTreeController reads a tree and its consumers; nil if there is no such tree, or the cluster does not answer,
// which is logged.
func (m *Manager) GetTreeController(treeName string) *Controller {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.treeTarget(treeName)
	if err != nil {
		m.logf("show tree %s: %v", treeName, err)
		return nil
	}
	c, err := m.readController(treeName, t.trees[0])
	if err != nil {
		m.logf("show tree %s: %v", treeName, err)
		return nil
	}
	return c
}

func (m *Manager) readController(name string, tree *quoratev1.Tree) (*Controller, error) {
	c := &Controller{name: name, consumers: map[string]string{}}
	for _, r := range tree.GetResources() {
		c.resources = append(c.resources, r.GetName())
	}
	slices.Sort(c.resources)
	at := map[string][]string{} // consumers by path
	if err := m.readConsumers(tree, func(consumer, path string) {
		at[path] = append(at[path], consumer)
		c.consumers[consumer] = originalName(tree, path)
	}); err != nil {
		return nil, err
	}
	request := &quoratev1.GetUsageRequest{Tree: tree.GetName(), Subtree: true, PageSize: pageSize}
	for page, err := range client.Pages(context.Background(), m.client.Trees.GetUsage, request) {
		if err != nil {
			return nil, err
		}
		for _, usage := range page.GetNodes() {
			c.nodes = append(c.nodes, c.newNode(tree, usage, at[usage.GetNode()]))
		}
	}
	return c, nil
}

func (c *Controller) newNode(tree *quoratev1.Tree, usage *quoratev1.NodeUsage, consumers []string) NodeState {
	slices.Sort(consumers)
	n := NodeState{Name: originalName(tree, usage.GetNode()), ConsumerIDs: consumers}
	if usage.GetNode() != "" {
		n.Depth = 1 + strings.Count(usage.GetNode(), "/")
	}
	n.IsHard = slices.ContainsFunc(tree.GetNodes(), func(known *quoratev1.Node) bool {
		return known.GetPath() == usage.GetNode() && known.GetHard()
	})
	for _, resource := range c.resources {
		for _, r := range usage.GetResources() {
			if r.GetResource() == resource {
				n.Quota = append(n.Quota, r.GetLimit().GetAmount())
				n.Allocated = append(n.Allocated, r.GetSubtree())
			}
		}
	}
	return n
}

// readConsumers calls visit with the consumer, and the path where it is counted, of each claim in a tree, in the
// order of their grants.
func (m *Manager) readConsumers(tree *quoratev1.Tree, visit func(consumer, path string)) error {
	request := &quoratev1.ListAllocationsRequest{Tree: tree.GetName(), PageSize: pageSize}
	for page, err := range client.Pages(context.Background(), m.client.Allocations.ListAllocations, request) {
		if err != nil {
			return err
		}
		for _, a := range page.GetAllocations() {
			consumer, labelled := a.GetLabels()[ConsumerLabel]
			if !labelled {
				consumer = a.GetId()
			}
			for _, claim := range a.GetClaims() {
				if claim.GetTree() == tree.GetName() {
					visit(consumer, claim.GetPlaced())
				}
			}
		}
	}
	return nil
}

// originalName is the name of the node with a path in the documents of the library.
func originalName(tree *quoratev1.Tree, path string) string {
	if path == "" {
		return tree.GetLabels()[quotamanager.RootLabel]
	}
	for _, n := range tree.GetNodes() {
		if n.GetPath() == path {
			return originalOf(n)
		}
	}
	return lastName(path)
}

// GetTreeName returns the name of the tree.
func (c *Controller) GetTreeName() string { return c.name }

// GetResourceNames returns the resources of the tree, sorted.
func (c *Controller) GetResourceNames() []string { return slices.Clone(c.resources) }

// GetNodes returns the nodes, a parent before its children.
func (c *Controller) GetNodes() []NodeState { return slices.Clone(c.nodes) }

// GetQuotaSize returns the number of resources.
func (c *Controller) GetQuotaSize() int { return len(c.resources) }

// GetConsumerIDs returns the ids of the consumers that are allocated on the tree, sorted.
func (c *Controller) GetConsumerIDs() []string { return slices.Sorted(maps.Keys(c.consumers)) }

// GetAllocatedNode returns the name of the node where a consumer is counted; empty if it is not allocated on the tree.
func (c *Controller) GetAllocatedNode(consumerID string) string { return c.consumers[consumerID] }

// IsConsumerAllocated reports whether a consumer is allocated on the tree.
func (c *Controller) IsConsumerAllocated(consumerID string) bool {
	_, allocated := c.consumers[consumerID]
	return allocated
}

// IsAllocated reports whether any consumer is allocated on the tree.
func (c *Controller) IsAllocated() bool { return len(c.consumers) > 0 }

// String shows the tree as the library does.
func (c *Controller) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "TreeController: name=%s\nQuotaTree: \n", c.name)
	for _, n := range c.nodes {
		fmt.Fprintf(&text, "%s|%s: isHard=%v; quota=%v; allocated=%v; consumers={ %s}\n", strings.Repeat("--", n.Depth),
			n.Name, n.IsHard, n.Quota, n.Allocated, spaced(n.ConsumerIDs))
	}
	fmt.Fprintf(&text, "Consumers: [ %s]\n", spaced(c.GetConsumerIDs()))
	return text.String()
}

func spaced(words []string) string {
	var text strings.Builder
	for _, word := range words {
		text.WriteString(word + " ")
	}
	return text.String()
}

// ForestController shows the trees of a forest as they were when GetForestController was called.
type ForestController struct {
	name  string
	trees []*Controller
}

// GetForestController reads the trees of a forest; nil if there is no such forest, or the cluster does not answer,
// which is logged.
func (m *Manager) GetForestController(forestName string) *ForestController {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.forestTarget(forestName)
	if err != nil {
		m.logf("show forest %s: %v", forestName, err)
		return nil
	}
	forest := &ForestController{name: forestName}
	for _, tree := range t.trees {
		c, err := m.readController(m.originalNames([]*quoratev1.Tree{tree})[0], tree)
		if err != nil {
			m.logf("show forest %s: %v", forestName, err)
			return nil
		}
		forest.trees = append(forest.trees, c)
	}
	return forest
}

// GetTreeNames returns the names of the trees, sorted.
func (f *ForestController) GetTreeNames() []string {
	return slices.Sorted(maps.Keys(f.GetControllers()))
}

// GetControllers returns the trees by name.
func (f *ForestController) GetControllers() map[string]*Controller {
	trees := map[string]*Controller{}
	for _, c := range f.trees {
		trees[c.name] = c
	}
	return trees
}

// GetResourceNames returns the resources of each tree.
func (f *ForestController) GetResourceNames() map[string][]string {
	names := map[string][]string{}
	for _, c := range f.trees {
		names[c.name] = c.GetResourceNames()
	}
	return names
}

// IsAllocated reports whether any consumer is allocated on a tree of the forest.
func (f *ForestController) IsAllocated() bool {
	return slices.ContainsFunc(f.trees, (*Controller).IsAllocated)
}

// IsConsumerAllocated reports whether a consumer is allocated on a tree of the forest.
func (f *ForestController) IsConsumerAllocated(consumerID string) bool {
	return slices.ContainsFunc(f.trees, func(c *Controller) bool { return c.IsConsumerAllocated(consumerID) })
}

// String shows the forest.
func (f *ForestController) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "ForestController: name=%s\n", f.name)
	for _, c := range f.trees {
		fmt.Fprintf(&text, "%s\n", c.name)
	}
	return text.String()
}

// String shows the mode, the trees with their consumers, the forests, and the consumers that were added.
func (m *Manager) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "QuotaManager: \nMode: %s\n\nTreeControllers: \n", m.GetModeString())
	for _, name := range m.GetTreeNames() {
		if c := m.GetTreeController(name); c != nil {
			text.WriteString(c.String())
		}
	}
	text.WriteString("\nForestControllers: \n")
	forests := m.GetForestTreeNames()
	for _, name := range slices.Sorted(maps.Keys(forests)) {
		fmt.Fprintf(&text, "%s: %v\n", name, forests[name])
	}
	fmt.Fprintf(&text, "Consumers: \n[ %s]", spaced(m.GetAllConsumerIDs()))
	return text.String()
}

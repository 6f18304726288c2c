package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/quotamanager"
)

const (
	kindTree = "QuotaTree"
	noParent = "nil"
)

// defaultResources are those of a tree that names none.
var defaultResources = []string{"cpu", "memory", "nvidia.com/gpu"}

// TreeCache is the description of a tree that is edited and then made by UpdateTree in one step. It is safe for
// concurrent use.
type TreeCache struct {
	mu        sync.Mutex
	name      string
	resources map[string]bool
	nodes     map[string]JNodeSpec
	renames   []rename
}

type rename struct{ from, to string }

// NewTreeCache returns an empty description.
func NewTreeCache() *TreeCache {
	return &TreeCache{resources: map[string]bool{}, nodes: map[string]JNodeSpec{}}
}

// SetTreeName sets the name of the tree. The cache of a tree of a Manager keeps its name.
func (c *TreeCache) SetTreeName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// GetTreeName returns the name of the tree.
func (c *TreeCache) GetTreeName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// AddResourceName adds a resource.
func (c *TreeCache) AddResourceName(name string) { c.AddResourceNames([]string{name}) }

// AddResourceNames adds resources.
func (c *TreeCache) AddResourceNames(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if name != "" {
			c.resources[name] = true
		}
	}
}

// DeleteResourceName removes a resource.
func (c *TreeCache) DeleteResourceName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.resources, name)
}

// GetResourceNames returns the resources, sorted.
func (c *TreeCache) GetResourceNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.resources))
}

// GetNumResourceNames returns the number of resources.
func (c *TreeCache) GetNumResourceNames() int { return len(c.GetResourceNames()) }

// SetDefaultResourceNames sets the resources to cpu, memory and nvidia.com/gpu.
func (c *TreeCache) SetDefaultResourceNames() {
	c.mu.Lock()
	clear(c.resources)
	c.mu.Unlock()
	c.AddResourceNames(defaultResources)
}

// AddTreeInfoFromString sets the name of the tree and adds resources, from a JTreeInfo as JSON.
func (c *TreeCache) AddTreeInfoFromString(text string) error {
	var info JTreeInfo
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return fmt.Errorf("error parsing tree info: %w", err)
	}
	c.SetTreeName(info.Name)
	c.AddResourceNames(info.ResourceNames)
	return nil
}

// AddNodeSpec adds a node, or replaces the one of that name.
func (c *TreeCache) AddNodeSpec(name string, node JNodeSpec) error {
	return c.AddNodeSpecs(map[string]JNodeSpec{name: node})
}

// AddNodeSpecs adds nodes, or replaces those of the same names. Nodes without a name or a quota are left out; the error
// names them.
func (c *TreeCache) AddNodeSpecs(nodes map[string]JNodeSpec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var invalid []string
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if name == "" || nodes[name].Quota == nil {
			invalid = append(invalid, fmt.Sprintf("%q", name))
			continue
		}
		c.nodes[name] = nodes[name]
	}
	if len(invalid) > 0 {
		return fmt.Errorf("invalid specs for some nodes: %s: each needs a name and a \"quota\"",
			strings.Join(invalid, ", "))
	}
	return nil
}

// AddNodeSpecsFromString adds nodes from a JSON object of node descriptions by name.
func (c *TreeCache) AddNodeSpecsFromString(text string) error {
	var nodes map[string]JNodeSpec
	if err := json.Unmarshal([]byte(text), &nodes); err != nil {
		return fmt.Errorf("error parsing nodes: %w", err)
	}
	return c.AddNodeSpecs(nodes)
}

// RenameNode gives a node another name. What is held at the node stays there, over any number of renames before an
// update. The new name must be free.
func (c *TreeCache) RenameNode(name, newName string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	node, exists := c.nodes[name]
	_, taken := c.nodes[newName]
	switch {
	case name == "" || newName == "" || name == newName:
		return fmt.Errorf("cannot rename node %q to %q: two different names are needed", name, newName)
	case !exists:
		return fmt.Errorf("node with name %s does not exist", name)
	case taken:
		return fmt.Errorf("cannot rename node %q to %q: a node has that name; delete or rename it first", name, newName)
	}
	delete(c.nodes, name)
	c.nodes[newName] = node
	for child, spec := range c.nodes {
		if spec.Parent == name {
			spec.Parent = newName
			c.nodes[child] = spec
		}
	}
	c.renames = append(c.renames, rename{name, newName})
	return nil
}

// GetRenamedNode returns the name that a node was given since the last update; empty if it was not renamed.
func (c *TreeCache) GetRenamedNode(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.renamed(name); now != name {
		return now
	}
	return ""
}

// renamed applies all renames in their order.
func (c *TreeCache) renamed(name string) string {
	for _, r := range c.renames {
		if r.from == name {
			name = r.to
		}
	}
	return name
}

// DeleteNode removes a node.
func (c *TreeCache) DeleteNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
}

// GetNodeNames returns the names of the nodes, sorted.
func (c *TreeCache) GetNodeNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.nodes))
}

// FromFile reads a QuotaTree document from a file, see FromStruct.
func (c *TreeCache) FromFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return c.FromString(string(text))
}

// FromString reads a QuotaTree document, see FromStruct.
func (c *TreeCache) FromString(text string) error {
	var tree JQuotaTree
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return fmt.Errorf("error parsing tree: %w", err)
	}
	return c.FromStruct(tree)
}

// FromStruct replaces everything in the cache by a QuotaTree document.
func (c *TreeCache) FromStruct(tree JQuotaTree) error {
	if tree.Kind != kindTree {
		return fmt.Errorf("invalid kind: %s: it must be %s", tree.Kind, kindTree)
	}
	if tree.MetaData.Name == "" {
		return errors.New("invalid tree name: metadata.name is empty")
	}
	c.Clear()
	c.SetTreeName(tree.MetaData.Name)
	if c.AddResourceNames(tree.Spec.ResourceNames); c.GetNumResourceNames() == 0 {
		c.SetDefaultResourceNames()
	}
	return c.AddNodeSpecs(tree.Spec.Nodes)
}

// Clear removes everything.
func (c *TreeCache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.renames = "", nil
	clear(c.resources)
	clear(c.nodes)
}

// convert leaves out nodes that do not hang on the root, as the library does.
func (c *TreeCache) convert() (*compat.Conversion, *TreeCacheCreateResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := json.Marshal(JQuotaTree{
		Kind: kindTree, MetaData: JMetaData{Name: c.name},
		Spec: JTreeSpec{ResourceNames: slices.Sorted(maps.Keys(c.resources)), Nodes: c.nodes},
	})
	if err != nil {
		return nil, nil, err
	}
	conversion, err := quotamanager.Convert(text, quotamanager.Options{Lenient: true})
	if err != nil {
		return nil, nil, err
	}
	return conversion, c.describeNodes(), nil
}

// describeNodes finds the root, which is the first by name, and the nodes that do not hang on it.
func (c *TreeCache) describeNodes() *TreeCacheCreateResponse {
	r := &TreeCacheCreateResponse{TreeName: c.name}
	children := map[string][]string{}
	names := slices.Sorted(maps.Keys(c.nodes))
	for _, name := range names {
		switch parent := c.nodes[name].Parent; {
		case parent != "" && parent != noParent:
			children[parent] = append(children[parent], name)
		case r.RootNodeName == "":
			r.RootNodeName = name
		}
	}
	reached := map[string]bool{}
	for next := []string{r.RootNodeName}; len(next) > 0; next = next[1:] {
		reached[next[0]] = true
		next = append(next, children[next[0]]...)
	}
	for _, name := range names {
		if !reached[name] {
			r.DanglingNodeNames = append(r.DanglingNodeNames, name)
		}
	}
	return r
}

// renamedNode takes the name that a node had at the last update.
func (c *TreeCache) renamedNode(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renamed(name)
}

// forgetRenames is called when the tree has the new names.
func (c *TreeCache) forgetRenames() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renames = nil
}

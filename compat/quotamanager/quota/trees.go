package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/quotamanager"
)

// AddTreeByName adds a tree without nodes, in which nothing fits until it is updated from its cache. It has the
// resources cpu, memory and nvidia.com/gpu. Errors are those of AddTreeFromStruct.
func (m *Manager) AddTreeByName(treeName string) (string, error) {
	cache := NewTreeCache()
	cache.SetTreeName(treeName)
	cache.SetDefaultResourceNames()
	return m.addTree(cache)
}

// AddTreeFromString adds the tree of a QuotaTree document and returns its name; see AddTreeFromStruct.
func (m *Manager) AddTreeFromString(text string) (string, error) {
	cache := NewTreeCache()
	if err := cache.FromString(text); err != nil {
		return "", err
	}
	return m.addTree(cache)
}

// AddTreeFromStruct adds the tree of a QuotaTree document and returns its name. Nodes that do not hang on the root
// are left out, as in the library, and logged. It returns an error if the Manager has a tree of that name, or the
// cluster has one with other content. One with the same content, of an earlier process or of another one, is taken
// over, with its forest and what is held in it.
func (m *Manager) AddTreeFromStruct(tree JQuotaTree) (string, error) {
	cache := NewTreeCache()
	if err := cache.FromStruct(tree); err != nil {
		return "", err
	}
	return m.addTree(cache)
}

func (m *Manager) addTree(cache *TreeCache) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := cache.GetTreeName()
	if name == "" {
		return name, errors.New("invalid tree name: it is empty")
	}
	if m.caches[name] != nil {
		return name, fmt.Errorf("tree %v already exists; delete first", name)
	}
	m.keepTrial()
	conversion, _, err := cache.convert()
	if err != nil {
		return name, err
	}
	err = m.change(func(now *configuration) ([]*quoratev1.Tree, error) {
		if existing := now.tree(name); existing != nil {
			return nil, m.takeOver(existing, conversion.Trees[0])
		}
		added := proto.CloneOf(conversion.Trees[0])
		return []*quoratev1.Tree{added}, nil
	})
	if err != nil {
		return name, err
	}
	m.logNotes(conversion)
	m.caches[name] = cache
	return name, nil
}

// takeOver returns an error if the cluster has a tree with other content.
func (m *Manager) takeOver(existing, wanted *quoratev1.Tree) error {
	equal, err := m.isEqual(mergeTree(existing, wanted, nil))
	if err != nil {
		return err
	}
	if !equal {
		return fmt.Errorf("tree %v already exists in the cluster with other content; delete it first, or change it: edit "+
			"the TreeCache of GetTreeCache and call UpdateTree", wanted.GetName())
	}
	return nil
}

func (m *Manager) logNotes(c *compat.Conversion) {
	for _, note := range c.Notes {
		m.logf("%s", note)
	}
}

// DeleteTree deletes a tree from the cluster. It returns an error while a consumer holds something in it.
func (m *Manager) DeleteTree(treeName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	trees, err := m.readTrees()
	if err != nil {
		return err
	}
	tree := trees.tree(treeName)
	if tree == nil {
		return fmt.Errorf("tree %v does not exist", treeName)
	}
	_, err = m.client.Trees.DeleteTree(context.Background(), &quoratev1.DeleteTreeRequest{Name: tree.GetName()})
	if err == nil {
		delete(m.caches, treeName)
	}
	return err
}

// GetTreeNames returns the names of all borrowing trees of the cluster, sorted. Characters that a name in Quorate may
// not have are escaped in the names of trees that were added elsewhere. If the cluster does not answer, it returns
// nil and logs why.
func (m *Manager) GetTreeNames() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	trees, err := m.readTrees()
	if err != nil {
		m.logf("list the trees: %v", err)
		return nil
	}
	return m.originalNames(trees.list)
}

// originalNames are the names that trees were added under here, or else those that they have in the cluster.
func (m *Manager) originalNames(trees []*quoratev1.Tree) []string {
	added := map[string]string{}
	for original := range m.caches {
		if name, err := compat.Name(original); err == nil {
			added[name] = original
		}
	}
	names := make([]string, 0, len(trees))
	for _, t := range trees {
		if original, found := added[t.GetName()]; found {
			names = append(names, original)
		} else {
			names = append(names, t.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// GetTreeCache returns the editable description of a tree, which UpdateTree makes the tree; nil if there is no such
// tree. The description of a tree that was not added by this Manager is read from the cluster the first time.
func (m *Manager) GetTreeCache(treeName string) *TreeCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	cache, err := m.cacheOf(treeName)
	if err != nil {
		m.logf("read tree %s: %v", treeName, err)
		return nil
	}
	return cache
}

func (m *Manager) cacheOf(treeName string) (*TreeCache, error) {
	trees, err := m.readTrees()
	if err != nil {
		return nil, err
	}
	tree := trees.tree(treeName)
	if tree == nil {
		return nil, nil //nolint:nilnil // the caller asks whether it exists
	}
	if m.caches[treeName] == nil {
		m.caches[treeName] = describe(treeName, tree)
	}
	return m.caches[treeName], nil
}

func describe(name string, tree *quoratev1.Tree) *TreeCache {
	c := NewTreeCache()
	c.name = name
	for _, r := range tree.GetResources() {
		c.resources[r.GetName()] = true
	}
	root, named := tree.GetLabels()[quotamanager.RootLabel]
	if !named && len(tree.GetNodes()) == 0 {
		return c // an empty tree
	}
	if !named {
		root = "root"
	}
	c.nodes[root] = JNodeSpec{Parent: noParent, Quota: quotaTexts(tree.GetLimits())}
	originals := map[string]string{"": root}
	for _, n := range tree.GetNodes() {
		originals[n.GetPath()] = originalOf(n)
	}
	for _, n := range tree.GetNodes() {
		spec := JNodeSpec{Parent: originals[parentOf(n.GetPath())], Quota: quotaTexts(n.GetLimits())}
		if n.GetHard() {
			spec.Hard = "true"
		}
		c.nodes[originalOf(n)] = spec
	}
	return c
}

func originalOf(n *quoratev1.Node) string {
	if original, renamed := n.GetLabels()[quotamanager.NodeLabel]; renamed {
		return original
	}
	return lastName(n.GetPath())
}

func quotaTexts(limits map[string]*quoratev1.Limit) map[string]string {
	texts := map[string]string{}
	for resource, limit := range limits {
		texts[resource] = fmt.Sprint(limit.GetAmount())
	}
	return texts
}

// UpdateTree makes a tree what its cache describes, in one step. Nodes that do not hang on the root are left out, and
// named in the response. What is held stays held, and follows its node to another name or parent; nothing is
// unallocated, so the list of consumers is always empty. The cluster refuses to remove a node at which something is
// held, or belongs: then the error names it, and the tree stays as it is.
func (m *Manager) UpdateTree(treeName string) (
	unallocatedConsumerIDs []string, response *TreeCacheCreateResponse, err error,
) {
	m.mu.Lock()
	defer m.mu.Unlock()
	responses, err := m.update([]string{treeName})
	return []string{}, responses[treeName], err
}

// UpdateAll updates all trees of the cluster from their caches, in one step: see UpdateTree. Trees of a forest are in
// the second pair of answers, by forest.
func (m *Manager) UpdateAll() (
	treeUnallocatedConsumerIDs map[string][]string,
	treeResponse map[string]*TreeCacheCreateResponse,
	forestUnallocatedConsumerIDs map[string][]string,
	forestResponse map[string]map[string]*TreeCacheCreateResponse,
	err error,
) {
	m.mu.Lock()
	defer m.mu.Unlock()
	treeUnallocatedConsumerIDs, forestUnallocatedConsumerIDs = map[string][]string{}, map[string][]string{}
	treeResponse = map[string]*TreeCacheCreateResponse{}
	forestResponse = map[string]map[string]*TreeCacheCreateResponse{}
	trees, err := m.readTrees()
	if err != nil {
		return treeUnallocatedConsumerIDs, treeResponse, forestUnallocatedConsumerIDs, forestResponse, err
	}
	responses, err := m.update(m.originalNames(trees.list))
	for name, response := range responses {
		forest := trees.tree(name).GetForest()
		if forest == "" {
			treeUnallocatedConsumerIDs[name], treeResponse[name] = []string{}, response
			continue
		}
		if forestResponse[forest] == nil {
			forestUnallocatedConsumerIDs[forest] = []string{}
			forestResponse[forest] = map[string]*TreeCacheCreateResponse{}
		}
		forestResponse[forest][name] = response
	}
	return treeUnallocatedConsumerIDs, treeResponse, forestUnallocatedConsumerIDs, forestResponse, err
}

func (m *Manager) update(names []string) (map[string]*TreeCacheCreateResponse, error) {
	m.keepTrial()
	responses := map[string]*TreeCacheCreateResponse{}
	conversions := map[string]*compat.Conversion{}
	for _, name := range names {
		cache, err := m.cacheOf(name)
		if err == nil && cache == nil {
			err = fmt.Errorf("tree %v does not exist", name)
		}
		if err == nil {
			conversions[name], responses[name], err = cache.convert()
		}
		if err != nil {
			return nil, err
		}
	}
	err := m.change(func(now *configuration) ([]*quoratev1.Tree, error) {
		var trees []*quoratev1.Tree
		for _, name := range slices.Sorted(maps.Keys(conversions)) {
			current := now.tree(name)
			if current == nil {
				return nil, fmt.Errorf("tree %v does not exist", name)
			}
			trees = append(trees, mergeTree(current, conversions[name].Trees[0], m.caches[name].renamedNode))
		}
		return trees, nil
	})
	if err != nil {
		return responses, err
	}
	for _, name := range names {
		m.caches[name].forgetRenames()
		m.logNotes(conversions[name])
	}
	return responses, nil
}

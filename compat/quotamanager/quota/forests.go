package quota

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// AddForest adds a forest without trees. The Manager remembers it; the cluster knows a forest when it has a tree. It
// returns an error if there is a forest of that name in this Manager. One that the cluster has already is taken over.
func (m *Manager) AddForest(forestName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := compat.Name(forestName); err != nil {
		return fmt.Errorf("invalid forest name: %w", err)
	}
	if m.forests[forestName] {
		return fmt.Errorf("duplicate forest name %v", forestName)
	}
	m.forests[forestName] = true
	return nil
}

// DeleteForest takes all trees out of a forest, in one step, and forgets it. The trees and what is held in them stay.
func (m *Manager) DeleteForest(forestName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	err := m.change(func(now *configuration) ([]*quoratev1.Tree, error) {
		trees := now.inForest(forestName)
		if len(trees) == 0 && !m.forests[forestName] {
			return nil, fmt.Errorf("forest %v does not exist", forestName)
		}
		for i, t := range trees {
			trees[i] = withForest(t, "")
		}
		return trees, nil
	})
	if err == nil {
		delete(m.forests, forestName)
	}
	return err
}

// AddTreeToForest adds a tree to a forest. It returns an error if one of them does not exist, or the tree is in another
// forest. Adding it twice is harmless.
func (m *Manager) AddTreeToForest(forestName, treeName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	return m.change(func(now *configuration) ([]*quoratev1.Tree, error) {
		tree := now.tree(treeName)
		forest, err := compat.Name(forestName)
		switch {
		case err != nil || !m.forests[forestName] && len(now.inForest(forestName)) == 0:
			return nil, fmt.Errorf("unknown forest name %v", forestName)
		case tree == nil:
			return nil, fmt.Errorf("unknown tree name %v", treeName)
		case tree.GetForest() == forest:
			return nil, nil
		case tree.GetForest() != "":
			return nil, fmt.Errorf("tree %v is in forest %v; a tree is in one forest: delete it from that one first",
				treeName, tree.GetForest())
		}
		return []*quoratev1.Tree{withForest(tree, forest)}, nil
	})
}

// DeleteTreeFromForest takes a tree out of a forest; the tree and what is held in it stay.
func (m *Manager) DeleteTreeFromForest(forestName, treeName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	return m.change(func(now *configuration) ([]*quoratev1.Tree, error) {
		tree := now.tree(treeName)
		if tree == nil || !slices.Contains(now.inForest(forestName), tree) {
			return nil, fmt.Errorf("forest %v does not include tree %v", forestName, treeName)
		}
		m.forests[forestName] = true // it exists, also when it has no tree any more
		return []*quoratev1.Tree{withForest(tree, "")}, nil
	})
}

func withForest(tree *quoratev1.Tree, forest string) *quoratev1.Tree {
	changed := proto.CloneOf(tree)
	changed.Forest = forest
	return changed
}

// GetForestNames returns the names of the forests of the cluster and of those that were added here, sorted.
func (m *Manager) GetForestNames() []string {
	names := []string{}
	for name := range m.GetForestTreeNames() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// GetForestTreeNames returns the names of the trees of each forest, sorted. If the cluster does not answer, it logs why
// and returns the forests that were added here, without trees.
func (m *Manager) GetForestTreeNames() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	forests := map[string][]string{}
	for name := range m.forests {
		forests[name] = []string{}
	}
	trees, err := m.readTrees()
	if err != nil {
		m.logf("list the forests: %v", err)
		return forests
	}
	for _, t := range trees.list {
		if t.GetForest() != "" {
			name := m.originalForest(t.GetForest())
			forests[name] = append(forests[name], m.originalNames([]*quoratev1.Tree{t})...)
		}
	}
	return forests
}

// originalForest is the name that a forest was added under here, or else the one that it has in the cluster.
func (m *Manager) originalForest(name string) string {
	for original := range m.forests {
		if given, err := compat.Name(original); err == nil && given == name {
			return original
		}
	}
	return name
}

// UpdateForest updates all trees of a forest from their caches, in one step; see UpdateTree.
func (m *Manager) UpdateForest(forestName string) (
	unallocatedConsumerIDs []string, response map[string]*TreeCacheCreateResponse, err error,
) {
	m.mu.Lock()
	defer m.mu.Unlock()
	trees, err := m.readTrees()
	if err != nil {
		return nil, nil, err
	}
	names := m.originalNames(trees.inForest(forestName))
	if len(names) == 0 && !m.forests[forestName] {
		return nil, nil, fmt.Errorf("forest %v does not exist", forestName)
	}
	response, err = m.update(names)
	return []string{}, response, err
}

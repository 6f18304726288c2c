package activity

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// MostPatterns is the most patterns of shown nodes.
const MostPatterns = 100

// NodePattern chooses nodes whose usage the metrics page shows.
type NodePattern struct{ tree, node string }

// ParseNodePattern reads TREE or TREE:node/path, where * stands for any characters of one name: "tenants" is the root
// of a tree, "tenants:*" all of its children, "cern:atlas/*" those of a node. The number of names is that of the
// node.
func ParseNodePattern(text string) (NodePattern, error) {
	tree, node, below := strings.Cut(text, ":")
	p := NodePattern{tree, node}
	switch {
	case tree == "" || below && node == "":
		return p, fmt.Errorf("%q does not name a node: write TREE for a root, or TREE:node/path", text)
	case strings.ContainsAny(text, `[]\?`):
		return p, fmt.Errorf("%q has one of [ ] \\ ?: only * stands for other characters", text)
	}
	for name := range strings.SplitSeq(node, "/") {
		if below && name == "" {
			return p, fmt.Errorf("%q has an empty name: write names with one slash between them", text)
		}
	}
	return p, nil
}

func (p NodePattern) matchesTree(tree string) bool {
	matches, _ := path.Match(p.tree, tree) // ParseNodePattern has refused what Match cannot read
	return matches
}

func (p NodePattern) matches(tree, node string) bool {
	if (p.node == "") != (node == "") {
		return false // * stands for a name, and the root has none; Match accepts it
	}
	matches, _ := path.Match(p.node, node)
	return matches && p.matchesTree(tree)
}

type shownNodes struct {
	patterns []NodePattern
	revision uint64
	found    bool // whether the nodes are those of the revision
	nodes    []Key
	leftOut  int // nodes beyond the bound
}

type shownUsage struct {
	nodes   []nodeUsage
	leftOut int // nodes beyond the bounds
}

type nodeUsage struct {
	key       Key
	resources []quota.ResourceUsage
	waiting   map[string]quota.Amount // what waiting requests ask for at or below the node, by resource
}

// nodesPerRead is how many shown nodes are read while the ledger is locked.
const nodesPerRead = 100

// sampleShown samples the usage of the nodes that the patterns choose. Only nodes of the configuration are chosen, so
// that callers whose requests create nodes cannot make the page larger.
func (r *Recorder) sampleShown(ctx context.Context, s *sample) error {
	if len(r.shown.patterns) == 0 {
		return nil
	}
	if err := r.findShown(ctx); err != nil {
		return err
	}
	series := 0
	s.shown.leftOut = r.shown.leftOut
	for keys := range slices.Chunk(r.shown.nodes, nodesPerRead) {
		err := r.readLocal(ctx, func(v ledger.Reader) {
			for _, key := range keys {
				page, gone := v.Usage(quota.UsageQuery{Tree: key.Tree, Node: key.Node, Max: 1})
				if gone != nil || len(page.Nodes) == 0 {
					continue // the next sample follows the new configuration
				}
				resources := page.Nodes[0].Resources
				if series += len(resources); series > r.bounds.ShownPairs {
					series -= len(resources)
					s.shown.leftOut++
					continue
				}
				s.shown.nodes = append(s.shown.nodes, nodeUsage{key, resources, map[string]quota.Amount{}})
			}
		})
		if err != nil {
			return err
		}
	}
	s.shown.addWaiting(s.waiting)
	return nil
}

// findShown applies the patterns to the nodes of the configuration, if that has changed. The order of trees and nodes
// decides which are left out.
func (r *Recorder) findShown(ctx context.Context) error {
	var names []string
	err := r.readLocal(ctx, func(v ledger.Reader) {
		if r.shown.found && r.shown.revision == v.Revision() {
			return
		}
		r.shown.found, r.shown.revision = false, v.Revision()
		for _, t := range v.Trees() {
			names = append(names, t.Name)
		}
	})
	if err != nil || r.shown.found {
		return err
	}
	r.shown.nodes, r.shown.leftOut = nil, 0
	for _, name := range names {
		if !slices.ContainsFunc(r.shown.patterns, func(p NodePattern) bool { return p.matchesTree(name) }) {
			continue
		}
		if err := r.readLocal(ctx, func(v ledger.Reader) { r.addShown(v, name) }); err != nil {
			return err
		}
	}
	r.shown.found = true
	return nil
}

func (r *Recorder) addShown(v ledger.Reader, tree string) {
	spec, gone := v.Tree(tree)
	if gone != nil {
		return
	}
	for _, n := range spec.Nodes {
		if !slices.ContainsFunc(r.shown.patterns, func(p NodePattern) bool { return p.matches(tree, n.Path) }) {
			continue
		}
		if len(r.shown.nodes) == r.bounds.Shown {
			r.shown.leftOut++
			continue
		}
		r.shown.nodes = append(r.shown.nodes, Key{Tree: tree, Node: n.Path})
	}
}

// addWaiting adds up what waiting requests ask for, at the nodes of their claims and at the ancestors.
func (u *shownUsage) addWaiting(claims []quota.WaitingClaim) {
	place := map[Key]int{}
	for i, n := range u.nodes {
		place[n.key] = i
	}
	for _, w := range claims {
		for node := range pathAndAncestors(w.Node) {
			i, shown := place[Key{Tree: w.Tree, Node: node}]
			if !shown {
				continue
			}
			for _, wanted := range w.Amounts {
				u.nodes[i].waiting[wanted.Resource] += wanted.Amount
			}
			for _, pick := range w.Picks {
				u.nodes[i].waiting[pick.Resource] += quota.Amount(pick.Count)
			}
		}
	}
}

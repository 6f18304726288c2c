package quota

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/quotamanager"
)

// mergeTree makes a tree have the resources, nodes, limits and hard flags of a wanted one, and keeps everything that
// a QuotaTree document does not have, such as the forest, principals and bindings. Nodes are the same if they have
// the same name, or the name that renamed returns; nil renames nothing.
func mergeTree(current, wanted *quoratev1.Tree, renamed func(string) string) *quoratev1.Tree {
	merged := proto.CloneOf(current)
	merged.Limits = wanted.GetLimits()
	merged.Labels = mergeLabels(current.GetLabels(), wanted.GetLabels(), quotamanager.RootLabel)
	merged.Resources = mergeResources(current.GetResources(), wanted.GetResources())
	if renamed == nil {
		renamed = func(name string) string { return name }
	}
	before := map[string]*quoratev1.Node{} // by their names after the change
	for _, n := range current.GetNodes() {
		before[renamed(originalOf(n))] = n
	}
	merged.Nodes = nil
	for _, n := range wanted.GetNodes() {
		same := before[originalOf(n)]
		if same == nil {
			merged.Nodes = append(merged.Nodes, n)
			continue
		}
		kept := proto.CloneOf(same)
		kept.Path, kept.Limits, kept.Hard = n.GetPath(), n.GetLimits(), n.GetHard()
		kept.Labels = mergeLabels(same.GetLabels(), n.GetLabels(), quotamanager.NodeLabel)
		merged.Nodes = append(merged.Nodes, kept)
	}
	merged.Moves = planMoves(before, wanted.GetNodes())
	return merged
}

func mergeLabels(current, wanted map[string]string, decided string) map[string]string {
	merged := maps.Clone(current)
	delete(merged, decided)
	if value, named := wanted[decided]; named {
		if merged == nil {
			merged = map[string]string{}
		}
		merged[decided] = value
	}
	return merged
}

// mergeResources keeps the present units.
func mergeResources(current, wanted []*quoratev1.Resource) []*quoratev1.Resource {
	var merged []*quoratev1.Resource
	for _, r := range wanted {
		i := slices.IndexFunc(current, func(c *quoratev1.Resource) bool { return c.GetName() == r.GetName() })
		if i >= 0 {
			r = current[i]
		}
		merged = append(merged, r)
	}
	return merged
}

// planMoves returns the moves from the present paths of nodes to the wanted ones. Parents move first and take their
// children along, so a move starts where the moves before it have put the node.
func planMoves(before map[string]*quoratev1.Node, wanted []*quoratev1.Node) []*quoratev1.NodeMove {
	var moves []*quoratev1.NodeMove
	now := map[string]string{}
	for name, n := range before {
		now[name] = n.GetPath()
	}
	byDepth := slices.SortedStableFunc(slices.Values(wanted), func(a, b *quoratev1.Node) int {
		return strings.Count(a.GetPath(), "/") - strings.Count(b.GetPath(), "/")
	})
	for _, n := range byDepth {
		from, found := now[originalOf(n)]
		if !found || from == n.GetPath() {
			continue
		}
		moves = append(moves, &quoratev1.NodeMove{Node: from, NewNode: n.GetPath()})
		for name, path := range now {
			if rest, below := strings.CutPrefix(path+"/", from+"/"); below {
				now[name] = strings.TrimSuffix(n.GetPath()+"/"+rest, "/")
			}
		}
	}
	return moves
}

// parentOf is empty for a child of the root.
func parentOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

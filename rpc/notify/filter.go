package notify

import (
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	allocations   = quoratev1.WatchTopic_WATCH_TOPIC_ALLOCATIONS
	thresholds    = quoratev1.WatchTopic_WATCH_TOPIC_THRESHOLDS
	configuration = quoratev1.WatchTopic_WATCH_TOPIC_CONFIGURATION
	nodes         = quoratev1.WatchTopic_WATCH_TOPIC_NODES
)

// Filter selects events. The zero value selects those of all allocations.
type Filter struct {
	// Topics are those wanted; none stands for allocations.
	Topics []quoratev1.WatchTopic
	// IDs are the qualified ids of the wanted allocations, and Namespace is theirs; empty for all. Both select nothing of
	// other topics.
	IDs       map[string]bool
	Namespace string
	// Tree and Node select what happens at a node and below it; empty for all. A node needs its tree.
	Tree, Node string
}

// Matches is true for events of a wanted topic at a wanted node. For a revision, the reader compares the places of its
// changes, because it shows no others.
func (f *Filter) Matches(e *cluster.WatchEvent) bool {
	switch {
	case e.Crossing != nil:
		return f.wants(thresholds) && f.covers(e.Crossing.Tree, e.Crossing.Node)
	case e.Revision != nil:
		return f.wants(configuration)
	case e.Event != nil:
		return f.wants(nodes) && f.covers(e.Event.NodePlace())
	case e.Allocation != nil:
		return f.wants(allocations) && f.matchesAllocation(e.Allocation)
	}
	return false // of another topic
}

func (f *Filter) matchesAllocation(a *ledger.Allocation) bool {
	if f.IDs != nil && !f.IDs[a.ID()] || f.Namespace != "" && quota.NamespaceOf(a.ID()) != f.Namespace {
		return false
	}
	if f.Tree == "" {
		return true
	}
	for tree, node := range a.Places {
		if f.covers(tree, node) {
			return true
		}
	}
	return false
}

func (f *Filter) wants(topic quoratev1.WatchTopic) bool {
	if len(f.Topics) == 0 {
		return topic == allocations
	}
	return slices.Contains(f.Topics, topic)
}

func (f *Filter) covers(tree, node string) bool {
	return f.Tree == "" || tree == f.Tree && isBelow(node, f.Node)
}

// isBelow is true for a node and everything in its subtree.
func isBelow(path, node string) bool {
	return node == "" || path == node || strings.HasPrefix(path, node+"/")
}

// Keys are those of which every event that matches has at least one: the fewer events have them, the better.
func (f *Filter) Keys() []Key {
	if len(f.IDs) > 0 {
		keys := make([]Key, 0, len(f.IDs))
		for id := range f.IDs {
			keys = append(keys, AllocationKey(id))
		}
		return keys
	}
	topics := f.Topics
	if len(topics) == 0 {
		topics = []quoratev1.WatchTopic{allocations}
	}
	keys := make([]Key, len(topics))
	for i, topic := range topics {
		keys[i] = f.keyOf(topic)
	}
	return keys
}

func (f *Filter) keyOf(topic quoratev1.WatchTopic) Key {
	switch {
	case f.Tree != "" && topic != configuration:
		return Key{topic, byNode, f.Tree, f.Node}
	case f.Namespace != "" && topic == allocations:
		return Key{topic, byNamespace, f.Namespace, ""}
	}
	return Key{topic: topic}
}

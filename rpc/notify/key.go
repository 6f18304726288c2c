package notify

import (
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
)

// Key is something that events have in common, such as their node. A subscriber has the keys that it wants to hear of.
type Key struct {
	topic quoratev1.WatchTopic
	by    property
	// name is an id, a namespace, or a tree; node is in that tree.
	name, node string
}

// property is what the events of a key have in common beside their topic.
type property int

const (
	byTopic property = iota
	byID
	byNamespace
	byNode
	properties
)

// AllocationKey is that of all events of one allocation, by its qualified id.
func AllocationKey(id string) Key { return Key{allocations, byID, id, ""} }

// eachKey calls yield with the keys that an event has and that have one of the wanted properties, some of them twice.
func eachKey(e *cluster.WatchEvent, wanted *[properties]int, yield func(Key)) {
	switch {
	case e.Crossing != nil:
		eachKeyAt(thresholds, e.Crossing.Tree, e.Crossing.Node, wanted, yield)
	case e.Revision != nil:
		yield(Key{topic: configuration})
	case e.Event != nil:
		tree, node := e.Event.NodePlace()
		eachKeyAt(nodes, tree, node, wanted, yield)
	case e.Allocation != nil:
		id := e.Allocation.ID()
		yield(AllocationKey(id))
		if wanted[byNamespace] > 0 {
			yield(Key{allocations, byNamespace, quota.NamespaceOf(id), ""})
		}
		yield(Key{topic: allocations})
		if wanted[byNode] > 0 {
			for tree, node := range e.Allocation.Places {
				eachNodeKey(allocations, tree, node, yield)
			}
		}
	}
}

func eachKeyAt(topic quoratev1.WatchTopic, tree, node string, wanted *[properties]int, yield func(Key)) {
	yield(Key{topic: topic})
	if wanted[byNode] > 0 {
		eachNodeKey(topic, tree, node, yield)
	}
}

// eachNodeKey has the keys of a node and of all above it.
func eachNodeKey(topic quoratev1.WatchTopic, tree, node string, yield func(Key)) {
	for node != "" {
		yield(Key{topic, byNode, tree, node})
		node = node[:max(0, strings.LastIndexByte(node, '/'))]
	}
	yield(Key{topic, byNode, tree, ""})
}

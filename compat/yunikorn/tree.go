package yunikorn

import (
	"fmt"
	"strings"
)

const rootName = "root"

// node is a queue with its place, its quantities read, and for root what the partition adds.
type node struct {
	*queue
	path       string // in the file; of an added root, the partition's
	name       string // from root down, joined by dots, as it is written
	depth      int    // levels below root
	max        *reading
	guaranteed *reading
	entries    []*entry
	children   []*node
}

type entry struct {
	*limit
	path      string
	resources *reading
}

// isRoot reports whether a queue has the name of the root. The original compares only the name, at every level.
func (n *node) isRoot() bool { return n.Name == rootName }

// newQueueTree makes the tree of a partition. It adds root unless there is exactly one top queue and it is root, in any
// spelling. A root without limits takes those of the partition.
func newQueueTree(p *partition, path string) (*node, *Problem) {
	top, topPath := &queue{Name: rootName, Parent: true, Queues: p.Queues}, path
	if len(p.Queues) == 1 && strings.EqualFold(p.Queues[0].Name, rootName) {
		top, topPath = &p.Queues[0], path+".queues[0]"
		top.Parent = true
	}
	n, err := newQueueNode(top, topPath, rootName, 0)
	if err != nil {
		return nil, err
	}
	if len(top.Limits) == 0 {
		n.entries = newEntries(p.Limits, path+".limits", n.name)
	}
	return n, nil
}

func newQueueNode(q *queue, path, name string, depth int) (*node, *Problem) {
	if depth > maxQueueDepth {
		text := fmt.Sprintf("queues may be at most %d levels below root", maxQueueDepth)
		return nil, &Problem{path, name, ruleBounds, text}
	}
	n := &node{
		queue: q, path: path, name: name, depth: depth,
		max:        readAmounts(q.Resources.Max, path+".resources.max", name),
		guaranteed: readAmounts(q.Resources.Guaranteed, path+".resources.guaranteed", name),
		entries:    newEntries(q.Limits, path+".limits", name),
	}
	for i := range q.Queues {
		at := fmt.Sprintf("%s.queues[%d]", path, i)
		child, err := newQueueNode(&q.Queues[i], at, name+"."+clipText(q.Queues[i].Name), depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

func newEntries(limits []limit, path, queue string) []*entry {
	list := make([]*entry, len(limits))
	for i := range limits {
		at := fmt.Sprintf("%s[%d]", path, i)
		list[i] = &entry{&limits[i], at, readAmounts(limits[i].MaxResources, at+".maxresources", queue)}
	}
	return list
}

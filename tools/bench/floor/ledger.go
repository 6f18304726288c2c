package main

import "fmt"

// The tree is fixed. Its leaves are three levels deep, and every node has a limit for both resources.
const (
	topNode    = "a"
	middleNode = "a/b"
	leafFormat = "a/b/leaf-%d"
	leafCount  = 1000
	nodeLimit  = 1 << 40
)

// resourceNames are the resources; amounts have their order.
var resourceNames = [...]string{"cpu", "memory"} //nolint:gochecknoglobals // constant

type amounts [len(resourceNames)]int64

type outcome byte

const (
	done outcome = iota
	denied
	unknownNode
	unknownID
	usedID
)

type node struct {
	parent *node // nil for topNode
	used   amounts
	limits amounts
}

type allocation struct {
	leaf *node
	held amounts
}

// ledger has the tree and what is held in it. It is not safe for concurrent use.
type ledger struct {
	nodes       map[string]*node
	allocations map[string]allocation
}

func newLedger() *ledger {
	l := &ledger{nodes: make(map[string]*node), allocations: make(map[string]allocation)}
	top := l.addNode(topNode, nil)
	middle := l.addNode(middleNode, top)
	for i := range leafCount {
		l.addNode(fmt.Sprintf(leafFormat, i), middle)
	}
	return l
}

func (l *ledger) addNode(path string, parent *node) *node {
	added := &node{parent: parent, limits: amounts{nodeLimit, nodeLimit}}
	l.nodes[path] = added
	return added
}

func (l *ledger) execute(c command) outcome {
	if c.kind == kindRelease {
		return l.release(c.id)
	}
	return l.allocate(c.id, c.node, c.amounts)
}

// allocate holds all or nothing: the amounts must fit within the limits of all nodes up to the root.
func (l *ledger) allocate(id, path []byte, held amounts) outcome {
	leaf, known := l.nodes[string(path)]
	if !known {
		return unknownNode
	}
	if _, used := l.allocations[string(id)]; used {
		return usedID
	}
	for n := leaf; n != nil; n = n.parent {
		for i, amount := range held {
			if n.limits[i]-n.used[i] < amount {
				return denied
			}
		}
	}
	leaf.charge(held, 1)
	l.allocations[string(id)] = allocation{leaf, held}
	return done
}

func (l *ledger) release(id []byte) outcome {
	ended, known := l.allocations[string(id)]
	if !known {
		return unknownID
	}
	ended.leaf.charge(ended.held, -1)
	delete(l.allocations, string(id))
	return done
}

func (n *node) charge(held amounts, sign int64) {
	for ; n != nil; n = n.parent {
		for i, amount := range held {
			n.used[i] += sign * amount
		}
	}
}

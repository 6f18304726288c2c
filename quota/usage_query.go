package quota

import (
	"cmp"
	"math/bits"
)

// UsageQuery selects and orders the nodes of a page of usage.
type UsageQuery struct {
	Tree, Node string
	// Subtree asks for all nodes below Node as well, MaxDepth levels of them; 0 is all.
	Subtree  bool
	MaxDepth int
	// AtLeastPercent leaves out nodes whose subtree uses less of its limits, 0 to MaxUsagePercent; 0 leaves none out. Of
	// the shares of the resources' limits in force, advisory ones included, the largest counts.
	AtLeastPercent int
	// FullestFirst orders by the same share, largest first, and nodes of the same share by path. Otherwise parents come
	// before children, and siblings by name.
	FullestFirst bool
	// NameContains leaves out nodes whose name, the last part of the path, lacks this text; letters of A to Z and a to z
	// are the same. The root's name is that of the tree.
	NameContains string
	// CountWaiting also counts the requests that wait at each node.
	CountWaiting bool
	// After is the Next of the previous page in the same order; nil is the first page.
	After *UsagePosition
	// Max is the size of a page; those of trees with many resources have fewer nodes.
	Max int
}

// UsagePage is one page of nodes, in the order of its query.
type UsagePage struct {
	Nodes []NodeUsage
	// Next is where the next page begins; nil on the last page.
	Next *UsagePosition
}

// UsagePosition is a node's place in a list of usage.
type UsagePosition struct {
	Path  string
	Share Share // only in a list with the fullest first
}

// Share is how much of a limit is used. A limit of which nothing is used is 0 of 1, whatever it is, so that each
// share can be compared: of a limit of 0, any use is more than every share of another limit.
type Share struct {
	Used, Limit Amount
}

// ShareOf is the use of a limit as a share; that of no limit is nothing.
func ShareOf(used Amount, limit Limit) Share {
	if used <= 0 || !limit.HasAmount() {
		return Share{Limit: 1}
	}
	return Share{Used: used, Limit: limit.Amount}
}

// Compare is negative if the share is less than another one, 0 if they are equal, and positive if it is more. It is
// exact for all amounts.
func (s Share) Compare(other Share) int {
	high, low := bits.Mul64(uint64(s.Used), uint64(other.Limit))
	otherHigh, otherLow := bits.Mul64(uint64(other.Used), uint64(s.Limit))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// IsAtLeast reports whether the share is at least a percentage.
func (s Share) IsAtLeast(percent int) bool {
	return s.Compare(Share{Used: Amount(percent), Limit: 100}) >= 0
}

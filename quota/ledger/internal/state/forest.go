package state

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// Resource is a registered resource with its index in the arrays of nodes.
type Resource struct {
	quota.Resource
	Index int
	Holds int // components of held claims
	// Queues are those of requests for its items.
	Queues []*BlockerQueue
	// Stock is nil unless the resource is itemized; always nil in a draft.
	Stock *Stock
}

// Forest owns the trees, their nodes and the usage counted at them.
type Forest struct {
	*Environment
	Trees map[string]*Tree
	// Policies are those that trees may name.
	Policies *PolicySet
	Nodes    int    // in all trees
	NodeID   uint64 // last assigned
	Version  uint64 // last assigned to a tree, see MarkChanged
	Bytes    int64  // size of the trees and policies, see quota.Sizes
	// IdleCandidates are dynamic nodes that a claim has left in the present command.
	IdleCandidates []*Node
	// UsedCells are where the use of limits with thresholds has changed in the present command, Rewarned the trees whose
	// configuration has changed; see JudgeThresholds.
	UsedCells []usedCell
	Rewarned  []*Tree
	// OnHold are the nodes on hold by their identities, Drained those that are being drained and that a claim has left in
	// the present command.
	OnHold  map[uint64]*Node
	Drained []*Node
	// Forgotten is the log index of the state that the ledger began with, configured that of the last change of the
	// configuration or of access; see Reader.Changes.
	Forgotten, Configured uint64
}

// Tree is a hierarchy of nodes.
type Tree struct {
	Env       *Environment
	Name      string
	Settings  quota.TreeSettings
	Resources []*Resource // by name
	Root      *Node
	ByPath    map[string]*Node
	Policies  *PolicySet
	Claims    int // held claims in the whole tree
	Accounts  Accounts
	// Soft is true if any node of the tree borrows softly.
	Soft bool
	// Version changes with every change of usage in the tree, see MarkChanged.
	Version uint64
	// Queues are all queues whose blocker is in the tree.
	Queues []*BlockerQueue
	Marks  treeMarks
}

// Node is a node of a tree. It exists as long as it is configured or, if it is dynamic, holds something. A change of
// configuration changes it in place, so that allocations keep pointing at it.
type Node struct {
	ID uint64 // never changes
	// Address is replaced, never changed, when the node is renamed or moved. It has the path.
	*Address

	Tree     *Tree
	Parent   *Node
	Children []*Node // by name
	Spec     *quota.NodeSpec
	Bindings *access.Table // those of the specification; nil if there are none
	Policy   *policy.Policy
	// By resource index: the configured limits, and the usage.
	Limits       []quota.Limit
	Ceilings     []quota.Amount // the limits that admission compares with: effective limits, MaxAmount if unlimited
	Own, Subtree []quota.Amount
	Claims       int // held claims placed here
	// Fallbacks are the defaults for unset limits of the children, by resource index: the node's own, or else the
	// parent's. Nil if there are none.
	Fallbacks []quota.Limit
	// Borrows is how the policy borrows; Special is true if the node or one above it borrows.
	Borrows policy.Borrowing
	Special bool
	// Strict is true if requests that wait for capacity here must not be overtaken; Queues are those of such requests.
	Strict bool
	Queues []*BlockerQueue
	// Dynamic is true if a claim created the node (CreateUnknown): it is not configured, and is removed when it is idle.
	Dynamic bool
	Homes   int // held claims that belong here and are counted further up
	// Borrowers has the claims counted here if the node borrows softly; nil if there never was one.
	Borrowers *BorrowIndex
	// Rules limit users and groups; nil if there are none. Applications is the number of running applications in the
	// subtree.
	Rules        *Rules
	Applications int
	// Thresholds are the thresholds in force, nil if there are none; HasThresholds is true if the node or one above it has
	// some. Crossed are those that are crossed, by resource; nil if there are none.
	Thresholds    *quota.Thresholds
	HasThresholds bool
	Crossed       map[*Resource][]int
	// Scheduled are the limits that the calendar has for the node, in the order in which they were made; a list is
	// replaced, never changed.
	Scheduled []*ScheduledLimit
	// RaisedByRule is when the rule of the parent last approved a request for limits of the node; 0 if it never has.
	RaisedByRule quota.Instant
	// Hold is nil unless the node is on hold.
	Hold *HoldImage
	// In a cohort, by resource index: the bounds of borrowing, MaxAmount if there are none, and the pools.
	Borrow, Lend []quota.Amount
	Pools        []Pool
	// From, in a draft only, is the predecessor of the node in the ledger; nil if it is new.
	From *Node
	Mark nodeMark
}

// Address is the tree and path of a node. Allocations keep the one at which they were granted.
type Address struct{ TreeName, Path string }

func (n *Node) Name() string { return quota.LastName(n.Path) }

func (n *Node) Place() string { return quota.Place(n.TreeName, n.Path) }

// Effective is the limit in force for a resource.
func (n *Node) Effective(r int) quota.Limit {
	limit := n.ConfiguredLimit(r)
	if len(n.Scheduled) == 0 {
		return limit
	}
	return n.Adjusted(r, limit, (*ScheduledLimit).IsInForce)
}

// ConfiguredLimit is the limit for a resource by the configuration alone.
func (n *Node) ConfiguredLimit(r int) quota.Limit {
	var fallback quota.Limit
	if n.Parent != nil && n.Parent.Fallbacks != nil {
		fallback = n.Parent.Fallbacks[r]
	}
	return n.Policy.Effective(n.Limits[r], fallback)
}

func (t *Tree) Resource(name string) *Resource {
	if i, found := t.findResource(name); found {
		return t.Resources[i]
	}
	return nil
}

// UnitOf is the unit of a resource; counts if the tree does not have it.
func (t *Tree) UnitOf(name string) quota.Unit {
	if r := t.Resource(name); r != nil {
		return r.Unit
	}
	return quota.Count
}

func (t *Tree) findResource(name string) (int, bool) {
	return slices.BinarySearchFunc(t.Resources, name,
		func(r *Resource, name string) int { return strings.Compare(r.Name, name) })
}

func (t *Tree) ResourceNames() string {
	names := make([]string, len(t.Resources))
	for i, r := range t.Resources {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// Nearest is the node at path, or its nearest existing ancestor.
func (t *Tree) Nearest(path string) *Node {
	for {
		if n := t.ByPath[path]; n != nil {
			return n
		}
		path = quota.ParentPath(path)
	}
}

// AddUsage charges an amount to the node and all its ancestors; a negative one is a refund.
func (n *Node) AddUsage(r int, amount quota.Amount) {
	n.Own[r] += amount
	for at := n; at != nil; at = at.Parent {
		at.Subtree[r] += amount
	}
	if n.Special {
		n.Draw(r, amount)
	}
}

// Walk yields the node and its subtree, parents before children, siblings by name, until yield returns false.
func (n *Node) Walk(yield func(*Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, child := range n.Children {
		if !child.Walk(yield) {
			return false
		}
	}
	return true
}

// Dynamic nodes (CreateUnknown, docs/adr/0025): a claim at a path that does not exist creates its nodes. Until the
// request is admitted they are detached: they have a parent and limits but are not yet in the tree. They are removed at
// the end of the command that empties them.

// IsDetached is true for a dynamic node that is not in its tree yet.
func (n *Node) IsDetached() bool { return n.Dynamic && n.ID == 0 }

// NewDynamicNodes are the detached nodes of an allocation, parents before children.
func (a *Allocation) NewDynamicNodes() []*Node {
	var list []*Node
	for i := range a.Claims {
		var up []*Node
		for n := a.Claims[i].At; n.IsDetached(); n = n.Parent {
			if slices.Contains(list, n) {
				break
			}
			up = append(up, n)
		}
		slices.Reverse(up)
		list = append(list, up...)
	}
	return list
}

// CheckDynamicNodes refuses a request whose dynamic nodes would exceed a bound.
func (f *Forest) CheckDynamicNodes(a *Allocation) *quota.Error {
	sprouts := a.NewDynamicNodes()
	if n := f.Nodes + len(sprouts); n > f.Bounds.Nodes {
		return quota.Errorf(quota.Full, "claims",
			"with the nodes that the request needs the ledger would have %d; at most %d are allowed: release what is "+
				"held at nodes made on demand, or claim at one that exists", n, f.Bounds.Nodes)
	}
	more := map[*Tree]int{}
	for _, s := range sprouts {
		more[s.Tree]++
		if n := (len(s.Tree.ByPath) + more[s.Tree]) * len(s.Tree.Resources); n > f.Bounds.Cells {
			return quota.Errorf(quota.Full, "claims",
				"with the nodes that the request needs tree %s would have %d nodes times resources; at most %d are "+
					"allowed: release what is held at nodes made on demand, or claim at one that exists", s.TreeName,
				n, f.Bounds.Cells)
		}
		if n := len(s.Tree.ByPath) + more[s.Tree]; n > f.Bounds.NodesPerTree {
			return quota.Errorf(quota.Full, "claims",
				"with the nodes that the request needs tree %s would have %d; at most %d are allowed: release what "+
					"is held at nodes made on demand, or claim at one that exists", s.TreeName, n,
				f.Bounds.NodesPerTree)
		}
	}
	return nil
}

func (f *Forest) DetachNode(n *Node) {
	siblings := n.Parent.Children
	n.Parent.Children = slices.Delete(siblings, slices.Index(siblings, n), slices.Index(siblings, n)+1)
	delete(n.Tree.ByPath, n.Path)
	n.Tree.Marks.remove(n)
	f.MarkNode(n.Parent)
	f.Nodes--
	f.Bytes -= n.Bytes()
}

// NoteIdle records that a claim has left a dynamic node.
func (f *Forest) NoteIdle(n *Node) {
	if n.Dynamic {
		f.IdleCandidates = append(f.IdleCandidates, n)
	}
}

// RemoveIdleNodes removes idle dynamic nodes and reports whether it removed any. It runs at the end of a command, when
// nothing can be reverted any more.
func (f *Forest) RemoveIdleNodes() (any bool) {
	for _, n := range f.IdleCandidates {
		for n.Dynamic && n.IsIdle() && n.Tree.ByPath[n.Path] == n {
			f.DetachNode(n)
			n, any = n.Parent, true
		}
	}
	f.IdleCandidates = nil
	return any
}

// IsIdle is true if no claim is counted at the node or belongs there, no request waits for its capacity, and it has no
// children.
func (n *Node) IsIdle() bool { return n.Claims+n.Homes+len(n.Queues)+len(n.Children) == 0 }

// MarkChanged assigns a new version to a tree whose usage or configuration changed. Equal versions of a tree mean equal
// placements: a cancellation that finds the version that its reservation left knows that nothing happened in between.
func (f *Forest) MarkChanged(t *Tree) {
	f.Version++
	t.Version = f.Version
}

// Ceiling is what the plain check holds the subtree to. In a cohort a limit is not a cap: checkBounded looks at it.
func (n *Node) Ceiling(r int) quota.Amount {
	if n.Borrows == policy.BorrowBounded {
		return quota.MaxAmount
	}
	return n.Effective(r).Ceiling()
}

// ByConfiguration is recorded as the cause of the end of a request whose node or resource was removed.
const ByConfiguration = "configuration"

// NodeCordon is the hold of the node for readers.
func (n *Node) NodeCordon() quota.NodeCordonInfo {
	return quota.NodeCordonInfo{Tree: n.TreeName, Node: n.Path, NodeCordon: n.Hold.NodeCordon}
}

// holdAbove is nil if there is none.
func (n *Node) holdAbove() *quota.NodeCordonInfo {
	for ; n != nil; n = n.Parent {
		if n.Hold != nil {
			hold := n.NodeCordon()
			return &hold
		}
	}
	return nil
}

// HoldImage is a hold in a snapshot.
type HoldImage struct {
	quota.NodeCordon
	// DrainAt is when the next step of the drain is due, 0 if all leases have been revoked. It goes on after the fence
	// DrainAfter.
	DrainAt    quota.Instant
	DrainAfter uint64
}

// SwapLimit puts another limit in force, as SetLimits does.
func (n *Node) SwapLimit(resource int, limit quota.Limit) {
	n.Limits[resource] = limit
	n.Ceilings[resource] = n.Ceiling(resource)
	if n.Pools != nil {
		n.SetPoolLimit(resource, n.Effective(resource).Ceiling())
	}
}

func (t *Tree) Registered() []quota.Resource {
	list := make([]quota.Resource, len(t.Resources))
	for i, r := range t.Resources {
		list[i] = r.Resource
	}
	return list
}

// ComparePaths orders paths like Walk: by name at each level, which is byte order with the slash first.
func ComparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return rank(a[i]) - rank(b[i])
		}
	}
	return len(a) - len(b)
}

func rank(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

// NearestNode is the node at a place, or the nearest above it that exists; nil in a tree that does not exist.
func (f *Forest) NearestNode(tree, path string) *Node {
	if t := f.Trees[tree]; t != nil {
		return t.Nearest(path)
	}
	return nil
}

// PathAt are the tables of bindings from a node up, and that of the cluster; readers that share the ledger each have
// their own.
func (f *Forest) PathAt(n *Node) access.Path {
	var path access.Path
	for ; n != nil; n = n.Parent {
		path = append(path, n.Bindings)
	}
	return append(path, f.Book.Cluster())
}

// AssignID gives a new node its identity.
func (n *Node) AssignID(f *Forest) {
	f.NodeID++
	n.ID = f.NodeID
}

// AttachTo puts a node into its tree.
func (n *Node) AttachTo(parent *Node) {
	n.Parent = parent
	i, _ := slices.BinarySearchFunc(parent.Children, n, ByPath)
	parent.Children = slices.Insert(parent.Children, i, n)
	n.Tree.ByPath[n.Path] = n
}

func ByPath(a, b *Node) int { return strings.Compare(a.Path, b.Path) }

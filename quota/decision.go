package quota

import (
	"fmt"
	"slices"
	"strings"
)

// Decision is the answer to an Allocate with its reasons.
type Decision struct {
	// Granted is true if everything is held, or in a dry run would be.
	Granted bool
	// Waiting is true if the request was put into the queue, or is in it; then it is not granted.
	Waiting bool
	// Violations are all limits that the request would break: claims in the order of the request, levels from the
	// claimed node up to the root, resources by name. A node shared by several claims is named once.
	Violations []Violation
	// Preempted are the allocations that were ended to make room, in the order in which they were chosen. If it is not
	// granted they are leases that are told and have to end first, or would be if the request waited.
	Preempted []Preempted
	// Placements say where each claim would be counted. Only a dry run has them; a grant's are in its Allocation.
	Placements []ClaimInfo
	// Remedy is what would admit a denied request. Only Explain looks for one.
	Remedy *Remedy
}

// Preempted is an allocation that was ended to make room for another, with the place where it stood in the way.
type Preempted struct {
	ID, Tree, Node string
}

// Remedy is what would admit a denied request: all the raises together, or all the releases together.
type Remedy struct {
	Raises []Raise
	// Releases are ids of held allocations, by fence.
	Releases []string
}

// Raise is one limit that would have to be higher.
type Raise struct {
	Tree, Node, Resource string
	Kind                 ViolationKind
	Holder               Holder
	From, To             Amount
	// Unconfigured is true for a node that is, or would be, made on demand: to have a limit it must be configured first.
	Unconfigured bool
	// NeedsReason is true if changes of the tree need a reason.
	NeedsReason bool
	// Governed is true if the tree names admins; then only an actor of Setters may set the limit. Setters are sorted, the first
	// ones of many; empty if nobody may.
	Governed bool
	Setters  []string
}

// ViolationKind says what is limited. The numbers are part of the snapshot format.
type ViolationKind uint8

// The closed list of kinds.
const (
	// OfResource: the amount of a resource.
	OfResource ViolationKind = 0
	// OfApplications: the number of running applications; the resource is empty.
	OfApplications ViolationKind = 1
	// OfBorrowing: how much a node may borrow beyond its own limit.
	OfBorrowing ViolationKind = 2
	// OfItems: how many items are to be had; Item says in which state, or which one.
	OfItems ViolationKind = 3
	// OfQueue: requests that must not be overtaken. The limit is 0, used is how many they are, requested is 0.
	OfQueue ViolationKind = 4
)

// HolderKind says whose limit it is. The numbers are part of the snapshot format.
type HolderKind uint8

// The closed list of kinds.
const (
	// TheNode: everything held in the node's subtree.
	TheNode HolderKind = 0
	// AUser in the node's subtree.
	AUser HolderKind = 1
	// AGroup in the node's subtree.
	AGroup HolderKind = 2
)

// Holder is whose limit it is.
type Holder struct {
	Kind HolderKind
	// Name of the user or group; Wildcard for the common pot. Empty for the node.
	Name string
}

// String names the holder for people, with a space behind; empty for the node.
func (h Holder) String() string {
	switch h.Kind {
	case AUser:
		return "user " + h.Name + " "
	case AGroup:
		return "group " + h.Name + " "
	case TheNode:
	}
	return ""
}

// Violation is one limit that a request would break.
type Violation struct {
	Tree, Node, Resource string
	// Limit is what is in force, Used what is held, Requested what the whole request asks for.
	Limit, Used, Requested Amount
	// Kind says what is limited, Holder whose limit it is.
	Kind   ViolationKind
	Holder Holder
	// TooLarge is true if the numbers do not show it, but a cohort is short of the request even while nothing else is held in
	// it; since level 5.
	TooLarge bool
	// Item is the state that items are wanted in, or the name of the one that is wanted.
	Item string
}

// Missing is how much room lacks.
func (v Violation) Missing() Amount { return v.Used.Plus(v.Requested) - v.Limit }

// NeverFits is true if the request alone is larger than the limit, whatever is released. The bound of borrowing says nothing
// about that, because with more released less is borrowed: there TooLarge says it.
func (v Violation) NeverFits() bool {
	return v.TooLarge || v.Kind != OfBorrowing && v.Requested > v.Limit
}

// NeverFits is true if the request alone is larger than some limit, whatever is released.
func (d Decision) NeverFits() bool { return slices.ContainsFunc(d.Violations, Violation.NeverFits) }

// Explain says the decision in one sentence for a person, naming every violated level.
func (d Decision) Explain() string {
	if d.Granted {
		return "granted"
	}
	parts := make([]string, 0, len(d.Violations)+1)
	for _, v := range d.Violations {
		parts = append(parts, v.sentence()+v.hopelessness())
	}
	if n := len(d.Preempted); n > 0 && !d.Waiting {
		parts = append(parts, fmt.Sprintf("leases that have to give way first, and have a span of grace for that: %d; ask again with the mode that waits", n))
	}
	switch {
	case d.Waiting && len(parts) == 0:
		return "waiting: the ledger holds as much as it may"
	case d.Waiting:
		return "waiting: " + strings.Join(parts, "; ")
	}
	return "denied: " + strings.Join(parts, "; ")
}

// hopelessness is what to add about a violation that releases cannot heal.
func (v Violation) hopelessness() string {
	switch {
	case v.TooLarge:
		return " (more than it may hold even while nothing else is held: it cannot fit until a limit is raised)"
	case v.NeverFits():
		return " (more than the whole limit: it cannot fit until that is raised)"
	}
	return ""
}

func (v Violation) sentence() string {
	at := ""
	if v.Holder.Kind != TheNode {
		at = "at "
	}
	switch v.Kind {
	case OfApplications:
		return fmt.Sprintf("%s%s%s runs %d of %d applications, %d requested, %d missing",
			v.Holder, at, Place(v.Tree, v.Node), v.Used, v.Limit, v.Requested, v.Missing())
	case OfBorrowing:
		return fmt.Sprintf("%s borrows %d of %d %s, %d requested, %d missing",
			Place(v.Tree, v.Node), v.Used, v.Limit, v.Resource, v.Requested, v.Missing())
	case OfQueue:
		return v.queueSentence()
	case OfItems:
		return fmt.Sprintf("%s has %d of %d %s to be had as %s, %d requested, %d missing",
			v.Tree, v.Limit-v.Used, v.Limit, v.Resource, v.Item, v.Requested, v.Missing())
	case OfResource:
	}
	return fmt.Sprintf("%s%s%s holds %d of %d %s, %d requested, %d missing",
		v.Holder, at, Place(v.Tree, v.Node), v.Used, v.Limit, v.Resource, v.Requested, v.Missing())
}

// queueSentence says who is before the request.
func (v Violation) queueSentence() string {
	who, waits, what := "requests", " wait", v.Resource
	if v.Used == 1 {
		who, waits = "request", " waits"
	}
	if v.Holder.Kind != TheNode {
		who += " of " + strings.TrimSuffix(v.Holder.String(), " ")
	}
	switch {
	case v.Item != "":
		what += " " + v.Item
	case v.Resource == "" && v.Holder.Kind != TheNode:
		what = "applications"
	case v.Resource == "":
		what = "room"
	}
	return fmt.Sprintf("%d %s for %s at %s before this one", v.Used, who+waits, what, Place(v.Tree, v.Node))
}

// Place writes a node as people do: "tree:path/of/node", or "tree" for its root.
func Place(tree, path string) string {
	if path == "" {
		return tree
	}
	return tree + ":" + path
}

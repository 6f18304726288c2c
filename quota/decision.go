package quota

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Decision is the answer to an Allocate, with its reasons.
type Decision struct {
	// Granted is true if all claims are held, or would be in a dry run.
	Granted bool
	// Waiting is true if the request is in the queue; then Granted is false.
	Waiting bool
	// Violations are all limits that the request would exceed: claims in the order of the request, levels from the claimed
	// node up to the root, resources by name. A node shared by several claims is listed once.
	Violations []Violation
	// Preempted are the allocations that the request ended, in the order in which they were chosen. If the request is not
	// granted, they are leases whose revocation was announced and must complete first, or would be announced if the
	// request waited.
	Preempted []Preempted
	// Alternative is the number of the list of AnyOf that is granted, from 1; 0 if the request has none or is not granted.
	// Without a grant the violations are those of all lists, in order, each with its number.
	Alternative int
	// Placements are the nodes where each claim would be counted. Only a dry run sets them; those of a grant are in its
	// Allocation.
	Placements []ClaimInfo
	// Remedy is a change that would admit a denied request. Only Explain computes it.
	Remedy *Remedy
	// Holders are who is in the way now, at most one entry for each violation, in their order. Only Explain and the page
	// of the queue that asks for it compute them.
	Holders []LevelHolders
}

// Preempted is an allocation that was ended in favour of another, with the node where the two competed.
type Preempted struct {
	ID, Tree, Node string
	Reason         *Reason
}

// Remedy is a change that would admit a denied request: all the raises together, or all the releases together. What it
// frees goes to waiting requests that come first.
type Remedy struct {
	// Alternative is the number of the list of AnyOf that it would admit, from 1; 0 if the request has none.
	Alternative int
	Raises      []Raise
	// Releases are ids of held allocations, in the order of their fences. They admit the request if they are released in
	// this order; where claims borrow softly, another order may not.
	Releases []string
}

// Raise is one limit that would have to be higher.
type Raise struct {
	Tree, Node, Resource string
	Kind                 ViolationKind
	Holder               Holder
	From, To             Amount
	// Unconfigured is true for a dynamic node, or one that the request would create. The node must be configured before it
	// can have a limit.
	Unconfigured bool
	// NeedsReason is true if the tree requires a reason for changes.
	NeedsReason bool
}

// ViolationKind is the kind of limit exceeded. The numbers are part of the snapshot format.
type ViolationKind uint8

// The closed list of kinds.
const (
	// OfResource: the amount of a resource.
	OfResource ViolationKind = 0
	// OfApplications: the number of running applications; the resource is empty.
	OfApplications ViolationKind = 1
	// OfBorrowing: how much a node may borrow beyond its own limit.
	OfBorrowing ViolationKind = 2
	// OfItems: the number of available items; Item is their state, or the name of the item.
	OfItems ViolationKind = 3
	// OfQueue: requests that must not be overtaken. The limit is 0, Used is the number of such requests, Requested is 0.
	OfQueue ViolationKind = 4
	// OfHold: the node is on hold, see [CordonNode]; the resource is empty and all amounts are 0. Reason is that of the
	// hold.
	OfHold ViolationKind = 5
)

// HolderKind is the kind of owner of a limit. The numbers are part of the snapshot format.
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

// Holder is the owner of a limit: the node, or a user or group at it.
type Holder struct {
	Kind HolderKind
	// Name of the user or group; Wildcard for the shared limit. Empty for the node.
	Name string
}

// String is the holder as text with a trailing space; empty for the node.
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

// Violation is one limit that a request would exceed.
type Violation struct {
	Tree, Node, Resource string
	// Limit is the limit in force, Used the amount held, Requested the amount of the whole request.
	Limit, Used, Requested Amount
	// Kind is the kind of limit, Holder its owner.
	Kind   ViolationKind
	Holder Holder
	// TooLarge is true if the request exceeds its cohort even when the cohort holds nothing else, which the numbers alone
	// do not show. Set since feature level 5.
	TooLarge bool
	// Item is the wanted state of the items, or the name of the wanted item.
	Item string
	// Seen is how much of it the asker may see, see [Violation.ShownAs].
	Seen TenantsSee
	// Lacking is what is missing if the numbers that say it are left out; else 0.
	Lacking Amount
	// Reason is that of a hold; empty for other kinds.
	Reason string
	// Alternative is the number of the list of AnyOf that would exceed the limit, from 1; 0 if the request has none.
	Alternative int
}

// ShownAs is the violation as it is shown to a caller who sees that much of its level: unless that is SeeTotals, limit
// and use are zero, and with SeeNothing the node is empty, too. What is missing stays, because trying would find it.
func (v Violation) ShownAs(s TenantsSee) Violation {
	if s == SeeTotals {
		return v
	}
	v.Seen, v.Lacking = s, v.Missing()
	v.Limit, v.Used, v.TooLarge, v.Reason = 0, 0, false, ""
	if v.Kind == OfQueue {
		v.Lacking = 0 // a number of requests of others
	}
	if s == SeeNothing {
		v.Node = ""
	}
	return v
}

// Missing is the amount by which the request exceeds the limit.
func (v Violation) Missing() Amount {
	if v.Seen != SeeTotals {
		return v.Lacking
	}
	return v.Used.Plus(v.Requested) - v.Limit
}

// NeverFits is true if the request alone is larger than the limit, whatever is released. A bound on borrowing cannot
// tell, because releases also reduce what is borrowed; TooLarge is used for it. It is false if the limit is not shown.
func (v Violation) NeverFits() bool {
	return v.TooLarge || v.Seen == SeeTotals && v.Kind != OfBorrowing && v.Requested > v.Limit
}

// Excess is the amount by which a request that never fits is larger than the limit; 0 if that is not shown, or does not
// follow from the limit alone.
func (v Violation) Excess() Amount {
	if !v.NeverFits() {
		return 0
	}
	return max(0, v.Requested-v.Limit)
}

// NeverFits is true if the request alone is larger than some limit, whatever is released; with alternatives, if each of
// them is.
func (d Decision) NeverFits() bool {
	for list := range d.byAlternative() {
		if !slices.ContainsFunc(list, Violation.NeverFits) {
			return false
		}
	}
	return len(d.Violations) > 0
}

func (d Decision) byAlternative() iter.Seq[[]Violation] {
	return func(yield func([]Violation) bool) {
		for rest := d.Violations; len(rest) > 0; {
			end := slices.IndexFunc(rest, func(v Violation) bool { return v.Alternative != rest[0].Alternative })
			if end < 0 {
				end = len(rest)
			}
			if !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// Explain is the decision in one sentence for people. It names every violated level, as far as MaxErrorText allows, and
// says how many more violations there are. Its cost does not grow with those.
func (d Decision) Explain() string {
	switch {
	case d.Granted && d.Alternative > 0:
		return fmt.Sprintf("granted, alternative %d", d.Alternative)
	case d.Granted:
		return "granted"
	}
	list := clauseList{}
	for i, v := range d.Violations {
		number := ""
		if i == 0 && v.Alternative > 0 || i > 0 && v.Alternative != d.Violations[i-1].Alternative {
			number = fmt.Sprintf("alternative %d: ", v.Alternative)
		}
		if !list.add(number + v.sentence() + v.hopelessness()) {
			list.addLast(fmt.Sprintf("and %d more", len(d.Violations)-i))
			break
		}
	}
	if n := len(d.Preempted); n > 0 && !d.Waiting {
		list.addLast(fmt.Sprintf(
			"leases that must be revoked first, after their grace span: %d; ask again with the mode that waits", n))
	}
	switch {
	case d.Waiting && list.text.Len() == 0:
		return "waiting: the ledger holds as much as it may"
	case d.Waiting:
		return "waiting: " + list.text.String()
	}
	return "denied: " + list.text.String()
}

// clauseList is a sentence of about MaxErrorText bytes.
type clauseList struct{ text strings.Builder }

func (l *clauseList) add(clause string) bool {
	if l.text.Len() > 0 && l.text.Len()+len(clause) > MaxErrorText-clauseReserve {
		return false
	}
	l.addLast(clause)
	return true
}

// addLast adds a short clause, for which there is always room.
func (l *clauseList) addLast(clause string) {
	if l.text.Len() > 0 {
		l.text.WriteString("; ")
	}
	l.text.WriteString(clause)
}

// clauseReserve is the room for the clauses of addLast.
const clauseReserve = 200

// hopelessness is the clause appended for a violation that releases cannot resolve.
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
	if v.Seen != SeeTotals {
		return v.shortSentence()
	}
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
	case OfHold:
		return v.holdSentence()
	case OfItems:
		return fmt.Sprintf("%s has %d of %d %s available as %s, %d requested, %d missing",
			v.Tree, v.Limit-v.Used, v.Limit, v.Resource, v.Item, v.Requested, v.Missing())
	case OfResource:
	}
	return fmt.Sprintf("%s%s%s holds %d of %d %s, %d requested, %d missing",
		v.Holder, at, Place(v.Tree, v.Node), v.Used, v.Limit, v.Resource, v.Requested, v.Missing())
}

// shortSentence has neither the limit nor how much of it is used.
func (v Violation) shortSentence() string {
	at := v.Holder.String() + "at " + Place(v.Tree, v.Node)
	if v.Seen == SeeNothing {
		at = "at a level above, in tree " + v.Tree
	}
	what := v.Resource
	switch v.Kind {
	case OfQueue:
		return "other requests wait " + at + " before this one"
	case OfHold:
		return "nothing new is admitted " + at + " while a hold stands there"
	case OfApplications:
		what = "applications"
	case OfItems:
		what += " " + v.Item
	case OfResource, OfBorrowing:
	}
	return fmt.Sprintf("too little is left %s: %d %s requested, %d missing", at, v.Requested, what, v.Missing())
}

// holdSentence names the node and the reason of its hold.
func (v Violation) holdSentence() string {
	text := "nothing new is admitted at " + Place(v.Tree, v.Node) + " until its hold ends"
	if v.Reason != "" {
		text += " (" + v.Reason + ")"
	}
	return text
}

// queueSentence describes the requests ahead of this one.
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

// Place formats a node for people: "tree:path/of/node", or "tree" for its root.
func Place(tree, path string) string {
	if path == "" {
		return tree
	}
	return tree + ":" + path
}

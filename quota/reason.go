package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reason says why an allocation was ended, or a lease revoked, with the numbers of that moment. The id of the request
// in whose favour it happened is beside it. It is immutable.
type Reason struct {
	Kind ReasonKind
	// Tree and Node are where capacity was missing, or the node that was drained. Empty for ByRelease.
	Tree, Node string
	// Share is the node whose own share the request takes back, for ByShare; else empty.
	Share string
	// Borrower is the node of the claim that ended, for ByShare, if it was counted further up; else empty.
	Borrower string
	// Priority is that of the claim that ended, RequestPriority that of the request's claim; 0 for ByDrain and ByRelease.
	Priority, RequestPriority int64
	// Amounts are the resources that were missing at Node, by resource, at most MaxReasonAmounts.
	Amounts []ReasonAmount
	// Actor has drained the node, or released the allocation; Text is the actor's reason for the drain.
	Actor, Text string
	// Grace is how long a lease was left when it was revoked, at most; 0 if the allocation ended at once.
	Grace Span
}

// ReasonAmount is one resource that was missing when an allocation was chosen to end.
type ReasonAmount struct {
	Resource string
	// Requested is what the request asks for. Missing is what its node lacked then, without what allocations chosen
	// earlier gave. Given is what the claim that ended held, which may be 0.
	Requested, Missing, Given Amount
}

// ReasonKind is the kind of a Reason. The numbers are part of the snapshot format.
type ReasonKind uint8

// The closed list of kinds.
const (
	// ByPriority: the request has a higher priority.
	ByPriority ReasonKind = 1
	// ByShare: the request fits into the share of a node, and others had borrowed that.
	ByShare ReasonKind = 2
	// ByDrain: the node of a claim, or one above it, is drained.
	ByDrain ReasonKind = 3
	// ByRelease: a caller other than the owner released or cancelled it.
	ByRelease ReasonKind = 4
)

// MadeRoom is what others gave up for an allocation: those that it preempted, and leases that were revoked for it.
type MadeRoom struct {
	// Count is the number of allocations. An allocation that is held names at most MaxPreempted of them.
	Count int
	// Totals are what they held of the resources that were missing, by tree and resource.
	Totals []RoomTotal
}

// RoomTotal is an amount of a resource of a tree.
type RoomTotal struct {
	Tree, Resource string
	Amount         Amount
}

// Add adds what one allocation gave up.
func (m *MadeRoom) Add(r *Reason) {
	m.Count++
	for _, a := range r.Amounts {
		m.addTotal(RoomTotal{r.Tree, a.Resource, a.Given})
	}
}

func (m *MadeRoom) addTotal(t RoomTotal) {
	i, known := slices.BinarySearchFunc(m.Totals, t, func(a, b RoomTotal) int {
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), cmp.Compare(a.Resource, b.Resource))
	})
	if !known {
		m.Totals = slices.Insert(m.Totals, i, t)
		return
	}
	m.Totals[i].Amount = m.Totals[i].Amount.Plus(t.Amount)
}

// String describes the reason for people, in base units.
func (r *Reason) String() string {
	if r == nil {
		return "no reason"
	}
	var parts []string
	switch r.Kind {
	case ByPriority:
		parts = append(parts, fmt.Sprintf("priority %d over %d", r.RequestPriority, r.Priority))
	case ByShare:
		parts = append(parts, "share of "+Place(r.Tree, r.Share))
	case ByDrain:
		parts = append(parts, fmt.Sprintf("drain of %s by %q for %q", Place(r.Tree, r.Node), r.Actor, r.Text))
	case ByRelease:
		parts = append(parts, "released by "+r.Actor)
	}
	for _, a := range r.Amounts {
		parts = append(parts, fmt.Sprintf("%d of %d %s missing at %s, %d given", a.Missing, a.Requested, a.Resource,
			Place(r.Tree, r.Node), a.Given))
	}
	if r.Borrower != "" {
		parts = append(parts, "borrowed by "+Place(r.Tree, r.Borrower))
	}
	if r.Grace != 0 {
		parts = append(parts, fmt.Sprintf("grace %d ms", r.Grace))
	}
	return strings.Join(parts, ", ")
}

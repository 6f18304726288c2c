package quota

// CordonNode stops admissions at a node and everywhere below it: nothing new is held there, nothing that is held
// becomes more, and no claim from below borrows further up. It counts in every mode, because a hold is not a limit.
// Renewals, releases and confirmations go on, and limits stay as they are.
//
// On a node that is on hold already, it replaces the hold. Leases that were revoked stay revoked.
type CordonNode struct {
	Meta       ChangeMeta
	Tree, Node string
	// Deny denies requests that would wait for the end of the hold. Requests that wait already keep their place.
	Deny bool
	// For is how long the hold lasts, 1 to MaxHold; 0 means until a UncordonNode.
	For Span
	// Drain also revokes the leases at the node and below: each ends after Grace, and is not extended by renewals. It is
	// 0 to MaxGrace, and 0 without Drain.
	Drain bool
	Grace Span
}

// UncordonNode ends the hold of a node and retries the requests that waited for it. It is idempotent. Leases that were
// revoked stay revoked.
type UncordonNode struct {
	Meta       ChangeMeta
	Tree, Node string
}

// NodeCordon is a hold of a node.
type NodeCordon struct {
	// Deny, Drain and Grace are those of the CordonNode.
	Deny, Drain bool
	Grace       Span
	// Until is when the hold ends by itself; 0 for never.
	Until Instant
	// Drained is true once nothing was held at the node and below, after a CordonNode with Drain.
	Drained bool
	// Since is when the node was put on hold; replacing the hold does not change it. Actor and Reason are those of the
	// last CordonNode.
	Since         Stamp
	Actor, Reason string
}

// NodeCordonInfo is a hold with its node and with what is left there.
type NodeCordonInfo struct {
	Tree, Node string
	NodeCordon
	// Used is what is held at the node and below, sorted by resource, without zeros. What borrows from further up is not
	// in it.
	Used Vector
	// IsUsed is true if a claim belongs to the node or to one below it, wherever it is counted.
	IsUsed bool
	// Revoking is true until all leases have been revoked.
	Revoking bool
}

// DrainedBy is in the place of the id of an allocation in leases that a drain has revoked. It has several spaces, so
// it is
// not a qualified id.
const DrainedBy = "a drain of a node"

// HiddenAllocation is in the place of the id of an allocation that the reader may not know. It is not a qualified id.
const HiddenAllocation = "an allocation that is hidden"

// ShownAs is the hold as it is shown to a caller who sees that much of its node: unless that is SeeTotals without who
// made it and why, and with SeeNothing without its node, too.
func (h *NodeCordonInfo) ShownAs(s TenantsSee) *NodeCordonInfo {
	if s == SeeTotals {
		return h
	}
	shown := *h
	shown.Actor, shown.Reason = "", ""
	if s == SeeNothing {
		shown.Node = ""
	}
	return &shown
}

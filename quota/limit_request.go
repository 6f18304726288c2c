package quota

import "strings"

// LimitRequest is a request for other limits of one node. A request inside a ledger is never changed in place.
type LimitRequest struct {
	// Number counts the requests from 1.
	Number uint64
	// Tree and Node are the place when the request was made, and NodeID is the identity of the node.
	Tree, Node string
	NodeID     uint64
	// Limits are sorted by resource.
	Limits []ResourceLimit
	// Asker is the user who asked, Reason says why.
	Asker, Reason string
	// Made is when the request was made. It expires at Ends unless it is closed before.
	Made Stamp
	Ends Instant
	// Approvals are in the order in which they were given. Those with another digest than the last one do not count.
	Approvals []Approval
	State     RequestState
	// Closed, ClosedBy and ClosedReason say when, by whom and why the request was closed; they are zero while it is open.
	// ClosedBy is empty if no user closed it.
	Closed                 Stamp
	ClosedBy, ClosedReason string
	// ClosedSeq orders closed requests by their ends; 0 while the request is open.
	ClosedSeq uint64
	// Revision is the revision of the configuration that has the limits; 0 unless the state is RequestApplied.
	Revision uint64
}

// Approval is the approval of a request by one user.
type Approval struct {
	User string
	// Digest is that of the request and of the limits that the user judged it on.
	Digest string
	// Wall is the wall-clock time of the approval, for people.
	Wall int64
}

// RequestState is the state of a request for limits. The numbers are part of the snapshot format.
type RequestState uint8

// The closed list of states.
const (
	// RequestOpen: it waits for approvals.
	RequestOpen RequestState = 1
	// RequestApplied: it was approved and the limits were set.
	RequestApplied RequestState = 2
	// RequestRejected: someone who may set the limits rejected it.
	RequestRejected RequestState = 3
	// RequestWithdrawn: its asker withdrew it.
	RequestWithdrawn RequestState = 4
	// RequestStale: it cannot be carried out any more.
	RequestStale RequestState = 5
	// RequestExpired: it was not decided in time.
	RequestExpired RequestState = 6
)

// String is the state as a word.
func (s RequestState) String() string {
	names := [...]string{"", "open", "applied", "rejected", "withdrawn", "stale", "expired"}
	if int(s) < len(names) && s != 0 {
		return names[s]
	}
	return "unknown"
}

// LimitRequestInfo is a request as it is shown to one caller.
type LimitRequestInfo struct {
	LimitRequest
	// Present are the present limits of the node for the resources of the request, and Digest is what an approval must
	// name. Both are empty if the request is closed, or its node or one of its resources does not exist any more.
	Present []ResourceLimit
	Digest  string
	// Needed is how many approvals the tree wants; 0 if the request is closed.
	Needed int
	// MayDecide is true if the caller may approve or reject it.
	MayDecide bool
	// NotByRule says why the rule of the parent has not approved a new request; empty if it has, if there is no rule, and
	// in lists.
	NotByRule string
}

// LimitRequestFilter selects requests for limits; zero fields select all.
type LimitRequestFilter struct {
	Number uint64
	State  RequestState
	// Tree and Node select requests for the node or a node below it.
	Tree, Node string
	Asker      string
}

// Matches reports whether the filter selects a request.
func (f LimitRequestFilter) Matches(r *LimitRequest) bool {
	return (f.Number == 0 || f.Number == r.Number) && (f.State == 0 || f.State == r.State) &&
		(f.Tree == "" || f.Tree == r.Tree && IsWithin(r.Node, f.Node)) && (f.Asker == "" || f.Asker == r.Asker)
}

// LimitRequestPage is one page of requests, in the order of their numbers.
type LimitRequestPage struct {
	Requests []LimitRequestInfo
	// Next is the number to continue after; 0 on the last page.
	Next uint64
}

// FormatLimits is a list of limits as text, such as "cores=120 memory=16Gi", with the units of the resources.
func FormatLimits(limits []ResourceLimit, unitOf func(resource string) Unit) string {
	pairs := make([]string, len(limits))
	for i, l := range limits {
		pairs[i] = l.Resource + "=" + l.Limit.In(unitOf(l.Resource))
	}
	return strings.Join(pairs, " ")
}

// Package history records what callers of a cluster asked for, when, and what they were answered.
//
// It knows nothing of the server: an operation is what a caller could write down himself. Histories are files of JSON
// lines, one operation each, so that a run can be judged again.
package history

import "slices"

// Kind is what an operation asked for.
type Kind string

// The closed list of kinds.
const (
	Allocate       Kind = "allocate"
	Renew          Kind = "renew"
	Release        Kind = "release"
	Confirm        Kind = "confirm"
	Cancel         Kind = "cancel"
	Configure      Kind = "configure"       // SetLimits or ApplyTrees; Limits says what it asked for
	ReadUsage      Kind = "read-usage"      // Usage is what it saw
	ReadAllocation Kind = "read-allocation" // Records has one
	ListHeld       Kind = "list-held"       // Records, all of one tree at one index
	ListWaiting    Kind = "list-waiting"    // Records in the order of the queue
	ReadLimits     Kind = "read-limits"     // Limits is what it saw
	// Change is one message of a watch. The first of a watch has the change WatchBegins and the position behind which it
	// begins; a watch that goes on elsewhere under the same session says nothing of it.
	Change Kind = "change"
	// BoskosAcquire, Give and Keep are acquire, release and update of the Boskos front end; the item is in Claims, the owner in ID.
	BoskosAcquire Kind = "boskos-acquire"
	BoskosRelease Kind = "boskos-release"
	BoskosUpdate  Kind = "boskos-update"
)

// WatchBegins is the change of the first operation of a watch.
const WatchBegins = "BEGINS"

// Outcome is how a call ended.
type Outcome string

// The closed list of outcomes.
const (
	// OK is an answer that says that it was done, or for MODE_WAIT that it waits.
	OK Outcome = "ok"
	// Refused is an answer of the ledger: it was decided, and changed nothing. Reason says why.
	Refused Outcome = "refused"
	// Failed certainly changed nothing: nobody carried it out.
	Failed Outcome = "failed"
	// Unknown may have been carried out, or may still be, once.
	Unknown Outcome = "unknown"
)

// Denied is the reason of a refusal that limits stand behind; all others are reasons of the API, such as ENDED.
const Denied = "DENIED"

// States of allocations as the API names them, without the prefix.
const (
	Held      = "HELD"
	Reserved  = "RESERVED"
	Waiting   = "WAITING"
	Released  = "RELEASED"
	Expired   = "EXPIRED"
	Cancelled = "CANCELLED"
	TimedOut  = "TIMED_OUT"
	Abandoned = "ABANDONED"
)

// Modes of Allocate as the API names them, without the prefix.
const (
	Reject  = ""
	Reserve = "RESERVE"
	Wait    = "WAIT"
)

// Claim is what is asked for, or held, at one node.
type Claim struct {
	Tree    string           `json:"tree"`
	Node    string           `json:"node,omitempty"`
	Amounts map[string]int64 `json:"amounts,omitempty"`
	// Items are "resource/name" of items that are held; in a request, Pick is the resource of the one that is wanted.
	Items []string `json:"items,omitempty"`
	Pick  string   `json:"pick,omitempty"`
}

// Violation is one limit that a denial names.
type Violation struct {
	Tree      string `json:"tree"`
	Node      string `json:"node,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Requested int64  `json:"requested"`
	Missing   int64  `json:"missing"`
}

// Limit is what one node may hold of one resource.
type Limit struct {
	Tree     string `json:"tree"`
	Node     string `json:"node,omitempty"`
	Resource string `json:"resource"`
	Amount   int64  `json:"amount"`
}

// Usage is the standing of one resource at one node. Limit is that in force; Unlimited if there is none.
type Usage struct {
	Tree     string `json:"tree"`
	Node     string `json:"node,omitempty"`
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Own      int64  `json:"own,omitempty"`
	Limit    int64  `json:"limit"`
	Over     int64  `json:"over,omitempty"`
}

// Unlimited is the limit where there is none.
const Unlimited = -1

// Record is an allocation as a read shows it. Expires is ledger time: the end of a lease or reservation, or for a waiting
// request the time at which it gives up.
type Record struct {
	ID       string  `json:"id"`
	State    string  `json:"state"`
	Fence    uint64  `json:"fence,omitempty"`
	Claims   []Claim `json:"claims,omitempty"`
	Expires  int64   `json:"expires,omitempty"`
	Priority int64   `json:"priority,omitempty"`
	// Place is that of a waiting request in its line, from 1.
	Place int64 `json:"place,omitempty"`
}

// Op is one call with its answer, or one message of a watch.
type Op struct {
	// Number counts operations in the order in which they were written down, from 1.
	Number int64 `json:"n"`
	// Workload and Client are who asked; a client asks for one thing at a time.
	Workload string `json:"workload"`
	Client   int    `json:"client"`
	Kind     Kind   `json:"kind"`
	// Call and Return are nanoseconds since the recorder began, by its monotonic clock.
	Call    int64   `json:"call"`
	Return  int64   `json:"return"`
	Outcome Outcome `json:"outcome"`
	// Reason is that of a refusal; for Failed and Unknown the error in words.
	Reason string `json:"reason,omitempty"`
	// Server is the address that was asked.
	Server string `json:"server,omitempty"`

	// ID is that of the allocation, or the request id of a change of configuration.
	ID       string  `json:"id,omitempty"`
	Claims   []Claim `json:"claims,omitempty"`
	Mode     string  `json:"mode,omitempty"`
	Priority int64   `json:"priority,omitempty"`
	// TTL is that of a lease, or the time of a reservation, in milliseconds.
	TTL int64 `json:"ttl,omitempty"`
	// Session joins the requests of one batch, or the messages of one watch.
	Session int64 `json:"session,omitempty"`

	// Index is that of the answer: of the entry that decided it, or if Repeated of a later one. Denials by servers of v0.4.0
	// carry none.
	Index uint64 `json:"index,omitempty"`
	// Position is the number of a change within its index.
	Position uint32 `json:"within,omitempty"`
	// Fence, State and Got are those of the allocation in the answer; Got is what it holds.
	Fence   uint64  `json:"fence,omitempty"`
	State   string  `json:"state,omitempty"`
	Granted []Claim `json:"got,omitempty"`
	// Repeated says that it had taken effect before the attempt that was answered.
	Repeated bool `json:"repeated,omitempty"`
	// Change is what a watch saw.
	Change string `json:"change,omitempty"`
	// Ledger is the ledger time of Index, Expires that of the end, in milliseconds; 0 if the answer does not say.
	Ledger     int64       `json:"ledger,omitempty"`
	Expires    int64       `json:"expires,omitempty"`
	Violations []Violation `json:"violations,omitempty"`

	// Stale says that the read asked for a stale answer, Marked that the answer says that it is one.
	Stale       bool `json:"stale,omitempty"`
	MarkedStale bool `json:"marked,omitempty"`
	// MinIndex is the index that the read insisted on.
	MinIndex uint64   `json:"least,omitempty"`
	ServedBy string   `json:"served_by,omitempty"`
	Age      int64    `json:"age,omitempty"`
	Records  []Record `json:"records,omitempty"`
	Usage    []Usage  `json:"usage,omitempty"`
	Limits   []Limit  `json:"limits,omitempty"`
	Revision uint64   `json:"revision,omitempty"`
}

// IsRead tells whether the operation asks only.
func (o *Op) IsRead() bool {
	return slices.Contains([]Kind{ReadUsage, ReadAllocation, ListHeld, ListWaiting, ReadLimits}, o.Kind)
}
